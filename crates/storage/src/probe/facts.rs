//! Facts about a run's environment, before and during it: plain data, from which findings are made.
//!
//! A file stored by an older version reads with what it lacks left empty.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::watch::RunCounts;
use crate::PerDirection;

/// All facts. Bytes and nanoseconds unless another unit is given; shares are of 1.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageFacts {
    /// The machine.
    pub host: HostFacts,
    /// What was requested, by job.
    pub jobs: Vec<JobFacts>,
    /// The files and devices, each once.
    pub targets: Vec<TargetFacts>,
    /// The block devices under them.
    pub devices: Vec<DeviceFacts>,
    /// What keeps I/O to a rate.
    pub limits: Vec<Limit>,
    /// What the run showed; none before it.
    pub run: Option<RunFacts>,
    /// What could not be inspected, and why.
    pub unseen: Vec<String>,
    /// What is counted during the run.
    #[serde(skip)]
    pub watched: RunCounts,
}

/// The machine as it was before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostFacts {
    /// The kernel's release.
    pub kernel: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// What the kernel reads the time from, such as "tsc".
    pub clock_source: Option<String>,
    /// What puts idle CPUs to sleep.
    pub idle_driver: Option<String>,
    /// What chooses the CPUs' frequency.
    pub governor: Option<String>,
    /// Nanoseconds to read the time.
    pub timer_floor: Option<f64>,
    /// Nanoseconds for nothing through io_uring, one at a time: the median.
    pub ring_floor: Option<f64>,
    /// Memory of the machine.
    pub memory: Option<u64>,
    /// Memory that can be had, page cache included (`MemAvailable`).
    pub memory_available: Option<u64>,
    /// What the control groups leave of it.
    pub memory_limit: Option<u64>,
}

/// A job as it was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFacts {
    /// Its name.
    pub name: String,
    /// How many do the same.
    pub workers: u32,
    /// The engine, as it is carried out.
    pub engine: String,
    /// Whether a worker can have several I/Os in flight.
    pub asynchronous: bool,
    /// I/Os of a worker in flight, as asked.
    pub depth: u32,
    /// Past the page cache.
    pub direct: bool,
    /// The directions that are among its I/Os.
    pub does: PerDirection<bool>,
    /// Offsets are drawn at random.
    pub random: bool,
    /// Smallest and largest I/O.
    pub block: PerDirection<(u32, u32)>,
    /// What all offsets are multiples of.
    pub aligned: u64,
    /// Its targets, by their places in [`StorageFacts::targets`].
    pub targets: Vec<usize>,
    /// The most targets of one worker.
    pub worker_targets: u32,
    /// The devices below one worker's targets, where that has the most.
    pub worker_devices: Vec<String>,
    /// Workers that go through the same bytes of one target in the same order; 1 where none do.
    pub same_bytes: u32,
    /// Bytes a second and worker that it is kept to.
    pub rate: PerDirection<Option<u64>>,
    /// It waits of its own accord: a rate, think time, a latency target, a trace's times.
    pub paced: bool,
    /// It burns CPU while it waits, as asked.
    pub polls: bool,
    /// It brings its writes to the medium, now and then or at the end.
    pub syncs: bool,
    /// It may come to a block more than once.
    pub repeats: bool,
    /// The NUMA nodes that it is bound to; none when it is free.
    pub nodes: Vec<u32>,
    /// What it writes, of its own buffers.
    pub buffers: Option<Content>,
    /// Percentiles that its result shows, in percent.
    pub percentiles: Vec<f64>,
}

/// What kind of thing a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProbedTargetKind {
    /// A regular file.
    #[default]
    File,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// Nothing.
    None,
}

/// A file or device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetFacts {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: ProbedTargetKind,
    /// Where the first worker's region begins, and where the last one's ends.
    pub region: (u64, u64),
    /// How long it was before the run; none when it was not there.
    pub size: Option<u64>,
    /// A job reads it.
    pub read: bool,
    /// A job writes it.
    pub written: bool,
    /// A job goes past the page cache.
    pub direct: bool,
    /// A job goes through the page cache.
    pub buffered: bool,
    /// The block device below it.
    pub device: Option<String>,
    /// The filesystem that it is on.
    pub filesystem: Option<Filesystem>,
    /// The filesystem says that its data is compressed.
    pub compressed: bool,
    /// The filesystem says that its data is encrypted by it.
    pub encrypted: bool,
    /// Loads and stores reach the medium without a page cache (DAX).
    pub dax: bool,
    /// What I/O past the page cache has to keep to.
    pub alignment: Option<Alignment>,
    /// What of the region is stored at all, when the jobs began to read and write.
    pub coverage: Option<Coverage>,
    /// What of it the page cache held then.
    pub cached: Option<Cached>,
    /// What stood in some of its blocks before.
    pub sample: Option<Content>,
    /// How it was found after the run.
    pub after: Option<TargetAfter>,
}

