//! Whether the hypervisor gave the CPUs to others.

use super::FindingDefinition;
use crate::load::{server_is_here, server_metric_name};
use crate::noise::{WANTED, is_accepted, stolen_share};
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "steal", question: "Did the hypervisor give CPU time to other VMs?", find };

/// Share of the CPU time from which steal is reported.
const BOUND: f64 = 0.02;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let here = metric::CPU_STEAL.to_owned();
    let mut names = vec![(here, if server_is_here(evidence) { "this host" } else { "the client's host" })];
    if !server_is_here(evidence) {
        names.extend(
            server_metric_name(evidence, metric::CPU_STEAL).map(|name| (name, "the database's host")),
        );
    }
    let worst = names
        .into_iter()
        .filter_map(|(name, whose)| Some((evidence.mean(point.point, &name)?, name, whose)))
        .max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (mean, name, whose) = worst;
    if mean < BOUND {
        return None;
    }
    // What is stolen was wanted: of the time in which CPUs were wanted, it is the part that was not had.
    let busy = evidence.mean(point.point, &name.replace(".steal", ".busy")).unwrap_or(1.0);
    let price = stolen_share(mean, busy);
    let most = evidence.largest(point.point, &name).unwrap_or(mean);
    let accepted = is_accepted(evidence);
    Some(Finding {
        id: ABOUT.id,
        severity: if price >= WANTED && !accepted { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!(
            "The hypervisor took {} of the CPU time of {whose}, which explains up to {} of the result{}",
            percent(mean),
            percent(price),
            if accepted { " (accepted)" } else { "" }
        ),
        evidence: vec![
            EvidenceLine::new("steal, window mean", percent(mean)),
            EvidenceLine::new("steal, maximum", percent(most)),
        ],
        effect: Effect::up_to(price, EffectBasis::Figure),
        below_precision: false,
        threshold: "steal of 2 % of the CPU time; red from 10 % of the time in which CPUs were needed".into(),
        next: "Run when other VMs on the host are quiet, on dedicated CPUs or on bare metal; interleave \
            repeats, because the load of the other VMs changes. `--accept-noise` lets the run count and \
            reports this price with its results."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    #[test]
    fn stolen_time_is_judged_by_its_size() {
        let scene = |steal| Scene::healthy().metric("host.cpu.total.steal", steal).evidence();
        assert_eq!(find(&scene(0.01)), []);
        assert_eq!(severities(&find(&scene(0.03))), [Severity::Amber]);
        assert_eq!(severities(&find(&scene(0.12))), [Severity::Red], "0.12 of 0.93");
        assert_eq!(find(&Scene::healthy().without("host.cpu").evidence()), []);
    }
}
