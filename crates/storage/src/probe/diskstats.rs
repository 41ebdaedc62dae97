//! `/proc/diskstats`: what block devices count of themselves.

use std::collections::BTreeMap;

use super::tree::SystemTree;
use crate::PerDirection;

/// The counters of a device, in the order of `Documentation/admin-guide/iostats.rst`: reads, merged, sectors, ms; writes
/// the same; in flight, ms busy, ms in queue; discards as reads; flushes, ms. Those that an older kernel does not have are
/// zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counters([u64; 17]);

/// What a device did between two readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskActivity {
    pub(crate) ios: PerDirection<u64>,
    pub(crate) merges: PerDirection<u64>,
    /// Of 512 bytes, whatever the device's are.
    pub(crate) sectors: PerDirection<u64>,
    /// Milliseconds, as are those below.
    pub(crate) ticks: PerDirection<u64>,
    pub(crate) flushes: u64,
    pub(crate) busy: u64,
    pub(crate) in_queue: u64,
}

impl Counters {
    /// Since an earlier reading.
    pub(crate) fn since(&self, earlier: &Self) -> DiskActivity {
        let (now, then) = (&self.0, &earlier.0);
        let rise = |at: usize| now[at].saturating_sub(then[at]);
        // The kernel's times are 32 bits of milliseconds on their way around.
        let time = |at: usize| {
            if now[at] >= then[at] {
                rise(at)
            } else {
                u64::from((now[at] as u32).wrapping_sub(then[at] as u32))
            }
        };
        DiskActivity {
            ios: PerDirection([rise(0), rise(4), rise(11)]),
            merges: PerDirection([rise(1), rise(5), rise(12)]),
            sectors: PerDirection([rise(2), rise(6), rise(13)]),
            ticks: PerDirection([time(3), time(7), time(14)]),
            flushes: rise(15),
            busy: time(9),
            in_queue: time(10),
        }
    }
}

/// The counters of all devices by name, now.
pub(crate) fn read(tree: &SystemTree) -> BTreeMap<String, Counters> {
    let text = tree.text("/proc/diskstats").unwrap_or_default();
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, Counters)> {
    let mut words = line.split_whitespace().skip(2);
    let name = words.next()?.to_owned();
    let mut counters = [0; 17];
    for (counter, word) in counters.iter_mut().zip(words) {
        // The number in flight can be below zero.
        *counter = word.parse().unwrap_or(0);
    }
    Some((name, Counters(counters)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_is_in_flight_and_times_go_around() {
        let (name, then) = line("254 0 vda 10 1 80 100 20 2 160 4294967290 0 300 400 7 0 56 9 3 1").unwrap();
        let (_, now) = line("254 0 vda 15 1 120 150 21 4 168 10 -1 350 460 8 0 64 10 5 2").unwrap();
        assert_eq!(name, "vda");
        let done = now.since(&then);
        assert_eq!(done.ios, PerDirection([5, 1, 1]));
        assert_eq!(done.sectors, PerDirection([40, 8, 8]));
        assert_eq!((done.ticks, done.busy, done.in_queue), (PerDirection([50, 16, 1]), 50, 60));
        // An older kernel says less.
        let (_, short) = line("8 1 sda1 1 2").unwrap();
        assert_eq!(short.since(&short).flushes, 0);
        assert!(line("8 1").is_none());
    }
}
