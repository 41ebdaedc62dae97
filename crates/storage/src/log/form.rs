//! How a row is written: fio's columns.

use std::fmt::Write as _;
use std::io::Read;

use kelvin_measure::Nanos;

use super::{Done, HistogramRow, LogKind, Row};
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
    /// With an epoch: what the clock asked for showed at the zero of the run's clock, in milliseconds.
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
            epoch,
        }
    }

    /// Milliseconds of a time on the run's clock: since the worker's beginning, or by the clock asked for.
    fn time(&self, at: Nanos, begin: Nanos) -> i64 {
        match self.epoch {
            Some(epoch) => epoch + (at / 1_000_000) as i64,
            None => (at.saturating_sub(begin) / 1_000_000) as i64,
        }
    }

    /// Adds a row.
    pub(super) fn row(&self, text: &mut String, begin: Nanos, row: &Row) {
        let mean = row.value.round().max(0.0) as u64;
        let time = self.time(row.at, begin);
        // What is written to a String cannot fail.
        let _ = match (self.value, row.greatest) {
            (LogValue::Maximum, Some(greatest)) => write!(text, "{time}, {greatest}"),
            (LogValue::Both, Some(greatest)) => write!(text, "{time}, {mean}, {greatest}"),
            // A single I/O is its own maximum.
            (LogValue::Both, None) => write!(text, "{time}, {mean}, {mean}"),
            _ => write!(text, "{time}, {mean}"),
        };
        let _ = write!(text, ", {}, {}", row.direction as u8, row.length);
        if self.offset {
            let _ = write!(text, ", {}", row.offset);
        }
        let _ = if self.priority { write!(text, ", 0x{:04x}", row.priority) } else { write!(text, ", 0") };
        if self.issue_time {
            let _ = write!(text, ", {}", row.issued.saturating_sub(begin));
        }
        text.push('\n');
    }

    /// Adds a row of a histogram log: neighbouring bins are added up `2^coarseness` at a time.
    pub(super) fn histogram(&self, text: &mut String, begin: Nanos, row: &HistogramRow) {
        let mut counts = vec![0_u64; BINS >> self.coarseness];
        for (bin, count) in row.bins.filled() {
            if let Some(sum) = counts.get_mut(bin >> self.coarseness) {
                *sum += count;
            }
        }
        let time = self.time(row.at, begin);
        let _ = write!(text, "{time}, {}, {}", row.direction as u8, row.length);
        for count in counts {
            let _ = write!(text, ", {count}");
        }
        text.push('\n');
    }
}

/// The row of an I/O in one of the logs.
pub(super) fn row_of(done: &Done, kind: LogKind) -> Row {
    let value = match kind {
        // The rate of an I/O alone: its bytes by its own time.
        LogKind::Bandwidth => f64::from(done.length) / 1024.0 * 1e9 / done.completion.max(1) as f64,
        LogKind::Iops => 1.0,
        LogKind::Submission => done.submission as f64,
        LogKind::Completion => done.completion as f64,
        LogKind::Total => done.total as f64,
    };
    Row {
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

/// The text of a compressed log (`.fz`), fio's or Kelvin's: `--inflate-log`. An archive that was cut off, as a kill
/// leaves it, gives what there is; the second value says so.
pub fn inflate(compressed: &[u8]) -> (String, bool) {
    let (mut bytes, mut rest, mut whole) = (Vec::new(), compressed, true);
    // fio writes a stream for each buffer that was full, one behind the other.
    while !rest.is_empty() {
        let mut decoder = flate2::bufread::ZlibDecoder::new(rest);
        whole &= decoder.read_to_end(&mut bytes).is_ok();
        let read = decoder.total_in() as usize;
        if read == 0 || !whole {
            whole = false;
            break;
        }
        rest = rest.get(read..).unwrap_or_default();
    }
    (String::from_utf8_lossy(&bytes).into_owned(), whole)
}
