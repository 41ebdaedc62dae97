//! Parser of log files written by fio and Kelvin in fio's format.

use std::borrow::Cow;

use kelvin_storage::log::{LogKind, inflate_at_most};
use kelvin_storage::{BINS, Direction};

use crate::{Error, Result};

/// Largest size in bytes. A larger log cannot be viewed as a chart, and would not fit into the memory of a
/// small host.
pub const LONGEST: u64 = 1 << 30;
/// Largest time, in milliseconds since 1970: in the year 5138. A larger number is not a time.
const LATEST: u64 = 100_000_000_000_000;
/// Largest count of I/Os per bin and window; sums of such counts do not overflow.
const MOST: u64 = 10_000_000_000;
/// Rows of single I/Os are in the order of logging, so their times may decrease by up to this many
/// milliseconds.
const SLACK: u64 = 100;

/// A log file.
#[derive(Debug, Clone, PartialEq)]
pub struct IoLogFile {
    /// The name of the file, without its directory.
    pub name: String,
    /// The part of the name before the kind: usually the job's name.
    pub prefix: String,
    /// The number of the worker, if the name contains one.
    pub job: Option<u32>,
    /// Its content.
    pub rows: Rows,
    /// Notes for readers of the charts.
    pub notes: Vec<String>,
}

/// The rows of a log.
#[derive(Debug, Clone, PartialEq)]
pub enum Rows {
    /// Values.
    Values {
        /// The quantity, which determines the unit.
        kind: LogKind,
        /// Whether each row is one I/O; otherwise each is a window.
        single: bool,
        /// The rows in chronological order. Workers that follow each other in the file are separate parts.
        parts: Vec<Vec<Row>>,
    },
    /// Completion times by bin.
    Histograms(Vec<HistogramRow>),
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Milliseconds since the log's zero.
    pub time: u64,
    /// KiB per second, I/Os per second, or nanoseconds.
    pub value: f64,
    /// Direction.
    pub direction: Direction,
    /// Size of the I/O in bytes; 0 for a window.
    pub length: u64,
}

/// The I/Os that ended in one window of a histogram log.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramRow {
    /// Milliseconds since the log's zero.
    pub time: u64,
    /// Direction.
    pub direction: Direction,
    /// Representative latency of each bin in nanoseconds, and its number of I/Os.
    pub counts: Vec<(u64, u64)>,
}

/// The prefix, kind (none for histograms) and worker number in a file's name; `None` if it is not the name of
/// a log.
fn named(name: &str) -> Option<(String, Option<LogKind>, Option<u32>)> {
    let name = name.strip_suffix(".fz").unwrap_or(name).strip_suffix(".log")?;
    let (stem, job) = match name.rsplit_once('.') {
        Some((stem, number)) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
            (stem, number.parse().ok())
        }
        _ => (name, None),
    };
    if let Some(prefix) = stem.strip_suffix("_clat_hist") {
        return Some((prefix.into(), None, job));
    }
    // "clat" also ends with "lat": the preceding character distinguishes them.
    let (prefix, word) = stem.rsplit_once('_').unwrap_or(("", stem));
    let kind = LogKind::ALL.into_iter().find(|kind| kind.word() == word)?;
    Some((prefix.into(), Some(kind), job))
}

/// Whether the file's name is that of a log.
pub fn is_log(name: &str) -> bool {
    named(name).is_some()
}

/// Reads a log. `name` is the file's name, which determines the content (`job_bw.1.log`, `job_clat_hist.log`,
/// `.fz` for compressed ones); `shown` is the name in messages.
///
/// # Errors
/// Fails if the name is not that of a log, if a row is invalid (with its line number), if there are no rows,
/// and if the file contains both rows of single I/Os and rows of windows.
pub fn read(name: &str, shown: &str, bytes: &[u8]) -> Result<IoLogFile> {
    let refused = |problem: String| Error::Plot(format!("{shown}: {problem}"));
    let (prefix, kind, job) = named(name).ok_or_else(|| {
        refused(
            "the name does not identify the kind of log: it must end in _bw, _iops, _slat, _clat, _lat or \
             _clat_hist, then .log or .N.log (and .fz if compressed)"
                .into(),
        )
    })?;
    let mut notes = Vec::new();
    let text = if name.strip_suffix(".fz").is_some() {
        let Some((text, whole)) = inflate_at_most(bytes, LONGEST) else {
            return Err(refused(format!(
                "more than {} GiB when inflated; write logs with log_avg_msec",
                LONGEST >> 30
            )));
        };
        if text.is_empty() {
            return Err(refused(if whole { EMPTY } else { "not a compressed fio log" }.into()));
        }
        if !whole {
            notes.push(format!("{name} is truncated: the readable part is drawn"));
        }
        Cow::Owned(text)
    } else {
        Cow::Borrowed(std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes.iter().take(error.valid_up_to()).filter(|byte| **byte == b'\n').count() + 1;
            refused_at(shown, line, "not text: is it a compressed log whose name lacks .fz?")
        })?)
    };
    // A truncated last row is discarded, even if the rest looks like a complete one.
    if !text.ends_with('\n') {
        notes.push(format!(
            "{name} does not end with a complete line: it is truncated, or still being written"
        ));
    }
    let rows = match kind {
        None => Rows::Histograms(histograms(&text, shown)?),
        Some(kind) => values(&text, kind, shown)?,
    };
    if let Rows::Values { parts, .. } = &rows
        && parts.len() > 1
    {
        notes.push(format!("{name} contains {} workers in sequence: each has its own line", parts.len()));
    }
    Ok(IoLogFile { name: name.to_owned(), prefix, job, rows, notes })
}

const EMPTY: &str = "the log is empty: the job did no I/O of this kind, or ended within the first window";

