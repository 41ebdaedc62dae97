//! PostgreSQL: a database beside the original one, copied by the server itself.
//!
//! The copy is made by file (`STRATEGY FILE_COPY`, the only way before 15): it bypasses the server's buffers and the
//! WAL, and when it is complete it is on disk. After a copy through the WAL the next checkpoint has to write as much as
//! was copied. On 18 the server clones the files where the file system can.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::sessions;
use crate::managed::program::size as directory_size;
use crate::postgres::{Config, PostgresEngine};
use crate::session::quote;
use crate::snapshot::background::watched;
use crate::snapshot::info::hex;
use crate::snapshot::{
    Contents, RestoreResult, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, check_name,
    exists_already, files, literal, must_fit, stopped,
};
use crate::{Engine, Error, ErrorClass, Result, Session};

/// Name prefix of the databases that hold a snapshot.
const SNAPSHOT: &str = "kelvin_snapshot_";

/// Held by the process that saves or restores on this server.
const LOCK: i64 = 0x006b_656c_7669_6e53;

/// How long the server may need to end the session of the previous holder, which does not wait for that.
const LEAVING: Duration = Duration::from_secs(2);

const INSUFFICIENT_PRIVILEGE: &str = "42501";
const OBJECT_IN_USE: &str = "55006";

/// The snapshots of one database, in separate databases on the same server.
#[derive(Debug, Clone)]
pub(crate) struct Templates {
    config: Config,
}

/// A database of the server, and its properties.
struct Copy {
    strategy: &'static str,
    words: &'static str,
}

impl Templates {
    /// Of the database that `config` names.
    pub(crate) fn new(config: Config) -> Self {
        Self { config }
    }

    /// The name of the database that holds the snapshot.
    fn database_of(&self, name: &str) -> String {
        format!("{SNAPSHOT}{}", self.digest(name))
    }

    /// The name of a copy until it is complete.
    fn unfinished(&self) -> String {
        format!("kelvin_unfinished_{}", self.digest(""))
    }

    /// The name of the old content until it is dropped.
    fn outgoing(&self) -> String {
        format!("kelvin_outgoing_{}", self.digest(""))
    }

    fn digest(&self, name: &str) -> String {
        hex(&format!("{}\0{name}", self.config.database), 8)
    }

    /// A session with another database of the server, since a database that is copied must have no sessions.
    fn beside(&self) -> Result<Box<dyn Session>> {
        let mut first = None;
        for database in ["postgres", "template1"].into_iter().filter(|name| *name != self.config.database) {
            let config = Config { database: database.into(), ..self.config.clone() };
            match PostgresEngine::new(config).connect() {
                Ok(mut session) => {
                    session.run("SET statement_timeout = 0; SET lock_timeout = 0")?;
                    return Ok(session);
                }
                Err(error) => first = first.or(Some(error)),
            }
        }
        let error = first.unwrap_or_else(|| Error::usage("the server has no other database"));
        Err(error.context("a template copy needs a connection to another database of the server (postgres)"))
    }

