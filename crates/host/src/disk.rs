//! Block devices: their I/O counters, and their relations to other devices.
//!
//! Sources: `Documentation/admin-guide/iostats.rst`, `Documentation/ABI/stable/sysfs-block`. A sector is 512
//! bytes, regardless of the device. In the kernel the times are 32-bit milliseconds, which wrap after 49.7
//! days of I/O.

use std::collections::BTreeMap;

use crate::SystemTree;
use crate::bytes::{lines, number, words};

/// The counters of a device: reads, merges, sectors, ms; the same for writes; in flight, ms busy, ms in
/// queue; the same as for reads for discards; flushes, ms. Counters that an older kernel lacks are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCounters(pub [u64; DiskCounters::COUNT]);

/// I/O of a device between two readings. Arrays are of reads, writes and discards, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskActivity {
    /// Completed requests.
    pub ios: [u64; 3],
    /// Requests merged into others.
    pub merges: [u64; 3],
    /// Sectors of 512 bytes.
    pub sectors: [u64; 3],
    /// The sum of the requests' times, in milliseconds.
    pub ticks: [u64; 3],
    /// Completed flushes.
    pub flushes: u64,
    /// The sum of the flushes' times, in milliseconds.
    pub flush_ticks: u64,
    /// Milliseconds with at least one request in flight.
    pub busy: u64,
    /// The sum of the milliseconds that requests spent in flight or queued.
    pub in_queue: u64,
}

const IN_FLIGHT: usize = 8;

impl DiskCounters {
    /// The number of counters: 11 in the oldest kernels, 15 since Linux 4.18, 17 since 5.5.
    pub const COUNT: usize = 17;
    /// The counters of a device without any I/O.
    pub const ZERO: Self = Self([0; Self::COUNT]);

    /// Parses a line of `/proc/diskstats`: the name, the counters, and their number. Does not allocate.
    pub fn parse(line: &[u8]) -> Option<(&[u8], Self, usize)> {
        let mut words = words(line);
        let name = words.nth(2)?;
        let (counters, count) = Self::parse_counters(words)?;
        Some((name, counters, count))
    }

    /// Parses a device's file `stat` in sysfs.
    pub fn parse_stat(text: &[u8]) -> Option<Self> {
        Self::parse_counters(words(text)).map(|(counters, _)| counters)
    }

    fn parse_counters<'a>(words: impl Iterator<Item = &'a [u8]>) -> Option<(Self, usize)> {
        let mut counters = [0; Self::COUNT];
        let mut count = 0;
        for (counter, word) in counters.iter_mut().zip(words) {
            // The number in flight can be negative.
            *counter = if count == IN_FLIGHT { number(word).unwrap_or(0) } else { number(word)? };
            count += 1;
        }
        (count >= 11).then_some((Self(counters), count))
    }

    /// The counters of all devices, by name.
    pub fn all(tree: &SystemTree) -> BTreeMap<String, Self> {
        let text = tree.text("/proc/diskstats").unwrap_or_default();
        let named = |(name, counters, _): (&[u8], Self, usize)| {
            (String::from_utf8_lossy(name).into_owned(), counters)
        };
        lines(text.as_bytes()).filter_map(Self::parse).map(named).collect()
    }

    /// Sectors read and written.
    pub fn sectors(&self) -> u64 {
        self.0[2].saturating_add(self.0[6])
    }

    /// Requests currently in flight.
    pub fn in_flight(&self) -> u64 {
        self.0[IN_FLIGHT]
    }

    /// Whether the name now belongs to another device, since `now` has counted fewer requests.
    pub fn is_replaced_by(&self, now: &Self) -> bool {
        let done = |c: &Self| u128::from(c.0[0]) + u128::from(c.0[4]) + u128::from(c.0[11]);
        done(now) < done(self)
    }

    /// The I/O since an earlier reading. A counter that decreased counts as 0; a time that wrapped is
    /// corrected.
    pub fn since(&self, before: &Self) -> DiskActivity {
        let rise = |at: usize| self.0[at].saturating_sub(before.0[at]);
        let time = |at: usize| milliseconds(before.0[at], self.0[at]);
        DiskActivity {
            ios: [0, 4, 11].map(rise),
            merges: [1, 5, 12].map(rise),
            sectors: [2, 6, 13].map(rise),
            ticks: [3, 7, 14].map(time),
            flushes: rise(15),
            flush_ticks: time(16),
            busy: time(9),
            in_queue: time(10),
        }
    }
}

