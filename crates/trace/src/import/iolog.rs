//! fio's iologs, read as `kelvin io` replays them.

use std::path::Path;

use kelvin_storage::Direction;
use kelvin_storage::stream::replay::{Action, Input, TraceFile, TraceReader};

use crate::{Builder, Device, Flags, Operation, Process, Reading, Request, Result, Trace};

/// Reads an iolog.
pub(super) fn read(input: Input, path: &Path, reading: Reading) -> Result<Trace> {
    let mut reader = TraceReader::new(input, path)?;
    let mut builder = Builder::new("fio iolog", reading);
    let process = builder.process(&Process::default());
    while let Some(event) = reader.next()? {
        let device = match reader.names().get(event.name as usize) {
            Some(TraceFile::Path(path)) => Device { name: path.display().to_string(), number: None },
            Some(TraceFile::Device(major, minor)) => {
                Device { name: format!("{major}:{minor}"), number: Some((*major, *minor)) }
            }
            None => Device::default(),
        };
        let (operation, offset, length) = match event.action {
            Action::Io { direction: Direction::Read, offset, length } => (Operation::Read, offset, length),
            Action::Io { direction: Direction::Write, offset, length } => (Operation::Write, offset, length),
            Action::Io { direction: Direction::Trim, offset, length } => (Operation::Discard, offset, length),
            Action::Sync(_) => (Operation::Flush, 0, 0),
        };
        let request = Request {
            at: event.at,
            offset,
            length,
            device: builder.device(&device),
            process,
            operation,
            flags: Flags::default(),
            file: Request::NO_FILE,
            took: Request::UNKNOWN,
        };
        if !builder.push(request, None) {
            break;
        }
    }
    Ok(builder.finish())
}
