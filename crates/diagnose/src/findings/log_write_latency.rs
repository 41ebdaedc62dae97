//! Whether commits waited for the log.

use kelvin_measure::observation::{WaitGroup, WaitKind};
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::load::busy_user_share;
use crate::verdict::time::model;
use crate::{
    Class, Effect, EffectBasis, Evidence, EvidenceLine, Finding, PointEvidence, Severity, is_client,
};
use kelvin_measure::text::percent;

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "log-write-latency",
    question: "Did commits wait for the log to reach its device?",
    find,
};

/// The share from which on a class limits.
const SHARE: f64 = 0.40;
/// Only InnoDB has it.
const REDO_BYTES: &str = metric::LOG_BYTES[1];
/// A slower log flush should be fixed: Microsoft's guideline for log files, as sp_BlitzFirst uses it.
const SLOW_MS: f64 = 3.0;

/// If users are in a transaction for less of their time than this, their own pace decides, and not their waits.
const PACED: f64 = 0.5;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point)).collect()
}

fn of_point(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let model = model(evidence, point)?;
    let share = model.share(Class::Log).filter(|share| share.share >= SHARE)?;
    let sync = flush(evidence, point.point);
    let paced = busy_user_share(evidence, point).is_some_and(|share| share < PACED);
    let red = !paced && share.low >= SHARE * 0.75 && sync.as_ref().is_some_and(|sync| sync.ms >= SLOW_MS);
    let mut facts = vec![EvidenceLine::new(
        "transaction time spent writing the log",
        format!("{} ({} to {})", percent(share.share), percent(share.low), percent(share.high)),
    )];
    facts.extend(sync.as_ref().map(|sync| {
        EvidenceLine::new("time of a log flush", format!("{}{:.2} ms {}", sync.at_least, sync.ms, sync.how))
    }));
    facts.extend(
        evidence
            .mean_of_first_known(point.point, metric::LOG_SYNCS)
            .map(|rate| EvidenceLine::new("flushes per second", format!("{rate:.0}"))),
    );
    facts.extend(
        evidence
            .mean_of_first_known(point.point, metric::LOG_BYTES)
            .map(|rate| EvidenceLine::new("log written", format!("{:.1} MB/s", rate / 1e6))),
    );
    let mut of_device: Option<f64> = None;
    if let Some(device) = evidence.file_location("wal").and_then(|place| place.device.as_deref()) {
        for (kind, what) in [("w", "a write to"), ("f", "a flush of")] {
            let ms = request_ms(evidence, point.point, device, kind);
            facts.extend(ms.map(|ms| {
                EvidenceLine::new(format!("{what} the log device {device}"), format!("{ms:.2} ms"))
            }));
            of_device = ms.map(|ms| of_device.map_or(ms, |of| of.max(ms))).or(of_device);
        }
    }
    let title = match &sync {
        Some(Flush { ms, at_least, .. }) => format!(
            "Commits waited for the log for {} of their time, {at_least}{ms:.1} ms per flush",
            percent(share.share)
        ),
        None => format!("Transactions spent {} of their time writing the log", percent(share.share)),
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title,
        evidence: facts,
        effect: Effect::between(share.low, share.high, EffectBasis::TransactionTime),
        below_precision: false,
        threshold:
            "40 % of the transactions' time spent waiting for the log; red when its 95 % interval lies above \
            30 %, users are in a transaction for half of their time or more, and a flush takes 3 ms or more \
            (Microsoft's guideline for log files, used by sp_BlitzFirst)"
                .into(),
        next: next_step(sync.map(|sync| sync.ms), of_device),
    })
}

/// The remedy, depending on where the time is spent: in the device, or in the layers above it.
fn next_step(flush: Option<f64>, device: Option<f64>) -> String {
    let whose = match flush.zip(device) {
        Some((flush, device)) if device >= flush / 2.0 => {
            "Most of a flush is the device's own time: put the log on a faster device, one with a \
            power-protected write cache."
        }
        Some(_) => {
            "The device takes less than half of a flush: look at the layers above it (file system, limits \
            such as `io.max`, a virtual disk)."
        }
        None => {
            "Compare the flush with the device's own time: if the device is fast, the layers above it are \
            slow (file system, limits such as `io.max`, a virtual disk). Put the log on a separate device \
            with a power-protected write cache."
        }
    };
    format!("{whose} With more users, more commits share a flush (group commit).")
}

/// The time of a log flush, and how it was found.
struct Flush {
    ms: f64,
    /// "at least ", if only a bound is known.
    at_least: &'static str,
    how: &'static str,
}

/// By the database's own timing if it is on, else by Little's law from the sessions sampled in a flush. A server that
/// does not count its flushes (PostgreSQL 13) made at most one per commit. A request of the log's device is not a
/// flush: the filesystem combines several requests into one flush, and waits for more than the device.
fn flush(evidence: &Evidence, point: u32) -> Option<Flush> {
    let rate = evidence.mean_of_first_known(point, metric::LOG_SYNCS).filter(|rate| *rate > 0.0);
    let timed = evidence.mean_of_first_known(point, metric::LOG_SYNC_MS).filter(|ms| *ms > 0.0);
    if let (Some(rate), Some(ms)) = (rate, timed) {
        return Some(Flush { ms: ms / rate, at_least: "", how: "by the database's clock" });
    }
    let flushing = |group: &WaitGroup| group.kind == WaitKind::LogFlush;
    let sessions = evidence.active(point, flushing).sessions();
    let commits = evidence.mean_of_first_known(point, metric::COMMITS).filter(|rate| *rate > 0.0);
    let (rate, at_least, how) = match (rate, commits) {
        (Some(rate), _) => (rate, "", "from sampled sessions and flushes per second"),
        (None, Some(rate)) => (rate, "at least ", "from sampled sessions and commits per second"),
        (None, None) => return None,
    };
    let seen = (sessions > 0.0).then_some(Flush { ms: sessions / rate * 1e3, at_least, how });
    let bound = by_waiting(evidence, point, rate);
    match (seen, bound) {
        (Some(seen), Some(bound)) if seen.ms >= bound.ms => Some(seen),
        (seen, bound) => bound.or(seen),
    }
}

