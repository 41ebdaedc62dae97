//! Control groups, version 1: each controller in a separate hierarchy, under the names of the equivalent version 2
//! metrics.
//!
//! One difference is stated in the help texts: version 1 does not charge later writeback to any group, so that writes
//! are only those that a process waited for. There is no pressure information.
//!
//! SystemTree: `Documentation/admin-guide/cgroup-v1/{cpuacct,memory,blkio-controller}.rst`;
//! `Documentation/scheduler/sched-bwc.rst`, "Statistics".

use kelvin_host::cgroup::{group_of, hierarchy};
use std::path::{Path, PathBuf};

use kelvin_host::Mount;

use super::counter::{Counter, figure};
use super::fields::{Field, Fields, Kind};
use super::{Collector, Registry};
use kelvin_host::bytes::{first_number, lines, number, words};
use kelvin_host::{Buffer, KernelFile, SystemTree};

/// The controllers that are read.
const CONTROLLERS: [&str; 4] = ["cpu", "cpuacct", "memory", "blkio"];

const THROTTLED: [Field; 3] = throttling("throttled_time", 1e-9);

/// The effect of a limit of CPU time, which both versions count: the time under its own key and in its own unit.
pub(super) const fn throttling(time: &'static str, unit: f64) -> [Field; 3] {
    [
        Field {
            key: "nr_periods",
            name: "cpu.periods",
            unit: "1/s",
            help: "CPU limit periods in which the group ran",
            kind: Kind::Rate(1.0),
        },
        Field {
            key: "nr_throttled",
            name: "cpu.throttled_periods",
            unit: "1/s",
            help: "CPU limit periods in which the group was throttled",
            kind: Kind::Rate(1.0),
        },
        Field {
            key: time,
            name: "cpu.throttled",
            unit: "s/s",
            help: "time throttled, summed over CPUs",
            kind: Kind::Rate(unit),
        },
    ]
}

/// Processes killed, as both versions count them.
pub(super) const KILLS: Field = Field {
    key: "oom_kill",
    name: "memory.oom_kills",
    unit: "1/s",
    help: "processes killed by the OOM killer",
    kind: Kind::Rate(1.0),
};

/// File, operation in it, name, unit and help.
const IO: [(usize, &[u8], &str, &str, &str); 6] = [
    (0, b"Read", "read_bytes", "B/s", "read from devices"),
    (0, b"Write", "write_bytes", "B/s", "written to devices, except kernel writeback"),
    (1, b"Read", "reads", "1/s", "reads from devices"),
    (1, b"Write", "writes", "1/s", "writes to devices, except kernel writeback"),
    (0, b"Discard", "discard_bytes", "B/s", "discarded"),
    (1, b"Discard", "discards", "1/s", "discards"),
];
const IO_FILES: [&str; 2] =
    ["blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_serviced_recursive"];

/// A limit that is no smaller is none: the kernel shows the largest multiple of a page.
const UNLIMITED: u64 = 1 << 62;

/// Mount points of the version 1 controllers, and this process's group in each.
pub(super) struct Hierarchies {
    found: Vec<Hierarchy>,
}

struct Hierarchy {
    controller: &'static str,
    /// The mount point, and the mounted part.
    point: PathBuf,
    root: String,
    own: PathBuf,
}

/// The metrics of a group that come from version 1.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Held {
    pub(super) cpu: bool,
    pub(super) memory: bool,
    pub(super) io: bool,
}

