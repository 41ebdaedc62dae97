//! Hardware counters: instructions, cycles and cache misses, by `perf_event_open`.
//!
//! Of all CPUs where that is allowed, which adds nothing to a context switch; otherwise of the given processes, and of
//! all processes that they start from now on.

use std::time::Duration;

use perf_event::events::{CacheId, Hardware};

use super::counter::ratio;
use super::pace::Pace;
use super::perf::{Counting, Event, Whom, reason};
use super::{Collector, Process, Registry};
use crate::metric;
use kelvin_host::{Buffer, SystemTree};

const UNITS: &str = "/sys/bus/event_source/devices";

/// The maximum number of open files for this: the users' connections need some, too.
fn most_files() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 4).unwrap_or(usize::MAX))
}

const SERIES: [(&str, &str, &str); 4] = [
    ("instructions", "1/s", "instructions retired"),
    ("cycles", "1/s", "cycles in which a CPU was not halted"),
    ("llc_misses", "1/s", "reads that missed the last-level cache"),
    ("dtlb_misses", "1/s", "reads that missed the TLB"),
];
const PER_CYCLE: (&str, &str, &str) = ("ipc", "1", "instructions per cycle");

fn events() -> [Event; SERIES.len()] {
    [
        Event::Hardware(Hardware::INSTRUCTIONS),
        Event::Hardware(Hardware::CPU_CYCLES),
        Event::Misses(CacheId::LL),
        Event::Misses(CacheId::DTLB),
    ]
}

pub(super) fn register(source: &SystemTree, registry: &mut Registry, processes: &[Process]) {
    if let Err(why) = unit(source) {
        return registry.absent(metric::HARDWARE, why);
    }
    if !source.is_this_host() {
        return registry.absent(
            metric::HARDWARE,
            "the files come from another host, and only that host can count these".into(),
        );
    }
    let cpus = source.numbered("/sys/devices/system/cpu", "cpu");
    let most = most_files();
    if cpus.len() * SERIES.len() > most {
        let why = format!(
            "{} CPUs would need {} open files, more than a quarter of the limit, {most}: raise `ulimit -n`",
            cpus.len(),
            cpus.len() * SERIES.len()
        );
        registry.absent(metric::HARDWARE, why);
    } else {
        let places: Vec<Whom> = cpus.into_iter().map(Whom::Cpu).collect();
        if add(source, registry, metric::HARDWARE, &places) {
            return;
        }
    }
    for process in processes {
        let places: Vec<Whom> = tasks(source, process).into_iter().map(Whom::Task).collect();
        if places.len() * SERIES.len() <= most {
            add(source, registry, &format!("host.process.{}.hardware", process.name), &places);
        }
    }
}

/// The unit of the processor's cores, or why there is none.
fn unit(source: &SystemTree) -> Result<String, String> {
    let units = source.names(UNITS);
    let is_core =
        |unit: &&String| unit.as_str() == "cpu" || unit.starts_with("cpu_") || unit.starts_with("armv");
    units.iter().find(is_core).cloned().ok_or_else(|| {
        format!(
            "the kernel offers no hardware counters here: no processor PMU in {UNITS} (found: {}), as in \
             most virtual machines",
            units.join(", ")
        )
    })
}

/// The threads of a process, and of its children where they are wanted.
fn tasks(source: &SystemTree, process: &Process) -> Vec<u32> {
    let mut processes = vec![process.pid];
    if process.children {
        let children = source.text(format!("/proc/{0}/task/{0}/children", process.pid)).unwrap_or_default();
        processes.extend(children.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
    }
    processes.iter().flat_map(|pid| source.threads(*pid)).collect()
}

/// Opens the available counters of the targets, and names the others. Returns whether there are any.
fn add(source: &SystemTree, registry: &mut Registry, prefix: &str, places: &[Whom]) -> bool {
    let paranoid = source.text("/proc/sys/kernel/perf_event_paranoid");
    let paranoid = paranoid.as_deref().map_or("unknown", str::trim);
    let mut series = Vec::new();
    let mut failures: Vec<(&str, String)> = Vec::new();
    let counting = events().map(|event| Counting::begin(&event, places));
    let counting: [Option<Counting>; SERIES.len()] = {
        let mut at = 0;
        counting.map(|begun| {
            let (name, unit, help) = SERIES[at];
            at += 1;
            match begun {
                Ok(counting) => {
                    let help = if counting.user_only && name == "instructions" {
                        "instructions retired in user code"
                    } else {
                        help
                    };
                    series.push((format!("{prefix}.{name}"), unit, help));
                    Some(counting)
                }
                Err(error) => {
                    failures.push((name, reason(&error, paranoid)));
                    None
                }
            }
        })
    };
    if series.is_empty() {
        let why = failures.into_iter().next().map_or_else(String::new, |(_, why)| why);
        registry.absent(prefix, why);
        return false;
    }
    for (name, why) in failures {
        registry.absent(&format!("{prefix}.{name}"), why);
    }
    let per_cycle = counting[0].is_some() && counting[1].is_some();
    if per_cycle {
        let (name, unit, help) = PER_CYCLE;
        series.push((format!("{prefix}.{name}"), unit, help));
    }
    registry.add(series, Processor { counting, per_cycle, pace: Pace::at_most_every(Duration::ZERO) });
    true
}

struct Processor {
    counting: [Option<Counting>; SERIES.len()],
    per_cycle: bool,
    /// Each counter is read on the CPU that it counts, which is a call to another CPU.
    pace: Pace,
}

impl Collector for Processor {
    fn sample(&mut self, _: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let Some(seconds) = self.pace.begin(seconds) else { return };
        let mut rises = [f64::NAN; SERIES.len()];
        let mut slot = 0;
        for (counting, rise) in self.counting.iter_mut().zip(&mut rises) {
            if let Some(counting) = counting {
                *rise = counting.rise().unwrap_or(f64::NAN);
                out[slot] = if seconds > 0.0 { *rise / seconds } else { f64::NAN };
                slot += 1;
            }
        }
        if self.per_cycle {
            out[slot] = ratio(rises[0], rises[1]);
        }
        self.pace.end();
    }
}
