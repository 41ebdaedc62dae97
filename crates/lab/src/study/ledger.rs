//! The ledger: the events of a study, one per line, each synced to disk before the next step.
//!
//! It is append-only. An incomplete last line, left by a power failure, is removed when the ledger is opened for
//! writing; every other unreadable line is an error.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use kelvin_diagnose::KeyFigure;
use kelvin_store::RunId;
use serde::{Deserialize, Serialize};

use super::{Deviation, EnvironmentFacts, StudyError};

/// A line: the time and the event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerEntry {
    /// When it was written.
    pub at: jiff::Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: LedgerEvent,
}

/// The kinds of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LedgerEvent {
    /// The plan, written before the first run and before the first run after a change of the plan.
    Planned {
        /// Seed for the order.
        seed: u64,
        /// Number of blocks.
        blocks: u32,
        /// The treatments of a block in the order of the design.
        treatments: Vec<String>,
        /// The treatments of all runs in their order, as indexes into `treatments`, one list per block.
        order: Vec<Vec<usize>>,
    },
    /// `kelvin study run` started.
    Session {
        /// The file that holds the runs.
        store: PathBuf,
        /// The id of their group in the store.
        group: i64,
        /// The hash of the hypothesis; `None` when it was not locked, in which case the results are exploratory.
        lock: Option<String>,
        /// The machine and the versions.
        facts: EnvironmentFacts,
    },
    /// A difference from the lock, or from the previous session.
    Deviation(Deviation),
    /// A run starts, beginning with its conditions.
    Started {
        /// The attempt.
        #[serde(flatten)]
        attempt: Attempt,
    },
    /// A counted run.
    Measured {
        /// The attempt.
        #[serde(flatten)]
        attempt: Attempt,
        /// The result.
        #[serde(flatten)]
        results: Results,
    },
    /// A void run.
    Void {
        /// The attempt.
        #[serde(flatten)]
        attempt: Attempt,
        /// Why it does not count.
        why: Vec<String>,
        /// The result.
        #[serde(flatten)]
        results: Results,
    },
    /// A run that failed to execute, because its conditions could not be applied or the server was unavailable.
    Failed {
        /// The attempt.
        #[serde(flatten)]
        attempt: Attempt,
        /// Why.
        why: String,
    },
    /// A run replaces one that was void or failed, from the budget.
    Replaced {
        /// The position of the replaced run.
        of: u32,
        /// The position of the replacement.
        by: u32,
    },
    /// A stop was requested.
    Interrupted {
        /// The position of the run in progress.
        place: Option<u32>,
    },
    /// Everything was restored, and no runs remain.
    Finished {
        /// Planned runs with a result.
        counted: usize,
        /// Planned runs without a result, because the budget was exhausted.
        missing: usize,
    },
}

/// One execution of a planned run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its position in time, from 0, unique among attempts; also its position in the store's group.
    pub place: u32,
    /// The block, from 0.
    pub block: u32,
    /// The treatment's name.
    pub treatment: String,
}

/// The result of a measured run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// Its id in the store.
    pub run: RunId,
    /// Its duration, including conditions and reset.
    pub seconds: f64,
    /// Its metrics, the headline first.
    pub figures: Vec<KeyFigure>,
}

impl Results {
    /// The value of a metric by its id; `None` where it is unknown, or only a lower bound is known, because cells are
    /// compared by means.
    pub fn value(&self, id: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.id == id)?.value.filter(|_| !self.is_bound(id))
    }

    /// Whether only a lower bound of a metric is known.
    pub fn is_bound(&self, id: &str) -> bool {
        self.figures.iter().any(|figure| figure.id == id && figure.at_least)
    }
}

/// A longer ledger is invalid: 10,000 runs, each with a hundred metrics and the maximum number of attempts.
const LONGEST: u64 = 1 << 30;

/// The ledger, opened for writing. No other process can write to it until this is dropped.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
}

impl Ledger {
    /// The entries of a ledger; empty if it does not exist. An incomplete last line is ignored.
    pub fn read(path: &Path) -> Result<Vec<LedgerEntry>, StudyError> {
        match File::open(path) {
            Ok(mut file) => Ok(read(path, &mut file)?.0),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(failed("read", path, source)),
        }
    }

    /// Opens the ledger for writing, creating it if needed, and reads it. A second writer is refused.
    pub fn open(path: &Path) -> Result<(Self, Vec<LedgerEntry>), StudyError> {
        let open = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = open.map_err(|source| failed("open", path, source))?;
        // The kernel releases the lock however this process ends.
        rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).map_err(|error| {
            if error == rustix::io::Errno::WOULDBLOCK {
                StudyError::Refused(format!("{} is in use: this study is already running", path.display()))
            } else {
                failed("lock", path, error.into())
            }
        })?;
        let (entries, length) = read(path, &mut file)?;
        let made_whole = file.set_len(length).and_then(|()| file.sync_all());
        made_whole.map_err(|source| failed("write", path, source))?;
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            // Makes the file itself survive a power failure.
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(|source| failed("write", folder, source))?;
        }
        Ok((Self { path: path.into(), file }, entries))
    }

    /// Writes a line to disk, and returns it as a later reader would read it.
    pub fn append(&mut self, event: LedgerEvent) -> Result<LedgerEntry, StudyError> {
        let entry = LedgerEntry { at: jiff::Timestamp::now(), event };
        let path = &self.path;
        let unfit = |error: serde_json::Error| failed("write", path, error.into());
        let mut line = serde_json::to_string(&entry).map_err(unfit)?;
        // A number may differ in its last digit from the one in memory, but both must continue from the same value.
        let entry = serde_json::from_str(&line).map_err(unfit)?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|source| failed("write", path, source))?;
        Ok(entry)
    }
}

fn failed(what: &'static str, path: &Path, source: std::io::Error) -> StudyError {
    StudyError::File { what, path: path.into(), source }
}

/// The entries, and the length of the complete lines in bytes.
fn read(path: &Path, file: &mut File) -> Result<(Vec<LedgerEntry>, u64), StudyError> {
    let mut text = Vec::new();
    let whole = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(LONGEST + 1).read_to_end(&mut text));
    whole.map_err(|source| failed("read", path, source))?;
    let wrong = |message: String| StudyError::Parse { path: path.display().to_string(), message };
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("a ledger may have at most {LONGEST} bytes")));
    }
    let complete = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut entries = Vec::new();
    for (number, line) in text[..complete].split_inclusive(|&byte| byte == b'\n').enumerate() {
        let entry = serde_json::from_slice(line).map_err(|error| {
            wrong(format!(
                "line {} is not a valid ledger entry: {error}; entries are only ever appended, so restore \
                 the line from a backup, or fork the study",
                number + 1
            ))
        })?;
        entries.push(entry);
    }
    Ok((entries, complete as u64))
}
