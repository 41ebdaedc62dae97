//! The file of a recording.
//!
//! Eight bytes of magic and version, then chunks: a letter, the length of the content, the CRC-32C of letter, length and
//! content (both 32 bits, little-endian), the content. `H` is the [`Header`] (JSON), `B` a block of requests, `F`, `X` and `N` are files and their places, `G` control groups of processes (JSON), `U` room of
//! files that was never written (JSON), `E` the [`Recording`] (JSON), which ends the recording; a file without it was cut off. Behind it
//! may be `Z`, a sample of what reads found ([`crate::zeros::ReadSample`], JSON). Each block can be read without the
//! others. A request is, as variable-length numbers: its class (device, operation, flags, process; described where it
//! is first used in the block), the time since the issue before, the response time and one, the distance from the end
//! of the request before on the device, the length; both in sectors where the class says so.

mod places;
mod read;
pub(crate) mod varint;
mod write;

use kelvin_host::SystemTree;
use kelvin_host::disk::DiskCounters;
use kelvin_measure::Nanos;
use serde::{Deserialize, Serialize};

pub(crate) use read::is_ours;
pub use read::read;
pub use write::FileWriter;
pub(crate) use write::append_sample;

/// The first bytes; the last is the version. Version 1 had no files, version 2 no control groups, version 3 neither
/// unwritten room nor a sample of what reads found.
pub(crate) const MAGIC: [u8; 8] = *b"KELVTRC\x04";
/// A chunk's content is no longer than this.
pub(crate) const LONGEST_CHUNK: usize = 1 << 20;
/// A block ends when it has so many bytes.
pub(crate) const BLOCK: usize = 1 << 16;
/// Bytes before a chunk's content.
pub(crate) const CHUNK_HEAD: usize = 9;

/// The CRC-32C of a chunk: of its letter and length, and its content.
fn checksum(head: &[u8; CHUNK_HEAD], content: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[..5]), content)
}

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
