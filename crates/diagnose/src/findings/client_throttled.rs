//! Whether a limit kept the load generator from CPUs that were available: a part of `client-saturated`.

use super::client_saturated::ABOUT;
use crate::load::{client_cores, client_delay, cpus, process_cores, server_is_here};
use crate::noise::client_share;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};
use kelvin_measure::text::percent;
use kelvin_observe::metric;

/// Share of the periods in which the limit throttled the group.
const STOPPED: f64 = 0.10;
const STOPPED_A_LITTLE: f64 = 0.01;

/// In an open loop, a generator that is stopped for this share of the window affects the 99th percentile.
const STOPPED_STARTS: f64 = 0.01;

/// If the load generator has this share of a group's CPU time, the group contains nothing else that matters.
const ALONE: f64 = 0.7;

/// Without a control group's counters: this many threads wait for a CPU on average, and for longer than they run, while this
/// share of the CPUs is idle. Without a limit, a scheduler would use the idle CPUs.
const WAITING: [(f64, f64); 2] = [(0.5, 0.25), (0.2, 0.40)];

/// Multiple of the wait that queueing alone explains.
const BEYOND_QUEUE: f64 = 3.0;

/// From the control group's counters, or without them, from the threads' waiting time.
pub(super) fn finding_for_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    by_group(evidence, point).or_else(|| by_delay(evidence, point))
}

/// From the control group's counters.
fn by_group(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let of = |name: &str| evidence.mean(point.point, &metric::cgroup("own", format_args!("cpu.{name}")));
    let (stopped, periods) = (of("throttled_periods")?, of("periods")?);
    let share = (periods > 0.0).then(|| stopped / periods).filter(|share| *share >= STOPPED_A_LITTLE)?;
    let limit = of("limit");
    let used = client_cores(evidence, point);
    let mut facts = vec![EvidenceLine::new("periods throttled by the limit", percent(share))];
    if let Some(limit) = limit {
        facts.push(EvidenceLine::new("CPU limit of its control group", format!("{limit:.2} CPUs")));
    }
    if let Some(used) = used {
        facts.push(EvidenceLine::new("CPUs used by the load generator", format!("{used:.2}")));
    }
    if let Some(server) = process_cores(evidence, point.point, "server").filter(|_| server_is_here(evidence))
    {
        facts.push(EvidenceLine::new("CPUs used by the database on this host", format!("{server:.2}")));
    }
    // If the group also contains the database, its limit is the size of the machine under test.
    let alone = of("usage").or(limit).zip(used).is_none_or(|(all, used)| used >= ALONE * all);
    // Also if it was throttled only for a while.
    let open = point.window.as_ref().is_some_and(|window| window.schedule.is_some());
    let late = open && of("throttled").is_some_and(|stopped| stopped >= STOPPED_STARTS);
    // It was throttled for at most the whole of each such period.
    let effect = Effect::up_to(of("throttled").unwrap_or(share), EffectBasis::TransactionTime);
    let severity = if (share >= STOPPED || late) && alone { Severity::Red } else { Severity::Amber };
    Some(finding(point, severity, effect, facts))
}

/// From the time that its threads waited for a CPU while CPUs were idle.
fn by_delay(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let (used, delay) = (client_cores(evidence, point)?, client_delay(evidence, point)?);
    let busy = evidence.mean(point.point, metric::CPU_BUSY)?;
    let idle = 1.0 - busy;
    let expected = used * queueing(busy, cpus(evidence)?);
    let waits = WAITING.iter().any(|(threads, room)| delay >= *threads && idle >= *room);
    if !waits || delay < used || delay < BEYOND_QUEUE * expected {
        return None;
    }
    let facts = vec![
        EvidenceLine::new("load generator threads waiting for a CPU", format!("{delay:.2} on average")),
        EvidenceLine::new("CPUs used by the load generator", format!("{used:.2}")),
        EvidenceLine::new("threads expected to wait on a host this busy", format!("{expected:.2}")),
        EvidenceLine::new("idle CPU time of the host", percent(idle)),
    ];
    let share = client_share(evidence, point);
    let effect =
        Effect::up_to_or(share, EffectBasis::TransactionTime, "the number of active users is not known");
    Some(finding(point, Severity::Red, effect, facts))
}

/// Waiting over running at `cpus` CPUs of which the share `busy` is in use: ρ^(√(2(c + 1)) − 1) / (c(1 − ρ)), exact for one
/// CPU and Poisson arrivals, close for more (Sakasegawa, Annals of the Institute of Statistical Mathematics 29, 1977).
fn queueing(busy: f64, cpus: f64) -> f64 {
    busy.powf((2.0 * (cpus + 1.0)).sqrt() - 1.0) / (cpus * (1.0 - busy))
}

