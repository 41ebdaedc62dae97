//! How the kernel schedules a thread that begins work at intended times.

/// The shortest slice that Linux takes: 0.1 ms.
const SLICE_NS: u64 = 100_000;

/// Has the calling thread's timers fire exactly; by default the kernel may let a sleep last 50 µs longer. Threads and processes
/// that it starts inherit it. Where the kernel refuses, the sleeps are that much longer.
pub fn wake_on_time() {
    // A slack of 1 ns; 0 would be the default.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Has the calling thread wake on time, and run soon after: for threads of a load generator that begin work at intended times,
/// whose delay would be counted as the target's.
///
/// Under the fair scheduler its slice is 0.1 ms, so that Linux 6.12 and later lets it run before a thread with a longer slice once
/// it wakes. That is the order of threads and not their share of the CPU, which the nice value decides; it stays as it is. It
/// costs switches: a closed loop on the CPUs of its server interrupts it for every reply, which took a third more system time and
/// a tenth of the throughput. Threads and processes that it starts inherit the slice.
///
/// Where the kernel refuses, the schedule lag shows it.
pub fn schedule_promptly() {
    wake_on_time();
    shorten_slice();
}

#[allow(unsafe_code, reason = "the C library has no functions for these two system calls")]
fn shorten_slice() {
    let Some(mut attributes) = scheduling() else { return };
    // Other policies have no slice, or are somebody's decision.
    if attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = SLICE_NS;
    // SAFETY: reads as many bytes as `size` says, which is at most that of the type; 0 is the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
}

/// The calling thread's attributes.
#[allow(unsafe_code, reason = "the C library has no function for this system call")]
fn scheduling() -> Option<libc::sched_attr> {
    const SIZE: u32 = size_of::<libc::sched_attr>() as u32;
    let mut attributes = libc::sched_attr {
        size: SIZE,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: writes at most the given number of bytes; 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0) };
    (answer == 0).then_some(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_is_short_and_the_rest_as_before() {
        std::thread::spawn(|| {
            let before = scheduling().unwrap();
            schedule_promptly();
            assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
            let after = scheduling().unwrap();
            let kept = |one: &libc::sched_attr| (one.sched_policy, one.sched_nice, one.sched_priority);
            assert_eq!(kept(&after), kept(&before));
            // Kernels before 6.12 report no slice.
            let expected = if before.sched_runtime == 0 { 0 } else { SLICE_NS };
            assert_eq!(after.sched_runtime, expected);
        })
        .join()
        .unwrap();
    }
}