impl Hierarchies {
    /// From the mounts and the text of `/proc/self/cgroup`.
    pub(super) fn find(mounts: &[Mount], groups: &str) -> Self {
        let found = CONTROLLERS.into_iter().filter_map(|controller| {
            let mount = hierarchy(mounts, Some(controller))?;
            Some(Hierarchy {
                controller,
                point: mount.point.clone(),
                root: mount.root.clone(),
                own: PathBuf::from(group_of(groups, Some(controller)).unwrap_or("/")),
            })
        });
        Self { found: found.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// This process's group in the hierarchy of a controller.
    fn own(&self, controller: &str) -> Option<&Path> {
        self.found.iter().find(|one| one.controller == controller).map(|one| one.own.as_path())
    }

    /// Registers this process's own group (`path` is `None`) or another, and returns its available metrics.
    pub(super) fn register(
        &self,
        source: &SystemTree,
        registry: &mut Registry,
        prefix: &str,
        path: Option<&Path>,
    ) -> Held {
        let mut held = Held::default();
        for hierarchy in &self.found {
            let Some(directory) = self.directory(source, hierarchy, path) else { continue };
            let file = |name: &str| directory.join(name).to_string_lossy().into_owned();
            match hierarchy.controller {
                "cpu" => {
                    held.cpu = true;
                    Fields::register(source, registry, &file("cpu.stat"), 0, prefix, &THROTTLED);
                    quota(source, registry, prefix, &file("cpu.cfs_quota_us"), &file("cpu.cfs_period_us"));
                }
                // It is the size of what the limit holds only if it is the limit's group: each hierarchy has groups of its own.
                "cpuacct" if path.is_none() && self.own("cpu").is_some_and(|cpu| cpu != hierarchy.own) => {
                    held.cpu = true;
                    let why = "this process's groups in the hierarchies cpuacct and cpu differ; the limit is \
                        read from cpu";
                    registry.absent(&format!("{prefix}.cpu.usage"), why.into());
                }
                "cpuacct" => {
                    held.cpu = true;
                    for (name, series, help) in [
                        ("cpuacct.usage", "cpu.usage", "CPUs used"),
                        ("cpuacct.usage_user", "cpu.user", "CPUs used in user code"),
                        ("cpuacct.usage_sys", "cpu.system", "CPUs used in the kernel"),
                    ] {
                        one(
                            source,
                            registry,
                            format!("{prefix}.{series}"),
                            "s/s",
                            help,
                            file(name),
                            What::Rate(1e-9),
                        );
                    }
                }
                "memory" => {
                    held.memory = true;
                    for (name, series, unit, help, what) in [
                        (
                            "memory.usage_in_bytes",
                            "memory.current",
                            "B",
                            "memory charged to the group",
                            What::Level,
                        ),
                        (
                            "memory.limit_in_bytes",
                            "memory.limit",
                            "B",
                            "memory allowed; unknown when unlimited",
                            What::Limit,
                        ),
                        (
                            "memory.failcnt",
                            "memory.max_events",
                            "1/s",
                            "times the limit was reached",
                            What::Rate(1.0),
                        ),
                    ] {
                        one(source, registry, format!("{prefix}.{series}"), unit, help, file(name), what);
                    }
                    Fields::register(source, registry, &file("memory.oom_control"), 0, prefix, &[KILLS]);
                }
                _ => {
                    held.io = true;
                    match (source.open(file(IO_FILES[0])), source.open(file(IO_FILES[1]))) {
                        (Ok(bytes), Ok(counts)) => {
                            let text = bytes.read(&mut Buffer::default()).map(|text| sum(text, b"Write"));
                            if text.flatten().is_none() {
                                let why = "the kernel counts nothing there yet: it counts only if the \
                                           controller enforces a limit";
                                registry.absent(&format!("{prefix}.io"), why.into());
                            }
                            let series = IO
                                .iter()
                                .map(|(.., name, unit, help)| (format!("{prefix}.io.{name}"), *unit, *help));
                            let io = Io { files: [bytes, counts], counters: Default::default() };
                            registry.add(series.collect(), io);
                        }
                        (Err(why), _) | (_, Err(why)) => registry.absent(&format!("{prefix}.io"), why),
                    }
                }
            }
        }
        held
    }

    /// The group's directory in a hierarchy, if it exists there.
    fn directory(&self, source: &SystemTree, hierarchy: &Hierarchy, path: Option<&Path>) -> Option<PathBuf> {
        let Hierarchy { point, root, own, .. } = hierarchy;
        let is_group = |directory: &PathBuf| source.path(directory).join("cgroup.procs").exists();
        let below = |path: &Path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            Some(point.join(path.strip_prefix("/").unwrap_or(path))).filter(is_group)
        };
        match path {
            // In a container the root of the mount is the process's own group.
            None => below(own).or_else(|| Some(point.clone()).filter(is_group)),
            // If given as a directory of one hierarchy, it is the group of that name in the others.
            Some(path) => {
                let name = self.found.iter().find_map(|one| path.strip_prefix(&one.point).ok());
                below(name.unwrap_or(path))
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum What {
    Level,
    Limit,
    Rate(f64),
}

/// A file of one number.
struct One {
    file: KernelFile,
    counter: Counter,
    what: What,
}

fn one(
    source: &SystemTree,
    registry: &mut Registry,
    series: String,
    unit: &'static str,
    help: &'static str,
    path: String,
    what: What,
) {
    match source.open(path) {
        Ok(file) => registry.add(vec![(series, unit, help)], One { file, counter: Counter::default(), what }),
        Err(why) => registry.absent(&series, why),
    }
}

impl Collector for One {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        let now = self.file.read(buffer).and_then(first_number);
        out[0] = match self.what {
            What::Level => figure(now),
            What::Limit => figure(now.filter(|limit| *limit < UNLIMITED)),
            What::Rate(factor) => figure(self.counter.strict(now)) * factor / seconds,
        };
    }
}

/// The CPUs allowed: so many microseconds of each period; below zero without a limit.
struct Quota {
    quota: KernelFile,
    period: KernelFile,
}

fn quota(source: &SystemTree, registry: &mut Registry, prefix: &str, quota: &str, period: &str) {
    let series = format!("{prefix}.cpu.limit");
    match (source.open(quota), source.open(period)) {
        (Ok(quota), Ok(period)) => {
            registry
                .add(vec![(series, "1", "CPUs allowed; unknown when unlimited")], Quota { quota, period });
        }
        (Err(why), _) | (_, Err(why)) => registry.absent(&series, why),
    }
}

impl Collector for Quota {
    fn sample(&mut self, buffer: &mut Buffer, _: f64, out: &mut [f64]) {
        // "-1" is no number of this kind, and so no limit.
        let quota = self.quota.read(buffer).and_then(first_number);
        let period = self.period.read(buffer).and_then(first_number).filter(|period| *period > 0);
        out[0] = figure(quota) / figure(period);
    }
}

struct Io {
    files: [KernelFile; 2],
    counters: [Counter; IO.len()],
}

impl Collector for Io {
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]) {
        for (at, file) in self.files.iter().enumerate() {
            let text = file.read(buffer).unwrap_or_default();
            for (i, (_, operation, ..)) in IO.iter().enumerate().filter(|(_, (of, ..))| *of == at) {
                out[i] = figure(self.counters[i].strict(sum(text, operation))) / seconds;
            }
        }
    }
}

/// The sum over the devices' lines, "254:0 Read 4096". `None` without a line: a kernel without a limit here may not
/// count at all.
fn sum(text: &[u8], operation: &[u8]) -> Option<u64> {
    let of = |line| {
        let mut words = words(line);
        words.next().filter(|device| device.contains(&b':'))?;
        words.next().filter(|found| *found == operation)?;
        number(words.next()?)
    };
    lines(text).filter_map(of).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn devices_are_added_up_and_their_total_is_not() {
        let text =
            b"254:0 Read 4096\n254:0 Write 100\n254:0 Sync 50\n254:0 Total 4196\n8:0 Read 4\nTotal 4200\n";
        assert_eq!(sum(text, b"Read"), Some(4100));
        assert_eq!(sum(text, b"Discard"), None);
        assert_eq!(sum(b"Total 0\n", b"Read"), None);
    }

    #[test]
    fn a_hierarchy_may_have_two_controllers() {
        let mounts = "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found = Hierarchies::find(&Mount::all(mounts), "2:memory:/a:b\n1:cpu,cpuacct:/c\n0::/\n").found;
        let shown: Vec<_> = found
            .iter()
            .map(|one| (one.controller, one.point.to_str().unwrap(), one.own.to_str().unwrap()))
            .collect();
        assert_eq!(
            shown,
            [
                ("cpu", "/sys/fs/cgroup/cpu,cpuacct", "/c"),
                ("cpuacct", "/sys/fs/cgroup/cpu,cpuacct", "/c"),
                ("memory", "/sys/fs/cgroup/memory", "/a:b"),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text in "(([0-9]{1,3}:[0-9]|Read|Total|\\PC) ?[0-9]{0,22}[ \n]?){0,20}", raw: Vec<u8>) {
            let _ = (sum(text.as_bytes(), b"Read"), sum(&raw, b"Read"), Hierarchies::find(&Mount::all(&text), &text));
        }
    }
}