/// The difference of two times in milliseconds. A decrease that is a small increase modulo 2^32 is a wrap, as
/// in iostat; any other decrease is 0. Time in queue can decrease when the number of requests in flight was
/// negative.
fn milliseconds(before: u64, now: u64) -> u64 {
    if now >= before {
        return now - before;
    }
    match (u32::try_from(before), u32::try_from(now)) {
        (Ok(before), Ok(now)) => {
            let rise = now.wrapping_sub(before);
            if rise < 1 << 31 { u64::from(rise) } else { 0 }
        }
        _ => 0,
    }
}

/// A device number in the form of sysfs and mountinfo, such as "8:1".
pub fn device_number(device: u64) -> String {
    format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device))
}

/// The name of the device with this number, such as "8:1".
pub fn device_name(tree: &SystemTree, number: &str) -> Option<String> {
    tree.link(format!("/sys/dev/block/{number}"))
}

/// The disk of a partition; any other device is returned as it is.
pub fn whole_disk(tree: &SystemTree, name: &str) -> String {
    let home = format!("/sys/class/block/{name}");
    let of_partition = || {
        let link = std::fs::read_link(tree.path(&home)).ok()?;
        Some(link.parent()?.file_name()?.to_str()?.to_owned())
    };
    let is_partition = tree.has(format!("{home}/partition"));
    is_partition.then(of_partition).flatten().unwrap_or_else(|| name.to_owned())
}

/// The member devices of a device-mapper or RAID device.
pub fn member_devices(tree: &SystemTree, name: &str) -> Vec<String> {
    tree.names(format!("/sys/class/block/{name}/slaves"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(line: &str) -> DiskCounters {
        DiskCounters::parse(line.as_bytes()).unwrap().1
    }

    #[test]
    fn a_line_is_read_whatever_is_in_flight_and_times_go_around() {
        let line = "254 0 vda 10 1 80 100 20 2 160 4294967290 0 300 400 7 0 56 9 3 1";
        assert_eq!(
            DiskCounters::parse(line.as_bytes()).map(|found| (found.0, found.2)),
            Some((&b"vda"[..], 17))
        );
        let done = of("254 0 vda 15 1 120 150 21 4 168 10 -1 350 460 8 0 64 10 5 2").since(&of(line));
        assert_eq!((done.ios, done.merges, done.sectors), ([5, 1, 1], [0, 2, 0], [40, 8, 8]));
        assert_eq!((done.ticks, done.busy, done.in_queue), ([50, 16, 1], 50, 60));
        assert_eq!((done.flushes, done.flush_ticks), (2, 1));
        assert_eq!(DiskCounters::parse(b"8 1 sda1 1 2 3 4"), None);
        let stat = "  10 1 80 5 20 2 160 7 0 1500 12 0 0 0 0 3 4\n";
        assert_eq!(DiskCounters::parse_stat(stat.as_bytes()).map(|found| found.0[9]), Some(1500));
    }

    #[test]
    fn times_wrap_at_32_bits_and_what_falls_is_zero() {
        assert_eq!(milliseconds(4_294_967_290, 4), 10);
        assert_eq!((milliseconds(1000, 990), milliseconds(1 << 33, 5)), (0, 0));
    }

    #[test]
    fn a_device_in_anothers_place_is_seen() {
        let before = of("8 0 sda 10 0 80 5 5 0 40 8 0 10 1100");
        assert!(before.is_replaced_by(&of("8 0 sda 1 0 8 0 0 0 0 0 0 1 1")));
        assert!(!before.is_replaced_by(&before));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in "([0-9]{1,3} ){2}[a-z]{1,4}( ([0-9]{1,22}|-1|\\PC)){0,20}", raw: Vec<u8>) {
            let found = [DiskCounters::parse(line.as_bytes()), DiskCounters::parse(&raw)];
            for (_, counters, _) in found.into_iter().flatten() {
                counters.since(&DiskCounters([u64::MAX; DiskCounters::COUNT]));
            }
        }
    }
}
