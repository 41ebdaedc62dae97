//! Did the log's flushes take longer while data was written to the same device?

use std::collections::HashMap;

use kelvin_measure::{Nanos, text};
use kelvin_observe::metric;
use kelvin_stats::student::welch_ratio;

use super::FindingDefinition;
use crate::verdict::time::model;
use crate::{Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "log-beside-data",
    question: "Did flushes of the log take longer while data was written to the same device?",
    find,
};

/// Share of the transactions' time in the log from which a separate device for it is worth a thought.
const WAITING: f64 = 0.1;
/// Flushes take so many times as long beside data writes.
const SLOWER: f64 = 1.25;
/// Seconds in each third of the window: fewer show nothing.
const FEWEST: usize = 5;
/// Other writes in a second of the busy third below which they are not what the log waits for, in B/s.
const LITTLE: f64 = 1e6;
/// Written at most beside the log's own growth with each of its flushes: the block in which it ended is written again.
const REWRITTEN: f64 = 8192.0;

/// A second of the window with flushes.
#[derive(Debug, Clone, Copy)]
struct Interval {
    flush_ms: f64,
    /// Written to the device and certainly not to the log, in B/s.
    others: f64,
}

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

/// The device of both data and log.
fn shared_device(evidence: &Evidence) -> Option<&str> {
    let device = |role: &str| evidence.file_location(role)?.device.as_deref();
    device("wal").filter(|log| device("data") == Some(*log))
}

