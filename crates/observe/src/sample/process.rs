//! What given processes use: `/proc/PID/`.
//!
//! Counters of a process are of all its threads in `stat` and `io`; delays and switches the kernel counts thread by
//! thread. Of children (a postmaster's) only the first thread's delays and switches are counted, which is all there is
//! in a PostgreSQL backend. CPU and faults of a child between its last reading and its end, or of one that lived between two
//! readings, are in the process's sums of ended children; the rest of what it did then is lost.
//!
//! SystemTree: `Documentation/filesystems/proc.rst`, "stat", "status", "io"; `sched-stats.rst`, `/proc/<pid>/schedstat`.

use std::fmt::Write as _;
use std::fs::File;
use std::mem::MaybeUninit;
use std::path::Path;
use std::time::Duration;

use super::pace::Pace;
use super::tasks::{Table, numbered};
use super::{Collector, Process, Registry};
use kelvin_host::bytes::{number, values, words};
use kelvin_host::{Buffer, KernelFile, ProcessStat, SystemTree, run_and_delay};

const SERIES: [(&str, &str, &str); 12] = [
    ("cpu.user", "s/s", "CPUs used in user code"),
    ("cpu.system", "s/s", "CPUs used in the kernel"),
    ("faults.minor", "1/s", "page faults served without a read"),
    ("faults.major", "1/s", "page faults that read from a device"),
    ("threads", "1", "threads now"),
    ("resident", "B", "resident memory now; pages shared among processes count for each"),
    ("processes", "1", "processes now"),
    ("run_delay", "s/s", "average number of threads that waited for a CPU"),
    ("switches.voluntary", "1/s", "voluntary context switches"),
    ("switches.involuntary", "1/s", "involuntary context switches"),
    ("read_bytes", "B/s", "read from devices"),
    ("write_bytes", "B/s", "written to devices, counted when dirtied"),
];

struct Watched {
    pid: u32,
    children: bool,
    root: String,
    /// Kept open, so that they cannot become another process's.
    stat: KernelFile,
    list: Option<KernelFile>,
    threads: File,
    io: bool,
    delays: bool,
    slots: [Option<usize>; SERIES.len()],
    /// Clock ticks a second, bytes a page.
    tick: f64,
    page: f64,
    pace: Pace,
    work: Work,
}

/// What is used again in every sample.
struct Work {
    path: String,
    space: Vec<MaybeUninit<u8>>,
    ids: Vec<u32>,
    /// When each of `ids` began, where that was read.
    births: Vec<Option<u64>>,
    stats: Table<4>,
    delays: Table<1>,
    switches: Table<2>,
    ios: Table<2>,
}

pub(super) fn register(source: &SystemTree, registry: &mut Registry, processes: &[Process]) {
    for process in processes {
        let prefix = format!("host.process.{}", process.name);
        if let Err(why) = watch(source, registry, process, &prefix) {
            registry.absent(&prefix, why);
        }
    }
}

fn watch(
    source: &SystemTree,
    registry: &mut Registry,
    process: &Process,
    prefix: &str,
) -> Result<(), String> {
    let pid = process.pid;
    let stat = source.open(format!("/proc/{pid}/stat"))?;
    let threads =
        File::open(source.path(format!("/proc/{pid}/task"))).map_err(|e| format!("/proc/{pid}/task: {e}"))?;
    let list = source.open(format!("/proc/{pid}/task/{pid}/children"));
    if let (true, Err(why)) = (process.children, &list) {
        registry.absent(&format!("{prefix}: children"), format!("{why}; only the process itself is counted"));
    }
    let io = source.open(format!("/proc/{pid}/io"));
    let delays = source.open(format!("/proc/{pid}/schedstat"));
    let mut slots = [None; SERIES.len()];
    let mut series = Vec::new();
    for (i, (name, unit, help)) in SERIES.into_iter().enumerate() {
        let name = format!("{prefix}.{name}");
        let missing = match i {
            7 => delays.as_ref().err(),
            10 | 11 => io.as_ref().err(),
            _ => None,
        };
        if let Some(why) = missing {
            registry.absent(&name, why.clone());
        } else {
            slots[i] = Some(series.len());
            series.push((name, unit, help));
        }
    }
    let watched = Watched {
        pid,
        children: process.children && list.is_ok(),
        root: source.path("/proc").to_string_lossy().into_owned(),
        stat,
        list: list.ok().filter(|_| process.children),
        threads,
        io: io.is_ok(),
        delays: delays.is_ok(),
        slots,
        tick: rustix::param::clock_ticks_per_second() as f64,
        page: rustix::param::page_size() as f64,
        pace: Pace::at_most_every(Duration::ZERO),
        work: Work {
            path: String::with_capacity(256),
            space: vec![MaybeUninit::uninit(); 16 << 10],
            ids: Vec::with_capacity(1024),
            births: Vec::with_capacity(1024),
            stats: Table::new(),
            delays: Table::new(),
            switches: Table::new(),
            ios: Table::new(),
        },
    };
    registry.add(series, watched);
    Ok(())
}