fn finding(
    point: &PointEvidence,
    severity: Severity,
    effect: Effect,
    evidence: Vec<EvidenceLine>,
) -> Finding {
    Finding {
        id: ABOUT.id,
        severity,
        point: Some(point.point),
        title: "A CPU limit throttled the load generator: it could not generate more load".into(),
        evidence,
        effect,
        below_precision: false,
        threshold: "amber when the limit throttles 1 % of the control group's periods, red from 10 %, or \
            with a rate from 1 % of the window (cpu.stat); without cpu.stat, red when on average 0.5 threads \
            wait for a CPU although 25 % of the CPUs are idle (or 0.2 threads, 40 % idle), and threads wait \
            longer than they run and three times as long as queueing theory predicts (schedstat)"
            .into(),
        next: "Raise the limit (`cpu.max`, `docker --cpus`, `CPUQuota=`, `limits.cpu`, an affinity to too \
            few CPUs) of the load generator, or run it elsewhere."
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::ArrivalSchedule;

    use super::*;
    use crate::scene::{Scene, severities};

    fn find(evidence: &Evidence) -> Vec<Finding> {
        evidence.points().filter_map(|point| finding_for_point(evidence, point)).collect()
    }

    fn group(periods: f32, limit: f32) -> Scene {
        let scene = Scene::healthy().metric("host.cgroup.own.cpu.periods", 10.0);
        scene
            .metric("host.cgroup.own.cpu.throttled_periods", periods)
            .metric("host.cgroup.own.cpu.limit", limit)
    }

    #[test]
    fn queues_have_their_known_lengths() {
        assert!((queueing(0.6, 1.0) - 1.5).abs() < 1e-12, "ρ/(1 − ρ)");
        // Erlang's C for two CPUs: ρ²/(1 − ρ²).
        assert!((queueing(0.6, 2.0) / 0.5625 - 1.0).abs() < 0.07);
    }

    #[test]
    fn its_control_group_is_believed() {
        assert_eq!(severities(&find(&group(8.0, 0.6).evidence())), [Severity::Red]);
        assert_eq!(severities(&find(&group(0.5, 0.6).evidence())), [Severity::Amber], "a twentieth");
        assert_eq!(
            severities(&find(&group(8.0, 2.0).evidence())),
            [Severity::Amber],
            "the database is in it, too"
        );
        assert_eq!(find(&group(0.0, 2.0).evidence()), []);
    }

    #[test]
    fn trial_d3_a_limit_from_which_it_recovered_within_the_window_is_reported_too() {
        // For two of sixty seconds: 3 % of the periods, and throttled for half of each.
        let schedule = ArrivalSchedule {
            rate: 200.0,
            due: 4000,
            refused: 0,
            waiting: 0,
            waiting_at_close: Some(0),
            cut_off: 0,
            longest: 400,
        };
        let group = |usage: f32| {
            let scene = group(0.3, 0.2).metric("host.cgroup.own.cpu.throttled", 0.015);
            scene.metric("host.cgroup.own.cpu.usage", usage)
        };
        assert_eq!(severities(&find(&group(0.6).evidence())), [Severity::Amber], "a closed loop loses 1.5 %");
        let open = |usage| Scene { schedule: Some(schedule), ..group(usage) };
        assert_eq!(severities(&find(&open(0.6).evidence())), [Severity::Red]);
        assert_eq!(severities(&find(&open(1.8).evidence())), [Severity::Amber], "the database is in it, too");
    }

    #[test]
    fn waiting_beside_idle_cpus_is_a_limit_and_beside_busy_ones_is_not() {
        let mut scene = Scene::healthy().metric("host.cpu.total.busy", 0.4);
        assert_eq!(find(&scene.evidence()), []);
        (scene.client_cpu, scene.client_delay) = (0.2, 2.4);
        assert_eq!(severities(&find(&scene.evidence())), [Severity::Red]);
        assert_eq!(find(&scene.without("host.cpu").evidence()), []);
        let mut weak = Scene::healthy().metric("host.cpu.total.busy", 0.45);
        (weak.client_cpu, weak.client_delay) = (0.2, 0.33);
        assert_eq!(
            severities(&find(&weak.evidence())),
            [Severity::Red],
            "a quota used up in two thirds of its period"
        );
        weak.environment["client_host"]["cpu"]["threads"] = 1.into();
        assert_eq!(find(&weak.evidence()), [], "one CPU: a queue explains it");
        let mut busy = Scene::healthy();
        busy.client_delay = 3.0;
        assert_eq!(find(&busy.evidence()), []);
    }
}
