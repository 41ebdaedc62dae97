//! Waits until processors and disks are idle, so that work started by the reset or by other processes does not
//! continue into the measured window.

use kelvin_host::disk::DiskCounters;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use kelvin_host::{SystemTree, Ticks};

/// Interval between readings.
const STEP: Duration = Duration::from_millis(500);

/// Number of consecutive quiet readings after which the machine is quiet.
const IN_A_ROW: u32 = 3;

/// Share of the processors' time below which the machine counts as idle: any system does that much background work.
const BUSY: f64 = 0.10;

/// Megabytes per second, read and written, on all disks together, below which the disks count as idle.
const TRAFFIC: f64 = 2.0;

/// The result of waiting.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct QuiesceResult {
    /// The duration in seconds.
    pub(super) seconds: f64,
    /// What was not idle at the end, as text; none when everything was.
    pub(super) unquiet: Option<String>,
}

impl QuiesceResult {
    /// The text for the result.
    pub(super) fn describe(&self) -> String {
        match &self.unquiet {
            None => format!("waited {:.1} s until CPUs and disks were quiet", self.seconds),
            Some(what) => {
                format!("waited {:.1} s, but the machine did not become quiet: {what}", self.seconds)
            }
        }
    }
}

/// Counters of the machine since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    ticks: Ticks,
    sectors: u64,
}

/// Waits until the machine is quiet, a stop is requested, or the limit is reached. On a machine without these
/// counters it waits for the full time.
pub(super) fn wait_until_quiet(
    limit: Duration,
    stop: &dyn Fn() -> bool,
    each: &mut dyn FnMut(),
) -> QuiesceResult {
    let since = Instant::now();
    let mut before = (Instant::now(), counters());
    let (mut quiet, mut last) = (0, Some("its counters cannot be read".to_owned()));
    while quiet < IN_A_ROW && since.elapsed() < limit && !stop() {
        std::thread::sleep(STEP.min(limit.saturating_sub(since.elapsed())));
        let now = (Instant::now(), counters());
        if let (Some(old), Some(new)) = (before.1, now.1) {
            last = unquiet(old, new, now.0.duration_since(before.0).as_secs_f64());
            quiet = if last.is_none() { quiet + 1 } else { 0 };
        }
        before = now;
        if last.is_some() {
            each();
        }
    }
    QuiesceResult { seconds: since.elapsed().as_secs_f64(), unquiet: last }
}

/// What was not quiet between two readings.
fn unquiet(old: Counters, new: Counters, seconds: f64) -> Option<String> {
    let busy = new.ticks.shares_since(old.ticks).map_or(0.0, |shares| shares.taken);
    let megabytes = new.sectors.saturating_sub(old.sectors) as f64 * 512.0 / 1e6 / seconds.max(0.001);
    let mut what = Vec::new();
    if busy > BUSY {
        what.push(format!("CPUs {:.0} % busy", busy * 100.0));
    }
    if megabytes > TRAFFIC {
        what.push(format!("disks at {megabytes:.0} MB/s"));
    }
    (!what.is_empty()).then(|| what.join(", "))
}

fn counters() -> Option<Counters> {
    let tree = SystemTree::default();
    let ticks = Ticks::read(&tree)?;
    // Without a table of disks, their traffic counts as zero.
    let sectors = disks(&DiskCounters::all(&tree), &|name| tree.has(format!("/sys/block/{name}")));
    Some(Counters { ticks, sectors })
}

/// Sectors read and written by whole disks. The I/O of a partition is included in that of its disk, and the I/O of a
/// loop device or a mapping in that of the disks below it.
fn disks(all: &BTreeMap<String, DiskCounters>, whole: &dyn Fn(&str) -> bool) -> u64 {
    let is_virtual =
        |name: &str| ["loop", "ram", "dm-", "md", "zram"].iter().any(|kind| name.starts_with(kind));
    let of = all.iter().filter(|(name, _)| !is_virtual(name) && whole(name));
    of.map(|(_, counters)| counters.sectors()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISKS: &str = "   8       0 sda 10 0 100 5 20 0 200 9 0 1 1\n   8       1 sda1 10 0 100 5 20 0 200 9 0 1 1\n \
                         253       0 dm-0 10 0 100 5 20 0 200 9 0 1 1\n   7       0 loop0 1 0 7 1 1 0 7 1\nbroken\n";

    #[test]
    fn counters_are_read() {
        let root = tempfile::tempdir().unwrap();
        let tree = SystemTree::at(root.path());
        assert_eq!(disks(&DiskCounters::all(&tree), &|_| true), 0);
        std::fs::create_dir(root.path().join("proc")).unwrap();
        std::fs::write(root.path().join("proc/diskstats"), DISKS).unwrap();
        assert_eq!(disks(&DiskCounters::all(&tree), &|name| name != "sda1"), 300);
    }

    #[test]
    fn what_is_not_quiet_is_named() {
        let at = |busy: u64, sectors| {
            let ticks = Ticks::parse(&format!("cpu  {busy} 0 0 {}", 100 - busy)).unwrap();
            Counters { ticks, sectors }
        };
        let old = Counters { ticks: Ticks::default(), sectors: 0 };
        assert_eq!(unquiet(old, at(5, 1000), 0.5), None);
        let loud = at(50, 100_000);
        assert_eq!(unquiet(old, loud, 0.5).as_deref(), Some("CPUs 50 % busy, disks at 102 MB/s"));
        // Decreasing counters (a suspended machine) are no noise.
        assert_eq!(unquiet(loud, old, 0.5), None);
    }

    #[test]
    fn a_rest_ends_at_its_limit_or_when_asked() {
        let mut reports = 0;
        let rested = wait_until_quiet(Duration::from_millis(60), &|| false, &mut || reports += 1);
        assert!(rested.seconds >= 0.06 && reports < 10, "{rested:?}, {reports} reports");
        assert!(wait_until_quiet(Duration::from_hours(1), &|| true, &mut || ()).seconds < 60.0);
        let words = QuiesceResult { seconds: 2.0, unquiet: None }.describe();
        assert_eq!(words, "waited 2.0 s until CPUs and disks were quiet");
        let words = QuiesceResult { seconds: 30.0, unquiet: Some("disks at 9 MB/s".into()) }.describe();
        assert_eq!(words, "waited 30.0 s, but the machine did not become quiet: disks at 9 MB/s");
    }
}
