//! Whether the hypervisor gave the CPUs to others.

use kelvin_stats::ess::precision;

use super::About;
use crate::load::{of_server, percent, server_is_here};
use crate::{Evidence, Fact, Finding, PointEvidence, Seen, Severity};

pub(super) const ABOUT: About =
    About { id: "steal", question: "Did the hypervisor give the CPUs to other machines?", look };

/// the validity gate of the verdict.
const BOUND: f64 = 0.02;
/// Where the figure is another machine's matter as much as this one's.
const RED: f64 = 0.05;

fn look(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of(evidence, point)).collect()
}

fn of(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let here = "host.cpu.total.steal".to_owned();
    let mut names = vec![(here, if server_is_here(evidence) { "this host" } else { "the client's host" })];
    if !server_is_here(evidence) {
        names.extend(of_server(evidence, "host.cpu.total.steal").map(|name| (name, "the database's host")));
    }
    let worst = names
        .into_iter()
        .filter_map(|(name, whose)| Some((evidence.mean(point.point, &name)?, name, whose)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (mean, name, whose) = worst;
    if mean < BOUND {
        return None;
    }
    let values: Vec<f64> =
        evidence.seen(&name, evidence.window(point.point)?).iter().map(|s: &Seen| s.value).collect();
    let half = precision(&values).and_then(|precision| precision.half_width(0.95));
    let sure = half.is_some_and(|half| mean - half >= BOUND);
    let most = values.iter().copied().fold(0.0, f64::max);
    Some(Finding {
        id: ABOUT.id,
        severity: if mean >= RED && sure { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("The hypervisor took {} of the CPU time of {whose}", percent(mean)),
        evidence: vec![
            Fact::new("steal, mean of the window", format!("{} ± {}", percent(mean), half.map_or("?".into(), percent))),
            Fact::new("steal, largest", percent(most)),
        ],
        threshold: "2 % of the CPU time (the validity gate of the verdict); red from 5 % when the 95 % interval lies above 2 %".into(),
        next: "Run when the neighbours are quiet, on dedicated CPUs or on metal; repeat interleaved, since neighbours change."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn stolen_time_is_told_by_its_size() {
        let scene = |steal| Scene::healthy().metric("host.cpu.total.steal", steal).evidence();
        assert_eq!(look(&scene(0.01)), []);
        assert_eq!(severities(&look(&scene(0.03))), [Severity::Amber]);
        assert_eq!(severities(&look(&scene(0.12))), [Severity::Red]);
        assert_eq!(look(&Scene::healthy().without("host.cpu").evidence()), []);
    }
}
