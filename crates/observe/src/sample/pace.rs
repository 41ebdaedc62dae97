//! How often to read what is dear to read.

use std::time::Duration;

/// The share of a CPU that one collector's reading may cost. A child process costs the kernel some 35 microseconds: three
/// hundred read every second would cost one per cent, and ten times so at ten samples a second. So it is read only once
/// enough time has passed to pay for what the last reading cost; the intervals between are unknown, and the next figures
/// are the means since the last reading.
const BUDGET: f64 = 0.005;

/// The account of one collector.
#[derive(Debug)]
pub(super) struct Pace {
    /// Seconds from one reading to the next at least.
    least: f64,
    /// Seconds since the last reading, and CPU seconds that it took; none before the first.
    owed: f64,
    cost: Option<f64>,
    begun: f64,
}

impl Pace {
    pub(super) fn at_most_every(least: Duration) -> Self {
        Self { least: least.as_secs_f64(), owed: 0.0, cost: None, begun: 0.0 }
    }

    /// Begins a reading, if one is due `seconds` after the last time this was asked: how long ago the last reading was.
    pub(super) fn begin(&mut self, seconds: f64) -> Option<f64> {
        if seconds > 0.0 {
            self.owed += seconds;
        }
        let early = |cost| self.owed == 0.0 || self.owed * BUDGET < cost || self.owed < self.least;
        if self.cost.is_some_and(early) {
            return None;
        }
        self.begun = cpu_seconds();
        Some(std::mem::take(&mut self.owed))
    }

    /// Ends it.
    pub(super) fn end(&mut self) {
        self.cost = Some(cpu_seconds() - self.begun);
    }
}

/// CPU time of this thread.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_paid_for_before_the_next() {
        let mut pace = Pace::at_most_every(Duration::ZERO);
        assert_eq!(pace.begin(f64::NAN), Some(0.0), "the first is free");
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        pace.end();
        assert!(pace.cost.is_some_and(|cost| cost > 0.0));
        pace.cost = Some(0.01);
        assert_eq!(pace.begin(1.0), None, "ten milliseconds are two seconds' allowance");
        assert_eq!(pace.begin(1.0), Some(2.0));
        pace.end();
        let mut pace = Pace::at_most_every(Duration::from_secs(10));
        assert!(pace.begin(f64::NAN).is_some());
        pace.end();
        assert_eq!(pace.begin(9.0), None);
        assert_eq!(pace.begin(2.0), Some(11.0));
    }
}
