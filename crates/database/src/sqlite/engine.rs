//! The file and its settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};

use super::busy::{self, Waits};
use super::error::translate;
use super::session::SqliteSession;
use super::turns::Turns;
use crate::{
    Capabilities, Engine, EngineKind, Error, ErrorClass, Fingerprint, Home, Result, ServerCounters,
    ServerSetting, Session,
};

/// How long a session waits for a lock before it reports `SQLITE_BUSY`.
pub const BUSY_LIMIT: Duration = Duration::from_mins(1);

/// The `application_id` of a store of Kelvin's results: "KLVN", as the crate `kelvin-store` writes it.
const RESULTS_STORE: i64 = 0x4b4c_564e;

/// Settings of every connection, in this order. `page_size` only takes effect in a new file.
const PRAGMAS: &[(&str, &str)] = &[
    ("page_size", "4096"),
    ("journal_mode", "WAL"),
    ("synchronous", "NORMAL"),
    ("cache_size", "-65536"),
    ("mmap_size", "1073741824"),
    ("wal_autocheckpoint", "4000"),
    ("temp_store", "MEMORY"),
];

/// The fields of the fingerprint.
const FINGERPRINT_PRAGMAS: &[&str] = &[
    "journal_mode",
    "synchronous",
    "page_size",
    "cache_size",
    "mmap_size",
    "wal_autocheckpoint",
    "auto_vacuum",
    "foreign_keys",
    "locking_mode",
    "temp_store",
];

static CONFINED: AtomicBool = AtomicBool::new(false);

/// From now on SQLite's sessions in this process reach no file but the one that they were opened on: `ATTACH` and `VACUUM INTO` are
/// errors. For a process whose statements come from another host.
pub fn confine_sessions() {
    CONFINED.store(true, Ordering::Release);
}

/// An SQLite file, shared by the sessions on it; a clone is the same engine.
#[derive(Debug, Clone)]
pub struct SqliteEngine {
    path: PathBuf,
    turns: Arc<Turns>,
}

impl SqliteEngine {
    /// Opens the file at `path`, or makes it, in WAL mode. An error says why it cannot be used: a directory,
    /// no permission, not a database, a store of Kelvin's results, or another program's database that would
    /// have to be changed to WAL mode.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        look_at(&path)?;
        let path = std::path::absolute(&path)
            .map_err(|error| Error::usage(format!("{} cannot be used: {error}", path.display())))?;
        look_inside(&path)?;
        let engine = Self { path, turns: Arc::default() };
        let mut session = engine.session()?;
        // Reading proves that it is a database, beginning to write that it may be written.
        session
            .run("SELECT count(*) FROM sqlite_schema; BEGIN IMMEDIATE; ROLLBACK")
            .map_err(|error| engine.cannot_open(error))?;
        Ok(engine)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn session(&self) -> Result<SqliteSession> {
        let waits = Waits::new(BUSY_LIMIT);
        waits.start(None);
        let open = || -> Result<Connection> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(&self.path, flags).map_err(translate)?;
            connection.busy_handler(Some(busy::handler)).map_err(translate)?;
            for (name, value) in PRAGMAS {
                connection.pragma_update(None, name, value).map_err(translate)?;
            }
            let mode: String =
                connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(translate)?;
            if mode != "wal" {
                return Err(Error::usage(format!(
                    "its file system does not support write-ahead logging, only {mode} journals"
                )));
            }
            if CONFINED.load(Ordering::Acquire) {
                connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(translate)?;
            }
            Ok(connection)
        };
        SqliteSession::new(open().map_err(|error| self.cannot_open(error))?, Arc::clone(&self.turns), waits)
    }

    fn cannot_open(&self, error: Error) -> Error {
        cannot_open(&self.path, error)
    }
}

fn cannot_open(path: &Path, error: Error) -> Error {
    let path = path.display();
    match error.code().0.as_str() {
        "SQLITE_NOTADB" => Error::usage(format!("{path} is not an SQLite database"))
            .with_code("SQLITE_NOTADB")
            .with_help("name another file, or remove this one if it is no longer needed"),
        "SQLITE_READONLY" | "SQLITE_READONLY_DIRECTORY" | "SQLITE_PERM" => {
            Error::usage(format!("{path} cannot be written")).with_code("SQLITE_READONLY")
        }
        _ => error.context(&format!("{path} cannot be opened")),
    }
}