impl TargetFacts {
    /// Bytes from the region's beginning to its end.
    pub fn span(&self) -> u64 {
        self.region.1.saturating_sub(self.region.0)
    }
}

/// A target after the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetAfter {
    /// How long it was.
    pub size: u64,
    /// What of it the page cache held.
    pub cached: Option<Cached>,
    /// What of the region was stored then, where a job wrote it.
    pub coverage: Option<Coverage>,
    /// Bytes that the jobs moved in the measured part.
    pub moved: PerDirection<u64>,
}

/// A filesystem; only those of its options that matter for I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filesystem {
    /// Its type.
    pub kind: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Such as "discard", "compress=zstd", "data=journal".
    pub options: Vec<String>,
}

/// What I/O past the page cache has to be a multiple of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alignment {
    /// Addresses of buffers.
    pub memory: u32,
    /// Offsets and lengths.
    pub offset: u32,
    /// Who says so: "statx" or "the device's logical block".
    pub source: String,
}

/// How much of a region is stored, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// How much was examined.
    pub bytes: u64,
    /// Stored nowhere: reads return zeros without asking a device.
    pub hole: u64,
    /// Reserved and never written: the same.
    pub unwritten: u64,
    /// In memory, with no place on the device yet.
    pub delayed: u64,
    /// Compressed or encrypted by the filesystem.
    pub encoded: u64,
    /// Shared with another file: the first write goes elsewhere.
    pub shared: u64,
    /// Pieces.
    pub extents: u64,
    /// Whether dirty pages were written before looking.
    pub synced: bool,
    /// How it was found: "fiemap" or "seek".
    pub by: String,
}

/// What the page cache holds of a region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cached {
    /// In the cache.
    pub bytes: u64,
    /// Not yet written to the device, or on the way to it.
    pub dirty: u64,
}

/// What is in a sample of blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Blocks looked at.
    pub blocks: u32,
    /// Length of each.
    pub block: u32,
    /// Of nothing but zeros.
    pub zero: u32,
    /// Different ones among those that are not zero.
    pub distinct: u32,
    /// Share that zlib (level 1) leaves of those that are not zero, block by block; 1 when there are none.
    pub compressed: f64,
    /// Median time to read a block of zeros, where they were read past the page cache.
    pub zero_time: Option<f64>,
    /// The same of other blocks.
    pub data_time: Option<f64>,
}

/// A block device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceFacts {
    /// The kernel's name, such as "vda1".
    pub name: String,
    /// Its number, such as "252:1".
    pub number: String,
    /// Its disk, where it is a partition; else itself.
    pub disk: String,
    /// The whole disks below it; itself where it is one.
    pub leaves: Vec<String>,
    /// Those whose counters show what reached the storage.
    pub counted: Vec<String>,
    /// What lies between, from the top.
    pub layers: Vec<Layer>,
    /// Its length.
    pub size: u64,
    /// The disk's model.
    pub model: Option<String>,
    /// The disk is a hypervisor's.
    pub lent: bool,
    /// The NUMA node that it is attached to.
    pub node: Option<u32>,
    /// Bytes of it that the disk has stored, where it reports them (NVMe's NUSE).
    pub used: Option<u64>,
    /// Settings of its queue, of the disk.
    pub queue: Queue,
}

/// A layer between a device and its disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layer {
    /// The device that it is.
    pub device: String,
    /// What it is.
    pub kind: LayerKind,
    /// More: the backing file, the algorithm, the level.
    pub detail: String,
}

/// What a layer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A volume that is laid over others as it is.
    #[default]
    Volume,
    /// A file behind a loop device, through the page cache.
    LoopCached,
    /// A file behind a loop device, past the page cache.
    LoopDirect,
    /// Compressed memory.
    Zram,
    /// Memory.
    RamDisk,
    /// Space is given when it is first written.
    Thin,
    /// Deduplicated and compressed.
    Vdo,
    /// Encrypted.
    Crypt,
    /// Several paths to one disk.
    Multipath,
    /// A RAID.
    Raid,
    /// A disk over the network.
    Network,
}

/// Settings of a queue, recorded so that runs can be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// `queue/scheduler`, the one in use.
    pub scheduler: Option<String>,
    /// `queue/nr_requests`.
    pub requests: Option<u64>,
    /// `queue/max_sectors_kb`, in bytes: the longest request.
    pub longest: Option<u64>,
    /// `queue/max_segments`.
    pub segments: Option<u64>,
    /// `queue/chunk_sectors`, in bytes: what a request does not cross (the stripe of a RAID, a zone).
    pub chunk: Option<u64>,
    /// `queue/logical_block_size`.
    pub logical: Option<u64>,
    /// `queue/physical_block_size`.
    pub physical: Option<u64>,
    /// `queue/write_cache`.
    pub write_cache: Option<String>,
    /// `queue/rotational`.
    pub rotational: Option<bool>,
    /// `queue/discard_granularity`.
    pub discard: Option<u64>,
    /// `queue/zoned`.
    pub zoned: Option<String>,
    /// `queue/wbt_lat_usec`.
    pub write_back_throttle: Option<u64>,
    /// `queue/rq_affinity`.
    pub affinity: Option<u64>,
    /// `queue/nomerges`.
    pub no_merges: Option<u64>,
    /// `queue/read_ahead_kb`, in bytes.
    pub read_ahead: Option<u64>,
}

