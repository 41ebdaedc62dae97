//! A block device's counters, and what `iostat -x` makes of them.
//!
//! Source: `Documentation/admin-guide/iostats.rst`; sysstat's iostat(1). A sector is 512 bytes whatever the device
//! says. Counters that fall count as zero. The times are 32-bit milliseconds in the kernel and wrap after 49.7 days of
//! I/O: a fall that is a small rise modulo 2^32 is one, as it is in iostat. Time in queue can fall when the requests in
//! flight were counted below zero.
//!
//! On NVMe and RAID 100 % utilisation is no saturation: it says that at least one request was in flight.

use super::bytes::{number, words};

/// Counters of a line: reads, merges, sectors, ms; the same of writes; in flight, busy ms, queue ms; discards; flushes.
pub(crate) const COUNTERS: usize = 17;
pub(crate) type Counters = [u64; COUNTERS];

/// iostat's columns, in their order there, with a unit and what they are.
pub(crate) const COLUMNS: [(&str, &str, &str); 24] = [
    ("r_s", "1/s", "reads completed"),
    ("rkb_s", "kB/s", "read"),
    ("rrqm_s", "1/s", "reads merged"),
    ("rrqm", "%", "share of reads merged"),
    ("r_await", "ms", "mean read time, including queueing"),
    ("rareq_sz", "kB", "mean read size"),
    ("w_s", "1/s", "writes completed"),
    ("wkb_s", "kB/s", "written"),
    ("wrqm_s", "1/s", "writes merged"),
    ("wrqm", "%", "share of writes merged"),
    ("w_await", "ms", "mean write time, including queueing"),
    ("wareq_sz", "kB", "mean write size"),
    ("d_s", "1/s", "discards completed"),
    ("dkb_s", "kB/s", "discarded"),
    ("drqm_s", "1/s", "discards merged"),
    ("drqm", "%", "share of discards merged"),
    ("d_await", "ms", "mean discard time, including queueing"),
    ("dareq_sz", "kB", "mean discard size"),
    ("f_s", "1/s", "flushes completed"),
    ("f_await", "ms", "mean flush time"),
    ("aqu_sz", "1", "mean requests in flight or queued"),
    ("util", "%", "time with a request in flight; does not show saturation on NVMe and RAID"),
    ("await", "ms", "mean read, write or discard time, including queueing"),
    ("in_flight", "1", "requests in flight now"),
];

const IN_FLIGHT: usize = 8;

/// The name and the counters of a line of `/proc/diskstats`, and how many it has: 11, since Linux 4.18 15, since 5.5
/// 17; those that are not there are zero.
pub(super) fn parse(line: &[u8]) -> Option<(&[u8], Counters, usize)> {
    let mut words = words(line);
    let name = words.nth(2)?;
    let mut counters = [0; COUNTERS];
    let mut count = 0;
    for (counter, word) in counters.iter_mut().zip(words) {
        // In flight can be below zero.
        *counter = if count == IN_FLIGHT { number(word).unwrap_or(0) } else { number(word)? };
        count += 1;
    }
    (count >= 11).then_some((name, counters, count))
}

/// Whether another device bears the name now: it has done less than the one before.
pub(crate) fn replaced(before: &Counters, now: &Counters) -> bool {
    let done = |c: &Counters| u128::from(c[0]) + u128::from(c[4]) + u128::from(c[11]);
    done(now) < done(before)
}

/// The columns for an interval of `seconds`.
pub(crate) fn columns(before: &Counters, now: &Counters, seconds: f64) -> [f64; COLUMNS.len()] {
    let rise = |at: usize| now[at].saturating_sub(before[at]) as f64;
    let time = |at: usize| milliseconds(before[at], now[at]);
    let mut out = [0.0; COLUMNS.len()];
    // Reads, writes and discards have the same four counters each, and the same six columns.
    for (from, to) in [(0, 0), (4, 6), (11, 12)] {
        let (requests, merges, sectors) = (rise(from), rise(from + 1), rise(from + 2));
        out[to] = requests / seconds;
        out[to + 1] = sectors / 2.0 / seconds;
        out[to + 2] = merges / seconds;
        out[to + 3] = 100.0 * each(merges, merges + requests);
        out[to + 4] = each(time(from + 3), requests);
        out[to + 5] = each(sectors, requests) / 2.0;
    }
    out[18] = rise(15) / seconds;
    out[19] = each(time(16), rise(15));
    out[20] = time(10) / 1000.0 / seconds;
    out[21] = 100.0 * time(9) / (1000.0 * seconds);
    out[22] = each(time(3) + time(7) + time(14), rise(0) + rise(4) + rise(11));
    out[23] = now[IN_FLIGHT] as f64;
    out
}