impl Collector for Watched {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let Some(seconds) = self.pace.begin(seconds) else { return };
        let mut figures = [f64::NAN; SERIES.len()];
        if self.stat.read(buffer).and_then(ProcessStat::parse).is_some() {
            self.processes(buffer, seconds, &mut figures);
            self.threads(buffer, seconds, &mut figures);
        } else {
            self.work.clear();
        }
        for (slot, figure) in self.slots.into_iter().zip(figures) {
            if let Some(slot) = slot {
                out[slot] = figure;
            }
        }
        self.pace.end();
    }
}

impl Watched {
    /// What is counted by process.
    fn processes(&mut self, buffer: &mut Buffer, seconds: f64, figures: &mut [f64; SERIES.len()]) {
        let work = &mut self.work;
        work.ids.clear();
        work.ids.push(self.pid);
        work.births.clear();
        if let Some(list) = &self.list {
            // Without the list the children would come back as new ones.
            let Some(text) = list.read(buffer) else { return work.clear() };
            work.ids.extend(words(text).filter_map(|word| u32::try_from(number(word)?).ok()));
        }
        let (mut used, mut bytes) = ([0; 4], [0; 2]);
        let (mut threads, mut resident, mut count) = (0_u64, 0_u64, 0_u64);
        let mut ended = None;
        for i in 0..work.ids.len() {
            let id = work.ids[i];
            let stat = work.read(buffer, &self.root, id, None, "stat");
            let Some(now) = stat.and_then(ProcessStat::parse) else {
                work.births.push(None);
                continue;
            };
            let born = Some(now.started);
            work.births.push(born);
            if i == 0 && self.children {
                ended = Some(now.ended);
            }
            work.stats.account(
                id,
                born,
                [now.user, now.system, now.minor_faults, now.major_faults],
                &mut used,
            );
            threads = threads.saturating_add(now.threads);
            resident = resident.saturating_add(now.resident_pages);
            count += 1;
            if self.io {
                let io = work.read(buffer, &self.root, id, None, "io");
                let io = io.map(|text| values(text, ["read_bytes", "write_bytes"]));
                if let Some([Some(read), Some(written)]) = io {
                    work.ios.account(id, born, [read, written], &mut bytes);
                }
            }
        }
        if let Some(ended) = ended {
            work.stats.account_ended(ended, &mut used);
        }
        if work.stats.close() {
            let scales = [1.0 / self.tick, 1.0 / self.tick, 1.0, 1.0];
            for ((figure, used), scale) in figures.iter_mut().zip(used).zip(scales) {
                *figure = used as f64 * scale / seconds;
            }
        }
        figures[4] = threads as f64;
        figures[5] = resident as f64 * self.page;
        figures[6] = count as f64;
        if work.ios.close() {
            figures[10] = bytes[0] as f64 / seconds;
            figures[11] = bytes[1] as f64 / seconds;
        }
    }

    /// What is counted by thread: of the process all its threads, of its children the first.
    fn threads(&mut self, buffer: &mut Buffer, seconds: f64, figures: &mut [f64; SERIES.len()]) {
        let work = &mut self.work;
        if !self.children {
            if numbered(&self.threads, &mut work.space, &mut work.ids).is_none() {
                work.delays.clear();
                work.switches.clear();
                return;
            }
            work.births.clear();
        }
        let (mut waited, mut switched) = ([0], [0; 2]);
        for i in 0..work.ids.len() {
            let id = work.ids[i];
            let born = work.births.get(i).copied().flatten();
            let of = (!self.children).then_some(self.pid);
            if self.delays
                && let Some((_, delay)) =
                    work.read(buffer, &self.root, id, of, "schedstat").and_then(run_and_delay)
            {
                work.delays.account(id, born, [delay], &mut waited);
            }
            let names = ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];
            let status = work.read(buffer, &self.root, id, of, "status").map(|text| values(text, names));
            if let Some([Some(voluntary), Some(involuntary)]) = status {
                work.switches.account(id, born, [voluntary, involuntary], &mut switched);
            }
        }
        if work.delays.close() {
            figures[7] = waited[0] as f64 / 1e9 / seconds;
        }
        if work.switches.close() {
            figures[8] = switched[0] as f64 / seconds;
            figures[9] = switched[1] as f64 / seconds;
        }
    }
}

impl Work {
    /// A file of a process, or of a thread of the process `of`.
    fn read<'a>(
        &mut self,
        buffer: &'a mut Buffer,
        root: &str,
        id: u32,
        of: Option<u32>,
        file: &str,
    ) -> Option<&'a [u8]> {
        self.path.clear();
        match of {
            Some(process) => write!(self.path, "{root}/{process}/task/{id}/{file}"),
            None => write!(self.path, "{root}/{id}/{file}"),
        }
        .ok()?;
        buffer.open(Path::new(&self.path))
    }

    fn clear(&mut self) {
        self.stats.clear();
        self.delays.clear();
        self.switches.clear();
        self.ios.clear();
    }
}
