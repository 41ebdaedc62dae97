//! Traces of comma-separated values: MSR Cambridge's, which have no line of names, and those that name their columns.

use kelvin_measure::SECOND;

use super::time;
use crate::SECTOR;
use crate::{Builder, Device, Flags, Operation, Process, Request};

/// Windows counts hundreds of nanoseconds.
const TICK: u64 = 100;

/// Where the values are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Columns {
    is_named: bool,
    time: usize,
    /// Nanoseconds of a unit of time.
    unit: u64,
    operation: usize,
    size: usize,
    place: usize,
    /// Bytes of a unit of the place.
    block: u64,
    response: Option<usize>,
    device: Vec<usize>,
}

/// Timestamp, host name, disk number, type, offset, size, response time.
fn msr() -> Columns {
    Columns {
        is_named: false,
        time: 0,
        unit: TICK,
        operation: 3,
        size: 5,
        place: 4,
        block: 1,
        response: Some(6),
        device: vec![1, 2],
    }
}

impl Columns {
    /// Of the first line. None if it is none of a csv.
    ///
    /// # Errors
    /// What a line of names lacks.
    pub(super) fn from_header(line: &str) -> Result<Option<Self>, String> {
        let names: Vec<String> = line.split(',').map(|name| name.trim().to_ascii_lowercase()).collect();
        let is_msr = || {
            let [time, _, disk, operation, ..] = names.as_slice() else { return false };
            let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            names.len() == 7 && digits(time) && digits(disk) && matches!(operation.as_str(), "read" | "write")
        };
        if is_msr() {
            return Ok(Some(msr()));
        }
        let find = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
        let time = find(&["time", "timestamp", "ts"]);
        let operation = find(&["op", "type", "opcode", "operation"]);
        let size = find(&["size", "length", "bytes"]);
        let sector = find(&["lbn", "lba", "sector"]);
        let place = sector.or_else(|| find(&["offset"]));
        if time.is_none() && operation.is_none() && size.is_none() && place.is_none() {
            return Ok(None);
        }
        let need = |column: Option<usize>, what: &str| {
            column.ok_or_else(|| format!("the columns {} lack {what}", names.join(",")))
        };
        Ok(Some(Self {
            is_named: true,
            time: need(time, "time (in seconds)")?,
            unit: SECOND,
            operation: need(operation, "op")?,
            size: need(size, "size (in bytes)")?,
            place: need(place, "lbn (of 512 bytes) or offset (in bytes)")?,
            block: if sector.is_some() { SECTOR } else { 1 },
            response: find(&["response", "response_time"]),
            device: find(&["device", "disk", "file"]).into_iter().collect(),
        }))
    }

    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    pub(super) fn format(&self) -> &'static str {
        if self.is_named { "csv with names" } else { "csv of MSR Cambridge" }
    }

    /// Adds the request of a line; false when the trace is full.
    ///
    /// # Errors
    /// What makes no sense in it.
    pub(super) fn request(&self, line: &str, builder: &mut Builder) -> Result<bool, String> {
        let values: Vec<&str> = line.split(',').map(str::trim).collect();
        let value =
            |place: usize, what: &str| values.get(place).copied().ok_or_else(|| format!("{what} is missing"));
        let number = |place: usize, what: &str| -> Result<u64, String> {
            let text = value(place, what)?;
            text.parse().map_err(|_| format!("{what} was expected instead of {text:?}"))
        };
        let duration = |place: usize, what: &str| -> Result<u64, String> {
            let text = value(place, what)?;
            time(text, self.unit).ok_or_else(|| format!("{what} was expected instead of {text:?}"))
        };
        let at = duration(self.time, "a time")?;
        let word = value(self.operation, "an operation")?;
        let operation = operation(word).ok_or_else(|| format!("{word:?} is not a known operation"))?;
        let size = number(self.size, "a size in bytes")?;
        let length = u32::try_from(size).map_err(|_| format!("a size of {size} bytes"))?;
        let place = number(self.place, "a place")?;
        let offset = place.checked_mul(self.block).filter(|offset| offset.checked_add(size).is_some());
        let offset = offset.ok_or_else(|| format!("offset {place} is beyond the largest device"))?;
        let response = match self.response {
            Some(column) if values.get(column) != Some(&"") => Some(duration(column, "a response time")?),
            _ => None,
        };
        let names: Vec<&str> = self.device.iter().filter_map(|place| values.get(*place).copied()).collect();
        let name = if names.is_empty() { "device".to_owned() } else { names.join(".") };
        let request = Request {
            at,
            offset,
            length,
            device: builder.device(&Device { name, number: None }),
            process: builder.process(&Process::default()),
            operation,
            flags: Flags::default(),
            file: Request::NO_FILE,
            took: Request::UNKNOWN,
        };
        Ok(builder.push(request, response))
    }
}

/// A word, a letter, or the hexadecimal code of a SCSI command (as CloudPhysics has it).
fn operation(word: &str) -> Option<Operation> {
    Some(match word.to_ascii_lowercase().as_str() {
        "r" | "read" | "8" | "08" | "28" | "88" | "a8" => Operation::Read,
        "w" | "write" | "a" | "0a" | "2a" | "8a" | "aa" => Operation::Write,
        "d" | "discard" | "trim" | "unmap" | "42" => Operation::Discard,
        "f" | "flush" | "sync" | "35" | "91" => Operation::Flush,
        _ => return None,
    })
}
