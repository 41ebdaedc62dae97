//! Facts about a run's environment, before and during it: plain data, from which findings are derived.
//!
//! In a file stored by an older version, missing fields are read as empty.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::run_counts::RunCounts;
use super::run_facts::RunFacts;
use kelvin_fio::PerDirection;

/// All facts. Bytes and nanoseconds unless another unit is given; shares are of 1.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageFacts {
    /// The machine.
    pub host: HostFacts,
    /// The requests, by job.
    pub jobs: Vec<JobFacts>,
    /// The files and devices, each once.
    pub targets: Vec<TargetFacts>,
    /// The block devices under them.
    pub devices: Vec<DeviceFacts>,
    /// Limits on the rate of I/O.
    pub limits: Vec<Limit>,
    /// Facts from the run; `None` before it.
    pub run: Option<RunFacts>,
    /// Facts that could not be determined, with the reason.
    pub unseen: Vec<String>,
    /// Values counted during the run.
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
    /// The kernel's clock source, such as "tsc".
    pub clock_source: Option<String>,
    /// The idle driver of the CPUs.
    pub idle_driver: Option<String>,
    /// The frequency governor of the CPUs.
    pub governor: Option<String>,
    /// Nanoseconds to read the time.
    pub timer_floor: Option<f64>,
    /// Nanoseconds for a no-op through io_uring, one at a time: the median.
    pub ring_floor: Option<f64>,
    /// Memory of the machine.
    pub memory: Option<u64>,
    /// Memory available, page cache included (`MemAvailable`).
    pub memory_available: Option<u64>,
    /// The memory limit of the control groups.
    pub memory_limit: Option<u64>,
}

/// A job as requested.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobFacts {
    /// Its name.
    pub name: String,
    /// The number of identical workers.
    pub workers: u32,
    /// The engine, as executed.
    pub engine: String,
    /// Whether a worker can have several I/Os in flight.
    pub asynchronous: bool,
    /// I/Os in flight per worker, as requested.
    pub depth: u32,
    /// It bypasses the page cache.
    pub direct: bool,
    /// The directions of its I/Os.
    pub does: PerDirection<bool>,
    /// Offsets are drawn at random.
    pub random: bool,
    /// Smallest and largest I/O.
    pub block: PerDirection<(u32, u32)>,
    /// The alignment of all offsets.
    pub aligned: u64,
    /// Its targets, by their places in [`StorageFacts::targets`].
    pub targets: Vec<usize>,
    /// The largest number of targets of one worker.
    pub worker_targets: u32,
    /// The devices below one worker's targets: those of the worker with most of them.
    pub worker_devices: Vec<String>,
    /// Workers that access the same bytes of one target in the same order; 1 if there are none.
    pub same_bytes: u32,
    /// Rate limit in bytes per second and worker.
    pub rate: PerDirection<Option<u64>>,
    /// It waits intentionally: a rate, think time, a latency target, a trace's timestamps.
    pub paced: bool,
    /// It polls: it uses CPU while it waits, as requested.
    pub polls: bool,
    /// It syncs its writes to the medium, periodically or at the end.
    pub syncs: bool,
    /// It may access a block more than once.
    pub repeats: bool,
    /// The NUMA nodes that it is bound to; empty when it is not bound.
    pub nodes: Vec<u32>,
    /// Content of its writes, from its own buffers.
    pub buffers: Option<Content>,
    /// Percentiles that its result shows, in percent.
    pub percentiles: Vec<f64>,
}

/// The kind of a target.
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
    /// Its kind.
    pub kind: ProbedTargetKind,
    /// The beginning of the first worker's region, and the end of the last one's.
    pub region: (u64, u64),
    /// Its size before the run; `None` when it did not exist.
    pub size: Option<u64>,
    /// A job reads it.
    pub read: bool,
    /// A job writes it.
    pub written: bool,
    /// A job bypasses the page cache.
    pub direct: bool,
    /// A job uses the page cache.
    pub buffered: bool,
    /// The block device below it.
    pub device: Option<String>,
    /// The filesystem that it is on.
    pub filesystem: Option<Filesystem>,
    /// The filesystem reports that its data is compressed.
    pub compressed: bool,
    /// The filesystem reports that it encrypts its data.
    pub encrypted: bool,
    /// Loads and stores reach the medium without a page cache (DAX).
    pub dax: bool,
    /// Alignment required of direct I/O.
    pub alignment: Option<Alignment>,
    /// The stored part of the region, when the jobs began to read and write.
    pub coverage: Option<Coverage>,
    /// The part of it in the page cache at that time.
    pub cached: Option<Cached>,
    /// The content of some of its blocks before the run.
    pub sample: Option<Content>,
    /// Its state after the run.
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
    /// Its size.
    pub size: u64,
    /// The part of it in the page cache.
    pub cached: Option<Cached>,
    /// The stored part of the region at that time, if a job wrote to it.
    pub coverage: Option<Coverage>,
    /// Bytes that the jobs moved in the measured part.
    pub moved: PerDirection<u64>,
}

