//! The kernel's binary traces of block devices, as `blkparse DEVICE -o /dev/null -d FILE` writes them.
//!
//! Records of 48 bytes (`struct blk_io_trace` of linux/blktrace_api.h, in the byte order of the traced machine), each
//! followed by a payload of the given length. Queue events are replayed; all others are skipped.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use kelvin_measure::Nanos;

use super::trace::{Action, Input, TraceEvent, TraceFile, number_of};
use crate::error::Location;
use crate::{Direction, Error, Result, SyncCall};

/// The upper three bytes of a record's first word; the lowest is the version.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 0x07;
const RECORD: usize = 48;
const SECTOR: u64 = 512;
/// The lower half of `action`: the event.
const QUEUED: u32 = 1;
/// Set with the event if the record also has the control group (`__BLK_TA_CGROUP`), in its payload.
const CGROUP: u32 = 1 << 8;
/// The upper half: the categories.
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const PASSED_THROUGH: u32 = 1 << 9;
const NOTE: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;

fn is_magic(word: u32) -> bool {
    word & 0xffff_ff00 == MAGIC
}

/// Whether these are the first bytes of a binary trace, in either byte order.
pub fn is_trace(bytes: &[u8]) -> bool {
    bytes
        .first_chunk::<4>()
        .is_some_and(|first| is_magic(u32::from_le_bytes(*first)) || is_magic(u32::from_be_bytes(*first)))
}

/// A record of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlktraceRecord {
    /// Nanoseconds since the trace began.
    pub at: Nanos,
    /// Offset in sectors of 512 bytes.
    pub sector: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The event: 1 queued, 7 issued, 8 completed and so on (`enum blktrace_act`).
    pub event: u32,
    /// The kind of request, as a bit mask (`enum blktrace_cat`): 1 read, 2 write, 4 flush, 8 sync, …
    pub categories: u32,
    /// The thread that caused it.
    pub pid: i32,
    /// Major and minor number.
    pub device: (u32, u32),
    /// Whether the device reported an error.
    pub failed: bool,
}

/// Reads a trace record by record.
pub struct Records {
    input: Input,
    path: PathBuf,
    /// Bytes before the next record.
    position: u64,
    /// The time of the first queued event.
    first: Option<Nanos>,
}

impl std::fmt::Debug for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Records {
    /// Reads from `input`; `path` is used in messages.
    pub fn new(input: Input, path: &Path) -> Self {
        Self { input, path: path.to_path_buf(), position: 0, first: None }
    }

    fn bad(&self, problem: impl std::fmt::Display) -> Error {
        Error::Input {
            place: Location { file: Some(self.path.clone()), line: 0, column: 0 },
            problem: format!("byte {}: {problem}", self.position),
        }
    }

    fn system(&self) -> impl FnOnce(std::io::Error) -> Error + use<> {
        Error::system(format!("reading the trace {}", self.path.display()))
    }

