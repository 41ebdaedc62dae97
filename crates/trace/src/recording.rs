//! What a recording says beside its requests: its beginning and end, the files and their places, a sample of its reads.

use kelvin_host::SystemTree;
use kelvin_host::disk::DiskCounters;
use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

use crate::file_class::FileClass;

/// What is known when a recording begins.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Header {
    /// The name of the host.
    pub host: String,
    /// The release of its kernel.
    pub kernel: String,
    /// When it began, in nanoseconds of `CLOCK_MONOTONIC`, as all times of the file.
    pub began: Nanos,
    /// The same in seconds since 1970.
    pub began_at: u64,
    /// The program that was run meanwhile, without its arguments.
    pub command: Option<String>,
    /// The devices that were recorded.
    pub devices: Vec<HeaderDevice>,
}

/// A device of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HeaderDevice {
    /// Its name.
    pub name: String,
    /// Major and minor.
    pub number: (u32, u32),
    /// Its size.
    pub bytes: u64,
}

impl Header {
    /// Of a recording that begins now.
    pub(crate) fn of_this_host(
        tree: &SystemTree,
        began: Nanos,
        command: Option<String>,
        devices: &[HeaderDevice],
    ) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            host: tree.line("/proc/sys/kernel/hostname").unwrap_or_default(),
            kernel: tree.line("/proc/sys/kernel/osrelease").unwrap_or_default(),
            began,
            began_at: since.map_or(0, |since| since.as_secs()),
            command,
            devices: devices.to_vec(),
        }
    }
}

/// What is known when a recording ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Recording {
    /// What was known at the beginning.
    #[serde(default)]
    pub header: Header,
    /// How long was recorded.
    pub lasted: Nanos,
    /// Requests in the file.
    pub requests: u64,
    /// Issues that were seen.
    pub issues: u64,
    /// Completions that were seen.
    pub completions: u64,
    /// Events that found no room in the kernel's buffers.
    pub lost: u64,
    /// Pages of the buffers that could not be read.
    pub unreadable_pages: u64,
    /// Completions of requests whose issue was not seen.
    pub without_issue: u64,
    /// Requests whose completion was not seen.
    pub without_completion: u64,
    /// Issues that the device took back because it was busy.
    pub requeued: u64,
    /// CPU time of the recorder.
    pub cpu: Nanos,
    /// CPU time of looking up files, which is not part of the recorder's.
    #[serde(default)]
    pub files_cpu: Nanos,
    /// Whether there were too many files to follow all of them.
    #[serde(default)]
    pub files_partial: bool,
    /// Ranges of never-written room that are not in the file because there were too many.
    #[serde(default)]
    pub unwritten_left_out: u64,
    /// Whether recording ended because the file was full.
    pub full: bool,
    /// The devices that had requests, with their own counters.
    pub devices: Vec<DeviceCheck>,
    /// Whether the recording has its end; if not, the requests are those that were read, and all other figures are unknown.
    #[serde(default)]
    pub complete: bool,
}

/// Sectors of 512 bytes by the trace and by the kernel's counters: read, written, discarded.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceCheck {
    /// The device's name.
    pub name: String,
    /// Major and minor.
    pub number: (u32, u32),
    /// Sectors of completions in the trace.
    pub traced: [u64; 3],
    /// What the counters in `/proc/diskstats` rose by.
    pub counted: [u64; 3],
    #[serde(skip)]
    before: Option<DiskCounters>,
}

impl DeviceCheck {
    pub(crate) fn begin(device: &HeaderDevice, counters: Option<&DiskCounters>) -> Self {
        let (name, number) = (device.name.clone(), device.number);
        Self { name, number, before: counters.copied(), ..Self::default() }
    }

    pub(crate) fn end(&mut self, counters: Option<&DiskCounters>) {
        if let (Some(before), Some(now)) = (&self.before, counters) {
            self.counted = now.since(before).sectors;
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.traced.iter().chain(&self.counted).any(|sectors| *sectors > 0)
    }

    /// By how much the trace differs from the counters, as a share of the larger of both, read, written and discarded
    /// bytes together. None if both are nothing.
    pub fn difference(&self) -> Option<f64> {
        let [traced, counted] = [&self.traced, &self.counted].map(|each| each.iter().sum::<u64>() as f64);
        (counted > 0.0 || traced > 0.0).then(|| (traced - counted) / counted.max(traced))
    }
}

/// A process by number and name, and its control group.
pub(crate) type ProcessGroup = (i32, String, String);

/// A range of a disk: major and minor, first byte, length.
pub type DiskRange = ((u32, u32), u64, u64);

/// A file of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TracedFile {
    /// Its path when it was first seen.
    pub path: String,
    /// What it belongs to.
    pub class: FileClass,
    /// The object of the database, such as "relation 5/16384" or its name, or what kind of file it is; of other files
    /// the path.
    pub object: String,
    /// The data directory of the server that it belongs to; of a trace that was read only if there are several servers of one
    /// kind, whose objects have equal names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The loop device that it is behind: major and minor, and where in the file the device begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<((u32, u32), u64)>,
}

/// A range of a device that holds a part of a file from some time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// When this was seen, by the recording's clock.
    pub seen: Nanos,
    /// The disk: major and minor.
    pub device: (u32, u32),
    /// The first byte on the disk.
    pub begin: u64,
    /// How many bytes.
    pub length: u64,
    /// The file, by its place in the recording's list; none if the range became free.
    pub file: Option<u32>,
    /// Where the part begins in the file.
    pub logical: u64,
}

/// What was found about files since the last time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileChanges {
    /// New files, which continue the recording's list.
    pub files: Vec<TracedFile>,
    /// In the order of their times; of one time, later ones replace earlier ones.
    pub changes: Vec<Change>,
}

/// What a sample of a recording's reads found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadSample {
    /// Bytes that were read during the recording, of which the sample was drawn.
    pub read_bytes: u64,
    /// The sample, with replacement.
    pub drawn: Vec<DrawnByte>,
    /// Why devices or blocks could not be read.
    pub problems: Vec<String>,
    /// How long reading took, in nanoseconds.
    pub took: Nanos,
}

/// A read byte that was drawn: when its request was issued by the recording's clock, of which device, the place of its
/// sector in bytes, what its block holds, and whether it is in room that was never written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnByte(pub Nanos, pub (u32, u32), pub u64, pub BlockContent, pub bool);

/// What is in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockContent {
    /// Nothing but zeros.
    #[serde(rename = "z")]
    Zeros,
    /// Something else.
    #[serde(rename = "d")]
    Data,
    /// It was written or discarded during the recording.
    #[serde(rename = "c")]
    Changed,
    /// It could not be read.
    #[serde(rename = "u")]
    Unread,
}
