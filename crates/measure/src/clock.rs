//! One monotonic clock for a whole run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds since the clock's origin.
pub type Nanos = u64;

/// A second.
pub const SECOND: Nanos = 1_000_000_000;

/// A monotonic clock: the real one, or one that a test moves by hand.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The operating system's monotonic clock, read without a system call.
    Real(Instant),
    /// A clock that stands still until it is moved, or until somebody sleeps on it.
    Mock(Arc<AtomicU64>),
}

impl Clock {
    /// The real clock with its origin now.
    pub fn real() -> Self {
        Self::Real(Instant::now())
    }

    /// A clock at 0 that moves only by [`Clock::advance`] and [`Clock::sleep_until`].
    pub fn mock() -> Self {
        Self::Mock(Arc::new(AtomicU64::new(0)))
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self {
            Self::Real(origin) => origin.elapsed().as_nanos() as u64,
            Self::Mock(now) => now.load(Ordering::Acquire),
        }
    }

    /// Waits until the clock shows at least `deadline`. The mock clock jumps there.
    pub fn sleep_until(&self, deadline: Nanos) {
        match self {
            Self::Real(_) => {
                // A sleep may end early by contract; a deadline may not.
                loop {
                    let now = self.now();
                    if now >= deadline {
                        return;
                    }
                    std::thread::sleep(Duration::from_nanos(deadline - now));
                }
            }
            Self::Mock(now) => {
                now.fetch_max(deadline, Ordering::AcqRel);
            }
        }
    }

    /// Moves a mock clock forward. The real clock cannot be moved: it ignores this.
    pub fn advance(&self, by: Duration) {
        if let Self::Mock(now) = self {
            now.fetch_add(by.as_nanos() as u64, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_clock_never_goes_back_and_a_deadline_is_never_early() {
        let clock = Clock::real();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        let deadline = clock.now() + 2_000_000;
        clock.sleep_until(deadline);
        assert!(clock.now() >= deadline);
    }

    #[test]
    fn a_sleep_on_the_mock_clock_takes_no_time_and_moves_every_copy() {
        let clock = Clock::mock();
        let other = clock.clone();
        clock.sleep_until(5_000_000_000);
        other.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), 6_000_000_000);
    }
}