    /// Keeps other kelvin processes from doing the same on this server for as long as the session lives.
    fn lock(session: &mut dyn Session) -> Result<()> {
        let until = Instant::now() + LEAVING;
        loop {
            let got = session.query(&format!("SELECT pg_try_advisory_lock({LOCK})::int::bigint"))?;
            if got.int(0, 0)? == 1 {
                return Ok(());
            }
            if Instant::now() > until {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(Error::new(
            ErrorClass::LockNotAvailable,
            "another kelvin process is saving or restoring on this server",
        )
        .with_help("wait until it has ended"))
    }

    /// Runs a statement that copies a database, reports its progress, and cancels it on a stop request.
    fn copy(
        &self,
        session: &mut dyn Session,
        sql: &str,
        what: &str,
        bytes: u64,
        job: &mut SnapshotJob<'_>,
    ) -> Result<()> {
        let base = data_directory(session, &self.config).map(|directory| directory.join("base"));
        let known = base.as_deref().map(directories).unwrap_or_default();
        let cancel = session.cancel();
        let (progress, stop) = (&mut *job.progress, job.stop);
        let mut asked = false;
        let copied = watched(|| session.run(sql), &mut || {
            if stop() {
                asked = true;
                // Best effort, repeated until the statement has ended.
                let _ = cancel.cancel();
            }
            let new = base.as_deref().map(directories).unwrap_or_default().into_iter();
            let done: u64 = new.filter(|path| !known.contains(path)).map(|path| directory_size(&path)).sum();
            progress(what, done.min(bytes) / 1_000_000, bytes / 1_000_000);
        });
        match copied {
            Err(_) if asked => Err(stopped("the database is unchanged")),
            other => other.map_err(|error| self.explained(error)),
        }
    }

    fn explained(&self, error: Error) -> Error {
        let database = &self.config.database;
        match error.code().0.as_str() {
            INSUFFICIENT_PRIVILEGE => error.with_help(format!(
                "a template copy needs a role that can create databases and owns this one: ALTER ROLE {} \
                 CREATEDB; ALTER DATABASE {} OWNER TO {}; or choose another method: --reset dump, --reset \
                 reload",
                quote(&self.config.user),
                quote(database),
                quote(&self.config.user)
            )),
            OBJECT_IN_USE => error.with_help(
                "another session connected in the meantime; the database is unchanged. End that session and \
                try again",
            ),
            _ => error,
        }
    }

    /// The clause that makes the server copy by file.
    fn strategy(session: &mut dyn Session) -> Result<Copy> {
        let version = session.query("SELECT current_setting('server_version_num')::bigint")?.int(0, 0)?;
        if version >= 180_000 {
            session.run("SET file_copy_method = 'clone'")?;
        }
        Ok(match version {
            180_000.. => Copy { strategy: " STRATEGY FILE_COPY", words: "clone of the files (reflink)" },
            150_000.. => Copy { strategy: " STRATEGY FILE_COPY", words: "copy of the files" },
            _ => Copy { strategy: "", words: "copy of the files" },
        })
    }

    /// Makes `new` a copy of `from`; returns how.
    fn create(
        &self,
        session: &mut dyn Session,
        (new, from): (&str, &str),
        (what, bytes): (&str, u64),
        job: &mut SnapshotJob<'_>,
    ) -> Result<&'static str> {
        let copy = Self::strategy(session)?;
        let owner = session.query(&format!(
            "SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = {}",
            literal(from)
        ))?;
        let sql = format!(
            "CREATE DATABASE {} TEMPLATE {} OWNER {}{}",
            quote(new),
            quote(from),
            quote(owner.text(0, 0)?),
            copy.strategy
        );
        match self.copy(session, &sql, what, bytes, job) {
            // This file system cannot clone; the server has removed the partial copy.
            Err(error) if copy.words.starts_with("clone") && error.message().contains("clone") => {
                session.run("SET file_copy_method = 'copy'")?;
                self.copy(session, &sql, what, bytes, job)?;
                Ok("copy of the files")
            }
            other => other.map(|()| copy.words),
        }
    }

    fn drop_database(session: &mut dyn Session, name: &str) -> Result<()> {
        session.run(&format!("DROP DATABASE IF EXISTS {}", quote(name)))
    }

    /// Removes what an earlier attempt left when it was killed. If it was killed during the swap there is nothing to
    /// repair: the swap is one transaction.
    fn clear(&self, session: &mut dyn Session) -> Result<()> {
        Self::drop_database(session, &self.unfinished())?;
        Self::drop_database(session, &self.outgoing())
    }

    fn must_fit(&self, session: &mut dyn Session, bytes: u64) -> Result<()> {
        let directory = data_directory(session, &self.config);
        let free = directory.as_deref().and_then(files::free_bytes);
        must_fit(bytes, free, "in the server's data directory")
    }
}

impl SnapshotStore for Templates {
    fn way(&self) -> SnapshotMethod {
        SnapshotMethod::Template
    }