/// What a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Bytes read a second.
    #[default]
    ReadBytes,
    /// Bytes written a second.
    WriteBytes,
    /// Reads a second.
    ReadIos,
    /// Writes a second.
    WriteIos,
    /// A latency that others are promised, in µs.
    Latency,
    /// A weight against other control groups; the usual one is 100.
    Weight,
    /// A cost model shares the device out (`io.cost.qos`).
    Cost,
}

/// Something that keeps the I/O of this process to a rate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// The device that it is for; none for all.
    pub device: Option<String>,
    /// Of what.
    pub kind: LimitKind,
    /// How much.
    pub value: u64,
    /// The file that says so.
    pub place: String,
}

/// What only the run could show.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFacts {
    /// Seconds between the two readings of all counters.
    pub seconds: f64,
    /// Bytes that the jobs moved in that time, ramp-up included.
    pub claimed: PerDirection<u64>,
    /// I/Os of the jobs in that time.
    pub ios: PerDirection<u64>,
    /// Bytes that the verifying pass read.
    pub verified: u64,
    /// Bytes that this process asked of all block devices, read and written (`/proc/self/io`).
    pub process: Option<(u64, u64)>,
    /// The devices' own counters.
    pub devices: Vec<DeviceRun>,
    /// Other processes that moved something, those that moved the most first.
    pub others: Vec<OtherProcess>,
    /// The CPUs.
    pub cpu: CpuRun,
    /// Bytes in the page cache that were to be written when the run began: what reaches a device of them is not the run's.
    pub dirty_before: u64,
    /// By job.
    pub jobs: Vec<JobRun>,
    /// The most kernel threads that did I/O for io_uring at a time.
    pub io_workers: u32,
}

/// What a device counted between the two readings, all its users together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRun {
    /// Its name.
    pub name: String,
    /// I/Os.
    pub ios: PerDirection<u64>,
    /// I/Os that were merged into others.
    pub merges: PerDirection<u64>,
    /// Bytes.
    pub bytes: PerDirection<u64>,
    /// Flushes.
    pub flushes: u64,
    /// Milliseconds with at least one request in flight.
    pub busy: u64,
    /// Milliseconds in the queue, summed over requests.
    pub queued: u64,
}

/// Another process's I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherProcess {
    /// Its name.
    pub name: String,
    /// Its number.
    pub process: u32,
    /// Bytes read from block devices.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// The CPUs between the two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuRun {
    /// Share of all CPU time that was not idle.
    pub busy: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Seconds in which the control group's threads were kept from running.
    pub throttled: Option<f64>,
}

/// What a job's workers did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRun {
    /// Workers that did something.
    pub workers: u32,
    /// Seconds of the measured part, mean of the workers.
    pub seconds: f64,
    /// I/Os of the measured part.
    pub ios: PerDirection<u64>,
    /// Bytes of the measured part.
    pub bytes: PerDirection<u64>,
    /// I/Os of a worker in flight, by Little's law: their times' sum over the time.
    pub depth: Option<f64>,
    /// Mean time from handing an I/O over to its completion, in nanoseconds.
    pub latency: Option<f64>,
    /// I/Os in flight when each was issued, mean.
    pub issued_depth: Option<f64>,
    /// Share of the time that the busiest worker had a CPU.
    pub cpu: f64,
    /// CPU time of all workers for an I/O, in nanoseconds.
    pub cpu_per_io: Option<f64>,
    /// Share of the time that a worker wanted a CPU and had none, the greatest.
    pub run_delay: Option<f64>,
    /// Completion times.
    pub completion: PerDirection<Option<TimeSummary>>,
    /// Times from the intended start, where there is a rate.
    pub response: PerDirection<Option<TimeSummary>>,
    /// Bytes a second, one value for each [`JobRun::step`] of the measured part.
    pub series: Vec<f64>,
    /// Seconds from one value of the series to the next.
    pub step: f64,
    /// What went to each device of a job that has several: I/Os and their mean total time.
    pub devices: Vec<(String, u64, f64)>,
    /// What a latency target led to.
    pub latency_depth: Option<u32>,
}

/// A distribution in a few figures, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeSummary {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// 50 % do not exceed it.
    pub median: u64,
    /// 99 % do not exceed it; none for too few.
    pub p99: Option<u64>,
}
