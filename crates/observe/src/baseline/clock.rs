//! The clock that every latency is read from, and the timer that starts arrivals.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::percentile::median;
use super::processor::seconds_of;
use super::{Baseline, BaselineMetricKind};

const READS: u64 = 100_000;
const PASSES: usize = 9;
const SLEEPS: usize = 1001;
const SLEEP: Duration = Duration::from_micros(500);

pub(super) fn measure(baseline: &mut Baseline) {
    let pass = |_| {
        let seconds = seconds_of(|| {
            for _ in 0..READS {
                black_box(Instant::now());
            }
        });
        seconds * 1e9 / READS as f64
    };
    let costs: Vec<f64> = (0..=PASSES).map(pass).skip(1).collect();
    match median(costs) {
        Some(cost) => {
            baseline.put(
                "clock.read",
                "reading the clock",
                cost,
                "ns",
                BaselineMetricKind::Cost,
                PASSES as u64,
            );
        }
        None => baseline.miss("cost of reading the clock", "the CPU-time clock does not advance"),
    }
    let (step, stands) = smallest_step();
    let step = if stands { "does not advance".into() } else { format!("yes, in steps of {step} ns") };
    baseline.add_fact("clock.monotonic", "clock is monotonic", step);
}

/// The smallest step between two readings that differ, in nanoseconds, and whether none did. `Instant` cannot go back:
/// the standard library holds it where the system's clock would.
fn smallest_step() -> (u128, bool) {
    let mut least = u128::MAX;
    let mut before = Instant::now();
    for _ in 0..READS {
        let now = Instant::now();
        let step = now.saturating_duration_since(before).as_nanos();
        if step > 0 {
            least = least.min(step);
        }
        before = now;
    }
    (least, least == u128::MAX)
}

/// How late a sleep ends.
pub(super) fn lateness(baseline: &mut Baseline) {
    let mut late: Vec<u64> = (0..SLEEPS)
        .map(|_| {
            let since = Instant::now();
            std::thread::sleep(SLEEP);
            since.elapsed().saturating_sub(SLEEP).as_nanos() as u64
        })
        .collect();
    baseline.put_latency("timer.late", "timer lateness", &mut late);
}

#[cfg(test)]
mod tests {
    use super::super::tests::measured;
    use super::*;

    #[test]
    fn reading_the_clock_and_the_lateness_of_sleeps_are_measured() {
        let mut baseline = Baseline::new();
        measure(&mut baseline);
        lateness(&mut baseline);
        assert!(baseline.absent.is_empty(), "{:?}", baseline.absent);
        measured(&baseline, "clock.read");
        assert!(measured(&baseline, "timer.late.p50") <= measured(&baseline, "timer.late.p99"));
        assert!(baseline.fact("clock.monotonic").is_some_and(|fact| fact.starts_with("yes, in steps of ")));
    }
}