/// Refuses files whose content somebody else needs, before anything of them is changed.
fn look_inside(path: &Path) -> Result<()> {
    if std::fs::metadata(path).map_or(0, |metadata| metadata.len()) == 0 {
        return Ok(());
    }
    let shown = path.display();
    let (application, mode, foreign) = (|| {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_LIMIT)?;
        let application: i64 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let foreign: bool = connection.query_row(
            "SELECT count(*) > 0 AND coalesce(sum(name = 'kelvin_tproc_c'), 0) = 0 FROM sqlite_schema",
            [],
            |row| row.get(0),
        )?;
        Ok((application, mode, foreign))
    })()
    .map_err(|error| cannot_open(path, translate(error)))?;
    if application == RESULTS_STORE {
        return Err(Error::usage(format!("{shown} contains kelvin's results, which a load would damage"))
            .with_help("name another file"));
    }
    if foreign && mode != "wal" {
        return Err(Error::usage(format!(
            "{shown} is another program's database, and kelvin would change its journal mode from {mode} to \
            wal"
        ))
        .with_help(
            "name another file; if that change is acceptable, make it yourself: PRAGMA journal_mode = WAL",
        ));
    }
    Ok(())
}

/// Refuses what SQLite would only call "unable to open database file".
fn look_at(path: &Path) -> Result<()> {
    let shown = path.display();
    if path.as_os_str().is_empty() {
        return Err(Error::usage("the path of the SQLite file is empty"));
    }
    if path.is_dir() {
        return Err(Error::usage(format!("{shown} is a directory, not an SQLite file")));
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty() && !parent.is_dir()) {
        return Err(Error::usage(format!(
            "{shown} cannot be created: there is no directory {}",
            parent.display()
        )));
    }
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(Error::usage(format!("{shown} is not a regular file"))),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::usage(format!("{shown} cannot be opened: {error}")))
        }
        _ => Ok(()),
    }
}

impl Engine for SqliteEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Sqlite
    }

    fn home(&self) -> Option<&dyn Home> {
        Some(self)
    }

    fn describe(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_round_trip_batch: false,
            batch_stops_at_error: true,
            stored_functions: false,
            arrays: false,
            concurrent_writers: false,
            embedded: true,
            waits_in_fibers: false,
            transactional_ddl: true,
            session_state: true,
            executed_plans: false,
        }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(self.session()?))
    }

    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint> {
        let version = session.query("SELECT sqlite_version()")?;
        let mut settings = Vec::with_capacity(FINGERPRINT_PRAGMAS.len());
        for name in FINGERPRINT_PRAGMAS {
            let rows = session.query(&format!("PRAGMA {name}"))?;
            if rows.is_empty() {
                continue;
            }
            let value =
                rows.text(0, 0).map(str::to_owned).or_else(|_| rows.int(0, 0).map(|v| v.to_string()))?;
            let ours = PRAGMAS.iter().any(|(known, _)| known == name);
            settings.push(ServerSetting {
                name: (*name).to_owned(),
                value: in_words(name, &value),
                source: if ours { "kelvin" } else { "default" }.to_owned(),
            });
        }
        let version = format!("SQLite {} (embedded)", version.text(0, 0)?);
        Ok(Fingerprint { version, settings, faults: Vec::new() })
    }

    fn counters(&self, _session: &mut dyn Session) -> Result<Option<ServerCounters>> {
        Ok(None)
    }

    fn size(&self, session: &mut dyn Session) -> Result<u64> {
        let pages = session.query("PRAGMA page_count")?.int(0, 0)?;
        let page = session.query("PRAGMA page_size")?.int(0, 0)?;
        let database = u64::try_from(pages.saturating_mul(page)).unwrap_or(0);
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        Ok(database + std::fs::metadata(log).map_or(0, |metadata| metadata.len()))
    }

    fn data_directory(&self, _session: &mut dyn Session) -> Option<PathBuf> {
        self.path.parent().map(Path::to_path_buf)
    }

    fn queued(&self) -> Option<Duration> {
        Some(self.turns.waited())
    }

    fn checkpoint(&self, session: &mut dyn Session) -> Result<()> {
        let rows = session.query("PRAGMA wal_checkpoint(TRUNCATE)")?;
        if rows.int(0, 0)? == 0 {
            return Ok(());
        }
        Err(Error::new(
            ErrorClass::LockNotAvailable,
            "the checkpoint is incomplete: another session is reading the log",
        )
        .with_code("SQLITE_BUSY"))
    }
}

/// A pragma's value as SQLite's documentation names it.
fn in_words(name: &str, value: &str) -> String {
    match (name, value) {
        ("synchronous", "0") => "OFF".to_owned(),
        ("synchronous", "1") => "NORMAL".to_owned(),
        ("synchronous", "2") => "FULL".to_owned(),
        ("synchronous", "3") => "EXTRA".to_owned(),
        ("cache_size", pages) if pages.starts_with('-') => format!("{} KiB", &pages[1..]),
        ("cache_size" | "wal_autocheckpoint", pages) => format!("{pages} pages"),
        ("page_size" | "mmap_size", bytes) => format!("{bytes} B"),
        _ => value.to_owned(),
    }
}
