//! The machine: its clock, its memory, and the lowest latency that can be measured.

use kelvin_host::cgroup::memory_limit;
use std::hint::black_box;
use std::time::{Duration, Instant};

use io_uring::{IoUring, opcode};
use kelvin_stats::rank::median;

use super::facts::HostFacts;
use kelvin_host::SystemTree;

/// Determines the facts about the machine; `with_ring` includes io_uring's no-op.
pub(crate) fn probe_host(tree: &SystemTree, with_ring: bool) -> HostFacts {
    let [memory, memory_available] = tree.values("/proc/meminfo", ["MemTotal", "MemAvailable"]);
    HostFacts {
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        cpus: std::thread::available_parallelism().map_or(0, |cpus| cpus.get() as u32),
        nodes: tree.numbered("/sys/devices/system/node", "node").len() as u32,
        clock_source: tree.line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        idle_driver: tree.line("/sys/devices/system/cpu/cpuidle/current_driver"),
        governor: tree.line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        timer_floor: timer_floor(),
        ring_floor: with_ring.then(ring_floor).flatten(),
        memory: memory.map(|kib| kib << 10),
        memory_available: memory_available.map(|kib| kib << 10),
        memory_limit: memory_limit(tree),
    }
}

/// Nanoseconds to read the clock: the median of batches, on which an interruption has no effect.
fn timer_floor() -> Option<f64> {
    const BATCHES: usize = 15;
    const EACH: u32 = 200;
    let batch = |_| {
        let begun = Instant::now();
        for _ in 1..EACH {
            black_box(Instant::now());
        }
        begun.elapsed().as_nanos() as f64 / f64::from(EACH)
    };
    median(&(0..BATCHES).map(batch).collect::<Vec<f64>>())
}

/// Nanoseconds from submission to completion of a no-op through io_uring, one at a time: the
/// median; `None` without io_uring.
#[allow(unsafe_code, reason = "every submission through the io-uring crate is unsafe")]
fn ring_floor() -> Option<f64> {
    const MOST: usize = 200;
    const LONGEST: Duration = Duration::from_millis(2);
    let mut ring = IoUring::new(2).ok()?;
    let mut times = Vec::with_capacity(MOST);
    let begun = Instant::now();
    while times.len() < MOST && begun.elapsed() < LONGEST {
        let issued = Instant::now();
        // SAFETY: a no-operation refers to no memory.
        unsafe { ring.submission().push(&opcode::Nop::new().build()).ok()? };
        ring.submit_and_wait(1).ok()?;
        ring.completion().next()?;
        times.push(issued.elapsed().as_nanos() as f64);
    }
    median(&times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_facts_are_determined() {
        let host = probe_host(&SystemTree::default(), true);
        assert!(host.cpus > 0 && !host.kernel.is_empty(), "{host:?}");
        assert!(host.memory_available <= host.memory && host.memory.is_some(), "{host:?}");
        // Reading a clock takes time, and a no-op in the kernel takes longer.
        let timer = host.timer_floor.unwrap();
        assert!(timer > 0.5, "{host:?}");
        assert!(host.ring_floor.is_none_or(|ring| ring > timer), "{host:?}");
    }
}
