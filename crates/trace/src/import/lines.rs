//! Traces of lines: which format they are of, and reading them.

use std::io::{BufRead, Read};
use std::path::Path;

use super::csv::Columns;
use super::events::{Events, Line, blkparse, perf};
use crate::{Builder, Error, Reading, Result, Trace};

/// Longer than any line of a trace.
const LONGEST: u64 = 1 << 14;
/// The format must show within so many lines.
const BEGINNING: u64 = 1000;
const UNKNOWN: &str = "not a supported trace: not a recording of kelvin trace record, blktrace (binary, or \
    blkparse's text), perf script of block:block_rq_issue and block_rq_complete, an iolog of fio, csv of MSR \
    Cambridge, or csv whose first line names the columns (time, op, size, lbn or offset)";

enum Kind {
    Blkparse,
    Perf,
    Csv(Columns),
}

/// Reads a trace of lines.
pub(super) fn read(mut input: impl BufRead, path: &Path, reading: &Reading) -> Result<Trace> {
    let mut kind = None;
    let mut line = Vec::new();
    let mut number = 0_u64;
    let mut events = Events::new(reading.most);
    let mut builder = Builder::new("", reading.clone());
    loop {
        line.clear();
        let doing = || format!("reading {}", path.display());
        let read =
            input.by_ref().take(LONGEST).read_until(b'\n', &mut line).map_err(Error::system(doing()))?;
        if read == 0 {
            break;
        }
        number += 1;
        let is_whole = line.last() == Some(&b'\n');
        if read as u64 == LONGEST && !is_whole {
            return Err(Error::line(
                path,
                number,
                format!("longer than {LONGEST} bytes: not a trace of lines"),
            ));
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if kind.is_none() {
            kind = recognise(text).map_err(|problem| Error::line(path, number, problem))?;
            match &kind {
                Some(Kind::Csv(columns)) => {
                    builder = Builder::new(columns.format(), reading.clone());
                    if columns.is_named() {
                        continue;
                    }
                }
                Some(Kind::Blkparse) => builder = Builder::new("blktrace (text)", reading.clone()),
                Some(Kind::Perf) => builder = Builder::new("perf script", reading.clone()),
                None => {}
            }
        }
        let goes_on = match &mut kind {
            None if number >= BEGINNING => break,
            None => Ok(true),
            Some(Kind::Blkparse) => event(&mut events, blkparse(text)),
            Some(Kind::Perf) => event(&mut events, perf(text)),
            Some(Kind::Csv(columns)) => columns.request(text, &mut builder),
        };
        match goes_on {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) if !is_whole => builder.note(format!("line {number}, the last, is truncated")),
            Err(problem) => return Err(Error::line(path, number, problem)),
        }
    }
    match kind {
        None => Err(Error::line(path, number.min(BEGINNING), UNKNOWN)),
        Some(Kind::Csv(_)) => Ok(builder.finish()),
        Some(_) if events.is_empty() => Err(Error::line(path, number, "the trace has no requests")),
        Some(_) => Ok(events.finish(builder)),
    }
}

fn event(events: &mut Events, line: Line) -> std::result::Result<bool, String> {
    match line {
        Line::Other => Ok(true),
        Line::Bad(problem) => Err(problem.into()),
        Line::Event(stage, event) => Ok(events.push(stage, event)),
    }
}

fn recognise(text: &str) -> std::result::Result<Option<Kind>, String> {
    if perf(text) != Line::Other {
        return Ok(Some(Kind::Perf));
    }
    if blkparse(text) != Line::Other {
        return Ok(Some(Kind::Blkparse));
    }
    Ok(Columns::from_header(text)?.map(Kind::Csv))
}
