//! Whether more users would have brought more.

use super::FindingDefinition;
use crate::load::{cpus, mean_of_server, server_is_here, server_metric_name, transactions_in_flight};
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "too-few-users", question: "Would more users have increased throughput?", find };

/// The database's host has this much left.
const BUSY: f64 = 0.60;
/// Nothing that users do one after another has this share of the time.
const SERIAL: f64 = 0.20;
/// With more users for each CPU, what idles waits for something else than one more of them.
const USERS_PER_CPU: f64 = 4.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    if let Some(found) = evidence.scalability() {
        return rising(evidence, found).into_iter().collect();
    }
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

/// A sweep whose best throughput is its last.
fn rising(evidence: &Evidence, found: &kelvin_measure::event::Scalability) -> Option<Finding> {
    let most = found.points.iter().max_by_key(|point| point.users)?;
    if found.peak_users.is_some_and(|peak| peak <= f64::from(most.users)) || found.peak_below {
        return None;
    }
    let half =
        found.points.iter().filter(|point| point.users * 2 <= most.users).max_by_key(|point| point.users)?;
    let gain = most.throughput / half.throughput - 1.0;
    let point = evidence.points().find(|point| point.users == most.users)?.point;
    let facts = vec![
        EvidenceLine::new(
            format!("transactions per second with {} users", half.users),
            format!("{:.0}", half.throughput),
        ),
        EvidenceLine::new(
            format!("transactions per second with {} users", most.users),
            format!("{:.0}", most.throughput),
        ),
    ];
    let title = format!("Throughput still rose at {} users: the peak was not reached", most.users);
    let effect = Effect::unknown("the sweep ended before the throughput peak");
    (gain > 0.1).then(|| finding(Some(point), title, effect, facts))
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    if !point.arrivals.is_empty() {
        return None;
    }
    let busy = mean_of_server(evidence, point.point, metric::CPU_BUSY)?;
    let model = model(evidence, point)?;
    let of = |class| model.share(class).map_or(0.0, |share| share.share);
    let serial = of(Class::Locks) + of(Class::Latch) + of(Class::DataReads) + of(Class::DataWrites);
    let cpus = cpus(evidence).filter(|_| server_is_here(evidence));
    let many = cpus.is_some_and(|cpus| f64::from(point.users) > USERS_PER_CPU * cpus);
    if busy >= BUSY || serial >= SERIAL || many || server_metric_name(evidence, metric::CPU_BUSY).is_none() {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("users", point.users.to_string()),
        EvidenceLine::new("CPUs of the database's host in use", percent(busy)),
        EvidenceLine::new("transaction time waiting for data files, row locks and latches", percent(serial)),
    ];
    facts.extend(
        transactions_in_flight(evidence, point)
            .map(|n| EvidenceLine::new("transactions in flight", format!("{n:.2} on average"))),
    );
    let title = format!(
        "{} users left {} of the CPUs idle: more users would increase throughput",
        point.users,
        percent(1.0 - busy)
    );
    // More users cannot use more than all CPUs.
    let effect = Effect::up_to(1.0 - busy, EffectBasis::Throughput);
    Some(finding(Some(point.point), title, effect, facts))
}

fn finding(point: Option<u32>, title: String, effect: Effect, evidence: Vec<EvidenceLine>) -> Finding {
    Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point,
        title,
        evidence,
        effect,
        below_precision: false,
        threshold: "less than 60 % of the CPUs in use, less than 20 % of the time in serialized work (the \
            verdict's third step), and at most four users per CPU if the database is on this host; not \
            checked with an arrival rate. In a sweep, 10 % more throughput from the last doubling of users, \
            and no peak before its end"
            .into(),
        next:
            "Find the knee: `kelvin run … --sweep users=1..64`. A result below it measures latency, not the \
            database's capacity."
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::{Estimate, Event, Scalability, ScalabilityPoint};

    use super::*;
    use crate::scene::Scene;

    #[test]
    fn idle_cpus_without_a_queue_elsewhere_ask_for_users() {
        assert_eq!(find(&Scene::healthy().evidence()), []);
        let mut idle = Scene::healthy().metric("host.cpu.total.busy", 0.4);
        idle.client_delay = 0.0;
        assert_eq!(find(&idle.evidence()).len(), 1);
        idle.sessions = vec![("Lock", "tuple", 2.0), ("CPU", "", 1.0)];
        assert_eq!(find(&idle.evidence()), [], "users queue for a row");
        idle.sessions.clear();
        assert_eq!(find(&idle.evidence()), []);
    }

    #[test]
    fn a_sweep_that_still_rises_is_reported() {
        let estimate = Estimate { value: 1.0, low: None, high: None };
        let sweep = |throughputs: [f64; 3], peak_users| Scalability {
            lambda: estimate,
            sigma: estimate,
            kappa: estimate,
            peak_users,
            peak_below: false,
            r_squared: None,
            points: [1, 2, 4]
                .into_iter()
                .zip(throughputs)
                .map(|(users, throughput)| ScalabilityPoint { users, throughput })
                .collect(),
        };
        let with = |sweep| Scene { more: vec![Event::Scalability(sweep)], ..Scene::healthy() }.evidence();
        assert_eq!(find(&with(sweep([100.0, 190.0, 350.0], None))).len(), 1);
        assert_eq!(find(&with(sweep([100.0, 190.0, 200.0], None))), []);
        assert_eq!(find(&with(sweep([100.0, 190.0, 350.0], Some(3.0)))), []);
    }
}
