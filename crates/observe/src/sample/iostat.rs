//! A block device's counters, and what `iostat -x` makes of them.
//!
//! SystemTree: `Documentation/admin-guide/iostats.rst`; sysstat's iostat(1). A sector is 512 bytes whatever the device
//! says. Counters that fall count as zero. The times are 32-bit milliseconds in the kernel and wrap after 49.7 days of
//! I/O: a fall that is a small rise modulo 2^32 is one, as it is in iostat. Time in queue can fall when the requests in
//! flight were counted below zero.
//!
//! On NVMe and RAID 100 % utilisation is no saturation: it says that at least one request was in flight.

use kelvin_host::disk::DiskCounters;

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

/// The columns for an interval of `seconds`.
pub(crate) fn columns(before: &DiskCounters, now: &DiskCounters, seconds: f64) -> [f64; COLUMNS.len()] {
    let done = now.since(before);
    let sum = |parts: [u64; 3]| parts.iter().map(|part| *part as f64).sum();
    let mut out = [0.0; COLUMNS.len()];
    // Reads, writes and discards have the same four counters each, and the same six columns.
    for (of, to) in [0, 6, 12].into_iter().enumerate() {
        let (requests, merges) = (done.ios[of] as f64, done.merges[of] as f64);
        let sectors = done.sectors[of] as f64;
        out[to] = requests / seconds;
        out[to + 1] = sectors / 2.0 / seconds;
        out[to + 2] = merges / seconds;
        out[to + 3] = 100.0 * each(merges, merges + requests);
        out[to + 4] = each(done.ticks[of] as f64, requests);
        out[to + 5] = each(sectors, requests) / 2.0;
    }
    out[18] = done.flushes as f64 / seconds;
    out[19] = each(done.flush_ticks as f64, done.flushes as f64);
    out[20] = done.in_queue as f64 / 1000.0 / seconds;
    out[21] = 100.0 * done.busy as f64 / (1000.0 * seconds);
    out[22] = each(sum(done.ticks), sum(done.ios));
    out[23] = now.in_flight() as f64;
    out
}

/// Zero where there was nothing to share among, as iostat has it.
fn each(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(line: &str) -> DiskCounters {
        DiskCounters::parse(line.as_bytes()).unwrap().1
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
        let before = of("8 0 sda 10 0 80 4294967290 5 0 40 8 0 10 1100");
        let now = of("8 0 sda 12 0 96 4 5 0 39 8 -1 20 1000");
        let out = columns(&before, &now, 1.0);
        assert_eq!((out[4], out[7], out[20], out[23]), (5.0, 0.0, 0.0, 0.0));
    }

    proptest! {
        #[test]
        fn whatever_the_counters_the_columns_are_figures(before: [u64; 17], now: [u64; 17]) {
            let (before, now) = (DiskCounters(before), DiskCounters(now));
            prop_assert!(columns(&before, &now, 0.1).iter().all(|v| v.is_finite() && *v >= 0.0));
        }
    }
}
