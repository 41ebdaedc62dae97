//! Did a CPU limit stop the server, although the host had CPUs to spare?

use super::FindingDefinition;
use crate::load::process_cores;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "server-throttled", question: "Did a CPU limit throttle the server?", find };

/// Share of the periods in which the limit stopped the group: those of `client-saturated`.
const STOPPED: f64 = 0.10;
const STOPPED_A_LITTLE: f64 = 0.01;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let of = |name: &str| evidence.mean(point.point, &metric::cgroup("server", format_args!("cpu.{name}")));
    let (stopped, periods) = (of("throttled_periods")?, of("periods")?);
    let share = (periods > 0.0).then(|| stopped / periods).filter(|share| *share >= STOPPED_A_LITTLE)?;
    let mut facts = vec![EvidenceLine::new("periods in which the limit stopped the server", percent(share))];
    if let Some(limit) = of("limit") {
        facts.push(EvidenceLine::new("CPU limit of its control group", format!("{limit:.2} CPUs")));
    }
    if let Some(used) = process_cores(evidence, point.point, "server") {
        facts.push(EvidenceLine::new("CPUs used by the server", format!("{used:.2}")));
    }
    if let Some(busy) = evidence.mean(point.point, metric::CPU_BUSY) {
        facts.push(EvidenceLine::new("idle CPU time of the host", percent(1.0 - busy)));
    }
    Some(Finding {
        id: ABOUT.id,
        severity: if share >= STOPPED { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title: format!("A CPU limit throttled the server in {} of its periods", percent(share)),
        evidence: facts,
        // It was stopped for at most the whole of each such period.
        effect: Effect::up_to(share, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "amber when the limit stops the server's control group in 1 % of its periods, red from \
            10 % (cpu.stat)"
            .into(),
        next: "Raise the limit of the server's control group (`cpu.max`, `docker --cpus`, `CPUQuota=`, \
            `limits.cpu`), or state it with the result: the result is that of a smaller machine."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(throttled: f64) -> Option<Severity> {
        let staged = Staged::new()
            .metric("host.cgroup.server.cpu.throttled_periods", throttled)
            .metric("host.cgroup.server.cpu.periods", 10.0)
            .metric("host.cgroup.server.cpu.limit", 0.5);
        find(&staged.done()).first().map(|found| found.severity)
    }

    #[test]
    fn a_limit_that_stops_the_server_is_red_and_one_that_is_never_reached_is_nothing() {
        assert_eq!(severity(4.0), Some(Severity::Red));
        assert_eq!(severity(0.5), Some(Severity::Amber));
        assert_eq!(severity(0.0), None);
        assert!(find(&Staged::new().done()).is_empty());
    }
}
