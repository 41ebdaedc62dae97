//! What can go wrong, with the place where it was written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Where something was written: a line of a job file, or the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Location {
    /// The file; none for the command line.
    pub file: Option<PathBuf>,
    /// Its line, from 1; 0 on the command line.
    pub line: u32,
    /// The column of the value, from 1; 0 where that says nothing.
    pub column: u32,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(file) = &self.file else { return f.write_str("command line") };
        write!(f, "{}:{}", file.display(), self.line)?;
        if self.column > 0 { write!(f, ":{}", self.column) } else { Ok(()) }
    }
}

/// Why a job cannot be run, or ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The job file or a flag says what cannot be. Nothing was done.
    #[error("{place}: {problem}")]
    Input {
        /// Where it stands.
        place: Location,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The job was refused before anything was read or written: a mounted target, no space, a missing file.
    #[error("job {job:?}: {problem}")]
    Refused {
        /// The job's name.
        job: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A target that is not to be written: it is in use, or holds something. Nothing was written.
    #[error("{}: {problem}", target.display())]
    Protected {
        /// The file or device.
        target: PathBuf,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The kernel said no.
    #[error("{what}: {cause}")]
    System {
        /// What was tried, with the file's name.
        what: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// A count does not agree with another: a defect of Kelvin.
    #[error("the counts disagree: {0}; please report this")]
    Disagreement(String),
}

impl Error {
    /// Something tried that the kernel refused; for `map_err`.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::System { what, cause }
    }

    /// The target is not to be written.
    pub fn protected(target: &Path, problem: impl Into<String>) -> Self {
        Self::Protected { target: target.into(), problem: problem.into() }
    }

    /// The job cannot be run.
    pub fn refused(job: &str, problem: impl Into<String>) -> Self {
        Self::Refused { job: job.into(), problem: problem.into() }
    }
}

/// What this crate's functions return.
pub type Result<T> = std::result::Result<T, Error>;