/// Zero where there was nothing to share among, as iostat has it.
fn each(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

fn milliseconds(before: u64, now: u64) -> f64 {
    if now >= before {
        return (now - before) as f64;
    }
    match (u32::try_from(before), u32::try_from(now)) {
        (Ok(before), Ok(now)) => {
            Some(now.wrapping_sub(before)).filter(|&rise| rise < 1 << 31).map_or(0.0, f64::from)
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(line: &str) -> Counters {
        parse(line.as_bytes()).unwrap().1
    }

    #[test]
    fn two_seconds_of_a_disk_are_what_iostat_says() {
        let before = of("259 0 nvme0n1 1000 10 8000 500 2000 20 16000 4000 1 3000 4500 10 0 80 5 100 50");
        let now = of("259 0 nvme0n1 1400 110 14400 900 2800 220 48000 8000 3 4500 8900 30 20 240 45 150 150");
        let out = columns(&before, &now, 2.0);
        let expected = [
            200.0,
            1600.0,
            50.0,
            20.0,
            1.0,
            8.0, // 400 reads, 100 merged, 6400 sectors, 400 ms
            400.0,
            8000.0,
            100.0,
            20.0,
            5.0,
            20.0, // 800 writes, 200 merged, 32000 sectors, 4000 ms
            10.0,
            40.0,
            10.0,
            50.0,
            2.0,
            4.0, // 20 discards, 20 merged, 160 sectors, 40 ms
            25.0,
            2.0,
            2.2,
            75.0,
            4440.0 / 1220.0,
            3.0,
        ];
        for ((value, expected), (name, ..)) in out.iter().zip(expected).zip(COLUMNS) {
            assert!((value - expected).abs() < 1e-9, "{name}: {value} and not {expected}");
        }
        // Little: requests in queue are arrivals times their time, flushes left out.
        let little = (out[0] * out[4] + out[6] * out[10] + out[12] * out[16]) / 1000.0;
        assert!((little - 2.22).abs() < 1e-9);
    }

    #[test]
    fn an_idle_disk_is_all_zero() {
        let now = of("8 0 sda 1 2 3 4 5 6 7 8 0 10 11");
        assert_eq!(columns(&now, &now, 1.0), [0.0; 24]);
    }

    #[test]
    fn times_wrap_at_32_bits_and_what_falls_is_zero() {
        assert_eq!(milliseconds(4_294_967_290, 4), 10.0);
        assert_eq!(milliseconds(1000, 990), 0.0);
        assert_eq!(milliseconds(1 << 33, 5), 0.0);
        let before = of("8 0 sda 10 0 80 4294967290 5 0 40 8 0 10 1100");
        let now = of("8 0 sda 12 0 96 4 5 0 39 8 -1 20 1000");
        let out = columns(&before, &now, 1.0);
        assert_eq!((out[4], out[7], out[20], out[23]), (5.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn a_device_in_anothers_place_is_seen() {
        let before = of("8 0 sda 10 0 80 5 5 0 40 8 0 10 1100");
        assert!(replaced(&before, &of("8 0 sda 1 0 8 0 0 0 0 0 0 1 1")));
        assert!(!replaced(&before, &before));
        assert_eq!(parse(b"8 1 sda1 1 2 3 4"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(line in "([0-9]{1,3} ){2}[a-z]{1,4}( ([0-9]{1,22}|-1|\\PC)){0,20}", raw: Vec<u8>) {
            let _ = (parse(line.as_bytes()), parse(&raw));
        }

        #[test]
        fn whatever_the_counters_the_columns_are_figures(before: Counters, now: Counters) {
            let _ = replaced(&before, &now);
            prop_assert!(columns(&before, &now, 0.1).iter().all(|v| v.is_finite() && *v >= 0.0));
        }
    }
}
