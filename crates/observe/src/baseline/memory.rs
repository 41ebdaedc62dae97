//! Latency and bandwidth of the memory behind the caches.

use kelvin_host::SystemTree;
use kelvin_measure::text::parse_bytes;
use std::fs;

use super::percentile::median;
use super::processor::seconds_of;
use super::{Baseline, BaselineMetricKind};
use crate::host::line;

/// A cache line, whose first word names the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Cell([u64; 8]);

const CELL: u64 = 64;

/// The size of the buffer relative to the last-level cache. The chase visits the whole buffer before it returns to a
/// cell, so that an LRU cache contains none of the cells; a cache with random replacement contains 2 % of a buffer of
/// four times its size.
const WANTED_CACHES: u64 = 8;
const ENOUGH_CACHES: u64 = 4;
const LEAST_CACHES: u64 = 2;
const LEAST: u64 = 64 << 20;
/// More than this only to be `ENOUGH_CACHES`.
const MOST: u64 = 512 << 20;
const STEPS: u64 = 400_000;
const CHASES: usize = 15;
const SWEEPS: usize = 9;

/// A debug build, whose results are marked as unrepresentative, tests only with a small cache: with one of 260 MiB it
/// takes half a minute.
pub(super) fn measure(baseline: &mut Baseline) {
    let cache = if cfg!(debug_assertions) { Some(1 << 20) } else { last_cache() };
    measure_behind(baseline, cache, available());
}

/// Measures behind a cache of so many bytes, with so many bytes of memory available.
fn measure_behind(baseline: &mut Baseline, cache: Option<u64>, available: Option<u64>) {
    let bytes = match size(cache, available) {
        Ok(bytes) => bytes,
        Err(why) => return baseline.miss("memory latency and bandwidth", why),
    };
    let mut buffer = vec![Cell([0; 8]); (bytes / CELL) as usize];
    link(&mut buffer);
    baseline.add_fact("memory.tested", "memory tested", format!("{} MiB", bytes >> 20));
    let mut at = 0;
    let mut chase = |_| {
        let seconds = seconds_of(|| {
            for _ in 0..STEPS {
                at = buffer[at].0[0] as usize;
            }
            at
        });
        seconds * 1e9 / STEPS as f64
    };
    // Cells left in the cache by the linking have been evicted after as many others were read.
    let first = cache.unwrap_or(LEAST / 2).div_ceil(CELL * STEPS) as usize;
    let times: Vec<f64> = (0..first + CHASES).map(&mut chase).skip(first).collect();
    let label = "memory latency, dependent reads";
    put(baseline, "memory.latency", label, median(times), "ns", BaselineMetricKind::Cost, CHASES);
    let read = |_| bytes as f64 / 1e9 / seconds_of(|| sum(&buffer));
    let read: Vec<f64> = (0..=SWEEPS).map(read).skip(1).collect();
    put(
        baseline,
        "memory.read",
        "memory read, one thread",
        median(read),
        "GB/s",
        BaselineMetricKind::Speed,
        SWEEPS,
    );
    let half = buffer.len() / 2;
    let (from, to) = buffer.split_at_mut(half);
    let copied = half as f64 * CELL as f64 / 1e9;
    let copy = |_| copied / seconds_of(|| to[..half].copy_from_slice(from));
    let copy: Vec<f64> = (0..=SWEEPS).map(copy).skip(1).collect();
    put(
        baseline,
        "memory.copy",
        "memory copy, one thread",
        median(copy),
        "GB/s",
        BaselineMetricKind::Speed,
        SWEEPS,
    );
}

fn put(
    baseline: &mut Baseline,
    name: &str,
    label: &str,
    value: Option<f64>,
    unit: &str,
    kind: BaselineMetricKind,
    passes: usize,
) {
    match value {
        Some(value) => baseline.put(name, label, value, unit, kind, passes as u64),
        None => baseline.miss(label, "the CPU-time clock does not advance"),
    }
}

/// Links the cells to one cycle through all of them in random order (Sattolo 1986), the same every time.
fn link(cells: &mut [Cell]) {
    for (index, cell) in cells.iter_mut().enumerate() {
        cell.0[0] = index as u64;
    }
    let mut state = 0x6b65_6c76_696e_u64;
    for last in (1..cells.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let other = ((u128::from(mixed) * last as u128) >> 64) as usize;
        let (low, high) = cells.split_at_mut(last);
        std::mem::swap(&mut low[other].0[0], &mut high[0].0[0]);
    }
}

