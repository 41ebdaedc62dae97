//! PostgreSQL's dumps: a file of `pg_dump`, brought back by `pg_restore`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{program, sessions};
use crate::postgres::{Config, Host, PostgresEngine};
use crate::snapshot::SnapshotStore;
use crate::snapshot::dump::{DumpPrograms, Dumps};
use crate::{Engine, Error, Result, Session};

/// `pg_dump` and `pg_restore`.
#[derive(Debug, Clone)]
struct PostgresDumps {
    config: Config,
}

/// Keeps dumps of the database that `config` names below `directory`, which is made when needed.
pub(crate) fn dumps(config: Config, directory: &Path) -> Box<dyn SnapshotStore> {
    Box::new(Dumps::new(PostgresDumps { config }, directory))
}

impl PostgresDumps {
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

impl DumpPrograms for PostgresDumps {
    fn engine(&self) -> Box<dyn Engine> {
        Box::new(PostgresEngine::new(self.config.clone()))
    }

    fn target(&self) -> String {
        self.config.to_string()
    }

    fn dump(&self, to: &Path) -> Result<(&'static str, Command)> {
        let mut dump = self.command("pg_dump")?;
        // Not compressed: processors are scarcer than disk where a database is measured.
        dump.args(["--format=custom", "--compress=0", "--file"]).arg(to);
        Ok(("pg_dump", dump))
    }

    fn restore(&self, from: &Path) -> Result<(&'static str, Command, String)> {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from).min(16);
        let mut restore = self.command("pg_restore")?;
        restore.args(["--clean", "--if-exists", "--exit-on-error", "--jobs", &jobs.to_string(), "--dbname"]);
        restore.arg(connection_string(&self.config.database)).arg(from);
        Ok(("pg_restore", restore, format!("pg_restore with {jobs} jobs")))
    }

    fn must_be_alone(&self, session: &mut dyn Session) -> Result<()> {
        sessions::must_be_alone(session, Some(&self.config.database))
    }
}

/// The directory of `pg_dump` and `pg_restore` that can serve a server of this major version; the nearest version
/// that is not older.
pub(crate) fn programs(major: u32) -> Option<PathBuf> {
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
        let dumps = Dumps::new(PostgresDumps { config }, Path::new("/x"));
        assert!(!format!("{dumps:?}").contains("hunter2"));
    }
}