    /// The fields of the next record; its payload is skipped. `position` stays before the record.
    fn fields(&mut self) -> Result<Option<Fields>> {
        let failed = self.system();
        if self.input.fill_buf().map_err(failed)?.is_empty() {
            return Ok(None);
        }
        let mut record = [0; RECORD];
        match self.input.read_exact(&mut record) {
            Ok(()) => (),
            Err(cause) if cause.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(self.bad("the trace is truncated: it ends within a record"));
            }
            Err(cause) => return Err(self.system()(cause)),
        }
        let fields = Fields::of_record(&record).ok_or_else(|| {
            self.bad(
                "no record starts here: its magic number is missing (the trace is damaged or incomplete)",
            )
        })?;
        if fields.version != VERSION {
            let version = fields.version;
            return Err(
                self.bad(format!("blktrace record version {version} is not supported; only {VERSION} is"))
            );
        }
        let more = u64::from(fields.follows);
        let failed = self.system();
        let skipped =
            std::io::copy(&mut self.input.by_ref().take(more), &mut std::io::sink()).map_err(failed)?;
        if skipped < more {
            return Err(self.bad("the trace is truncated: it ends within a record"));
        }
        Ok(Some(fields))
    }

    /// The next record, of any event; `None` at the end.
    ///
    /// # Errors
    ///
    /// Invalid records, with their byte offsets.
    pub fn next_record(&mut self) -> Result<Option<BlktraceRecord>> {
        let Some(fields) = self.fields()? else { return Ok(None) };
        self.position += RECORD as u64 + u64::from(fields.follows);
        Ok(Some(BlktraceRecord {
            at: fields.time,
            sector: fields.sector,
            bytes: fields.bytes,
            event: fields.event(),
            categories: fields.action >> 16,
            pid: fields.pid as i32,
            device: (fields.device >> 20, fields.device & 0xf_ffff),
            failed: fields.error != 0,
        }))
    }

    /// The next event; its device is in `names`.
    pub(crate) fn next(&mut self, names: &mut Vec<TraceFile>) -> Result<Option<TraceEvent>> {
        loop {
            let Some(fields) = self.fields()? else { return Ok(None) };
            let event = self.event(&fields, names)?;
            self.position += RECORD as u64 + u64::from(fields.follows);
            if let Some(event) = event {
                return Ok(Some(event));
            }
        }
    }

    fn event(&mut self, fields: &Fields, names: &mut Vec<TraceFile>) -> Result<Option<TraceEvent>> {
        let kind = fields.action >> 16;
        if fields.event() != QUEUED || kind & (PASSED_THROUGH | NOTE) != 0 {
            return Ok(None);
        }
        let action = if fields.bytes == 0 {
            if kind & FLUSH == 0 {
                return Ok(None);
            }
            Action::Sync(SyncCall::Fsync)
        } else {
            let direction = match kind {
                kind if kind & DISCARD != 0 => Direction::Trim,
                kind if kind & WRITE != 0 => Direction::Write,
                _ => Direction::Read,
            };
            let offset = fields
                .sector
                .checked_mul(SECTOR)
                .filter(|offset| {
                    let end = offset.checked_add(u64::from(fields.bytes));
                    end.is_some_and(|end| i64::try_from(end).is_ok())
                })
                .ok_or_else(|| self.bad(format!("sector {} is beyond the largest device", fields.sector)))?;
            Action::Io { direction, offset, length: fields.bytes }
        };
        let first = *self.first.get_or_insert(fields.time);
        // The kernel's numbers of devices have 20 bits for the minor.
        let name = number_of(names, TraceFile::Device(fields.device >> 20, fields.device & 0xf_ffff));
        Ok(Some(TraceEvent { at: fields.time.saturating_sub(first), name, action }))
    }
}

/// A record's fields.
struct Fields {
    version: u32,
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    error: u16,
    follows: u16,
}

impl Fields {
    fn event(&self) -> u32 {
        self.action & 0xffff & !CGROUP
    }

    /// `None` if the magic number is missing.
    fn of_record(record: &[u8; RECORD]) -> Option<Self> {
        let first = *record.first_chunk::<4>()?;
        let little = is_magic(u32::from_le_bytes(first));
        if !little && !is_magic(u32::from_be_bytes(first)) {
            return None;
        }
        let word = |at: usize| {
            let bytes = record.get(at..)?.first_chunk::<4>()?;
            Some(if little { u32::from_le_bytes(*bytes) } else { u32::from_be_bytes(*bytes) })
        };
        let long = |at: usize| {
            let bytes = record.get(at..)?.first_chunk::<8>()?;
            Some(if little { u64::from_le_bytes(*bytes) } else { u64::from_be_bytes(*bytes) })
        };
        let last = record.last_chunk::<2>()?;
        Some(Self {
            version: word(0)? & 0xff,
            time: long(8)?,
            sector: long(16)?,
            bytes: word(24)?,
            action: word(28)?,
            pid: word(32)?,
            device: word(36)?,
            error: (word(44)? >> if little { 0 } else { 16 }) as u16,
            follows: if little { u16::from_le_bytes(*last) } else { u16::from_be_bytes(*last) },
        })
    }
}
