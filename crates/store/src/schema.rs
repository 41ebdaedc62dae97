//! The tables, and the check of a file before anything is written to it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Error, Result};

/// `PRAGMA application_id` of a store: "KLVN".
pub const APPLICATION_ID: i64 = 0x4b4c_564e;

/// The tables. There has been no release: a store of another version is refused, not upgraded.
pub(crate) const SCHEMA: &str = include_str!("schema.sql");

/// The version that this code reads and writes.
pub const VERSION: i64 = 11;

const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens for reading and writing; makes the store when there is none.
pub(crate) fn open(path: &Path) -> Result<Connection> {
    let empty = !inspect(path)?;
    if empty {
        make_file(path)?;
    } else {
        check_by_sqlite(path)?;
    }
    let mut conn = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    let to = |e| Error::sqlite(path, e);
    if conn.is_readonly("main").map_err(to)? {
        return Err(Error::ReadOnly { path: path.to_path_buf() });
    }
    if empty {
        use_log(&conn, path)?;
    }
    conn.pragma_update(None, "synchronous", "NORMAL").map_err(to)?;
    if empty {
        fill(&mut conn, path)?;
    }
    Ok(conn)
}

/// Opens for reading only; never changes the file.
pub(crate) fn open_read_only(path: &Path) -> Result<Connection> {
    if !inspect(path)? {
        return Err(Error::Missing { path: path.to_path_buf() });
    }
    check_by_sqlite(path)?;
    connect_read_only(path)
}

/// Files that were inspected, by device and inode.
static INSPECTED: Mutex<BTreeMap<(u64, u64), &'static File>> = Mutex::new(BTreeMap::new());

/// Opens a file for as long as this process lives. Closing any descriptor of a file releases all locks that the process
/// holds on it (fcntl(2)), including those of SQLite's connections: a writer in another process would then remove the
/// write-ahead log under them.
fn open_once(path: &Path) -> std::io::Result<&'static File> {
    let of = |meta: &std::fs::Metadata| (meta.dev(), meta.ino());
    let mut inspected = INSPECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(file) = inspected.get(&of(&std::fs::metadata(path)?)) {
        return Ok(file);
    }
    let file: &'static File = Box::leak(Box::new(File::open(path)?));
    inspected.insert(of(&file.metadata()?), file);
    Ok(file)
}

