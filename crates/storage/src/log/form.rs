//! How a row is written: fio's columns.

use std::fmt::Write as _;
use std::io::{Read, Write as _};

use kelvin_measure::Nanos;

use super::{CompletedIo, HistogramRow, LogKind, LogRow};
use crate::BINS;
use crate::job::{LogValue, Logs};

/// The columns of a job's logs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    value: LogValue,
    offset: bool,
    priority: bool,
    issue_time: bool,
    coarseness: u8,
    /// Rows as in `.fz` files: not text but fio's binary record of a sample.
    binary: bool,
    /// With an epoch: the reading of the requested clock at the zero of the run's clock, in milliseconds.
    epoch: Option<i64>,
}

impl Form {
    pub(super) fn new(logs: &Logs, epoch: Option<i64>) -> Self {
        Self {
            value: logs.value,
            offset: logs.offset,
            priority: logs.priority,
            issue_time: logs.issue_time,
            coarseness: logs.histogram_coarseness.min(6),
            binary: logs.compressed,
            epoch,
        }
    }

    /// Converts a time on the run's clock to milliseconds: since the worker's beginning, or by the requested clock.
    fn time(&self, at: Nanos, begin: Nanos) -> i64 {
        match self.epoch {
            Some(epoch) => epoch + (at / 1_000_000) as i64,
            None => (at.saturating_sub(begin) / 1_000_000) as i64,
        }
    }

    /// Adds a row.
    pub(super) fn row(&self, out: &mut Vec<u8>, begin: Nanos, row: &LogRow) {
        let mean = row.value.round().max(0.0) as u64;
        let time = self.time(row.at, begin);
        let value = if self.value == LogValue::Maximum { row.greatest.unwrap_or(mean) } else { mean };
        let sample = Sample {
            time: time as u64,
            value,
            direction: row.direction as u32,
            priority: self.priority.then_some(row.priority),
            length: u64::from(row.length),
            offset: self.offset.then_some(row.offset),
        };
        if self.binary {
            return sample.pack(out);
        }
        // A single I/O is its own maximum. Writing to memory cannot fail.
        let greatest = (self.value == LogValue::Both).then_some(row.greatest.unwrap_or(mean));
        let _ = sample.text(out, greatest, self.issue_time.then_some(row.issued.saturating_sub(begin)));
    }

    /// Adds a row of a histogram log: `2^coarseness` adjacent bins are added up at a time.
    pub(super) fn histogram(&self, out: &mut Vec<u8>, begin: Nanos, row: &HistogramRow) {
        let mut counts = vec![0_u64; BINS >> self.coarseness];
        for (bin, count) in row.bins.filled() {
            if let Some(sum) = counts.get_mut(bin >> self.coarseness) {
                *sum += count;
            }
        }
        let time = self.time(row.at, begin);
        let mut text = format!("{time}, {}, {}", row.direction as u8, row.length);
        for count in counts {
            // Writing to a String cannot fail.
            let _ = write!(text, ", {count}");
        }
        text.push('\n');
        out.extend_from_slice(text.as_bytes());
    }
}

/// A row in both formats.
struct Sample {
    time: u64,
    value: u64,
    direction: u32,
    priority: Option<u16>,
    length: u64,
    offset: Option<u64>,
}

/// Flags in addition to the direction of a packed sample.
const HAS_OFFSET: u32 = 1 << 31;
const HAS_PRIORITY: u32 = 1 << 30;

impl Sample {
    fn text(&self, out: &mut Vec<u8>, greatest: Option<u64>, issued: Option<u64>) -> std::io::Result<()> {
        write!(out, "{}, {}", self.time as i64, self.value)?;
        if let Some(greatest) = greatest {
            write!(out, ", {greatest}")?;
        }
        write!(out, ", {}, {}", self.direction, self.length)?;
        if let Some(offset) = self.offset {
            write!(out, ", {offset}")?;
        }
        match self.priority {
            Some(priority) => write!(out, ", 0x{priority:04x}")?,
            None => write!(out, ", 0")?,
        }
        if let Some(issued) = issued {
            write!(out, ", {issued}")?;
        }
        writeln!(out)
    }