    fn list(&self) -> Result<Vec<SnapshotInfo>> {
        let mut session = self.beside()?;
        let rows = session.query(&format!(
            "SELECT datname::text, coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database \
             WHERE datname LIKE '{}%' AND NOT datallowconn ORDER BY 1",
            SNAPSHOT.replace('_', "\\_")
        ))?;
        let mut found = Vec::new();
        for row in 0..rows.len() {
            let about = SnapshotInfo::from_text(rows.text(row, 1)?);
            // Those of other databases of the server have other names.
            found.extend(about.filter(|about| {
                rows.text(row, 0).is_ok_and(|database| database == self.database_of(&about.name))
            }));
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    fn save(&self, name: &str, contents: &Contents, job: &mut SnapshotJob<'_>) -> Result<SnapshotInfo> {
        check_name(name)?;
        let mut session = self.beside()?;
        let session = session.as_mut();
        Self::lock(session)?;
        let database = self.database_of(name);
        let there = session
            .query(&format!("SELECT count(*) FROM pg_database WHERE datname = {}", literal(&database)))?;
        if there.int(0, 0)? > 0 {
            return Err(exists_already(name));
        }
        sessions::must_be_alone(session, Some(&self.config.database))?;
        self.clear(session)?;
        let bytes = size(session, &self.config.database)?;
        self.must_fit(session, bytes)?;
        job.go_on("nothing was saved")?;
        let unfinished = self.unfinished();
        self.create(session, (&unfinished, &self.config.database), ("MB saved", bytes), job)?;
        let about =
            SnapshotInfo::new(name, SnapshotMethod::Template, self.config.to_string(), bytes, contents);
        // Connections to it are disallowed, so that its content does not change. Name and description are set in one
        // step.
        let named = session.run(&format!(
            "BEGIN; ALTER DATABASE {0} ALLOW_CONNECTIONS false; COMMENT ON DATABASE {0} IS {1}; \
             ALTER DATABASE {0} RENAME TO {2}; COMMIT",
            quote(&unfinished),
            literal(&about.to_text()?),
            quote(&database)
        ));
        if let Err(error) = named {
            session.run("ROLLBACK")?;
            Self::drop_database(session, &unfinished)?;
            return Err(self.explained(error));
        }
        Ok(about)
    }

    fn restore(&self, about: &SnapshotInfo, job: &mut SnapshotJob<'_>) -> Result<RestoreResult> {
        let mut session = self.beside()?;
        let session = session.as_mut();
        Self::lock(session)?;
        let from = self.database_of(&about.name);
        sessions::must_be_alone(session, Some(&self.config.database))?;
        self.clear(session)?;
        self.must_fit(session, about.bytes)?;
        job.go_on("the database is unchanged")?;
        let (new, old) = (self.unfinished(), self.outgoing());
        let how = self.create(session, (&new, &from), ("MB restored", about.bytes), job)?;
        let database = quote(&self.config.database);
        let there = session.query(&format!(
            "SELECT count(*) FROM pg_database WHERE datname = {}",
            literal(&self.config.database)
        ))?;
        let aside = if there.int(0, 0)? > 0 {
            format!("ALTER DATABASE {database} RENAME TO {}; ", quote(&old))
        } else {
            String::new()
        };
        // One step: a client that connects finds the old content or the new one.
        let swapped = session
            .run(&format!("BEGIN; {aside}ALTER DATABASE {} RENAME TO {database}; COMMIT", quote(&new)));
        if let Err(error) = swapped {
            session.run("ROLLBACK")?;
            Self::drop_database(session, &new)?;
            return Err(self.explained(error));
        }
        // Its pages in the server's buffers go with it, unwritten.
        Self::drop_database(session, &old).map_err(|error| {
            error.context(&format!("the data is restored; its old content remains in database {old:?}"))
        })?;
        Ok(RestoreResult { how: how.into(), bytes: about.bytes })
    }

    fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        let mut session = self.beside()?;
        Self::lock(session.as_mut())?;
        Self::drop_database(session.as_mut(), &self.database_of(&about.name))
    }
}

fn size(session: &mut dyn Session, database: &str) -> Result<u64> {
    let size = session.query(&format!("SELECT pg_database_size({})", literal(database)))?.int(0, 0)?;
    u64::try_from(size).map_err(|_| Error::protocol("the server reports a negative size"))
}

fn data_directory(session: &mut dyn Session, config: &Config) -> Option<PathBuf> {
    PostgresEngine::new(config.clone()).data_directory(session).filter(|directory| directory.is_dir())
}

fn directories(base: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(base).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_cannot_end_their_quotes() {
        assert_eq!(literal("O'Neil"), "'O''Neil'");
        assert_eq!(literal("a\\'b"), "E'a\\\\''b'");
        let templates =
            Templates::new(Config::unix(Path::new("/x"), 5432, "me", "we\"ird ".repeat(9).as_str()));
        for name in [templates.database_of("n"), templates.unfinished(), templates.outgoing()] {
            assert!(
                name.len() <= 63 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
                "{name}"
            );
        }
    }
}
