//! Speed of one thread at integers and hashing.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::percentile::median;
use super::{Baseline, BaselineMetricKind};

/// Rounds of a pass: some 15 ms, in a debug build, too, which takes about ten times as long for each.
const ROUNDS: u64 = if cfg!(debug_assertions) { 300_000 } else { 3_000_000 };

/// The first passes bring the clock rate up and are not counted.
const WARM_UP: usize = 8;
const PASSES: usize = 31;

/// CPU time of the calling thread.
pub(super) fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// CPU seconds of the calling thread that `work` took.
pub(super) fn seconds_of<T>(work: impl FnOnce() -> T) -> f64 {
    let before = thread_time();
    black_box(work());
    thread_time().saturating_sub(before).as_secs_f64()
}

pub(super) fn measure(baseline: &mut Baseline) {
    let pass = |_| ROUNDS as f64 / seconds_of(|| work(black_box(ROUNDS))) / 1e6;
    let rates: Vec<f64> = (0..WARM_UP + PASSES).map(pass).skip(WARM_UP).collect();
    match median(rates) {
        Some(rate) => {
            let label = "one thread, integers and hashing";
            baseline.put(
                "processor.single-thread",
                label,
                rate,
                "M/s",
                BaselineMetricKind::Speed,
                PASSES as u64,
            );
        }
        None => baseline.miss("speed of one thread", "the CPU-time clock does not advance"),
    }
}

/// Rounds of multiplying, mixing, a look into a table of 4 KiB and a branch that cannot be predicted: what a
/// database does while it has all it needs in the cache. Each round waits for the one before.
fn work(rounds: u64) -> u64 {
    let mut table = [0_u64; 512];
    let (mut state, mut digest) = (0x6b65_6c76_696e_u64, 0xcbf2_9ce4_8422_2325_u64);
    for _ in 0..rounds {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let place = &mut table[((mixed ^ digest) >> 55) as usize];
        digest = (digest ^ mixed ^ *place).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        if digest.is_multiple_of(4) {
            digest = digest.wrapping_add(mixed >> 32);
        }
        *place = digest;
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn the_work_is_the_same_everywhere() {
        // Any change of the work needs another METHOD.
        assert_eq!(work(1000), 2_100_995_122_706_130_258);
    }

    #[test]
    fn the_speed_of_a_thread_is_measured() {
        let mut baseline = Baseline::new();
        measure(&mut baseline);
        measured(&baseline, "processor.single-thread");
    }
}