/// Checks the file's header without SQLite. `false` when there is no file or an empty one.
fn inspect(path: &Path) -> Result<bool> {
    let file = match open_once(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let not = |why: &str| Error::NotAStore { path: path.to_path_buf(), why: why.into() };
    let meta = file.metadata().map_err(|e| Error::io("read", path, e))?;
    if meta.is_dir() {
        return Err(not("it is a directory"));
    }
    let log = wal_length(path);
    if meta.len() == 0 {
        if log > 0 {
            return Err(Error::damaged(path, "the file is empty but its write-ahead log is not"));
        }
        return Ok(false);
    }
    let mut header = [0_u8; 100];
    if meta.len() < 100 {
        return Err(not("it is not an SQLite database"));
    }
    file.read_exact_at(&mut header, 0).map_err(|e| Error::io("read", path, e))?;
    if &header[..16] != b"SQLite format 3\0" {
        return Err(not("it is not an SQLite database"));
    }
    // Offsets: https://www.sqlite.org/fileformat.html section 1.3.
    let word = |at: usize| {
        i64::from(i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    if (word(68), word(60)) == (0, 0) {
        // The header of a store that is just being made, or was and is in its write-ahead log only.
        return has_store(path);
    }
    check_identity(path, word(68), word(60))?;
    let page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    let pages = u64::from(word(28) as u32);
    // With a log beside it, pages may not have reached the file yet.
    if log == 0 && word(24) == word(92) && meta.len() < pages * page {
        let detail = format!("it is truncated: {} of {} bytes", meta.len(), pages * page);
        return Err(Error::damaged(path, detail));
    }
    Ok(true)
}

/// Whether SQLite finds a store in a file whose own header names no program; `false` when it is empty.
fn has_store(path: &Path) -> Result<bool> {
    let to = |e| Error::sqlite(path, e);
    let conn = connect_read_only(path)?;
    let one_moment = conn.unchecked_transaction().map_err(to)?;
    let read = |name| one_moment.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (application, version) = (read("application_id").map_err(to)?, read("user_version").map_err(to)?);
    let tables: i64 =
        one_moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(to)?;
    if (application, version, tables) == (0, 0, 0) {
        return Ok(false);
    }
    check_identity(path, application, version)?;
    Ok(true)
}

fn check_identity(path: &Path, application: i64, version: i64) -> Result<()> {
    if application != APPLICATION_ID {
        let why = "it is another program's database".into();
        return Err(Error::NotAStore { path: path.to_path_buf(), why });
    }
    if version < 1 {
        return Err(Error::damaged(path, format!("its version is {version}")));
    }
    if version != VERSION {
        return Err(Error::OtherVersion { path: path.to_path_buf(), found: version, known: VERSION });
    }
    Ok(())
}

/// Checks the content as SQLite sees it: writes of another Kelvin may still be in the write-ahead log only.
fn check_by_sqlite(path: &Path) -> Result<()> {
    let conn = connect_read_only(path)?;
    let read = |name| conn.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let version = read("user_version").map_err(|e| Error::sqlite(path, e))?;
    let application = read("application_id").map_err(|e| Error::sqlite(path, e))?;
    check_identity(path, application, version)
}

fn wal_length(path: &Path) -> u64 {
    std::fs::metadata(beside(path, "-wal")).map_or(0, |m| m.len())
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
        .map_err(|e| Error::sqlite(path, e))?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(|e| Error::sqlite(path, e))?;
    Ok(conn)
}

fn connect_read_only(path: &Path) -> Result<Connection> {
    let conn = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    match conn.pragma_query_value(None, "schema_version", |row| row.get::<_, i64>(0)) {
        Ok(_) => Ok(conn),
        // A write-ahead log needs a shared-memory file beside it, which a read-only directory does not allow. When
        // there is no log, nothing can be missed by reading the file alone.
        Err(e)
            if wal_length(path) == 0
                && matches!(
                    e.sqlite_error_code(),
                    Some(rusqlite::ErrorCode::CannotOpen | rusqlite::ErrorCode::ReadOnly)
                ) =>
        {
            let uri = format!("file:{}?immutable=1", escape_uri(path));
            connect(Path::new(&uri), OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)
        }
        Err(e) => Err(Error::sqlite(path, e)),
    }
}

fn escape_uri(path: &Path) -> String {
    let mut out = String::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => out.push(*byte as char),
            other => out.extend(['%', hex(other >> 4), hex(other & 15)]),
        }
    }
    out
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0')
}

/// Makes the directory and the empty file; [`fill`] fills it.
fn make_file(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        let mut builder = std::fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|e| Error::io("create the directory", parent, e))?;
    }
    // SQLite's own error for a missing permission is "unable to open": ask the system for the reason.
    // Results name hosts, users and statements. SQLite gives its log the file's own mode.
    File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|e| Error::io("make", path, e))?;
    Ok(())
}

/// Switches to a write-ahead log. When several connections do so simultaneously, SQLite rejects some without waiting.
fn use_log(conn: &Connection, path: &Path) -> Result<()> {
    let start = Instant::now();
    loop {
        match conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Ok(()) => return Ok(()),
            Err(e) => match Error::sqlite(path, e) {
                Error::Busy { .. } if start.elapsed() < BUSY_TIMEOUT => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                other => return Err(other),
            },
        }
    }
}

/// Creates the tables in an empty file, all in one transaction: of two processes that open it simultaneously, one fills
/// it and the other finds it filled.
pub(crate) fn fill(conn: &mut Connection, path: &Path) -> Result<()> {
    let to = |e| Error::sqlite(path, e);
    let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
    // Read again under the lock: another process may have filled it meanwhile.
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(to)?;
    if version != 0 {
        let application =
            transaction.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(to)?;
        return check_identity(path, application, version);
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(to)?;
    transaction.execute_batch(SCHEMA).map_err(to)?;
    transaction.pragma_update(None, "user_version", VERSION).map_err(to)?;
    transaction.commit().map_err(to)
}
