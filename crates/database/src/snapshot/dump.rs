//! A database where nothing can be made beside it: a file of the server's own dump program.
//!
//! Only the rows and the definitions come back: pages, statistics and free space are made anew.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;

use super::directory::SnapshotDirectory;
use super::files;
use super::info::hex;
use super::{
    Contents, RestoreResult, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, must_fit, program,
    stopped,
};
use crate::{Engine, Result, Session};

/// A program that dumps one database, and one that brings it back.
pub(crate) trait DumpPrograms {
    /// How the database is entered.
    fn engine(&self) -> Box<dyn Engine>;

    /// The database, without a password.
    fn target(&self) -> String;

    /// The program that writes the dump `to` a file, its name first.
    fn dump(&self, to: &Path) -> Result<(&'static str, Command)>;

    /// The program that reads it, its name first, and its description in the result.
    fn restore(&self, from: &Path) -> Result<(&'static str, Command, String)>;

    /// Refuses while others are in the database.
    fn must_be_alone(&self, session: &mut dyn Session) -> Result<()>;
}

/// The snapshots of one database, in files on this host.
#[derive(Debug, Clone)]
pub(crate) struct Dumps<P> {
    programs: P,
    directory: SnapshotDirectory,
}

impl<P: DumpPrograms> Dumps<P> {
    /// Kept below `directory`, which is made when needed.
    pub(crate) fn new(programs: P, directory: &Path) -> Self {
        // One directory a database, so that names need to differ within it only.
        let directory = directory.join(hex(&programs.target(), 8));
        Self { programs, directory: SnapshotDirectory::new(directory, "dump") }
    }
}

impl<P: DumpPrograms> SnapshotStore for Dumps<P> {
    fn way(&self) -> SnapshotMethod {
        SnapshotMethod::Dump
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>> {
        self.directory.list()
    }

    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo> {
        self.directory.check_new(name)?;
        job.go_on("nothing was saved")?;
        let path = self.directory.path();
        // A dump has every row that its user may read: nobody else is to read it.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| files::io_error("make", path, &error))?;
        let engine = self.programs.engine();
        let bytes = engine.size(engine.connect()?.as_mut())?;
        // Without indexes and free space it is smaller; how much is known afterwards.
        must_fit(bytes, files::free_bytes(path), &format!("in {}", path.display()))?;
        let data = self.directory.data(name);
        let unfinished = files::beside(&data, ".saving");
        let (name_of_program, dump) = self.programs.dump(&unfinished)?;
        let written = || std::fs::metadata(&unfinished).map_or(0, |metadata| metadata.len());
        let dumped = program::run(dump, name_of_program, job, &mut |job| {
            (job.progress)("MB saved", written().min(bytes) / 1_000_000, bytes / 1_000_000);
        });
        if let Err(error) = dumped {
            let _ = std::fs::remove_file(&unfinished);
            return Err(if (job.stop)() { stopped("nothing was saved") } else { error });
        }
        std::fs::File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&unfinished, &data))
            .map_err(|error| files::io_error("name", &data, &error))?;
        let seal = files::seal(&data)?;
        let about =
            SnapshotInfo::new(name, SnapshotMethod::Dump, self.programs.target(), seal.bytes, contents);
        self.directory.complete(about, seal)
    }

    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult> {
        let data = self.directory.sealed_data(about)?;
        job.go_on("the database is unchanged")?;
        let (program, restore, how) = self.programs.restore(&data)?;
        let engine = self.programs.engine();
        let mut session = engine.connect()?;
        // Their locks would hold it up halfway, and what they read would go from under them.
        self.programs.must_be_alone(session.as_mut())?;
        let total = about.bytes / 1_000_000;
        let restored = program::run(restore, program, job, &mut |job| {
            let done = engine.size(session.as_mut()).unwrap_or(0) / 1_000_000;
            (job.progress)("MB restored", done.min(total), total);
        });
        restored.map_err(|error| {
            let state = "the database is only partly restored; restore it again before you use it";
            if (job.stop)() { stopped(state) } else { error.with_help(state) }
        })?;
        Ok(RestoreResult { how, bytes: about.bytes })
    }

    fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        self.directory.remove(about)
    }
}
