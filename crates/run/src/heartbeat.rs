//! A thread that only wakes up periodically. When it wakes late, the load generator itself was held up: it
//! was stopped, starved of CPUs or throttled. A stalled server does not hold it up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_measure::event::Event;
use kelvin_measure::invariant::{GENERATOR_RAN, Invariant};
use kelvin_measure::{Clock, Nanos, second_from};
use serde::{Deserialize, Serialize};

use crate::error::RunError;

/// Interval of the wake-ups: 50 per second cost a few tenths of a millisecond of CPU.
const BEAT: Nanos = 20_000_000;

/// A later wake-up means that the process was held up. Schedulers let a thread that sleeps most of the time
/// wait for a few tens of milliseconds at most, however many other threads are ready.
const LATE: Nanos = 200_000_000;

/// The time that the thread waited for a CPU is read every so many beats, so that it can be assigned to a
/// gap.
const BEATS_A_READING: u32 = 50;

/// The share of the window at which a hold-up reaches the 99th percentile of the transactions, and changes a
/// mean by half of the allowed difference of two runs.
const HELD_UP: f64 = 0.01;

/// A period in which the thread should have run but did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Gap {
    pub(crate) from: Nanos,
    pub(crate) to: Nanos,
    pub(crate) why: HeldUp,
}

/// The cause of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HeldUp {
    /// The process was not ready to run: a signal, a debugger, a frozen control group, or the whole machine
    /// stood still.
    Stopped,
    /// The process was ready but had no CPU: other processes used them, or a quota was exhausted.
    Starved,
}

impl HeldUp {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Stopped => {
                "was stopped (SIGSTOP, a debugger, a frozen control group, or a suspended machine)"
            }
            Self::Starved => {
                "was ready to run but got no CPU (other processes used the CPUs, or a CPU limit was reached)"
            }
        }
    }
}

impl Gap {
    /// A gap between two times, during which the thread was ready to run for `delay`. Where the kernel does
    /// not count that, the process is taken as stopped.
    fn of(from: Nanos, to: Nanos, delay: Option<Duration>) -> Self {
        let ready = delay.is_some_and(|delay| delay.as_nanos() as u64 > (to - from) / 2);
        Self { from, to, why: if ready { HeldUp::Starved } else { HeldUp::Stopped } }
    }

    /// The part of the gap between `open` and `close`; `None` if there is none.
    pub(crate) fn within(self, open: Nanos, close: Nanos) -> Option<Self> {
        let (from, to) = (self.from.max(open), self.to.min(close));
        (from < to).then_some(Self { from, to, ..self })
    }

    pub(crate) fn seconds(self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }

    /// The gap as a note of a point whose window opened at `open`.
    pub(crate) fn note(self, point: u32, open: Nanos) -> Event {
        let text =
            format!("the load generator did not run for {:.2} s: it {}", self.seconds(), self.why.describe());
        Event::Note { point, second: second_from(open, self.from), text }
    }
}

/// Checks that the process ran during a window of `elapsed` nanoseconds that opened at `open`. Where noise is
/// accepted, gaps in which other processes used the CPUs are reported but do not fail the check.
pub(crate) fn check_generator_ran(
    gaps: &[Gap],
    open: Nanos,
    elapsed: Nanos,
    accept_noise: bool,
) -> Invariant {
    let gaps: Vec<Gap> = gaps.iter().filter_map(|gap| gap.within(open, open + elapsed)).collect();
    let elapsed = elapsed as f64 / 1e9;
    let held_up: f64 = gaps.iter().map(|gap| gap.seconds()).sum();
    let counted = gaps.iter().filter(|gap| !(accept_noise && gap.why == HeldUp::Starved));
    let against: f64 = counted.map(|gap| gap.seconds()).sum();
    let evidence = match gaps.iter().max_by_key(|gap| gap.to - gap.from) {
        None => "every wakeup was on time".into(),
        Some(longest) => {
            let at = (longest.from - open) as f64 / 1e9;
            let times = if gaps.len() == 1 {
                format!("at {at:.1} s")
            } else {
                format!("{} times, the longest at {at:.1} s", gaps.len())
            };
            format!(
                "it did not run for {held_up:.2} of {elapsed:.1} s, {times}: it {}",
                longest.why.describe()
            )
        }
    };
    Invariant::new(GENERATOR_RAN, against < HELD_UP * elapsed, evidence)
}