fn sum(cells: &[Cell]) -> u64 {
    // Eight independent sums; otherwise the latency of the adder would be measured.
    let mut sums = [0_u64; 8];
    for cell in cells {
        for (sum, word) in sums.iter_mut().zip(cell.0) {
            *sum = sum.wrapping_add(word);
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

/// Bytes to test, or the reason why there are too few. An unknown cache is assumed to have 64 MiB.
fn size(cache: Option<u64>, available: Option<u64>) -> Result<u64, String> {
    let Some(available) = available else {
        return Err("available memory is unknown: /proc/meminfo has no MemAvailable".into());
    };
    let cache = cache.unwrap_or(LEAST);
    let caches = |times: u64| cache.saturating_mul(times);
    let wanted = caches(WANTED_CACHES).min(MOST).max(caches(ENOUGH_CACHES)).max(LEAST);
    let free = available / 8;
    let bytes = wanted.min(free) / (2 * CELL) * (2 * CELL);
    let least = caches(LEAST_CACHES).max(LEAST);
    if bytes < least {
        return Err(format!(
            "the test needs {} MiB to exceed a last-level cache of {} MiB, but may use only an eighth of \
             the available memory: {} MiB",
            least >> 20,
            cache >> 20,
            free >> 20
        ));
    }
    Ok(bytes)
}

/// Bytes of the largest cache of the first CPU.
fn last_cache() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches.flatten().filter_map(|cache| parse_bytes(&line(cache.path().join("size"))?).ok()).max()
}

fn available() -> Option<u64> {
    let [available] = SystemTree::default().values("/proc/meminfo", ["MemAvailable"]);
    available.map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::measured;
    use super::*;

    #[test]
    fn the_chase_visits_every_cell_once() {
        let mut cells = vec![Cell([0; 8]); 1000];
        link(&mut cells);
        let mut seen = vec![false; cells.len()];
        let mut at = 0;
        for _ in 0..cells.len() {
            assert!(!std::mem::replace(&mut seen[at], true));
            at = cells[at].0[0] as usize;
        }
        assert_eq!(at, 0);
    }

    /// Behind a cache of 1 MiB, whatever this machine has: the test is of the measuring, not of the machine.
    #[test]
    fn memory_is_measured_behind_the_cache_that_is_given() {
        let mut baseline = Baseline::new();
        measure_behind(&mut baseline, Some(1 << 20), Some(1 << 30));
        assert!(baseline.absent.is_empty(), "{:?}", baseline.absent);
        assert_eq!(baseline.fact("memory.tested"), Some("64 MiB"));
        for name in ["memory.latency", "memory.read", "memory.copy"] {
            measured(&baseline, name);
        }
        let mut baseline = Baseline::new();
        measure_behind(&mut baseline, Some(260 << 20), Some(1 << 30));
        assert_eq!(baseline.figures, []);
        assert_eq!(baseline.absent.len(), 1);
    }

    #[test]
    fn trial_d9_the_buffer_is_larger_than_the_cache_or_the_reason_is_the_right_one() {
        const MEBI: u64 = 1 << 20;
        const GIBI: u64 = 1 << 30;
        for (cache, available, bytes) in [
            // A laptop; a small cloud CPU; a CPU whose caches are not listed.
            (Some(32 * MEBI), 64 * GIBI, 256 * MEBI),
            (Some(MEBI), 64 * GIBI, 64 * MEBI),
            (None, 64 * GIBI, 512 * MEBI),
            // The trial's machine, and an EPYC with stacked cache: more than the usual 512 MiB.
            (Some(260 * MEBI), 22 * GIBI, 1040 * MEBI),
            (Some(1152 * MEBI), 64 * GIBI, 4608 * MEBI),
            // Less memory, and still enough of it.
            (Some(32 * MEBI), GIBI, 128 * MEBI),
            (Some(260 * MEBI), 6 * GIBI, 768 * MEBI),
        ] {
            assert_eq!(size(cache, Some(available)), Ok(bytes), "{cache:?} of {available}");
        }
        let why = size(Some(260 * MEBI), Some(4 * GIBI)).unwrap_err();
        assert!(why.contains("520 MiB") && why.contains("260 MiB") && why.ends_with("512 MiB"), "{why}");
        assert!(size(Some(32 * MEBI), Some(GIBI / 4)).is_err());
        assert!(size(Some(MEBI), None).unwrap_err().contains("MemAvailable"));
        assert!(size(Some(u64::MAX), Some(u64::MAX)).is_err());
    }

    proptest! {
        #[test]
        fn no_size_makes_it_panic(text in "\\PC{0,12}", number: u64, unit in "[KMG]?") {
            let _ = parse_bytes(&text);
            let size = format!("{number}{unit}");
            prop_assert!(parse_bytes(&size).ok().is_none_or(|b| b >= number));
        }
    }
}
