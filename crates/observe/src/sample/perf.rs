//! Counters of the kernel's `perf_event_open`, of all CPUs or of some tasks.
//!
//! There are fewer counters than things to count, so that the kernel may take turns: a counter reports how long it was
//! wanted and how long it counted, and its rise is scaled by the two, as `perf stat` does.
//!
//! SystemTree: perf_event_open(2); `Documentation/admin-guide/perf-security.rst`.

use std::io::{self, ErrorKind};

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Dynamic, Hardware, Software};
use perf_event::{Builder, Counter};

/// The event to count.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Hardware(Hardware),
    /// Reads that missed a cache.
    Misses(CacheId),
    /// A software event: the same code path on machines without hardware counters.
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests count events that every machine can count"))]
    Software(Software),
    /// An event of a unit outside the cores.
    Dynamic(Dynamic),
}

/// The tasks or CPUs to count.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whom {
    /// All that runs on a CPU, the kernel included.
    Cpu(u32),
    /// A thread, and the threads and processes that it makes from now on.
    Task(u32),
}

/// One thing counted at several places.
#[derive(Debug)]
pub(super) struct Counting {
    each: Vec<(Counter, Option<Reading>)>,
    /// Whether the kernel's part could not be counted.
    pub(super) user_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    count: u64,
    wanted: u64,
    counted: u64,
}

impl Counting {
    /// Begins to count. Places that do not exist (a CPU that is offline, a thread that has ended) are left out.
    ///
    /// # Errors
    /// When it can be counted nowhere: the kernel's first reason.
    pub(super) fn begin(event: &Event, places: &[Whom]) -> io::Result<Self> {
        let mut counting = Self { each: Vec::with_capacity(places.len()), user_only: false };
        let mut why = None;
        for &place in places {
            // Where the kernel may not be counted, user code of the user's own tasks may be.
            let made = open(event, place, true).or_else(|error| match place {
                Whom::Task(_) if error.kind() == ErrorKind::PermissionDenied => {
                    counting.user_only = true;
                    open(event, place, false)
                }
                _ => Err(error),
            });
            match made {
                Ok(counter) => counting.each.push((counter, None)),
                Err(error) => why = why.or(Some(error)),
            }
        }
        if counting.each.is_empty() {
            return Err(why.unwrap_or_else(|| io::Error::other("there is no CPU or task to count events of")));
        }
        Ok(counting)
    }

    /// The increase since the last call, over all targets; `None` at the first call, and when no counter counted.
    pub(super) fn rise(&mut self) -> Option<f64> {
        let mut sum = None;
        for (counter, last) in &mut self.each {
            let now = counter.read_full().ok().and_then(|data| {
                let nanoseconds = |time: std::time::Duration| time.as_nanos() as u64;
                Some(Reading {
                    count: data.count(),
                    wanted: nanoseconds(data.time_enabled()?),
                    counted: nanoseconds(data.time_running()?),
                })
            });
            if let Some(rise) =
                std::mem::replace(last, now).zip(now).and_then(|(last, now)| scaled(last, now))
            {
                sum = Some(sum.unwrap_or(0.0) + rise);
            }
        }
        sum
    }
}

/// The count scaled to the whole time. `None` if the counter was never scheduled, since that is unknown and not zero.
fn scaled(last: Reading, now: Reading) -> Option<f64> {
    let count = now.count.checked_sub(last.count)? as f64;
    let wanted = now.wanted.checked_sub(last.wanted)?;
    let counted = now.counted.checked_sub(last.counted)?;
    match (wanted, counted) {
        // A task that did not run.
        (0, _) => Some(count),
        (_, 0) => None,
        _ => Some(count * (wanted as f64 / counted as f64)),
    }
}

fn open(event: &Event, place: Whom, kernel: bool) -> io::Result<Counter> {
    let mut builder = match event {
        Event::Hardware(event) => Builder::new(*event),
        Event::Software(event) => Builder::new(*event),
        Event::Dynamic(event) => Builder::new(*event),
        Event::Misses(which) => {
            Builder::new(Cache { which: *which, operation: CacheOp::READ, result: CacheResult::MISS })
        }
    };
    match place {
        Whom::Cpu(cpu) => builder.any_pid().one_cpu(cpu as usize),
        Whom::Task(task) => builder.observe_pid(task.cast_signed()).any_cpu().inherit(true),
    };
    if matches!(event, Event::Dynamic(_)) {
        // Units outside the cores cannot attribute the work, and reject such filters.
        builder.exclude_hv(false);
    }
    builder.exclude_kernel(!kernel).enabled(true).build()
}