/// InnoDB makes one flush after the other, each for all who wait: while a session waits for the log, one is under way. The session
/// that makes it is not always seen in it: MySQL's are made by a thread of its own. As the binary log's syncs are waited for, too,
/// and are others, this is only known without them.
fn by_waiting(evidence: &Evidence, point: u32, rate: f64) -> Option<Flush> {
    let binlog = evidence.mean(point, metric::BINLOG_SYNCS).unwrap_or(0.0)
        + evidence.mean(point, metric::BINLOG_BYTES).unwrap_or(0.0);
    if evidence.mean(point, REDO_BYTES).is_none() || binlog > 0.0 {
        return None;
    }
    let of_log = |group: &WaitGroup| is_client(group) && Class::from_wait_group(group) == Some(Class::Log);
    let waiting = evidence.active(point, of_log).sessions();
    // The part of the window in which one of them waits is at least that in which each does, on average.
    let share = (waiting / f64::from(evidence.point(point)?.users.max(1))).min(1.0);
    let how = "from sampled sessions that waited for one and flushes per second";
    (share > 0.0).then_some(Flush { ms: share / rate * 1e3, at_least: "at least ", how })
}

/// Mean time of a device's requests of one kind in the window.
fn request_ms(evidence: &Evidence, point: u32, device: &str, kind: &str) -> Option<f64> {
    let of = |column: &str| metric::disk(device, format_args!("{kind}_{column}"));
    evidence.mean_by_request(&of("await"), &of("s"), evidence.window(point)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_d8_the_advice_makes_the_comparison_that_it_can_make() {
        assert!(next_step(Some(3.0), Some(2.6)).starts_with("Most of a flush is the device's"));
        assert!(next_step(Some(3.0), Some(0.2)).starts_with("The device takes less than half"));
        assert!(next_step(Some(3.0), None).starts_with("Compare"));
    }

    use crate::scene::{Scene, severities};

    fn scene(syncs: f32) -> Scene {
        let mut scene =
            Scene::healthy().metric("host.cpu.total.busy", 0.4).metric("postgres.wal.syncs", syncs);
        scene.sessions = vec![("IO", "WALSync", 0.9), ("LWLock", "WALWrite", 1.6), ("CPU", "", 0.5)];
        scene.client_delay = 0.05;
        scene
    }

    #[test]
    fn slow_flushes_are_red_and_fast_ones_are_amber() {
        assert_eq!(find(&Scene::healthy().evidence()), []);
        assert_eq!(severities(&find(&scene(900.0).evidence())), [Severity::Amber], "1 ms");
        let found = find(&scene(90.0).evidence());
        assert_eq!(severities(&found), [Severity::Red], "10 ms");
        assert!(
            found[0].evidence[1].found.starts_with("10.0") || found[0].evidence[1].found.starts_with("9.9"),
            "{found:?}"
        );
    }

    #[test]
    fn a_flush_that_nobody_is_seen_in_takes_at_least_what_all_wait_for_it() {
        let on = |engine: usize| {
            let mut scene = scene(90.0)
                .without("postgres.")
                .metric(metric::LOG_BYTES[engine], 1e6)
                .metric(metric::LOG_SYNCS[engine], 90.0);
            scene.sessions = vec![("IO", "WALSync", 0.05), ("LWLock", "WALWrite", 2.45), ("CPU", "", 0.5)];
            scene
        };
        assert_eq!(severities(&find(&on(0).evidence())), [Severity::Amber], "0.6 ms");
        let found = find(&on(1).evidence());
        assert_eq!(severities(&found), [Severity::Red]);
        assert!(found[0].title.contains(", at least "), "{}", found[0].title);
        let both = on(1).metric("mysql.binlog.bytes", 1e5);
        assert_eq!(
            severities(&find(&both.evidence())),
            [Severity::Amber],
            "the other log's syncs are not counted"
        );
    }

    #[test]
    fn the_database_clock_comes_first() {
        let timed = scene(90.0).metric("postgres.wal.sync_ms", 90.0);
        assert_eq!(severities(&find(&timed.evidence())), [Severity::Amber]);
    }

    #[test]
    fn trial_b12_a_devices_request_is_not_called_a_flush_where_the_server_counts_none() {
        let mut uncounted = scene(90.0)
            .without("postgres.")
            .metric("host.disk.vdb.f_await", 0.1)
            .metric("host.disk.vdb.f_s", 9000.0);
        uncounted.log_device = Some("vdb");
        let found = find(&uncounted.evidence());
        assert_eq!(severities(&found), [Severity::Amber], "nothing says how slow");
        assert!(!found[0].title.contains("per flush"), "{}", found[0].title);
        // 0.9 sessions in a flush, 360 commits per second: 2.5 ms if each had a separate flush, more if they shared
        // flushes.
        let found = find(&uncounted.metric("postgres.transactions.commit", 360.0).evidence());
        assert!(found[0].title.contains("at least 2.5 ms per flush"), "{}", found[0].title);
    }
}
