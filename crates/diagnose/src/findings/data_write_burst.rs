//! Did the data device write in bursts?

use kelvin_observe::metric;

use super::FindingDefinition;
use super::checkpoint_in_window::RECOVERY_TARGET;
use crate::{Effect, EffectBasis, Evidence, EvidenceLine, Finding, Severity};
use kelvin_measure::{SECOND, text};

pub(super) const ABOUT: FindingDefinition =
    FindingDefinition { id: "data-write-burst", question: "Did the data device write in bursts?", find };

/// The busiest second against the mean: 10 × was seen when checkpoints stalled the log (FIELD 3); half of that is reported.
const BURST: f64 = 5.0;
/// Bytes in the busiest second below which bursts do not matter.
const LITTLE: f64 = 16e6;
/// Seconds of a window below which a mean is not meaningful.
const SHORTEST: usize = 10;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let device = evidence.file_location("data").and_then(|place| place.device.as_ref());
    let name = |column: &str| device.map(|device| metric::disk(device, column));
    let window = evidence.window(point)?;
    // Where the device is not seen, the files as the server counts them.
    let (written, unit) =
        name("wkb_s").map_or((metric::DATA_WRITE_BYTES.to_owned(), 1.0), |device| (device, 1024.0));
    let seconds = seconds(evidence, &written, unit, window.from, window.to);
    let peak = seconds.iter().copied().reduce(f64::max)?;
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    if seconds.len() < SHORTEST || peak < LITTLE || peak < BURST * mean {
        return None;
    }
    let bursts = seconds.iter().filter(|written| **written >= LITTLE.max(BURST * mean)).count();
    let what = device.map_or("data files".to_owned(), |device| format!("data device {device}"));
    let mut facts = vec![
        EvidenceLine::new(format!("written to the {what}, busiest second"), text::disk_rate(peak)),
        EvidenceLine::new("mean of the window", text::disk_rate(mean)),
    ];
    if let Some(wait) = name("w_await").and_then(|name| evidence.largest(point, &name)) {
        facts.push(EvidenceLine::new(
            "mean write time in the slowest second",
            format!("{} ms", text::number(wait)),
        ));
    }
    if device.is_some() && evidence.file_location("wal").is_some_and(|log| log.device.as_ref() == device) {
        facts.push(EvidenceLine::new("the log", "is on the same device and queues behind these writes"));
    }
    let checkpoints = evidence.occurrences("checkpoint", window).count();
    facts.push(EvidenceLine::new("checkpoints in the window", checkpoints.to_string()));
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: Some(point),
        title: format!(
            "The {what} {} in bursts: {} in one second, {} on average",
            if device.is_some() { "wrote" } else { "were written" },
            text::disk_rate(peak),
            text::disk_rate(mean)
        ),
        evidence: facts,
        effect: Effect::up_to(bursts as f64 / seconds.len() as f64, EffectBasis::Throughput),
        below_precision: false,
        threshold: "five times the mean, and at least 16 MB, written in one second; bursts of ten times the \
            mean were seen when checkpoints stalled the log"
            .into(),
        next: if evidence.setting(RECOVERY_TARGET).is_some() {
            "Spread the writes: a recovery target (`ALTER DATABASE … SET TARGET_RECOVERY_TIME = 60 \
            SECONDS`) makes the background writer work continuously; put the log on a separate device."
        } else {
            "Spread checkpoints (checkpoint_completion_target = 0.9), write back earlier \
            (checkpoint_flush_after, vm.dirty_background_bytes), and put the log on a separate device."
        }
        .into(),
    })
}

/// Bytes a second by whole seconds of the window: readings may be closer together.
fn seconds(evidence: &Evidence, name: &str, unit: f64, from: u64, to: u64) -> Vec<f64> {
    let whole = (to - from) / SECOND;
    let each = |second: u64| {
        let span = crate::Span { from: from + second * SECOND, to: from + (second + 1) * SECOND };
        Some(evidence.mean_over(name, span)? * unit)
    };
    (0..whole).filter_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn found(of: impl Fn(u64) -> f64) -> Vec<Finding> {
        find(&Staged::new().place("data", "vdb").metric_by("host.disk.vdb.wkb_s", of).done())
    }

    #[test]
    fn a_second_of_many_times_the_mean_is_amber() {
        let burst = found(|t| if t == 15 { 200_000.0 } else { 2_000.0 });
        assert_eq!((burst.len(), burst[0].severity), (1, Severity::Amber));
    }

    #[test]
    fn without_a_device_it_is_the_servers_own_count() {
        let files = |t| if t == 15 { 400e6 } else { 5e6 };
        let found = find(&Staged::new().metric_by("sqlserver.file.data.write_bytes", files).done());
        assert!(found[0].title.starts_with("The data files were written in bursts"), "{}", found[0].title);
    }

    #[test]
    fn steady_little_or_unknown_writes_are_nothing() {
        assert!(found(|t| 50_000.0 + (t % 3) as f64 * 9_000.0).is_empty());
        assert!(found(|t| if t == 15 { 9_000.0 } else { 10.0 }).is_empty());
        assert!(find(&Staged::new().metric("host.disk.vdb.wkb_s", 1e6).done()).is_empty());
        assert!(find(&Staged::new().done()).is_empty());
    }
}
