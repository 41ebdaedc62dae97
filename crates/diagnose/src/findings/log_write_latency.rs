//! Whether commits waited for the log.

use kelvin_measure::observation::WaitGroup;

use super::About;
use crate::load::{asked, percent};
use crate::verdict::time::model;
use crate::{Class, Evidence, Fact, Finding, PointEvidence, Severity};

pub(super) const ABOUT: About =
    About { id: "log-write-latency", question: "Did commits wait for the log to reach its device?", look };

/// The share from which on a class limits.
const SHARE: f64 = 0.40;
/// A log write slower than this is worth mending: Microsoft's guidance for log files, as sp_BlitzFirst asks for it.
const SLOW_MS: f64 = 3.0;

/// With users in a transaction for less of their time than this, their own pace decides, and not what they wait for.
const PACED: f64 = 0.5;

fn look(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of(evidence, point)).collect()
}

fn of(evidence: &Evidence, point: &PointEvidence) -> Option<Finding> {
    let model = model(evidence, point)?;
    let share = model.share(Class::Log).filter(|share| share.share >= SHARE)?;
    let sync = sync_ms(evidence, point.point);
    let paced = asked(evidence, point).is_some_and(|share| share < PACED);
    let red = !paced && share.low >= SHARE * 0.75 && sync.as_ref().is_some_and(|(ms, _)| *ms >= SLOW_MS);
    let mut facts = vec![Fact::new(
        "time of transactions in writing the log",
        format!("{} ({} to {})", percent(share.share), percent(share.low), percent(share.high)),
    )];
    facts.extend(sync.as_ref().map(|(ms, how)| Fact::new("a flush of the log", format!("{ms:.2} ms {how}"))));
    facts.extend(
        evidence
            .mean(point.point, "postgres.wal.syncs")
            .map(|rate| Fact::new("flushes a second", format!("{rate:.0}"))),
    );
    facts.extend(
        evidence
            .mean(point.point, "postgres.wal.bytes")
            .map(|rate| Fact::new("log written", format!("{:.1} MB/s", rate / 1e6))),
    );
    if let Some(device) = evidence.place("wal").and_then(|place| place.device.as_deref()) {
        for (kind, what) in [("w", "a write to"), ("f", "a flush of")] {
            facts.extend(
                request_ms(evidence, point.point, device, kind)
                    .map(|ms| Fact::new(format!("{what} the log's device {device}"), format!("{ms:.2} ms"))),
            );
        }
    }
    let title = match &sync {
        Some((ms, _)) => format!(
            "Commits waited for the log for {} of their time, {ms:.1} ms a flush",
            percent(share.share)
        ),
        None => format!("Transactions spent {} of their time in writing the log", percent(share.share)),
    };
    Some(Finding {
        id: ABOUT.id,
        severity: if red { Severity::Red } else { Severity::Amber },
        point: Some(point.point),
        title,
        evidence: facts,
        threshold: "40 % of the transactions' time; red when that is surely 30 % or more (95 % interval), users are in a \
                    transaction for half of their time or more, and a flush takes 3 ms or more, the guidance for log files \
                    (Microsoft; sp_BlitzFirst)"
            .into(),
        next: "Compare the flush with the device's own time: if the device is fast, what lies above it is not (file system, \
               limits such as `io.max`, a virtual disk). Put the log on a device of its own with a protected write cache; \
               more users share a flush (group commit)."
            .into(),
    })
}

/// Milliseconds of a flush and how they were told: by the database's own clock where it is on, else by Little's law from the
/// sessions that were seen in one, else by the device.
fn sync_ms(evidence: &Evidence, point: u32) -> Option<(f64, &'static str)> {
    let rate = evidence.mean(point, "postgres.wal.syncs").filter(|rate| *rate > 0.0);
    let timed = evidence.mean(point, "postgres.wal.sync_ms").filter(|ms| *ms > 0.0);
    if let (Some(rate), Some(ms)) = (rate, timed) {
        return Some((ms / rate, "by the database's clock"));
    }
    let flushing = |group: &WaitGroup| group.class == "IO" && group.event == "WALSync";
    let sessions = evidence.active(point, flushing).sessions();
    if let Some(rate) = rate {
        return (sessions > 0.0)
            .then_some((sessions / rate * 1e3, "by sessions seen in it and flushes a second"));
    }
    let device = evidence.place("wal")?.device.as_deref()?;
    let ms = request_ms(evidence, point, device, "f")?;
    (ms > 0.0).then_some((ms, "by its device"))
}

/// Mean time of a device's requests of one kind in the window.
fn request_ms(evidence: &Evidence, point: u32, device: &str, kind: &str) -> Option<f64> {
    let of = |column: &str| format!("host.disk.{device}.{kind}_{column}");
    evidence.mean_by_request(&of("await"), &of("s"), evidence.window(point)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::{Scene, severities};

    fn scene(syncs: f32) -> Scene {
        let mut scene =
            Scene::healthy().metric("host.cpu.total.busy", 0.4).metric("postgres.wal.syncs", syncs);
        scene.sessions = vec![("IO", "WALSync", 0.9), ("LWLock", "WALWrite", 1.6), ("CPU", "", 0.5)];
        scene.client_delay = 0.05;
        scene
    }

    #[test]
    fn slow_flushes_are_red_and_fast_ones_are_told() {
        assert_eq!(look(&Scene::healthy().evidence()), []);
        assert_eq!(severities(&look(&scene(900.0).evidence())), [Severity::Amber], "1 ms");
        let found = look(&scene(90.0).evidence());
        assert_eq!(severities(&found), [Severity::Red], "10 ms");
        assert!(
            found[0].evidence[1].found.starts_with("10.0") || found[0].evidence[1].found.starts_with("9.9"),
            "{found:?}"
        );
    }

    #[test]
    fn the_database_clock_comes_first_and_the_device_last() {
        let timed = scene(90.0).metric("postgres.wal.sync_ms", 90.0);
        assert_eq!(severities(&look(&timed.evidence())), [Severity::Amber]);
        let mut device = scene(90.0)
            .without("postgres.")
            .metric("host.disk.vdb.f_await", 8.0)
            .metric("host.disk.vdb.f_s", 90.0);
        assert_eq!(severities(&look(&device.evidence())), [Severity::Amber], "nothing says how slow");
        device.log_device = Some("vdb");
        assert_eq!(severities(&look(&device.evidence())), [Severity::Red]);
        device.sessions.clear();
        assert_eq!(look(&device.evidence()), []);
    }
}