    /// The layout of fio's memory on a little-endian machine with 8-byte alignment: time, value, direction with flags,
    /// priority, two bytes of padding, length, and the offset where the flag is set. Determined from files of fio 3.33.
    fn pack(&self, out: &mut Vec<u8>) {
        let mut flags = self.direction;
        if self.offset.is_some() {
            flags |= HAS_OFFSET;
        }
        if self.priority.is_some() {
            flags |= HAS_PRIORITY;
        }
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.value.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&self.priority.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.length.to_le_bytes());
        if let Some(offset) = self.offset {
            out.extend_from_slice(&offset.to_le_bytes());
        }
    }

    /// The first sample, and the rest; `None` where it is truncated.
    fn unpack(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (time, rest) = bytes.split_first_chunk::<8>()?;
        let (value, rest) = rest.split_first_chunk::<8>()?;
        let (flags, rest) = rest.split_first_chunk::<4>()?;
        let (priority, rest) = rest.split_first_chunk::<2>()?;
        let (_, rest) = rest.split_first_chunk::<2>()?;
        let (length, mut rest) = rest.split_first_chunk::<8>()?;
        let flags = u32::from_le_bytes(*flags);
        let mut offset = None;
        if flags & HAS_OFFSET != 0 {
            let (bytes, behind) = rest.split_first_chunk::<8>()?;
            offset = Some(u64::from_le_bytes(*bytes));
            rest = behind;
        }
        let sample = Self {
            time: u64::from_le_bytes(*time),
            value: u64::from_le_bytes(*value),
            direction: flags & !(HAS_OFFSET | HAS_PRIORITY),
            priority: (flags & HAS_PRIORITY != 0).then_some(u16::from_le_bytes(*priority)),
            length: u64::from_le_bytes(*length),
            offset,
        };
        Some((sample, rest))
    }
}

/// The row of an I/O in one of the logs.
pub(super) fn row_of(done: &CompletedIo, kind: LogKind) -> LogRow {
    let value = match kind {
        // The rate of a single I/O: its bytes divided by its time.
        LogKind::Bandwidth => f64::from(done.length) / 1024.0 * 1e9 / done.completion.max(1) as f64,
        LogKind::Iops => 1.0,
        LogKind::Submission => done.submission as f64,
        LogKind::Completion => done.completion as f64,
        LogKind::Total => done.total as f64,
    };
    LogRow {
        kind,
        at: done.at,
        value,
        greatest: None,
        direction: done.direction,
        length: done.length,
        offset: done.offset,
        priority: done.priority,
        issued: done.issued,
        weight: (1, 0),
    }
}

/// The text of a compressed log (`.fz`), fio's or Kelvin's: `--inflate-log`. For a truncated archive, as left by a
/// kill, returns the readable part and sets the second value.
pub fn inflate(compressed: &[u8]) -> (String, bool) {
    inflate_at_most(compressed, u64::MAX).unwrap_or_default()
}

/// As [`inflate`]; `None` if the samples exceed `most` bytes, since a small file may contain very many.
pub fn inflate_at_most(compressed: &[u8], most: u64) -> Option<(String, bool)> {
    let (mut bytes, mut rest, mut whole) = (Vec::new(), compressed, true);
    // fio writes a stream for each full buffer, one after the other.
    while !rest.is_empty() {
        let mut decoder = flate2::bufread::ZlibDecoder::new(rest);
        let room = most.saturating_sub(bytes.len() as u64);
        whole &= (&mut decoder).take(room.saturating_add(1)).read_to_end(&mut bytes).is_ok();
        if bytes.len() as u64 > most {
            return None;
        }
        let read = decoder.total_in() as usize;
        if read == 0 || !whole {
            whole = false;
            break;
        }
        rest = rest.get(read..).unwrap_or_default();
    }
    let (mut text, mut left) = (Vec::new(), bytes.as_slice());
    while let Some((sample, behind)) = Sample::unpack(left) {
        // Writing to memory cannot fail.
        let _ = sample.text(&mut text, None, None);
        left = behind;
    }
    Some((String::from_utf8_lossy(&text).into_owned(), whole && left.is_empty()))
}
