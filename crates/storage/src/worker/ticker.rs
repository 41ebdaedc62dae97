//! The worker's clock: the processor's time stamp counter where it is reliable, in nanoseconds of the run's clock.
//!
//! A reading costs half as much as one through the vDSO, and two or three are needed for each I/O at depth 1. The
//! counter is used if the processor reports that it is invariant and the kernel itself uses it as its clock source.
//! Its rate is measured against the run's clock (`CLOCK_MONOTONIC`) for [`FIRST`] once per process, and again, over
//! the whole time since then, at each tick. If the two ever differ by more than [`TRUST`], the worker switches to
//! the run's clock and reports it. Readings are not fenced: a processor may move one by some tens of cycles, which
//! is less than a call costs.

use std::sync::OnceLock;

use kelvin_measure::{Clock, Nanos};

/// How long the counter's rate is measured before the first I/O of a process.
const FIRST: Nanos = 2_000_000;

/// The difference from the run's clock at which the counter is no longer used: in parts of the time since the last
/// comparison (0.1 %), and at least this many nanoseconds, by which the readings may differ if the worker lost its CPU
/// between them.
const TRUST: (u64, Nanos) = (1000, 50_000);

/// Reads the time.
#[derive(Debug)]
pub(crate) struct Ticker {
    clock: Clock,
    counter: Option<Counter>,
}

/// The relation of the counter to the run's clock.
#[derive(Debug, Clone, Copy)]
struct Counter {
    /// Where the current interval begins: the counter, and the time shown there.
    from: (u64, Nanos),
    /// Nanoseconds per count, in units of 2⁻³².
    rate: u64,
    /// The first pair of readings, from which the rate is measured: counter and run's clock.
    first: (u64, Nanos),
}

impl Counter {
    #[inline]
    fn at(&self, count: u64) -> Nanos {
        // A reading on another core may be a few counts before the interval.
        let counts = count.saturating_sub(self.from.0);
        self.from.1 + ((u128::from(counts) * u128::from(self.rate)) >> 32) as u64
    }
}

impl Ticker {
    pub(crate) fn new(clock: &Clock) -> Self {
        let counter = matches!(clock, Clock::Real(_)).then(|| Self::calibrated(clock)).flatten();
        Self { clock: clock.clone(), counter }
    }

    fn calibrated(clock: &Clock) -> Option<Counter> {
        static RATE: OnceLock<Option<u64>> = OnceLock::new();
        let rate = (*RATE.get_or_init(|| {
            if !tsc::is_trusted() {
                return None;
            }
            let first = pair(clock);
            while clock.now() < first.1 + FIRST {
                std::hint::spin_loop();
            }
            rate(first, pair(clock))
        }))?;
        let first = pair(clock);
        Some(Counter { from: first, rate, first })
    }

    /// Nanoseconds since the origin of the run's clock.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        match &self.counter {
            Some(counter) => counter.at(tsc::read()),
            None => self.clock.now(),
        }
    }

    /// Compares the counter with the run's clock and measures its rate again. Returns a note, once, when the
    /// counter is no longer used.
    pub(crate) fn check(&mut self) -> Option<String> {
        let counter = self.counter.as_mut()?;
        let (count, truth) = pair(&self.clock);
        let shown = counter.at(count);
        let since = shown.saturating_sub(counter.from.1);
        if shown.abs_diff(truth) > (since / TRUST.0).max(TRUST.1) {
            self.counter = None;
            return Some(format!(
                "the time stamp counter and the clock differ by {} ns after {} ms; the clock is used from \
                 now on",
                shown.abs_diff(truth),
                since / 1_000_000
            ));
        }
        // The rate is more accurate over the whole time than over this interval. The present error of the time shown is
        // corrected over the next interval of the same length.
        if let Some(rate) = rate(counter.first, (count, truth)) {
            let correction = (truth as i64 - shown as i64).clamp(-(since as i64) / 2, since as i64 / 2);
            let stretch = since.max(1_000_000) as f64;
            counter.rate = (rate as f64 * (1.0 + correction as f64 / stretch)) as u64;
            counter.from = (count, shown);
        }
        None
    }

    /// Waits until `deadline` on the run's clock.
    pub(crate) fn sleep_until(&self, deadline: Nanos) {
        self.clock.sleep_until(deadline);
    }
}

/// Nanoseconds per count between two pairs of readings, in units of 2⁻³².
fn rate(first: (u64, Nanos), last: (u64, Nanos)) -> Option<u64> {
    let counts = last.0.checked_sub(first.0).filter(|counts| *counts > 0)?;
    let nanos = last.1.checked_sub(first.1).filter(|nanos| *nanos > 0)?;
    u64::try_from((u128::from(nanos) << 32) / u128::from(counts)).ok()
}

/// Both clocks at the same moment, as nearly as possible: the closest of several readings.
fn pair(clock: &Clock) -> (u64, Nanos) {
    let mut best = (u64::MAX, (0, 0));
    for _ in 0..8 {
        let before = tsc::read();
        let nanos = clock.now();
        let after = tsc::read();
        let width = after.saturating_sub(before);
        if width < best.0 {
            best = (width, (before + width / 2, nanos));
        }
    }
    best.1
}

#[cfg(target_arch = "x86_64")]
mod tsc {
    /// Whether the counter is invariant in every state of the processor and is the kernel's clock source.
    pub(super) fn is_trusted() -> bool {
        use std::arch::x86_64::__cpuid;
        // The highest extended leaf, then "invariant TSC" (AMD APM 3, E.4.6; Intel SDM 2A, CPUID 80000007H).
        let invariant = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0;
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        invariant && std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
    }

    #[inline]
    #[allow(unsafe_code, reason = "reading the counter is an intrinsic")]
    pub(super) fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and Linux permits its use.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod tsc {
    pub(super) fn is_trusted() -> bool {
        false
    }

    pub(super) fn read() -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_forward_and_stays_by_the_clock() {
        let clock = Clock::real();
        let mut ticker = Ticker::new(&clock);
        let mut last = 0;
        for round in 0..20 {
            for _ in 0..1000 {
                let now = ticker.now();
                assert!(now >= last, "{now} after {last}");
                last = now;
            }
            let (before, shown, after) = (clock.now(), ticker.now(), clock.now());
            // Within the error of both readings. The outer pair brackets the time of a lost CPU.
            assert!(shown + 20_000 >= before && shown <= after + 20_000, "{before} {shown} {after}");
            clock.sleep_until(clock.now() + 500_000 * (round % 3));
            if ticker.counter.is_some() {
                assert_eq!(ticker.check(), None);
            }
        }
    }

    #[test]
    fn a_counter_that_runs_away_is_not_believed() {
        let clock = Clock::real();
        let first = pair(&clock);
        let Some(rate) = Ticker::calibrated(&clock).map(|counter| counter.rate) else { return };
        let wrong = Counter { from: first, rate: rate + rate / 50, first };
        let mut ticker = Ticker { clock: clock.clone(), counter: Some(wrong) };
        clock.sleep_until(clock.now() + 10_000_000);
        let said = ticker.check().unwrap();
        assert!(said.contains("differ by"), "{said}");
        assert!(ticker.now().abs_diff(clock.now()) < 1_000_000);
        assert_eq!(ticker.check(), None, "said once");
    }

    #[test]
    fn a_mock_clock_is_read_as_it_is() {
        let clock = Clock::mock();
        let ticker = Ticker::new(&clock);
        ticker.sleep_until(5);
        assert_eq!(ticker.now(), 5);
    }
}
