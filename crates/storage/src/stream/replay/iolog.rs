//! fio's text form of traces, versions 2 and 3.
//!
//! `fio version N iolog`, then a line for each action: `FILE add|open|close`, `FILE read|write|trim OFFSET LENGTH`,
//! `FILE sync|datasync [OFFSET LENGTH]`, and in version 2 `FILE wait MICROSECONDS [0]`, which counts from the previous
//! wait. In version 3 each line begins with a time in microseconds instead.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{BufRead, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kelvin_measure::Nanos;

use super::trace::{Action, Input, TraceEvent, TraceFile, bad_line};
use crate::{Direction, Error, Result, SyncCall};

/// Maximum length of a line: longer than any line with the longest path.
const LONGEST_LINE: u64 = 1 << 14;
/// Nanoseconds per microsecond.
const MICROSECOND: Nanos = 1000;

/// Reads an iolog line by line.
pub(crate) struct Lines {
    input: Input,
    path: PathBuf,
    version: u8,
    number: u32,
    line: Vec<u8>,
    added: HashMap<Vec<u8>, u32>,
    waited: Nanos,
}

impl Lines {
    /// Reads the first line.
    pub(crate) fn new(input: Input, path: &Path) -> Result<Self> {
        let path = path.to_path_buf();
        let mut lines =
            Self { input, path, version: 0, number: 0, line: Vec::new(), added: HashMap::new(), waited: 0 };
        lines.advance()?;
        let words: Vec<&[u8]> = fields(&lines.line).collect();
        lines.version = match words.as_slice() {
            [b"fio", b"version", b"2", b"iolog"] => 2,
            [b"fio", b"version", b"3", b"iolog"] => 3,
            [b"fio", b"version", version, b"iolog"] => {
                let version = String::from_utf8_lossy(version);
                return Err(
                    lines.bad(format!("iolog version {version} is not supported; only versions 2 and 3 are"))
                );
            }
            _ => {
                return Err(lines.bad(
                    "not a trace: an iolog starts with `fio version 2 iolog` or `fio version 3 iolog`, a \
                     binary blktrace (blkparse -d) with its magic number",
                ));
            }
        };
        Ok(lines)
    }

    fn bad(&self, problem: impl Into<String>) -> Error {
        bad_line(&self.path, self.number, problem)
    }

    /// Reads a line; false at the end.
    fn advance(&mut self) -> Result<bool> {
        self.line.clear();
        let doing = || format!("reading the trace {}", self.path.display());
        let read = self
            .input
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut self.line)
            .map_err(Error::system(doing()))?;
        self.number = self.number.saturating_add(1);
        if read as u64 == LONGEST_LINE && self.line.last() != Some(&b'\n') {
            return Err(self.bad(format!("a line of more than {LONGEST_LINE} bytes")));
        }
        Ok(read > 0)
    }

    /// The next event; the files that were added before it are in `names`.
    pub(crate) fn next(&mut self, names: &mut Vec<TraceFile>) -> Result<Option<TraceEvent>> {
        while self.advance()? {
            let line = std::mem::take(&mut self.line);
            let event = self.event(&line, names);
            self.line = line;
            if let Some(event) = event? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn event(&mut self, line: &[u8], names: &mut Vec<TraceFile>) -> Result<Option<TraceEvent>> {
        let mut words = fields(line);
        let Some(mut first) = words.next() else { return Ok(None) };
        let mut at = self.waited;
        if self.version == 3 {
            if line.starts_with(b"fio version") {
                return Err(self.bad("another log starts here; replay the logs one by one"));
            }
            let time = self.number_in(Some(first), "a time in microseconds")?;
            at = time.checked_mul(MICROSECOND).ok_or_else(|| self.bad("the time is out of range"))?;
            first = words.next().ok_or_else(|| self.bad("a file name must follow the time"))?;
        }
        let file = first;
        let action = words.next().ok_or_else(|| self.bad("an action must follow the file name"))?;
        let (second, third) = (words.next(), words.next());
        if words.next().is_some() {
            return Err(self.bad("too many words for an action (names with spaces cannot be replayed)"));
        }
        let action = match action {
            b"add" => {
                if !self.added.contains_key(file) {
                    self.added.insert(file.to_vec(), names.len() as u32);
                    names.push(TraceFile::Path(PathBuf::from(OsStr::from_bytes(file))));
                }
                return Ok(None);
            }
            b"open" | b"close" => {
                self.known(file)?;
                return Ok(None);
            }
            b"wait" if self.version == 2 => {
                let wait = self.number_in(second, "a wait time in microseconds")?;
                let wait = wait.checked_mul(MICROSECOND).and_then(|wait| self.waited.checked_add(wait));
                self.waited = wait.ok_or_else(|| self.bad("the wait is out of range"))?;
                return Ok(None);
            }
            b"wait" => {
                return Err(self.bad("`wait` belongs to version 2; in version 3, each line has its time"));
            }
            b"sync" => Action::Sync(SyncCall::Fsync),
            b"datasync" => Action::Sync(SyncCall::Fdatasync),
            b"read" => self.io(Direction::Read, second, third)?,
            b"write" => self.io(Direction::Write, second, third)?,
            b"trim" => self.io(Direction::Trim, second, third)?,
            other => {
                return Err(self.bad(format!(
                    "{:?} is not an action; the actions are add, open, close, read, write, trim, sync, \
                     datasync and (in version 2) wait",
                    String::from_utf8_lossy(other)
                )));
            }
        };
        Ok(Some(TraceEvent { at, name: self.known(file)?, action }))
    }

    fn io(&self, direction: Direction, offset: Option<&[u8]>, length: Option<&[u8]>) -> Result<Action> {
        let offset = self.number_in(offset, "an offset in bytes")?;
        let length = self.number_in(length, "a length in bytes")?;
        let length = u32::try_from(length).ok().filter(|length| *length > 0).ok_or_else(|| {
            self.bad(format!("a length of {length} bytes; it must be between 1 and {}", u32::MAX))
        })?;
        let end = offset.checked_add(u64::from(length));
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(self.bad(format!("offset {offset} is beyond the largest file")));
        }
        Ok(Action::Io { direction, offset, length })
    }

    fn known(&self, file: &[u8]) -> Result<u32> {
        self.added.get(file).copied().ok_or_else(|| {
            self.bad(format!("file {:?} was not added before (FILE add)", String::from_utf8_lossy(file)))
        })
    }

    fn number_in(&self, word: Option<&[u8]>, what: &str) -> Result<u64> {
        let word = word.ok_or_else(|| self.bad(format!("{what} is missing")))?;
        std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
            self.bad(format!("{what} was expected instead of {:?}", String::from_utf8_lossy(word)))
        })
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}
