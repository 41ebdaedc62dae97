//! Were all of the server's worker threads in use, so that requests waited before they could begin?

use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "worker-threads", question: "Did requests wait for a worker thread?", find };

/// Seconds of such waits in a window that are reported however long it was (sp_BlitzFirst, "poison waits").
const POISON: f64 = 1.0;
/// Requests that wait at any moment from which it is a queue.
const QUEUE: f64 = 1.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let window = evidence.window(point)?;
    let queue = evidence.mean(point, metric::WORK_QUEUE).unwrap_or(0.0);
    let name = format!("{}worker_thread", metric::SERVER_WAITS);
    let waited = evidence.mean(point, &name).unwrap_or(0.0);
    if queue < QUEUE && waited * window.seconds() < POISON {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new("requests waiting for a worker thread, on average", text::number(queue)),
        EvidenceLine::new(
            "time waited for one (THREADPOOL)",
            format!("{} s per second", text::number(waited)),
        ),
    ];
    let workers = evidence.mean(point, metric::WORKERS);
    let most = evidence.setting("max_workers_count");
    facts.extend(workers.map(|workers| {
        let of = most.map_or(String::new(), |most| format!(" of {most}"));
        EvidenceLine::new("worker threads", format!("{}{of}", text::number(workers)))
    }));
    let users = f64::from(evidence.point(point)?.users);
    facts.push(EvidenceLine::new("users", text::number(users)));
    Some(Finding {
        id: ABOUT.id,
        severity: if queue.max(waited) >= QUEUE { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: format!(
            "Requests waited for a worker thread: {} on average",
            text::number(queue.max(waited))
        ),
        evidence: facts,
        // What waits has not begun: of all users that many did nothing.
        effect: Effect::up_to(queue.max(waited) / users.max(1.0), EffectBasis::Throughput),
        below_precision: false,
        threshold: "amber from 1 s of such waits in the window (sp_BlitzFirst calls them poison), red from one waiting \
            request on average"
            .into(),
        next: "Find out first what holds the threads: blocked sessions (`hot-rows`), or statements with many threads \
            (`parallelism-waits`). Fewer users, or a higher `max worker threads`, only move the queue if locks hold \
            them."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(queue: f64, waited: f64) -> Option<Severity> {
        let staged = Staged::new()
            .metric(metric::WORK_QUEUE, queue)
            .metric("sqlserver.server_waits.worker_thread", waited)
            .setting("max_workers_count", "576");
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn a_queue_is_red_and_a_second_of_it_known() {
        assert_eq!(severity(12.0, 11.0), Some(Severity::Red));
        assert_eq!(severity(0.0, 0.1), Some(Severity::Amber), "2 s of 20");
        assert_eq!(severity(0.0, 0.01), None);
        assert!(find(&Staged::new().done()).is_empty());
    }
}
