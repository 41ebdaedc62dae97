//! The files of a managed MySQL or MariaDB.

use std::path::{Path, PathBuf};

use crate::managed::ManagedServer;
use crate::managed::account::Account;
use crate::managed::program::{io_error, run, size};
use crate::mysql::managed::MysqlServer;
use crate::snapshot::SnapshotStore;
use crate::snapshot::data_directory::{CopyInto, DataDirectories, FileServer, no_links};
use crate::{Error, ErrorClass, Result};

/// What is no data: the list of pages that were in memory, by which a start would read them again, tables of sessions that have
/// ended, and the number by which replicas know the server, which it makes anew.
const NOT_DATA: [&str; 4] = ["ib_buffer_pool", "ibtmp1", "#innodb_temp", "auto.cnf"];

/// A managed MySQL or MariaDB, whose files are copied.
#[derive(Debug, Clone)]
struct MysqlFiles {
    server: MysqlServer,
}

/// Keeps copies of the data directory of this server.
pub(crate) fn files(server: MysqlServer) -> Box<dyn SnapshotStore> {
    Box::new(DataDirectories::new(MysqlFiles { server }))
}

/// The redo log's files: as large as it may become, and mostly empty.
fn is_redo(name: &str) -> bool {
    name.starts_with("ib_logfile") || name == "#innodb_redo"
}

/// What a later start needs of the binary log is nothing: it begins one.
fn is_binlog(name: &str) -> bool {
    name.starts_with("binlog.")
}

impl FileServer for MysqlFiles {
    /// What `SET PERSIST` has kept.
    const KEPT: &'static [&'static str] = &["mysqld-auto.cnf"];

    fn base(&self) -> PathBuf {
        let base = self.server.manager().base_dir();
        std::path::absolute(base).unwrap_or_else(|_| base.to_owned())
    }

    fn name(&self) -> String {
        self.server.name()
    }

    fn account(&self) -> Result<Account> {
        Account::for_data(&self.server.data())
    }

    fn process(&self) -> Option<u32> {
        self.server.process()
    }

    /// One that does not run may have crashed: it is started, so that it can be stopped in order.
    fn stop(&self) -> Result<()> {
        if self.process().is_none() {
            self.start()?;
        }
        self.server.stop_alone().map(drop)
    }

    fn start(&self) -> Result<()> {
        self.server.start(None, &mut |_| ()).map(drop)
    }

    fn lock(&self) -> Result<std::fs::File> {
        self.server.manager().lock_instance(&self.name(), &mut |_| ())
    }

    /// It has just been stopped.
    fn must_be_clean(&self) -> Result<()> {
        Ok(())
    }

    fn is_left_out(&self, name: &str) -> bool {
        NOT_DATA.contains(&name) || Self::KEPT.contains(&name) || is_redo(name) || is_binlog(name)
    }

    /// How much of the redo log is not empty is known when it is copied: of a log of gigabytes it is a part.
    fn bytes(&self, data: &Path) -> u64 {
        let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
        let of = |entry: std::fs::DirEntry| {
            let path = entry.path();
            let name = entry.file_name();
            if is_binlog(&name.to_string_lossy()) || is_redo(&name.to_string_lossy()) {
                0
            } else if path.is_dir() {
                size(&path)
            } else {
                entry.metadata().map_or(0, |metadata| metadata.len())
            }
        };
        entries.map(of).sum()
    }

    /// The redo log belongs to the data: the place where it goes on is in it. Its empty parts are not written.
    fn copy_rest(&self, from: &Path, to: &Path, copy: &mut CopyInto<'_>) -> Result<()> {
        let entries = std::fs::read_dir(from).map_err(|error| io_error(from, &error))?;
        let redo: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| is_redo(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        if redo.is_empty() {
            return Err(Error::new(
                ErrorClass::Server,
                format!("{} contains no redo log", from.display()),
            )
            .with_help("the redo log is elsewhere (innodb_log_group_home_dir); choose another method: --reset dump"));
        }
        copy(&redo, to, &["--sparse=always"])
    }

    /// The empty parts of the redo log get their room on the disk as the server had given it to them, so that a run does not have to
    /// find it.
    fn complete(&self, data: &Path) -> Result<()> {
        let account = self.account()?;
        for file in redo_files(data) {
            let length = std::fs::metadata(&file).map_err(|error| io_error(&file, &error))?.len();
            let mut allocate = account.command(Path::new("fallocate"), Path::new("/"));
            allocate.arg("--length").arg(length.max(1).to_string()).arg("--").arg(&file);
            // Not every file system, and not every host, can; the log is good without.
            let _ = run(allocate, None, "fallocate");
        }
        Ok(())
    }

    /// Tables may lie in other directories, and so may a database's.
    fn no_links(&self, data: &Path) -> Result<()> {
        let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
        let mut directories: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        directories.push(data.to_owned());
        no_links(&directories, "--reset dump")
    }

    fn target(&self) -> String {
        format!("{} in {}", self.name(), self.base().display())
    }
}

fn redo_files(data: &Path) -> Vec<PathBuf> {
    let files = |directory: &Path| {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect::<Vec<_>>()
    };
    let mut found = files(&data.join("#innodb_redo"));
    found.extend(files(data).into_iter().filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ib_logfile"))
    }));
    found
}
