//! What the threads of this process got of the CPUs, and how long they waited for one.

use std::time::Duration;

use kelvin_host::run_and_delay;
use serde::{Deserialize, Serialize};

/// One thread's times since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadTimes {
    /// The kernel's number of the thread.
    pub id: i32,
    /// Time on a CPU.
    pub run: Duration,
    /// Time ready to run and without a CPU.
    pub delay: Duration,
}

/// The times of every thread of this process, in the order of their numbers; none where the kernel keeps no
/// scheduling statistics. Reads one small file a thread: some microseconds each.
///
/// Source: `Documentation/scheduler/sched-stats.rst` of the kernel, `/proc/<pid>/schedstat`.
pub fn threads() -> Option<Vec<ThreadTimes>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A thread may end between the listing and the reading.
        let Ok(text) = std::fs::read(entry.path().join("schedstat")) else { continue };
        let (run, delay) = parse(&text)?;
        found.push(ThreadTimes { id, run, delay });
    }
    found.sort_by_key(|thread| thread.id);
    (!found.is_empty()).then_some(found)
}

/// The times of the thread that asks; none where the kernel keeps no scheduling statistics.
pub fn thread_times() -> Option<ThreadTimes> {
    let (run, delay) = parse(&std::fs::read("/proc/thread-self/schedstat").ok()?)?;
    Some(ThreadTimes { id: thread_id(), run, delay })
}

fn parse(schedstat: &[u8]) -> Option<(Duration, Duration)> {
    run_and_delay(schedstat).map(|(run, delay)| (Duration::from_nanos(run), Duration::from_nanos(delay)))
}

/// The kernel's number of the thread that asks.
pub fn thread_id() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_shows_in_the_times_of_its_thread() {
        let id = thread_id();
        let mine = || threads().unwrap().into_iter().find(|thread| thread.id == id).unwrap();
        let before = mine();
        let mut sum = 0_u64;
        while mine().run < before.run + Duration::from_millis(5) {
            for i in 0..100_000 {
                sum = std::hint::black_box(sum.wrapping_add(i));
            }
        }
        assert!(mine().delay >= before.delay);
    }
}