fn intervals(evidence: &Evidence, point: u32, device: &str) -> Option<Vec<Interval>> {
    let window = evidence.window(point)?;
    let of = |column: &str| metric::disk(device, column);
    // Its readings are not of the same instants as the device's: in no second it grew faster than this.
    let log = evidence.largest(point, evidence.first_known_metric(metric::LOG_BYTES)?)?;
    let written: HashMap<Nanos, f64> = evidence
        .values_within(&of("wkb_s"), window)
        .into_iter()
        .map(|seen| (seen.to, seen.value * 1024.0))
        .collect();
    let flushes = evidence.by_request(&of("f_await"), &of("f_s"), window);
    let each = flushes.into_iter().filter(|(_, number)| *number > 0.0).filter_map(|(flush, number)| {
        let rewritten = number / flush.seconds() * REWRITTEN;
        let others = (written.get(&flush.to)? - log - rewritten).max(0.0);
        Some(Interval { flush_ms: flush.value, others })
    });
    Some(each.filter(|one| one.flush_ms > 0.0).collect())
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let device = shared_device(evidence)?;
    let model = model(evidence, point)?;
    let waiting = model.share(Class::Log).filter(|share| share.share >= WAITING)?;
    let mut seconds = intervals(evidence, point.point, device)?;
    let third = seconds.len() / 3;
    if third < FEWEST {
        return None;
    }
    seconds.sort_by(|a, b| a.others.total_cmp(&b.others));
    let times = |part: &[Interval]| part.iter().map(|one| one.flush_ms).collect::<Vec<_>>();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (calm, busy) = (&seconds[..third], &seconds[seconds.len() - third..]);
    let others = |part: &[Interval]| mean(&part.iter().map(|one| one.others).collect::<Vec<_>>());
    let ratio = welch_ratio(&times(calm), &times(busy), 0.99)?;
    if others(busy) < LITTLE.max(2.0 * others(calm)) || ratio.low <= 1.0 || ratio.ratio < SLOWER {
        return None;
    }
    let (calm_ms, busy_ms) = (mean(&times(calm)), mean(&times(busy)));
    let saved = (1.0 - calm_ms / mean(&times(&seconds))).max(0.0);
    let ms = |ms: f64, others: f64| {
        format!("{} ms, {} or more of other writes", text::number(ms), text::disk_rate(others))
    };
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point.point),
        title: format!(
            "Log and data are on {device}: a flush takes {} times as long while data is written",
            text::number(ratio.ratio)
        ),
        evidence: vec![
            EvidenceLine::new("a flush in the third of the seconds with the fewest other writes", ms(calm_ms, others(calm))),
            EvidenceLine::new("in the third with the most", ms(busy_ms, others(busy))),
            EvidenceLine::new(
                "ratio, with its 99 % interval",
                format!("{:.2} ({:.2} to {:.2})", ratio.ratio, ratio.low, ratio.high),
            ),
            EvidenceLine::new("transaction time spent writing the log", text::percent(waiting.share)),
        ],
        effect: Effect::up_to(waiting.high * saved, EffectBasis::TransactionTime),
        below_precision: false,
        threshold: "data and log on one device, 10 % of the transactions' time or more in the log, and the device's flushes take \
            1.25 times as long or more (the 99 % interval above 1) in the third of the seconds with the most other writes"
            .into(),
        next: "Put the log on a separate device, or spread the data's writes: checkpoint_completion_target = 0.9 and fewer \
            checkpoints (a larger max_wal_size) on PostgreSQL, a lower innodb_io_capacity on MySQL. `kelvin \
            advise --prove` measures the gain of a setting."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    /// A server whose other writes and flush times change from second to second.
    fn server(log_device: &str, waiting: f64, flush: impl Fn(u64) -> f64) -> Vec<Finding> {
        let is_busy = |second: u64| second % 4 >= 2;
        let wiggle = |second: u64| 1.0 + (second * 7 % 5) as f64 / 50.0;
        let staged = Staged::new()
            .place("data", "vda")
            .place("wal", log_device)
            .sessions(
                &[("client backend", "IO", "WALSync", waiting), ("client backend", "CPU", "", 4.0)],
                &[],
            )
            .metric(metric::WAL_BYTES, 2e6)
            .metric_by("host.disk.vda.wkb_s", |second| if is_busy(second) { 40_000.0 } else { 4000.0 })
            .metric("host.disk.vda.f_s", 100.0)
            .metric_by("host.disk.vda.f_await", |second| flush(u64::from(is_busy(second))) * wiggle(second));
        find(&staged.done())
    }

    #[test]
    fn flushes_that_are_slower_beside_data_writes_are_amber_with_the_ratio() {
        let found = server("vda", 4.0, |busy| if busy == 1 { 3.0 } else { 1.0 });
        assert_eq!((found.len(), found[0].severity), (1, Severity::Amber));
        assert!(found[0].title.contains("Log and data are on vda"), "{}", found[0].title);
        // Half of the time in the log, and half of a flush is the others'.
        let high = found[0].effect.high().unwrap();
        assert!(high > 0.15 && high < 0.35, "{high}");
    }

    #[test]
    fn the_blocks_that_each_flush_writes_again_are_the_logs() {
        // Flushes alone make the difference: 4,000 of 8 kB are 32 MB/s.
        let by_flushes = |each: f64| {
            let is_busy = |second: u64| second % 4 >= 2;
            let staged = Staged::new()
                .place("data", "vda")
                .place("wal", "vda")
                .sessions(
                    &[("client backend", "IO", "WALSync", 4.0), ("client backend", "CPU", "", 4.0)],
                    &[],
                )
                .metric_by(metric::WAL_BYTES, |second| if second == 12 { 8e6 } else { 2e6 })
                .metric_by("host.disk.vda.f_s", move |second| if is_busy(second) { 4000.0 } else { 100.0 })
                .metric_by("host.disk.vda.wkb_s", move |second| if is_busy(second) { each } else { 4000.0 })
                .metric_by("host.disk.vda.f_await", move |second| if is_busy(second) { 3.0 } else { 1.0 });
            find(&staged.done()).len()
        };
        assert_eq!(by_flushes(34_000.0), 0);
        assert_eq!(by_flushes(80_000.0), 1);
    }

    #[test]
    fn another_device_no_difference_or_no_waiting_is_nothing() {
        let slower = |busy| if busy == 1 { 3.0 } else { 1.0 };
        assert!(server("vdb", 4.0, slower).is_empty());
        assert!(server("vda", 4.0, |_| 2.0).is_empty());
        assert!(server("vda", 0.1, slower).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}
