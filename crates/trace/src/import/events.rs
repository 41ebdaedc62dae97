//! Events of the kernel as other tools keep them: blktrace's records and lines, `perf script`, the text of tracefs.

use std::path::Path;

use kelvin_measure::SECOND;
use kelvin_measure::text::count;
use kelvin_storage::stream::replay::{BlktraceRecord, BlktraceRecords, Input};

use super::time;
use crate::SECTOR;
use crate::matcher::{EventKind, Matcher, RequestEvent};
use crate::{Builder, Device, Flags, Operation, Process, Reading, Request, Result, Trace};

/// The events of a trace until they are matched.
pub(super) struct Events {
    /// Issues and completions.
    staged: Vec<RequestEvent>,
    /// Requests when they were queued, of traces that have nothing else.
    queued: Vec<RequestEvent>,
    has_issues: bool,
    most: usize,
    full: bool,
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Queued,
    Issued,
    Requeued,
    Completed,
}

impl Events {
    pub(super) fn new(most: usize) -> Self {
        // Events are in memory until their requests are known, also where the requests themselves are not kept.
        Self {
            staged: Vec::new(),
            queued: Vec::new(),
            has_issues: false,
            most: most.min(super::MOST),
            full: false,
        }
    }

    /// Adds an event; false when there are as many as were asked for.
    pub(super) fn push(&mut self, stage: Stage, event: RequestEvent) -> bool {
        if stage == Stage::Issued && !self.has_issues {
            self.has_issues = true;
            self.queued = Vec::new();
        }
        let (into, most) = match stage {
            Stage::Queued if self.has_issues => return true,
            Stage::Queued => (&mut self.queued, self.most),
            _ => (&mut self.staged, self.most.saturating_mul(2)),
        };
        if into.len() >= most {
            self.full = true;
            return false;
        }
        into.push(event);
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.staged.is_empty() && self.queued.is_empty()
    }

    /// Matches them, and puts them into a trace.
    pub(super) fn finish(self, mut builder: Builder) -> Trace {
        let mut matcher = Matcher::default();
        let mut events = if self.has_issues { self.staged } else { self.queued };
        // The buffers of several processors stand one after the other.
        events.sort_by_key(|event| (event.at, matches!(event.kind, EventKind::Complete { .. })));
        let mut each = |matched: crate::matcher::Matched| {
            let issue = matched.issue;
            let (major, minor) = issue.device;
            let device = Device { name: format!("{major}:{minor}"), number: Some(issue.device) };
            let name = matched.command.split(|byte| *byte == 0).next().unwrap_or_default();
            let process = Process { pid: matched.pid, command: String::from_utf8_lossy(name).into_owned() };
            let length = u32::try_from(u64::from(issue.sectors) * SECTOR).unwrap_or(u32::MAX);
            let offset = if length == 0 { 0 } else { issue.sector.saturating_mul(SECTOR) };
            let request = Request {
                at: issue.at,
                offset,
                length,
                device: builder.device(&device),
                process: builder.process(&process),
                operation: issue.operation,
                flags: issue.flags,
                file: Request::NO_FILE,
                took: Request::UNKNOWN,
            };
            builder.push(request, matched.response);
        };
        for event in events {
            if self.has_issues {
                matcher.event(event, &mut each);
            } else if let EventKind::Issue { pid, command } = event.kind {
                each(crate::matcher::Matched { issue: event, pid, command, response: None });
            }
        }
        matcher.give_up(&mut each);
        if !self.has_issues {
            builder
                .note("the trace has no issues: its requests are those that were queued, before any merging");
        }
        let counts = matcher.counts;
        if counts.without_issue > 0 {
            let times = count(counts.without_issue, "completion");
            builder.note(format!("{times} of requests that were issued before the trace began"));
        }
        if self.full {
            builder.note("the trace was not read completely; --max-requests sets the number of requests");
        }
        builder.finish()
    }
}

/// blktrace's binary form.
pub(super) fn blktrace(input: Input, path: &Path, reading: Reading) -> Result<Trace> {
    let mut records = BlktraceRecords::new(input, path);
    let mut events = Events::new(reading.most);
    while let Some(record) = records.next_record()? {
        if let Some((stage, event)) = of_record(&record)
            && !events.push(stage, event)
        {
            break;
        }
    }
    Ok(events.finish(Builder::new("blktrace (binary)", reading)))
}

/// `enum blktrace_act` and `enum blktrace_cat` of linux/blktrace_api.h.
fn of_record(record: &BlktraceRecord) -> Option<(Stage, RequestEvent)> {
    const CATEGORIES: [(u32, Flags); 4] =
        [(1 << 3, Flags::SYNC), (1 << 11, Flags::AHEAD), (1 << 12, Flags::META), (1 << 15, Flags::FUA)];
    const PASSED_THROUGH: u32 = 1 << 9;
    const NOTE: u32 = 1 << 10;
    let has = |bits: u32| record.categories & bits != 0;
    if has(PASSED_THROUGH | NOTE) {
        return None;
    }
    let (stage, kind) = match record.event {
        1 => (Stage::Queued, EventKind::Issue { pid: record.pid, command: [0; 16] }),
        7 => (Stage::Issued, EventKind::Issue { pid: record.pid, command: [0; 16] }),
        6 => (Stage::Requeued, EventKind::Requeue),
        8 => (Stage::Completed, EventKind::Complete { failed: record.failed }),
        _ => return None,
    };
    let sectors = (u64::from(record.bytes) / SECTOR) as u32;
    let operation = if has(1 << 13) {
        Operation::Discard
    } else if sectors == 0 && has(1 << 2) {
        Operation::Flush
    } else if sectors == 0 {
        return None;
    } else if has(1 << 1) {
        Operation::Write
    } else {
        Operation::Read
    };
    let mut flags = Flags::default();
    for (bit, flag) in CATEGORIES {
        if has(bit) {
            flags = flags.with(flag);
        }
    }
    if has(1 << 2) && operation != Operation::Flush {
        flags = flags.with(Flags::PREFLUSH);
    }
    let (at, device, sector) = (record.at, record.device, record.sector);
    Some((stage, RequestEvent { at, device, sector, sectors, operation, flags, kind }))
}