fn refused_at(shown: &str, line: usize, problem: &str) -> Error {
    Error::Plot(format!("{shown}:{line}: {problem}"))
}

/// The non-blank lines, with their numbers.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).filter(|(_, line)| !line.is_empty())
}

fn whole(field: Option<&str>, what: &str) -> std::result::Result<u64, String> {
    let Some(field) = field else { return Err(format!("the row ends before its {what}")) };
    let field = field.trim();
    field.parse().map_err(|_| format!("{field:?} is not a valid {what} (an integer)"))
}

fn time(field: Option<&str>) -> std::result::Result<u64, String> {
    let time = whole(field, "time")?;
    if time > LATEST {
        return Err(format!("{time} is not a time in milliseconds, neither since the start nor since 1970"));
    }
    Ok(time)
}

fn direction(field: Option<&str>) -> std::result::Result<Direction, String> {
    let number = whole(field, "direction")?;
    Direction::ALL
        .into_iter()
        .find(|direction| *direction as u64 == number)
        .ok_or_else(|| format!("direction {number} is none of 0 (read), 1 (write) and 2 (trim)"))
}

/// Whether the log was written with `log_window_value=both`: each row then has the maximum after the mean,
/// and the other columns are shifted by one. The fourth column is then the direction, at most 2, and the
/// third exceeds 2 in some row.
fn has_maxima(text: &str) -> bool {
    let third = |line: &str| line.split(',').nth(2).and_then(|field| field.trim().parse::<u64>().ok());
    let fits = |line: &str| {
        line.split(',').count() >= 6
            && line
                .split(',')
                .nth(3)
                .and_then(|field| field.trim().parse::<u64>().ok())
                .is_some_and(|at| at <= 2)
    };
    lines(text).any(|(_, line)| third(line).is_some_and(|value| value > 2))
        && lines(text).all(|(_, line)| fits(line))
}

fn values(text: &str, kind: LogKind, shown: &str) -> Result<Rows> {
    let skipped = usize::from(has_maxima(text));
    let mut parts: Vec<Vec<Row>> = Vec::new();
    let (mut single, mut last, mut last_of) = (None, 0, [None; 3]);
    for (number, line) in lines(text) {
        let row = row(line, skipped).map_err(|problem| refused_at(shown, number, &problem))?;
        let is_single = row.length > 0;
        if *single.get_or_insert(is_single) != is_single {
            let (this, others) = if is_single {
                ("of one I/O", "of windows")
            } else {
                ("of a window (block size 0)", "of single I/Os")
            };
            let problem =
                format!("a row {this} among rows {others}: two logs in one file; draw them separately");
            return Err(refused_at(shown, number, &problem));
        }
        // The rows of several workers follow each other: a new one starts if the time decreases or a window
        // is repeated.
        let before = &mut last_of[row.direction as usize];
        let is_next =
            if is_single { row.time + SLACK < last } else { before.is_some_and(|before| row.time <= before) };
        *before = Some(row.time);
        last = row.time;
        match parts.last_mut() {
            Some(part) if !is_next => part.push(row),
            _ => {
                last_of = [None; 3];
                last_of[row.direction as usize] = Some(row.time);
                parts.push(vec![row]);
            }
        }
    }
    let Some(single) = single else { return Err(Error::Plot(format!("{shown}: {EMPTY}"))) };
    for part in &mut parts {
        part.sort_by_key(|row| row.time);
    }
    Ok(Rows::Values { kind, single, parts })
}

fn row(line: &str, skipped: usize) -> std::result::Result<Row, String> {
    let count = line.split(',').count();
    if count < 4 + skipped {
        return Err(format!(
            "{count} columns; a row of a fio log has at least time, value, direction and block size"
        ));
    }
    if count > 8 + skipped {
        return Err(format!(
            "{count} columns are too many for a row of values: is it a histogram log (_clat_hist)?"
        ));
    }
    let mut fields = line.split(',');
    let time = time(fields.next())?;
    let value = whole(fields.next(), "value")? as f64;
    let mut fields = fields.skip(skipped);
    let direction = direction(fields.next())?;
    let length = whole(fields.next(), "block size")?;
    Ok(Row { time, value, direction, length })
}

fn histograms(text: &str, shown: &str) -> Result<Vec<HistogramRow>> {
    let mut rows = Vec::new();
    for (number, line) in lines(text) {
        rows.push(histogram(line).map_err(|problem| refused_at(shown, number, &problem))?);
    }
    if rows.is_empty() {
        return Err(Error::Plot(format!("{shown}: {EMPTY}")));
    }
    Ok(rows)
}

fn histogram(line: &str) -> std::result::Result<HistogramRow, String> {
    // fio ends some rows with a comma.
    let columns = line.trim_end_matches(',').split(',').count();
    let Some(coarseness) = (0..=6).find(|coarseness| columns == 3 + (BINS >> coarseness)) else {
        return Err(format!(
            "{columns} columns; a row of a histogram log has time, direction, block size and {BINS} counts (fewer by powers of \
             two with log_hist_coarseness)"
        ));
    };
    let mut fields = line.split(',');
    let time = time(fields.next())?;
    let direction = direction(fields.next())?;
    whole(fields.next(), "block size")?;
    let mut counts = Vec::new();
    for (at, field) in fields.take(BINS >> coarseness).enumerate() {
        let count = whole(Some(field), "count")?;
        if count > MOST {
            return Err(format!("{count} I/Os in one bin is implausibly many"));
        }
        if count > 0 {
            // The middle of the bins that were combined.
            counts.push((kelvin_storage::middle((at << coarseness) + (1 << coarseness) / 2), count));
        }
    }
    Ok(HistogramRow { time, direction, counts })
}
