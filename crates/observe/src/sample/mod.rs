//! Host metrics, sampled once per interval.
//!
//! A [`HostSampler`] determines at creation which sources this host provides, names every one that it cannot read, and
//! then fills one slot per series at each [`HostSampler::sample`]. In steady state it allocates nothing: files are kept
//! open and read again into one buffer, and numbers are parsed from bytes. It needs a separate thread; it never waits.
//!
//! The formulas for devices are those of `iostat -x` (sysstat), for pressure those of
//! `Documentation/accounting/psi.rst`, for the rest those of the kernel's `Documentation/` that each collector's file
//! names.

mod backing_device;
mod bandwidth;
mod cgroup;
mod cgroup_v1;
mod counter;
mod cpu;
mod disk;
mod fields;
mod frequency;
mod hardware;
mod iostat;
mod memory;
mod network;
mod numa;
mod numa_maps;
mod pace;
mod perf;
mod pressure;
mod process;
mod run_queue;
pub(crate) mod tables;
mod tasks;

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::metric;
pub use backing_device::{BackingDevice, Device};
pub use cgroup::other_group;
pub(crate) use cpu::SHARES;
use kelvin_host::Buffer;
pub use kelvin_host::SystemTree;

/// Optional metrics, in addition to the host's, which are always sampled.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Block devices by their kernel names, such as "nvme0n1" or "dm-0"; an empty list means every device that has a
    /// size.
    pub disks: Vec<String>,
    /// Paths whose devices are relevant, each with its role: `("data", …)`, `("wal", …)`. Their devices and the disks
    /// below are sampled even if `disks` does not name them.
    pub paths: Vec<(String, PathBuf)>,
    /// Processes to sample. One with many threads or children is read less often than once a sample, so that it costs
    /// half a per cent of a CPU at most: the intervals between are unknown.
    pub processes: Vec<Process>,
    /// Control groups to sample in addition to this process's own, each with its name in the series: an absolute
    /// directory, or a path below the hierarchy's root as `/proc/PID/cgroup` shows it. In version 1 it is the group of
    /// that name in each controller's hierarchy.
    pub cgroups: Vec<(String, PathBuf)>,
    /// Leave out the series of single CPUs; those of their total are kept.
    pub totals_only: bool,
}

/// A process to sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its name in the series: "client", "postgres".
    pub name: String,
    /// Its number.
    pub pid: u32,
    /// Add up its children with it, as is right for a postmaster.
    pub children: bool,
}

/// One series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesInfo {
    /// Stable, dotted: "host.cpu.total.user", "host.disk.vda.aqu_sz".
    pub name: String,
    /// "ratio" (of 1), "1/s", "B/s", "kB/s", "B", "ms", "kB", "s/s", "MHz", "%" or "1".
    pub unit: &'static str,
    /// A description in one line.
    pub help: &'static str,
}

/// A source that this host does not offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The series or their common prefix.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A collector that fills some of the slots. Slots are unknown (NaN) before it is called.
trait Collector: Send {
    /// `seconds` since the sample before; not a number where that is unknown.
    fn sample(&mut self, buffer: &mut Buffer, seconds: f64, out: &mut [f64]);
}

/// The series that the collectors registered at creation.
#[derive(Default)]
struct Registry {
    series: Vec<SeriesInfo>,
    absent: Vec<Absent>,
    parts: Vec<(Range<usize>, Box<dyn Collector>)>,
}

impl Registry {
    /// Takes a collector with its series as (name, unit, help), in the order of its slots.
    fn add(
        &mut self,
        series: Vec<(String, &'static str, &'static str)>,
        collector: impl Collector + 'static,
    ) {
        let start = self.series.len();
        self.series.extend(series.into_iter().map(|(name, unit, help)| SeriesInfo { name, unit, help }));
        if self.series.len() > start {
            self.parts.push((start..self.series.len(), Box::new(collector)));
        }
    }

    fn absent(&mut self, what: &str, why: String) {
        self.absent.push(Absent { what: what.to_owned(), why });
    }
}

/// Samples the host.
pub struct HostSampler {
    series: Vec<SeriesInfo>,
    absent: Vec<Absent>,
    places: Vec<(String, BackingDevice)>,
    devices: Vec<Device>,
    parts: Vec<(Range<usize>, Box<dyn Collector>)>,
    buffer: Buffer,
}

impl HostSampler {
    /// Determines which sources this host provides; takes some milliseconds.
    pub fn new(config: &Config) -> Self {
        Self::from_tree(&SystemTree::default(), config)
    }

    /// The same, of the files below another root.
    pub fn from_tree(source: &SystemTree, config: &Config) -> Self {
        let mut registry = Registry::default();
        let found = &mut registry;
        cpu::register(source, found, config.totals_only);
        run_queue::register(source, found, config.totals_only);
        frequency::register(source, found, config.totals_only);
        pressure::register(source, found, "/proc/pressure/", "", metric::PRESSURE);
        memory::register(source, found);
        numa::register(source, found);
        let places: Vec<_> = config
            .paths
            .iter()
            .map(|(role, path)| (role.clone(), BackingDevice::find(source, path)))
            .collect();
        let names = disk::register(source, found, &config.disks, &places);
        let devices = Device::all(source, names);
        network::register(source, found);
        cgroup::register(source, found, &config.cgroups);
        process::register(source, found, &config.processes);
        hardware::register(source, found, &config.processes);
        bandwidth::register(source, found);
        numa_maps::register(source, found, &config.processes);
        let Registry { series, absent, parts } = registry;
        Self { series, absent, places, devices, parts, buffer: Buffer::default() }
    }

    /// The series, in the order of the values.
    pub fn series(&self) -> &[SeriesInfo] {
        &self.series
    }

    /// The sources that this host does not offer, each with the reason.
    pub fn absent(&self) -> &[Absent] {
        &self.absent
    }

    /// The devices of the configured paths, by role.
    pub fn places(&self) -> &[(String, BackingDevice)] {
        &self.places
    }

    /// The sampled block devices and the filesystems mounted from them.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Takes a sample `elapsed` after the previous one. The first one initialises the counters: its rates are unknown.
    /// Values that are unknown in an interval are NaN. `values` has a slot for each of [`HostSampler::series`]; a
    /// shorter one leaves out the last collectors.
    pub fn sample(&mut self, elapsed: Duration, values: &mut [f64]) {
        values.fill(f64::NAN);
        let seconds = if elapsed.is_zero() { f64::NAN } else { elapsed.as_secs_f64() };
        for (range, part) in &mut self.parts {
            if let Some(out) = values.get_mut(range.clone()) {
                part.sample(&mut self.buffer, seconds, out);
            }
        }
    }
}
