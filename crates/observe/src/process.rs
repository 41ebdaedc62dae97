//! Resource usage of this process.

use std::time::Duration;

/// CPU time that all threads of this process have used so far, user and system together.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_cpu_time() {
        let before = cpu_time();
        let mut sum = 0_u64;
        while cpu_time().saturating_sub(before) < Duration::from_millis(5) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(sum > 0);
    }
}
