//! Resources that the calling thread has used.

use kelvin_host::run_and_delay;
use kelvin_measure::Nanos;

/// Counters of a thread since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// User and system time.
    pub(super) cpu: (Nanos, Nanos),
    /// Both together, to the nanosecond: the kernel updates the two above only at its ticks.
    exact: Nanos,
    /// Time ready to run without a CPU; `None` if the kernel does not report it.
    pub(super) run_delay: Option<Nanos>,
    /// Context switches, voluntary and not.
    pub(super) switches: (u64, u64),
    /// Page faults, major and minor.
    pub(super) faults: (u64, u64),
    /// When the reading began and ended; for a difference, the beginning of the first and the end of the last reading.
    at: (Nanos, Nanos),
}

impl Usage {
    /// The counters of the calling thread now.
    #[allow(unsafe_code, reason = "getrusage for one thread has no safe wrapper")]
    pub(super) fn now() -> Self {
        let clock = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
        };
        let begun = clock();
        // SAFETY: zeroed is a valid rusage, which the kernel fills.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
            usage
        };
        let exact = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let nanos = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        let times = std::fs::read("/proc/thread-self/schedstat").ok();
        Self {
            cpu: (nanos(usage.ru_utime), nanos(usage.ru_stime)),
            exact: exact.tv_sec as u64 * 1_000_000_000 + exact.tv_nsec as u64,
            run_delay: times.and_then(|text| run_and_delay(&text)).map(|(_, delay)| delay),
            switches: (usage.ru_nvcsw as u64, usage.ru_nivcsw as u64),
            faults: (usage.ru_majflt as u64, usage.ru_minflt as u64),
            at: (begun, clock()),
        }
    }

    /// For a difference: the time over which it was counted. The thread runs at both ends, so it can neither have used
    /// nor have waited for a CPU for longer.
    pub(super) fn span(&self) -> Nanos {
        self.at.1 - self.at.0
    }

    /// The difference from an earlier reading.
    pub(super) fn since(&self, before: &Self) -> Self {
        let pair =
            |now: (u64, u64), then: (u64, u64)| (now.0.saturating_sub(then.0), now.1.saturating_sub(then.1));
        let exact = self.exact.saturating_sub(before.exact);
        let (user, system) = pair(self.cpu, before.cpu);
        let system = match user + system {
            0 => 0,
            both => (u128::from(exact) * u128::from(system) / u128::from(both)) as u64,
        };
        Self {
            cpu: (exact - system, system),
            exact,
            run_delay: self.run_delay.zip(before.run_delay).map(|(now, then)| now.saturating_sub(then)),
            switches: pair(self.switches, before.switches),
            faults: pair(self.faults, before.faults),
            at: (before.at.0, self.at.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_cpu() {
        let before = Usage::now();
        let mut number = 1_u64;
        while Usage::now().since(&before).cpu.0 < 5_000_000 {
            for _ in 0..10_000 {
                number = std::hint::black_box(number.wrapping_mul(3));
            }
        }
        let used = Usage::now().since(&before);
        assert!(used.cpu.0 >= 5_000_000 && used.cpu.0 < 10_000_000_000, "{used:?}");
    }

    /// However busy the machine is, the kernel's counts do not exceed the time with which they are compared.
    #[test]
    fn trial_c9_no_thread_waits_for_longer_than_the_time_there_is() {
        for _ in 0..200 {
            let before = Usage::now();
            std::thread::yield_now();
            let used = Usage::now().since(&before);
            let waited = used.run_delay.unwrap_or(0);
            assert!(waited <= used.span() && used.cpu.0 + used.cpu.1 <= used.span(), "{used:?}");
        }
    }
}
