//! SQLite: copies of the file, kept in a directory beside it, so that they can share its blocks.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::snapshot::background::watched;
use crate::snapshot::directory::SnapshotDirectory;
use crate::snapshot::files;
use crate::snapshot::{
    Contents, RestoreResult, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, must_fit,
};
use crate::{Error, ErrorClass, Result};

/// How long another connection may take to go away.
const PATIENCE: Duration = Duration::from_secs(2);

/// The snapshots of one file.
#[derive(Debug, Clone)]
pub(super) struct SqliteFiles {
    file: PathBuf,
    directory: SnapshotDirectory,
}

impl SqliteFiles {
    /// Of the database in this file.
    ///
    /// # Errors
    /// When the path cannot be made absolute.
    pub(super) fn new(file: &Path) -> Result<Self> {
        let file = std::path::absolute(file).map_err(|error| files::io_error("use", file, &error))?;
        let directory = SnapshotDirectory::new(files::beside(&file, ".snapshots"), "db");
        Ok(Self { file, directory })
    }

    fn target(&self) -> String {
        format!("sqlite:{}", self.file.display())
    }

    /// Takes the database for this process alone, with everything that its log holds in the file.
    fn alone(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let taken = (|| -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(&self.file, flags)?;
            connection.busy_timeout(PATIENCE)?;
            // Set before the first look at the file: it is then refused while anybody else has it open.
            connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
            connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")?;
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            Ok(connection)
        })();
        taken.map_err(|error| {
            let error = super::translate(error);
            if error.class() != ErrorClass::LockNotAvailable {
                return error.context(&format!("cannot lock {} for a copy", self.file.display()));
            }
            let users = files::users_of(&self.file);
            let who = if users.is_empty() {
                "another session".to_owned()
            } else {
                format!("process {}", users.join(", process "))
            };
            Error::new(
                ErrorClass::LockNotAvailable,
                format!("{} is in use by {who}; nothing was changed", self.file.display()),
            )
            .with_help("end it and try again: kelvin does not end other clients' sessions")
        })
    }

    /// Refuses a copy that would not fit; a clone takes no room.
    fn must_have_room(&self, bytes: u64) -> Result<()> {
        let directory = self.directory.path();
        if files::clones(directory) {
            return Ok(());
        }
        must_fit(bytes, files::free_bytes(directory), &format!("in {}", directory.display()))
    }

    fn copy(from: &Path, to: &Path, what: &str, job: &mut SnapshotJob<'_>) -> Result<files::Copied> {
        let done = std::sync::atomic::AtomicU64::new(0);
        let asked = std::sync::atomic::AtomicBool::new(false);
        let total = std::fs::metadata(from).map_or(0, |metadata| metadata.len());
        let order = std::sync::atomic::Ordering::Relaxed;
        let (progress, stop) = (&mut *job.progress, job.stop);
        watched(
            || files::copy(from, to, &mut |bytes, _| done.store(bytes, order), &|| asked.load(order)),
            &mut || {
                asked.store(stop(), order);
                progress(what, done.load(order) / 1_000_000, total / 1_000_000);
            },
        )
    }
}

impl SnapshotStore for SqliteFiles {
    fn way(&self) -> SnapshotMethod {
        SnapshotMethod::Files
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>> {
        self.directory.list()
    }

    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo> {
        self.directory.check_new(name)?;
        job.go_on("nothing was saved")?;
        let directory = self.directory.path();
        std::fs::create_dir_all(directory).map_err(|error| files::io_error("make", directory, &error))?;
        let connection = self.alone()?;
        let bytes = std::fs::metadata(&self.file).map_or(0, |metadata| metadata.len());
        self.must_have_room(bytes)?;
        let data = self.directory.data(name);
        let unfinished = files::beside(&data, ".saving");
        // What an earlier attempt left when it was killed.
        let _ = std::fs::remove_file(&unfinished);
        Self::copy(&self.file, &unfinished, "MB saved", job)?;
        drop(connection);
        std::fs::rename(&unfinished, &data).map_err(|error| files::io_error("name", &data, &error))?;
        let about = SnapshotInfo::new(name, SnapshotMethod::Files, self.target(), bytes, contents);
        self.directory.complete(about, files::seal(&data)?)
    }

    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult> {
        let data = self.directory.sealed_data(about)?;
        job.go_on("nothing was changed")?;
        let connection = if self.file.exists() { Some(self.alone()?) } else { None };
        self.must_have_room(about.bytes)?;
        let new = files::beside(&self.file, ".restoring");
        let _ = std::fs::remove_file(&new);
        let copied = Self::copy(&data, &new, "MB restored", job)?;
        // Before the exchange: a log of other content, such as one whose database somebody removed, would be played back
        // into the restored one. That of the old content is empty, and nobody but this process has it open.
        for log in ["-wal", "-shm", "-journal"] {
            let path = files::beside(&self.file, log);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    let _ = std::fs::remove_file(&new);
                    return Err(files::io_error("remove", &path, &error));
                }
                _ => {}
            }
        }
        // One step: whoever looks finds the old content or the new one.
        std::fs::rename(&new, &self.file).map_err(|error| files::io_error("replace", &self.file, &error))?;
        drop(connection);
        if let Some(directory) = self.file.parent() {
            files::sync_directory(directory)?;
        }
        Ok(RestoreResult { how: copied.copy_method().into(), bytes: about.bytes })
    }

    fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        self.directory.remove(about)
    }
}
