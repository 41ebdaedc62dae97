//! What can go wrong with a store.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Result with the store's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a store cannot be used. Every message names the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is something else.
    #[error("{} is not a Kelvin store: {why}; name another file with --store", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// The file was written by a Kelvin of another version. It was not touched.
    #[error(
        "{} is a store of version {found}, but this Kelvin uses version {known}: use the Kelvin version that \
        created it, or another file (this one was not changed)",
        path.display()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version that this code knows.
        known: i64,
    },
    /// The file is truncated or damaged.
    #[error("the store {} is damaged: {detail}; restore it from a backup, or name another file with --store", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and how.
        detail: String,
    },
    /// There is no such file.
    #[error("there is no store at {}: no run has been stored there", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be written.
    #[error("the store {} cannot be written: it or its directory is read-only", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// The filesystem is full.
    #[error("the store {} cannot grow: the disk is full", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file that a run was written to is not there any more.
    #[error("the store {} was {how} during the run; {rescued}", path.display())]
    Lost {
        /// Where it was.
        path: PathBuf,
        /// Its outcome.
        how: &'static str,
        /// Where its content is.
        rescued: String,
    },
    /// Another process holds the write lock for too long.
    #[error("the store {} is locked by another process", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No run has this number or label.
    #[error("no run {wanted:?} in {}: see `kelvin runs`", path.display())]
    NoSuchRun {
        /// The file.
        path: PathBuf,
        /// What was requested.
        wanted: String,
    },
    /// A name of several runs that cannot be read, or stands for none.
    #[error("{wanted:?} does not select any runs: {why}")]
    Selection {
        /// What was requested.
        wanted: String,
        /// What is wrong, and what there is.
        why: String,
    },
    /// A run that is being written cannot be deleted.
    #[error("run {0} is still running")]
    Running(i64),
    /// A file that is not written over.
    #[error("{} already exists and is not overwritten: name another file", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Runs that cannot be exported.
    #[error("cannot export: {0}")]
    Export(String),
    /// A file whose runs cannot be imported. Nothing was imported.
    #[error("cannot import {}: {why}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// A label that is ambiguous with a run's number or another name of runs.
    #[error(
        "the label {0:?} is not allowed: it could be read as a run number, \"last\", \"last-N\" or several \
        runs"
    )]
    Label(String),
    /// An event that does not fit the run it belongs to.
    #[error("event rejected: {0}")]
    Event(String),
    /// The operating system refused something.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Any other error of SQLite.
    #[error("the store {}: {source}", path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

impl Error {
    /// Sorts an error of SQLite by what the user can do about it.
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, detail: source.to_string() }
            }
            _ => Self::Sqlite { path, source },
        }
    }

    pub(crate) fn damaged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), detail: detail.into() }
    }

    /// The same of a file that was to be imported: no error of it is one of the store.
    pub(crate) fn of_import(self, file: &Path) -> Self {
        let why = match self {
            Self::NotAStore { why, .. } => format!("it is neither an export nor a store: {why}"),
            Self::Missing { .. } => "the file does not exist or is empty".into(),
            Self::Damaged { detail, .. } => format!("it is damaged: {detail}; obtain the file again"),
            Self::Sqlite { source, .. } => format!("it is damaged: {source}; obtain the file again"),
            Self::Busy { .. } => "it is locked by another process".into(),
            Self::Io { doing, source, .. } => format!("cannot {doing} it: {source}"),
            other => return other,
        };
        Self::Import { path: file.to_path_buf(), why }
    }

    pub(crate) fn io(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            std::io::ErrorKind::StorageFull => Self::Full { path },
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path },
            _ => Self::Io { doing, path, source },
        }
    }
}
