//! Latency and bandwidth of the memory behind the caches.

use std::fs;

use super::percentile::median;
use super::processor::seconds_of;
use super::{Baseline, Kind};
use crate::host::line;

/// A cache line, whose first word names the next one.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Cell([u64; 8]);

const CELL: u64 = 64;

/// The buffer against the last cache: an eighth of the chase may still hit it.
const TIMES_CACHE: u64 = 8;
const LEAST: u64 = 64 << 20;
const MOST: u64 = 512 << 20;
const STEPS: u64 = 400_000;
const CHASES: usize = 15;
const SWEEPS: usize = 9;

pub(super) fn measure(baseline: &mut Baseline) {
    let cache = last_cache();
    let bytes = match size(cache, available()) {
        Ok(bytes) => bytes,
        Err(why) => return baseline.miss("memory latency and bandwidth", why),
    };
    let mut buffer = vec![Cell([0; 8]); (bytes / CELL) as usize];
    link(&mut buffer);
    baseline.say("memory.tested", "memory tested", format!("{} MiB", bytes >> 20));
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
    let times: Vec<f64> = (0..=CHASES).map(&mut chase).skip(1).collect();
    let label = "memory latency, random, dependent";
    put(baseline, "memory.latency", label, median(times), "ns", Kind::Cost, CHASES);
    let read = |_| bytes as f64 / 1e9 / seconds_of(|| sum(&buffer));
    let read: Vec<f64> = (0..=SWEEPS).map(read).skip(1).collect();
    put(baseline, "memory.read", "memory read, one thread", median(read), "GB/s", Kind::Speed, SWEEPS);
    let half = buffer.len() / 2;
    let (from, to) = buffer.split_at_mut(half);
    let copied = half as f64 * CELL as f64 / 1e9;
    let copy = |_| copied / seconds_of(|| to[..half].copy_from_slice(from));
    let copy: Vec<f64> = (0..=SWEEPS).map(copy).skip(1).collect();
    put(baseline, "memory.copy", "memory copy, one thread", median(copy), "GB/s", Kind::Speed, SWEEPS);
}

fn put(
    baseline: &mut Baseline,
    name: &str,
    label: &str,
    value: Option<f64>,
    unit: &str,
    kind: Kind,
    passes: usize,
) {
    match value {
        Some(value) => baseline.put(name, label, value, unit, kind, passes as u64),
        None => baseline.miss(label, "the clock of CPU time stands still"),
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
    // Eight sums that do not wait for one another, or the adder would be measured.
    let mut sums = [0_u64; 8];
    for cell in cells {
        for (sum, word) in sums.iter_mut().zip(cell.0) {
            *sum = sum.wrapping_add(word);
        }
    }
    sums.iter().fold(0, |all, sum| all ^ sum)
}

/// Bytes to test, or why there are too few.
fn size(cache: Option<u64>, available: Option<u64>) -> Result<u64, String> {
    let wanted = cache.map_or(MOST, |cache| cache.saturating_mul(TIMES_CACHE)).clamp(LEAST, MOST);
    let free = available.unwrap_or(0) / 8;
    let bytes = wanted.min(free) / (2 * CELL) * (2 * CELL);
    let least = cache.unwrap_or(LEAST / 2).saturating_mul(2).max(LEAST);
    if bytes < least {
        return Err(format!(
            "it takes {} MiB to be larger than the caches, and an eighth of the free memory is {} MiB",
            least >> 20,
            free >> 20
        ));
    }
    Ok(bytes)
}

/// Bytes of the largest cache of the first CPU.
fn last_cache() -> Option<u64> {
    let caches = fs::read_dir("/sys/devices/system/cpu/cpu0/cache").ok()?;
    caches.flatten().filter_map(|cache| bytes(&line(cache.path().join("size"))?)).max()
}

/// Bytes of "32768K" or "32M".
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let factor: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    rest.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::steady;
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

    #[test]
    fn memory_is_as_fast_as_memory_can_be() {
        let latency = steady(2.0, || {
            let mut baseline = Baseline::new();
            measure(&mut baseline);
            assert!(baseline.absent.is_empty(), "{:?}", baseline.absent);
            for name in ["memory.read", "memory.copy"] {
                assert!(baseline.figure(name).is_some_and(|v| (0.05..2000.0).contains(&v)), "{baseline:?}");
            }
            baseline.figure("memory.latency").unwrap()
        });
        assert!((0.3..2000.0).contains(&latency), "{latency} ns");
    }

    #[test]
    fn the_buffer_is_larger_than_the_cache_or_there_is_none() {
        let gigabyte = 1 << 30;
        assert_eq!(size(Some(32 << 20), Some(64 * gigabyte)), Ok(256 << 20));
        assert_eq!(size(Some(1 << 20), Some(64 * gigabyte)), Ok(64 << 20));
        assert_eq!(size(None, Some(64 * gigabyte)), Ok(512 << 20));
        assert_eq!(size(Some(32 << 20), Some(gigabyte)), Ok(128 << 20));
        assert!(size(Some(32 << 20), Some(gigabyte / 4)).is_err());
        assert!(size(Some(300 << 20), Some(64 * gigabyte)).is_err());
    }

    proptest! {
        #[test]
        fn no_size_makes_it_panic(text in "\\PC{0,12}", number: u64, unit in "[KMG]?") {
            let _ = bytes(&text);
            let size = format!("{number}{unit}");
            prop_assert!(bytes(&size).is_none_or(|b| b >= number));
        }
    }
}
