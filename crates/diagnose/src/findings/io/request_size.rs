//! Whether the device received I/Os of the requested length.

use kelvin_measure::text;
use kelvin_storage::Direction;
use kelvin_storage::probe::StorageFacts;

use super::{IoFindingDefinition, all_direct, counted, share};
use crate::{Effect, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: IoFindingDefinition = IoFindingDefinition {
    id: "io-request-size",
    question: "Did the device receive I/Os of the requested length, or were they split or merged?",
    find,
};

/// The maximum relative difference between the mean length at the device and the jobs'.
const APART: f64 = 0.1;
/// The device's bytes must be the jobs' for its requests to be: within this of each other.
const SAME: f64 = 0.2;
/// Minimum number of I/Os.
const FEWEST: u64 = 100;

fn find(facts: &StorageFacts) -> Vec<Finding> {
    [Direction::Read, Direction::Write]
        .into_iter()
        .filter_map(|direction| of_direction(facts, direction))
        .collect()
}

fn of_direction(facts: &StorageFacts, direction: Direction) -> Option<Finding> {
    let run = facts.run.as_ref()?;
    let (ios, bytes) = (run.ios[direction], run.claimed[direction]);
    let (device_ios, device_bytes) = counted(facts, run)
        .fold((0, 0), |(ios, bytes), device| (ios + device.ios[direction], bytes + device.bytes[direction]));
    // Through the page cache the kernel reads ahead and writes back with other lengths.
    if ios < FEWEST || device_ios == 0 || !all_direct(facts, direction) {
        return None;
    }
    if (device_bytes as f64 / bytes as f64 - 1.0).abs() > SAME {
        return None;
    }
    let (asked, seen) = (bytes as f64 / ios as f64, device_bytes as f64 / device_ios as f64);
    let how = if seen < asked * (1.0 - APART) {
        "split"
    } else if seen > asked * (1.0 + APART) {
        "merged"
    } else {
        return None;
    };
    let merges: u64 = counted(facts, run).map(|device| device.merges[direction]).sum();
    let seconds = run.seconds.max(f64::MIN_POSITIVE);
    let mut evidence = vec![
        EvidenceLine::new(
            format!("{direction}s of the jobs"),
            format!("{} per second of {}", text::rounded(ios as f64 / seconds), text::storage(asked)),
        ),
        EvidenceLine::new(
            format!("{direction}s of the device"),
            format!("{} per second of {}", text::rounded(device_ios as f64 / seconds), text::storage(seen)),
        ),
        EvidenceLine::new("merged by the kernel", text::percent(share(merges, merges + device_ios))),
    ];
    let device = facts.devices.iter().find(|device| device.queue.longest.is_some());
    if let Some((device, longest)) = device.and_then(|device| Some((device, device.queue.longest?))) {
        evidence.push(EvidenceLine::new(
            format!("longest request of {}", device.disk),
            text::storage(longest as f64),
        ));
        let chunk = device
            .queue
            .chunk
            .map(|chunk| EvidenceLine::new("no request crosses a multiple of", text::storage(chunk as f64)));
        evidence.extend(chunk);
    }
    let next = if how == "split" {
        "Quote both lengths; to make them agree, use a smaller `bs=`, or raise queue/max_sectors_kb if the \
        device allows it (max_hw_sectors_kb)."
    } else {
        "Quote bandwidth, and the device's I/Os per second; `echo 2 > queue/nomerges` shows the difference."
    };
    Some(Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "The device's {direction}s were {how}: {} each, not {}",
            text::storage(seen),
            text::storage(asked)
        ),
        evidence,
        effect: Effect::unknown("the time of a request of the requested length was not measured"),
        below_precision: false,
        threshold: "the mean lengths at the device (/proc/diskstats) and in the jobs differ by more than 10 \
            %, although the bytes agree within 20 %"
            .into(),
        next: next.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::{after, buffered, run, severities};
    use super::*;

    fn with(factor: f64) -> StorageFacts {
        let mut facts = after();
        let run = run(&mut facts);
        run.devices[0].ios.0[0] = (run.ios.0[0] as f64 * factor) as u64;
        facts
    }

    #[test]
    fn split_and_merged_requests_are_reported() {
        assert_eq!(severities(&ABOUT, &with(1.0)), []);
        assert_eq!(severities(&ABOUT, &with(1.05)), []);
        assert_eq!(severities(&ABOUT, &with(4.0)), [Severity::Amber]);
        assert!(
            find(&with(4.0))[0].title.contains("split: 1.0 KiB each, not 4.0 KiB"),
            "{:?}",
            find(&with(4.0))
        );
        assert!(find(&with(0.25))[0].title.contains("merged: 16 KiB each"), "{:?}", find(&with(0.25)));
        assert_eq!(severities(&ABOUT, &buffered(with(4.0))), []);
        let mut foreign = with(4.0);
        run(&mut foreign).devices[0].bytes.0[0] *= 2;
        assert_eq!(severities(&ABOUT, &foreign), [], "whose requests are they?");
    }
}
