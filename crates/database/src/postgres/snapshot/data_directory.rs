//! The files of a managed PostgreSQL.

use std::path::{Path, PathBuf};

use super::{program, sessions};
use crate::managed::Manager;
use crate::managed::account::Account;
use crate::managed::program::size as directory_size;
use crate::postgres::PostgresEngine;
use crate::postgres::managed::running;
use crate::snapshot::SnapshotStore;
use crate::snapshot::data_directory::{CopyInto, DataDirectories, FileServer, no_links};
use crate::{Engine, Error, ErrorClass, Result};

/// Files that a snapshot does not contain: files of the running server, settings, which are not data, and files that
/// are copied separately.
const NOT_DATA: [&str; 8] = [
    "postmaster.pid",
    "postmaster.opts",
    "postgresql.conf",
    "postgresql.auto.conf",
    "pg_hba.conf",
    "pg_ident.conf",
    "pg_wal",
    "PG_VERSION",
];

/// A managed PostgreSQL, whose files are copied.
#[derive(Debug, Clone)]
struct PostgresFiles {
    manager: Manager,
    major: u32,
}

/// Keeps copies of the data directory of the server of this major version.
pub(crate) fn files(manager: Manager, major: u32) -> Box<dyn SnapshotStore> {
    Box::new(DataDirectories::new(PostgresFiles { manager, major }))
}

impl PostgresFiles {
    fn data(&self) -> PathBuf {
        self.base().join(self.name()).join("data")
    }

    /// A line of the `pg_controldata` output for a data directory.
    fn control(&self, data: &Path, name: &str) -> Result<String> {
        const PROGRAM: &str = "pg_controldata";
        let directory = program::directory(self.major, self.major, &[PROGRAM]).ok_or_else(|| {
            Error::usage(format!(
                "copying the files needs {PROGRAM} of PostgreSQL {}, which is not installed here",
                self.major
            ))
            .with_help("choose another method: --reset template")
        })?;
        let account = self.account()?;
        let mut command = account.command(&directory.join(PROGRAM), Path::new("/"));
        let said = command
            .arg("-D")
            .arg(data)
            .output()
            .map_err(|error| Error::new(ErrorClass::Server, format!("pg_controldata: {error}")))?;
        let text = String::from_utf8_lossy(&said.stdout);
        let mut values = text.lines().filter_map(|line| line.split_once(':'));
        values
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim().to_owned())
            .ok_or_else(|| Error::new(ErrorClass::Server, format!("pg_controldata does not report {name:?}")))
    }
}

impl FileServer for PostgresFiles {
    const KEPT: &'static [&'static str] =
        &["postgresql.conf", "postgresql.auto.conf", "pg_hba.conf", "pg_ident.conf"];

    fn base(&self) -> PathBuf {
        let base = self.manager.base_dir();
        std::path::absolute(base).unwrap_or_else(|_| base.to_owned())
    }

    fn name(&self) -> String {
        format!("postgres-{}", self.major)
    }

    fn account(&self) -> Result<Account> {
        Account::for_data(&self.data())
    }

    fn process(&self) -> Option<u32> {
        running(&self.data()).map(|server| server.pid)
    }

    fn stop(&self) -> Result<()> {
        if running(&self.data()).is_some() {
            let instance = self.manager.up(Some(self.major), &mut |_| ())?;
            let mut session = PostgresEngine::new(instance.config()).connect()?;
            sessions::must_be_alone(session.as_mut(), None)?;
        }
        self.manager.down(Some(self.major)).map(drop)
    }

    fn start(&self) -> Result<()> {
        self.manager.up(Some(self.major), &mut |_| ()).map(drop)
    }

    fn lock(&self) -> Result<std::fs::File> {
        self.manager.lock(self.major, &mut |_| ())
    }

    /// Only after a clean shutdown is the last segment of the WAL sufficient.
    fn must_be_clean(&self) -> Result<()> {
        let state = self.control(&self.data(), "Database cluster state")?;
        if state == "shut down" {
            return Ok(());
        }
        Err(Error::new(
            ErrorClass::Server,
            format!("the stopped server's state is {state:?}, not \"shut down\""),
        )
        .with_help("start it once for recovery: kelvin server up"))
    }

    fn is_left_out(&self, name: &str) -> bool {
        NOT_DATA.contains(&name)
    }

    /// The WAL is omitted except for one segment.
    fn bytes(&self, data: &Path) -> u64 {
        directory_size(data).saturating_sub(directory_size(&data.join("pg_wal"))) + (16 << 20)
    }

    fn copy_rest(&self, from: &Path, to: &Path, copy: &mut CopyInto<'_>) -> Result<()> {
        let wal = to.join("pg_wal");
        self.account()?.make_private_directory(&wal)?;
        let segment = self.control(from, "Latest checkpoint's REDO WAL file")?;
        copy(&[from.join("pg_wal").join(segment)], &wal, &[])?;
        // Last: a directory without it is not a data directory.
        copy(&[from.join("PG_VERSION")], to, &[])
    }

    /// Tablespaces lie outside of the directory, and so may a log that was moved.
    fn no_links(&self, data: &Path) -> Result<()> {
        no_links(&[data.to_owned(), data.join("pg_tblspc")], "--reset template, --reset dump")
    }

    fn target(&self) -> String {
        format!("postgres:{} in {}", self.major, self.base().display())
    }
}