/// Why the kernel does not count, as text.
pub(super) fn reason(error: &io::Error, paranoid: &str) -> String {
    let known = match error.kind() {
        ErrorKind::PermissionDenied => format!(
            "the kernel does not allow it (kernel.perf_event_paranoid = {paranoid}): it requires \
             CAP_PERFMON or a setting of 0 or below"
        ),
        ErrorKind::NotFound | ErrorKind::Unsupported => {
            "the processor has no such counter, or the hypervisor does not expose it".to_owned()
        }
        _ => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
            Some(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NODEV) => {
                "the processor has no such counter, or the hypervisor does not expose it".to_owned()
            }
            Some(rustix::io::Errno::NOSYS) => "this kernel has no perf_event_open".to_owned(),
            _ => "perf_event_open failed".to_owned(),
        },
    };
    format!("{known} ({error})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_made_up_for() {
        let at = |count, wanted, counted| Reading { count, wanted, counted };
        assert_eq!(scaled(at(10, 100, 100), at(30, 200, 200)), Some(20.0));
        assert_eq!(scaled(at(10, 100, 100), at(30, 300, 150)), Some(80.0));
        assert_eq!(scaled(at(10, 100, 100), at(10, 300, 100)), None, "it never had its turn");
        assert_eq!(scaled(at(10, 100, 100), at(10, 100, 100)), Some(0.0), "the task did not run");
        assert_eq!(scaled(at(10, 100, 100), at(5, 200, 200)), None);
    }

    /// Software events use the same calls as hardware events.
    #[test]
    fn a_task_is_counted_with_what_it_makes() {
        let me = Whom::Task(u32::try_from(crate::thread_id()).unwrap());
        let Some(mut faults) = allowed(Counting::begin(&Event::Software(Software::PAGE_FAULTS), &[me]))
        else {
            return;
        };
        let mut clock = Counting::begin(&Event::Software(Software::TASK_CLOCK), &[me]).unwrap();
        assert_eq!((faults.rise(), clock.rise()), (None, None));
        let pages = 2_000;
        let touch = move || {
            // New pages from the kernel: too large to be reused by the allocator.
            let mut memory = vec![0_u8; pages * 4096];
            memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
            std::hint::black_box(memory).len()
        };
        touch();
        std::thread::spawn(touch).join().unwrap();
        let before = std::time::Instant::now();
        while before.elapsed() < std::time::Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        let (found, ran) = (faults.rise().unwrap(), clock.rise().unwrap());
        // The allocator has some pages from before; huge pages may answer all, where they are always on.
        assert!(found >= 1.8 * pages as f64 || found > 8.0 && huge_pages_are_always_on(), "{found}");
        assert!(ran > 1e6, "{ran} ns");
    }

    /// `None` if the kernel refuses permission, which some distributions and containers grant only to root.
    fn allowed(begun: io::Result<Counting>) -> Option<Counting> {
        begun
            .inspect_err(|error| {
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(reason(error, "4").contains("perf_event_paranoid = 4"));
            })
            .ok()
    }

    #[test]
    fn all_cpus_are_counted() {
        let cpus: Vec<Whom> = (0..4096).map(Whom::Cpu).collect();
        let Some(mut clock) = allowed(Counting::begin(&Event::Software(Software::CPU_CLOCK), &cpus)) else {
            return;
        };
        let online = std::fs::read_to_string("/proc/stat").unwrap();
        let online =
            online.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count();
        assert_eq!(clock.each.len(), online, "those that do not exist are left out");
        assert_eq!(clock.rise(), None);
        let mut share = || {
            let begun = std::time::Instant::now();
            clock.rise().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(200));
            let (found, passed) = (clock.rise().unwrap(), begun.elapsed().as_secs_f64());
            found / 1e9 / passed / online as f64
        };
        // The two clocks are read one after the other, between which a busy machine may do something else, but not each time.
        assert!((0..10).map(|_| share()).any(|share| (share - 1.0_f64).abs() < 0.2));
    }

    fn huge_pages_are_always_on() -> bool {
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("[always]"))
    }

    #[test]
    fn what_cannot_be_counted_has_a_reason() {
        let error = Counting::begin(&Event::Software(Software::PAGE_FAULTS), &[]).unwrap_err();
        assert!(reason(&error, "2").contains("to count events of"));
        let denied = io::Error::from_raw_os_error(13);
        assert!(reason(&denied, "3").contains("perf_event_paranoid = 3"));
        for errno in [2, 19, 95] {
            assert!(reason(&io::Error::from_raw_os_error(errno), "2").contains("no such counter"), "{errno}");
        }
    }
}