/// A filesystem; only the options relevant to I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Filesystem {
    /// Its type.
    pub kind: String,
    /// The mount point.
    pub point: PathBuf,
    /// Such as "discard", "compress=zstd", "data=journal".
    pub options: Vec<String>,
}

/// Alignment required of direct I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Alignment {
    /// Addresses of buffers.
    pub memory: u32,
    /// Offsets and lengths.
    pub offset: u32,
    /// The source of the value: "statx" or "the device's logical block".
    pub source: String,
}

/// The stored part of a region.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Bytes examined.
    pub bytes: u64,
    /// Stored nowhere: reads return zeros without asking a device.
    pub hole: u64,
    /// Allocated and never written, which has the same effect.
    pub unwritten: u64,
    /// In memory, with no place on the device yet.
    pub delayed: u64,
    /// Compressed or encrypted by the filesystem.
    pub encoded: u64,
    /// Shared with another file: the first write goes elsewhere.
    pub shared: u64,
    /// Pieces.
    pub extents: u64,
    /// Whether dirty pages were written before the inspection.
    pub synced: bool,
    /// The method: "fiemap" or "seek".
    pub by: String,
}

/// The part of a region in the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cached {
    /// In the cache.
    pub bytes: u64,
    /// Not yet written to the device, or on the way to it.
    pub dirty: u64,
}

/// Content of a sample of blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Content {
    /// Blocks sampled.
    pub blocks: u32,
    /// Length of each.
    pub block: u32,
    /// Blocks that contain only zeros.
    pub zero: u32,
    /// Distinct blocks among those that are not zero.
    pub distinct: u32,
    /// Size after compression by zlib (level 1), as a share, of those that are not zero, block by block; 1 if there are
    /// none.
    pub compressed: f64,
    /// Median time to read a block of zeros, if reads bypassed the page cache.
    pub zero_time: Option<f64>,
    /// The same for other blocks.
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
    /// Its disk if it is a partition, else itself.
    pub disk: String,
    /// The whole disks below it; itself if it is one.
    pub leaves: Vec<String>,
    /// Those whose counters show the I/O that reached the storage.
    pub counted: Vec<String>,
    /// The layers between, from the top.
    pub layers: Vec<Layer>,
    /// Its length.
    pub size: u64,
    /// The disk's model.
    pub model: Option<String>,
    /// The disk is provided by a hypervisor.
    pub lent: bool,
    /// The NUMA node that it is attached to.
    pub node: Option<u32>,
    /// Bytes of it that the disk has stored, where it reports them (NVMe's NUSE).
    pub used: Option<u64>,
    /// Settings of the disk's queue.
    pub queue: Queue,
}

/// A layer between a device and its disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layer {
    /// The device of the layer.
    pub device: String,
    /// Its kind.
    pub kind: LayerKind,
    /// Details: the backing file, the algorithm, the level.
    pub detail: String,
}

/// The kind of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A volume that maps other devices linearly.
    #[default]
    Volume,
    /// A file behind a loop device that uses the page cache.
    LoopCached,
    /// A file behind a loop device that bypasses the page cache.
    LoopDirect,
    /// Compressed memory.
    Zram,
    /// Memory.
    RamDisk,
    /// Space is allocated at the first write.
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
    /// `queue/chunk_sectors`, in bytes: a boundary that requests do not cross (the stripe of a RAID, a zone).
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

/// The kind of a limit.
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
    /// A latency target of other control groups, in µs.
    Latency,
    /// A weight relative to other control groups; the default is 100.
    Weight,
    /// A cost model distributes the device's capacity (`io.cost.qos`).
    Cost,
}

/// A limit on the rate of this process's I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limit {
    /// The device to which it applies; `None` for all.
    pub device: Option<String>,
    /// The kind.
    pub kind: LimitKind,
    /// The value.
    pub value: u64,
    /// The file that contains it.
    pub place: String,
}
