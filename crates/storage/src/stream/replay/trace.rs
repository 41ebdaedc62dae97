//! The content of a trace, independent of its format.

use std::io::{BufRead, Cursor};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use kelvin_measure::Nanos;

use super::{blktrace, iolog};
use crate::error::Location;
use crate::{Direction, Error, Result, SyncCall};

/// An event of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceEvent {
    /// Its time in nanoseconds from the beginning of the trace.
    pub at: Nanos,
    /// The file, by its index in [`Trace::names`].
    pub name: u32,
    /// The action.
    pub action: Action,
}

/// An action of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Data was read, written or trimmed.
    Io {
        /// The direction.
        direction: Direction,
        /// The offset in bytes.
        offset: u64,
        /// The length in bytes, at least 1.
        length: u32,
    },
    /// A sync.
    Sync(SyncCall),
}

/// A file or device of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TraceFile {
    /// By its path.
    Path(PathBuf),
    /// By its number: major, minor.
    Device(u32, u32),
}

impl TraceFile {
    /// The path of the file or device on this machine.
    ///
    /// # Errors
    ///
    /// If there is no device with this number.
    pub fn path(&self) -> std::result::Result<PathBuf, String> {
        match self {
            Self::Path(path) => Ok(path.clone()),
            Self::Device(major, minor) => {
                let about = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/uevent"));
                let name =
                    about.iter().flat_map(|text| text.lines()).find_map(|line| line.strip_prefix("DEVNAME="));
                name.map(|name| Path::new("/dev").join(name)).ok_or_else(|| {
                    format!(
                        "the trace is of device {major}:{minor}, which this machine does not have; choose a \
                         target with replay_redirect="
                    )
                })
            }
        }
    }
}

/// Reads a trace event by event.
pub struct Reader {
    format: Format,
    names: Vec<TraceFile>,
}

enum Format {
    Iolog(iolog::Lines),
    Blktrace(blktrace::Records),
}

/// The input of a trace.
pub type Input = Box<dyn BufRead + Send>;

impl Reader {
    /// Reads a trace named `path` in messages, whose first bytes determine its format.
    ///
    /// # Errors
    ///
    /// If the first line or bytes match no format.
    pub fn new(mut input: Input, path: &Path) -> Result<Self> {
        let first =
            input.fill_buf().map_err(Error::system(format!("reading the trace {}", path.display())))?;
        let format = if blktrace::is_trace(first) {
            Format::Blktrace(blktrace::Records::new(input, path))
        } else {
            Format::Iolog(iolog::Lines::new(input, path)?)
        };
        Ok(Self { format, names: Vec::new() })
    }

    /// Opens a trace in a file, or of standard input (`-`).
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::new(open(path)?, path)
    }

    /// The next event; `None` at the end.
    ///
    /// # Errors
    ///
    /// Invalid data, with its line or byte offset.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items would all be results")]
    pub fn next(&mut self) -> Result<Option<TraceEvent>> {
        match &mut self.format {
            Format::Iolog(lines) => lines.next(&mut self.names),
            Format::Blktrace(records) => records.next(&mut self.names),
        }
    }

    /// The files that have occurred so far.
    pub fn names(&self) -> &[TraceFile] {
        &self.names
    }
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").field("names", &self.names).finish_non_exhaustive()
    }
}

/// A whole trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// Its files, in order of appearance.
    pub names: Vec<TraceFile>,
    /// Its events, in the order of the trace.
    pub events: Vec<TraceEvent>,
}

impl Trace {
    /// Reads a trace: an iolog of version 2 or 3, or blktrace's binary form, recognised by its first bytes.
    /// `path` is used in messages.
    ///
    /// # Errors
    ///
    /// Invalid data, with its line or byte offset.
    pub fn read(input: impl BufRead + Send + 'static, path: &Path) -> Result<Self> {
        let mut reader = Reader::new(Box::new(input), path)?;
        let mut events = Vec::new();
        while let Some(event) = reader.next()? {
            events.push(event);
        }
        Ok(Self { names: reader.names, events })
    }
}

/// The content of standard input: it can be read only once, but a trace is examined before it is replayed.
static STANDARD_INPUT: OnceLock<std::result::Result<Arc<[u8]>, String>> = OnceLock::new();

fn open(path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let read = STANDARD_INPUT.get_or_init(|| {
            let mut all = Vec::new();
            match std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut all) {
                Ok(_) => Ok(all.into()),
                Err(cause) => Err(cause.to_string()),
            }
        });
        return match read {
            Ok(all) => Ok(Box::new(Cursor::new(Arc::clone(all)))),
            Err(cause) => Err(Error::system("reading the trace from standard input")(std::io::Error::other(
                cause.clone(),
            ))),
        };
    }
    let file =
        std::fs::File::open(path).map_err(Error::system(format!("opening the trace {}", path.display())))?;
    Ok(Box::new(std::io::BufReader::with_capacity(1 << 17, file)))
}

/// An error for invalid data in a trace.
pub(crate) fn bad_line(path: &Path, line: u32, problem: impl Into<String>) -> Error {
    Error::Input {
        place: Location { file: Some(path.to_path_buf()), line, column: 0 },
        problem: problem.into(),
    }
}

/// The index of a file among the names; adds it if it is new.
pub(crate) fn number_of(names: &mut Vec<TraceFile>, name: TraceFile) -> u32 {
    // Traces have few files, and the last used one is the most likely.
    if let Some(number) = names.iter().rposition(|other| *other == name) {
        return number as u32;
    }
    names.push(name);
    names.len() as u32 - 1
}