/// What a line of a tool's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// Something else: another event, a comment, a sum.
    Other,
    /// An event that makes no sense.
    Bad(&'static str),
    Event(Stage, RequestEvent),
}

fn device(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once(',')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn command(text: &str) -> [u8; 16] {
    let mut command = [0; 16];
    for (to, from) in command.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    command
}

/// Text within the last brackets of a line.
fn bracketed(line: &str) -> &str {
    let inside = || line.rsplit_once('[')?.1.strip_suffix(']');
    inside().unwrap_or("")
}

/// A line of `blkparse` in its standard form: device, processor, number, time, pid, action, letters, place, `[command]`.
pub(super) fn blkparse(line: &str) -> Line {
    let line = line.trim();
    let mut words = line.split_ascii_whitespace();
    let mut head = || {
        let device = device(words.next()?)?;
        let _: u32 = words.next()?.parse().ok()?;
        let _: u64 = words.next()?.parse().ok()?;
        let at = time(words.next()?, SECOND)?;
        let pid: i32 = words.next()?.parse().ok()?;
        Some((device, at, pid, words.next()?, words.next()?))
    };
    let Some((device, at, pid, action, letters)) = head() else { return Line::Other };
    let stage = match action {
        "Q" => Stage::Queued,
        "D" => Stage::Issued,
        "R" => Stage::Requeued,
        "C" => Stage::Completed,
        _ => return Line::Other,
    };
    let Some((operation, flags)) = Flags::of_letters(letters.as_bytes()) else { return Line::Other };
    let Some((sector, sectors)) = extent(words.next(), words.next(), words.next()) else {
        return Line::Bad("SECTOR + SECTORS was expected");
    };
    let kind = match stage {
        Stage::Requeued => EventKind::Requeue,
        Stage::Completed => EventKind::Complete { failed: !matches!(bracketed(line), "0" | "") },
        _ => EventKind::Issue { pid, command: command(bracketed(line)) },
    };
    Line::Event(stage, RequestEvent { at, device, sector, sectors, operation, flags, kind })
}

/// `SECTOR + SECTORS`; nowhere if a bracket stands there, as for a flush.
fn extent(sector: Option<&str>, plus: Option<&str>, sectors: Option<&str>) -> Option<(u64, u32)> {
    match (sector?, plus, sectors) {
        (sector, ..) if sector.starts_with('[') => Some((0, 0)),
        (sector, Some("+"), Some(sectors)) => Some((sector.parse().ok()?, sectors.parse().ok()?)),
        _ => None,
    }
}

/// A line of `perf script` or of tracefs's `trace`, of the events `block_rq_issue`, `block_rq_complete` and
/// `block_rq_requeue`.
pub(super) fn perf(line: &str) -> Line {
    let line = line.trim();
    const EVENTS: [(&str, Stage); 3] = [
        ("block_rq_issue: ", Stage::Issued),
        ("block_rq_requeue: ", Stage::Requeued),
        ("block_rq_complete: ", Stage::Completed),
    ];
    let found = EVENTS.into_iter().find_map(|(name, stage)| Some((line.split_once(name)?, stage)));
    let Some(((before, after), stage)) = found else { return Line::Other };
    let Some((at, pid, name)) = head(before.strip_suffix("block:").unwrap_or(before)) else {
        return Line::Bad("a time was expected before the event's name");
    };
    let mut words = after.split_ascii_whitespace();
    let Some(device) = words.next().and_then(device) else { return Line::Bad("MAJOR,MINOR was expected") };
    let Some(letters) = words.next() else { return Line::Bad("the kind of the request is missing") };
    let Some((operation, flags)) = Flags::of_letters(letters.as_bytes()) else { return Line::Other };
    // Bytes and the command of a passed-through request stand between.
    let mut behind = words.skip_while(|word| !word.ends_with(')')).skip(1);
    let Some((sector, sectors)) = extent(behind.next(), behind.next(), behind.next()) else {
        return Line::Bad("SECTOR + SECTORS was expected");
    };
    let kind = match stage {
        Stage::Requeued => EventKind::Requeue,
        Stage::Completed => EventKind::Complete { failed: !matches!(bracketed(line), "0" | "") },
        _ => EventKind::Issue { pid, command: command(name) },
    };
    Line::Event(stage, RequestEvent { at, device, sector, sectors, operation, flags, kind })
}

/// Time, thread and its name of `COMMAND PID [CPU] TIME:`, where perf may write `PID/TID` and tracefs writes
/// `COMMAND-PID [CPU] FLAGS TIME:`. A command may have blanks.
fn head(text: &str) -> Option<(u64, i32, &str)> {
    let (before, at) = text.trim_end().strip_suffix(':')?.trim_end().rsplit_once(char::is_whitespace)?;
    let at = time(at, SECOND)?;
    let thread = match before.rfind(" [") {
        Some(place) => &before[..place],
        None => before,
    };
    let thread = thread.trim();
    let (name, pid) = match thread.rsplit_once(char::is_whitespace) {
        Some((name, pid)) if pid.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/') => (name, pid),
        _ => thread.rsplit_once('-')?,
    };
    let pid = pid.rsplit('/').next()?.parse().ok()?;
    Some((at, pid, name.trim()))
}
