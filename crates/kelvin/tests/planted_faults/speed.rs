//! Measures whether the CPUs kept their speed during a run, with a fixed piece of work. On a virtual machine, other guests of
//! the host change it, which no counter of the guest shows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Measures four times a second, with 0.2 % of one CPU.
pub(crate) struct SpeedGauge {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<f64>>,
}

impl SpeedGauge {
    pub(crate) fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let measure = move || {
            let mut times = Vec::new();
            while !ended.load(Ordering::Relaxed) {
                times.push(time_of_work());
                std::thread::sleep(Duration::from_millis(250));
            }
            times
        };
        Self { stop, thread: std::thread::spawn(measure) }
    }

    /// The range of the medians of five rounds, as a share of the smallest.
    pub(crate) fn change(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        change(&self.thread.join().unwrap())
    }
}

/// CPU seconds for a fixed amount of work, about half a millisecond in unoptimised test builds.
fn time_of_work() -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let begun = now();
    let mut state = std::hint::black_box(1_u64);
    for _ in 0..100_000 {
        state = std::hint::black_box(state.rotate_left(5) ^ 0x9e37_79b9);
    }
    std::hint::black_box(state);
    now() - begun
}

fn change(times: &[f64]) -> f64 {
    let median = |round: &[f64]| {
        let mut round = round.to_vec();
        round.sort_by(f64::total_cmp);
        round[round.len() / 2]
    };
    let medians: Vec<f64> = times.chunks_exact((times.len() / 5).max(1)).map(median).collect();
    let (least, most) = medians.iter().fold((f64::MAX, 0.0_f64), |(a, b), one| (a.min(*one), b.max(*one)));
    if medians.is_empty() { 0.0 } else { most / least - 1.0 }
}

#[test]
fn a_change_of_speed_is_that_of_the_rounds_medians() {
    let mut times = vec![1e-3; 40];
    times[7] = 5e-3;
    assert!(change(&times) < 1e-9, "one sample is none");
    times[24..].fill(1.3e-3);
    assert!((change(&times) - 0.3).abs() < 1e-9);
    let gauge = SpeedGauge::start();
    std::thread::sleep(Duration::from_millis(600));
    assert!(gauge.change().is_finite());
}
