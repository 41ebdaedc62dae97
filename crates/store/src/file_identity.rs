//! Whether the open store is still the file at its path. Deleting or replacing the file of a run does not stop SQLite,
//! which continues writing to a file that can no longer be opened by its path: this is detected here, and the open file
//! is copied.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::schema::beside;

/// Maximum number of copies beside a store.
const MOST_COPIES: u32 = 99;

/// A store that is open: its file and its write-ahead log, each by device and inode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileIdentity {
    file: (u64, u64),
    log: Option<(u64, u64)>,
}

impl FileIdentity {
    /// The identity of the files that are at `path` and beside it now.
    pub(crate) fn at_path(path: &Path) -> Result<Self> {
        let file = identity(path).map_err(|e| Error::io("read", path, e))?;
        Ok(Self { file, log: identity(&beside(path, LOG)).ok() })
    }

    /// Whether both are one file, whatever its name.
    pub(crate) fn is_same_file(self, other: Self) -> bool {
        self.file == other.file
    }

    /// What happened to the file, in a word or two; `None` when it is still there. A path that is temporarily
    /// unreadable does not count as a loss.
    fn lost(self, path: &Path) -> Option<&'static str> {
        match identity(path) {
            Ok(file) if file == self.file => None,
            Ok(_) => Some("replaced by another file"),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Some("deleted"),
            Err(_) => None,
        }
    }

    /// Moves a lost store's WAL away from the file that has replaced it: SQLite would apply the one to the other.
    /// Processes that have the WAL open keep it.
    fn take_log_away(self, path: &Path) {
        let log = beside(path, LOG);
        if self.log.is_some() && identity(&log).ok() == self.log {
            for file in [log, beside(path, "-shm")] {
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

/// SQLite's suffix for a write-ahead log.
const LOG: &str = "-wal";

fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()))
}

/// A store whose file is gone, and the copy of its content.
#[derive(Debug)]
pub(crate) struct LostStore {
    how: &'static str,
    copy: std::result::Result<PathBuf, String>,
}

impl LostStore {
    /// Copies the file that `conn` has open to `PATH.rescued`, or the next free name after it, readable by its owner
    /// only; `None` when the file is in its place.
    pub(crate) fn rescue(identity: FileIdentity, conn: &Connection, path: &Path) -> Option<Self> {
        let how = identity.lost(path)?;
        identity.take_log_away(path);
        let copy = free_name(path).map_err(|e| e.to_string()).and_then(|copy| {
            copied(conn, &copy)?;
            Ok(copy)
        });
        Some(Self { how, copy })
    }

    /// Copies again, with the rows written since.
    pub(crate) fn rescue_again(&self, conn: &Connection) {
        let Ok(copy) = &self.copy else { return };
        // The first copy stays where the second fails.
        let mut second = copy.clone().into_os_string();
        second.push("-new");
        let second = PathBuf::from(second);
        if made(&second).is_ok() {
            let done = copied(conn, &second).is_ok() && std::fs::rename(&second, copy).is_ok();
            if !done {
                let _ = std::fs::remove_file(&second);
            }
        }
    }

    pub(crate) fn error(&self, path: &Path) -> Error {
        let rescued = match &self.copy {
            Ok(copy) => format!("its content is in {}", copy.display()),
            Err(why) => format!("its content could not be copied: {why}"),
        };
        Error::Lost { path: path.to_path_buf(), how: self.how, rescued }
    }
}

fn made(path: &Path) -> std::io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes an empty file beside the store.
fn free_name(path: &Path) -> std::io::Result<PathBuf> {
    let mut last = std::io::ErrorKind::AlreadyExists.into();
    for number in 1..=MOST_COPIES {
        let mut name = path.as_os_str().to_owned();
        name.push(".rescued");
        if number > 1 {
            name.push(format!("-{number}"));
        }
        match made(Path::new(&name)) {
            Ok(_) => return Ok(name.into()),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => last = e,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

fn copied(conn: &Connection, to: &Path) -> std::result::Result<(), String> {
    let name = to.to_str().ok_or("the name is not UTF-8")?;
    conn.execute("VACUUM INTO ?", [name]).map(drop).map_err(|e| {
        let _ = std::fs::remove_file(to);
        e.to_string()
    })
}
