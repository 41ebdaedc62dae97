//! PostgreSQL without the right to create databases: a file of `pg_dump`, restored by `pg_restore`.
//!
//! Only the rows and the definitions come back: pages, statistics and free space are made anew.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{program, sessions};
use crate::postgres::{Config, Host, PostgresEngine};
use crate::snapshot::files::{list, remove_both};
use crate::snapshot::info::hex;
use crate::snapshot::{
    Contents, RestoreResult, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, check_name,
    exists_already, files, must_fit, stopped,
};
use crate::{Engine, Error, Result};

/// The snapshots of one database, in files on this host.
#[derive(Debug, Clone)]
pub struct Dumps {
    config: Config,
    directory: PathBuf,
}

impl Dumps {
    /// Of the database that `config` names, kept below `directory`, which is made when needed.
    pub fn new(config: Config, directory: &Path) -> Self {
        // One directory a database, so that names need to differ within it only.
        let directory = directory.join(hex(&config.to_string(), 8));
        Self { config, directory }
    }

    fn data(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.dump"))
    }

    fn description(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.toml"))
    }

    /// The program with the connection in its environment, where no other user can read it.
    fn command(&self, program: &str) -> Result<Command> {
        let mut session = PostgresEngine::new(self.config.clone()).connect()?;
        let version =
            session.query("SELECT current_setting('server_version_num')::bigint / 10000")?.int(0, 0)?;
        let major = u32::try_from(version).unwrap_or(0);
        let directory = programs(major).ok_or_else(|| {
            Error::usage(format!(
                "a dump needs pg_dump and pg_restore of PostgreSQL {major} or newer on this host"
            ))
            .with_help(format!(
                "install them (Debian: apt-get install postgresql-client-{major}), or use --reset reload"
            ))
        })?;
        let mut command = Command::new(directory.join(program));
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("PG")) {
                command.env_remove(name);
            }
        }
        let config = &self.config;
        match &config.host {
            Host::Tcp(host) => command.env("PGHOST", host),
            Host::Unix(directory) => command.env("PGHOST", directory),
        };
        command.env("PGPORT", config.port.to_string()).env("PGUSER", &config.user).env("LC_ALL", "C");
        command.env("PGDATABASE", &config.database).env("PGSSLMODE", config.ssl_mode.name());
        command.env("PGCHANNELBINDING", config.channel_binding.name());
        command.env("PGAPPNAME", "kelvin").stdin(Stdio::null());
        if let Some(path) = &config.ssl_root_certificate {
            command.env("PGSSLROOTCERT", path);
        }
        if let Some(options) = &config.options {
            command.env("PGOPTIONS", options);
        }
        if let Some(password) = &config.password {
            use std::os::unix::ffi::OsStrExt;
            command.env("PGPASSWORD", std::ffi::OsStr::from_bytes(password.expose()));
        } else {
            command.arg("--no-password");
        }
        Ok(command)
    }
}

impl SnapshotStore for Dumps {
    fn way(&self) -> SnapshotMethod {
        SnapshotMethod::Dump
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>> {
        list(&self.directory, "", ".toml")
    }

    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo> {
        check_name(name)?;
        if self.description(name).exists() {
            return Err(exists_already(name));
        }
        job.go_on("nothing was saved")?;
        // A dump has every row that its user may read: nobody else is to read it.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|error| files::io_error("make", &self.directory, &error))?;
        let engine = PostgresEngine::new(self.config.clone());
        let bytes = engine.size(engine.connect()?.as_mut())?;
        // Without indexes and free space it is smaller; how much is known afterwards.
        let place = format!("in {}", self.directory.display());
        must_fit(bytes, files::free_bytes(&self.directory), &place)?;
        let unfinished = files::beside(&self.data(name), ".saving");
        let mut dump = self.command("pg_dump")?;
        // Not compressed: processors are scarcer than disk where a database is measured.
        dump.args(["--format=custom", "--compress=0", "--file"]).arg(&unfinished);
        let written = || std::fs::metadata(&unfinished).map_or(0, |metadata| metadata.len());
        let dumped = program::run(dump, "pg_dump", job, &mut |job| {
            (job.progress)("MB saved", written().min(bytes) / 1_000_000, bytes / 1_000_000);
        });
        if let Err(error) = dumped {
            let _ = std::fs::remove_file(&unfinished);
            return Err(if (job.stop)() { stopped("nothing was saved") } else { error });
        }
        let data = self.data(name);
        std::fs::File::open(&unfinished)
            .and_then(|file| file.sync_all())
            .and_then(|()| std::fs::rename(&unfinished, &data))
            .map_err(|error| files::io_error("name", &data, &error))?;
        let seal = files::seal(&data)?;
        let mut about =
            SnapshotInfo::new(name, SnapshotMethod::Dump, self.config.to_string(), seal.bytes, contents);
        about.seal = Some(seal);
        files::write_whole(&self.description(name), &about.to_text()?)?;
        Ok(about)
    }

    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult> {
        check_name(&about.name)?;
        let data = self.data(&about.name);
        about.must_be_sealed(files::seal(&data)?)?;
        job.go_on("the database is unchanged")?;
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        let mut restore = self.command("pg_restore")?;
        restore.args(["--clean", "--if-exists", "--exit-on-error", "--jobs", &jobs.to_string(), "--dbname"]);
        restore.arg(connection_string(&self.config.database)).arg(&data);
        let engine = PostgresEngine::new(self.config.clone());
        let mut session = engine.connect()?;
        // Their locks would hold it up halfway, and what they read would go from under them.
        sessions::must_be_alone(session.as_mut(), Some(&self.config.database))?;
        let total = about.bytes / 1_000_000;
        let restored = program::run(restore, "pg_restore", job, &mut |job| {
            let done = engine.size(session.as_mut()).unwrap_or(0) / 1_000_000;
            (job.progress)("MB restored", done.min(total), total);
        });
        restored.map_err(|error| {
            let state = "the database is only partly restored; restore it again before you use it";
            if (job.stop)() { stopped(state) } else { error.with_help(state) }
        })?;
        Ok(RestoreResult { how: format!("pg_restore with {jobs} jobs"), bytes: about.bytes })
    }

    fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        check_name(&about.name)?;
        remove_both(&self.description(&about.name), &self.data(&about.name))
    }
}

/// The directory of `pg_dump` and `pg_restore` that can serve a server of this major version; the nearest version
/// that is not older.
pub fn programs(major: u32) -> Option<PathBuf> {
    program::directory(major, major + 8, &["pg_dump", "pg_restore"])
}

/// As libpq reads it: a name alone could be taken for a connection string.
fn connection_string(database: &str) -> String {
    format!("dbname='{}'", database.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_databases_name_is_no_connection_string() {
        assert_eq!(connection_string("a'b\\c host=x"), "dbname='a\\'b\\\\c host=x'");
    }

    #[test]
    fn the_password_is_in_no_argument() {
        let mut config = Config::unix(Path::new("/nowhere"), 5432, "me", "shop");
        config.password = Some(crate::postgres::Password::new("hunter2"));
        let dumps = Dumps::new(config, Path::new("/x"));
        assert!(!format!("{dumps:?}").contains("hunter2"));
    }
}