/// The thread.
pub(crate) struct Heartbeat {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Gap>>>,
}

impl Heartbeat {
    pub(crate) fn start(clock: Clock) -> Result<Self, RunError> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("heartbeat".into())
            .spawn(move || beat(&clock, &asked))
            .map_err(|error| {
                RunError::Start(format!("cannot start the load generator's heartbeat thread: {error}"))
            })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the thread; returns every gap since its start.
    pub(crate) fn finish(mut self) -> Vec<Gap> {
        self.end()
    }

    fn end(&mut self) -> Vec<Gap> {
        self.stop.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else { return Vec::new() };
        thread.thread().unpark();
        thread.join().unwrap_or_default()
    }
}

/// Also ends the thread of a point that fails early.
impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.end();
    }
}

fn beat(clock: &Clock, stop: &AtomicBool) -> Vec<Gap> {
    let delay = || kelvin_observe::thread_times().map(|times| times.delay);
    let mut gaps = Vec::new();
    let (mut waited, mut beats) = (delay(), 0);
    while !stop.load(Ordering::Acquire) {
        let due = clock.now() + BEAT;
        std::thread::park_timeout(Duration::from_nanos(BEAT));
        let now = clock.now();
        let late = now > due + LATE;
        beats += 1;
        if late || beats == BEATS_A_READING {
            let until_now = delay();
            if late {
                let grown = until_now.zip(waited).map(|(now, before)| now.saturating_sub(before));
                gaps.push(Gap::of(due, now, grown));
            }
            (waited, beats) = (until_now, 0);
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use kelvin_measure::SECOND;

    use super::*;

    #[test]
    fn trial_d3_who_was_ready_was_starved_and_who_was_not_was_stopped() {
        let why = |delay: Option<u64>| Gap::of(SECOND, 3 * SECOND, delay.map(Duration::from_millis)).why;
        assert_eq!(why(Some(1900)), HeldUp::Starved);
        assert_eq!(why(Some(20)), HeldUp::Stopped);
        assert_eq!(why(None), HeldUp::Stopped);
    }

    #[test]
    fn trial_d3_of_a_gap_only_the_windows_part_counts() {
        let gap = Gap::of(SECOND, 3 * SECOND, None);
        assert!((gap.within(2 * SECOND, 9 * SECOND).unwrap().seconds() - 1.0).abs() < 1e-9);
        assert_eq!(gap.within(3 * SECOND, 9 * SECOND), None);
        assert!(matches!(gap.note(0, 0), Event::Note { second: 1, text, .. } if text.contains("for 2.00 s")));
    }

    #[test]
    fn trial_d3_a_generator_that_was_held_up_within_the_window_says_so() {
        let gap = |from: u64, to: u64, why| Gap { from, to, why };
        let window = 8 * SECOND;
        let ran = |gap, accepted| check_generator_ran(&[gap], SECOND, window, accepted);
        let stopped = ran(gap(4 * SECOND, 6 * SECOND, HeldUp::Stopped), false);
        assert!(!stopped.holds && !ran(gap(4 * SECOND, 6 * SECOND, HeldUp::Stopped), true).holds);
        assert!(stopped.evidence.contains("2.00 of 8.0 s, at 3.0 s: it was stopped"), "{}", stopped.evidence);
        let starved = ran(gap(4 * SECOND, 6 * SECOND, HeldUp::Starved), false);
        assert!(
            !starved.holds && starved.evidence.contains("ready to run but got no CPU"),
            "{}",
            starved.evidence
        );
        assert!(ran(gap(4 * SECOND, 6 * SECOND, HeldUp::Starved), true).holds, "noise that was accepted");
        let short = gap(SECOND, SECOND + SECOND / 4, HeldUp::Stopped);
        assert!(super::check_generator_ran(&[short], SECOND, 60 * SECOND, false).holds, "0.4 % of a minute");
        assert!(super::check_generator_ran(&[], SECOND, window, false).holds);
        let before = gap(SECOND, 3 * SECOND, HeldUp::Stopped);
        assert!(super::check_generator_ran(&[before], 3 * SECOND, window, false).holds, "before the window");
    }
}
