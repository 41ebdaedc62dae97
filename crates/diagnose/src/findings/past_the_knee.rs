//! Whether there were more users than the database could serve.

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "past-the-knee", question: "Did too many users lower the throughput?", find };

/// Below the highest throughput of the sweep by so much, the loss is more than scatter.
const LOSS: f64 = 0.10;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let Some(found) = evidence.scalability() else { return Vec::new() };
    let Some(best) = found.points.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput)) else {
        return Vec::new();
    };
    let Some(peak) = found.peak_users else { return Vec::new() };
    let past = evidence.points().filter_map(|point| {
        let of = found.points.iter().find(|of| of.users == point.users)?;
        let lost = 1.0 - of.throughput / best.throughput;
        (f64::from(of.users) > peak && of.users > best.users && lost >= LOSS).then(|| Finding {
            id: ABOUT.id,
            severity: Severity::Amber,
            point: Some(point.point),
            title: format!(
                "{} users reached {} less throughput than {}",
                of.users,
                percent(lost),
                best.users
            ),
            evidence: vec![
                EvidenceLine::new(
                    format!("transactions per second with {} users", best.users),
                    format!("{:.0}", best.throughput),
                ),
                EvidenceLine::new(
                    format!("transactions per second with {} users", of.users),
                    format!("{:.0}", of.throughput),
                ),
                EvidenceLine::new("peak of the fitted model", format!("{peak:.1} users")),
            ],
            effect: Effect::between(lost, lost, EffectBasis::Throughput),
            below_precision: false,
            threshold: "beyond the peak of the Universal Scalability Law and 10 % below the sweep's highest \
                throughput"
                .into(),
            next: "Quote the result at the peak, or limit the number of sessions (a connection pool); the \
                verdicts at the peak and past it show what the users queue for."
                .into(),
        })
    });
    past.collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::{Estimate, Event, Scalability, ScalabilityPoint};

    use super::*;
    use crate::scene::Scene;

    #[test]
    fn a_point_beyond_the_peak_that_lost_is_reported() {
        let estimate = Estimate { value: 1.0, low: None, high: None };
        let with = |last: f64, peak_users| {
            let points = [(1, 100.0), (2, 180.0), (4, last)];
            let found = Scalability {
                lambda: estimate,
                sigma: estimate,
                kappa: estimate,
                peak_users,
                peak_below: false,
                r_squared: None,
                points: points.map(|(users, throughput)| ScalabilityPoint { users, throughput }).to_vec(),
            };
            find(&Scene { more: vec![Event::Scalability(found)], ..Scene::healthy() }.evidence()).len()
        };
        assert_eq!((with(150.0, Some(2.4)), with(170.0, Some(2.4)), with(150.0, None)), (1, 0, 0));
        assert_eq!(find(&Scene::healthy().evidence()), []);
    }
}
