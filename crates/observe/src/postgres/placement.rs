//! Where the server runs and keeps its files, when that is this host.

use std::fs;
use std::path::{Path, PathBuf};

use kelvin_database::{Engine, Session};
use kelvin_host::{ProcessStat, SystemTree};

use super::link::Link;
use crate::server::ServerPlacement;

/// Looks for the server's first process and directories. An address of this host can be the near end of a tunnel, or of a
/// container with process numbers of its own, so a process counts only when it is a PostgreSQL that serves us.
///
/// Nothing is found of a server that is no PostgreSQL, or where the session fails.
pub fn locate_server(engine: &dyn Engine, session: &mut dyn Session) -> ServerPlacement {
    ask(engine, session).map_or_else(|_| ServerPlacement::default(), |asked| search(engine, asked))
}

/// The same over an observer's connection.
pub(super) fn find_by(engine: &dyn Engine, link: &mut Link) -> ServerPlacement {
    link.with(|session, _| ask(engine, session))
        .map_or_else(|_| ServerPlacement::default(), |asked| search(engine, asked))
}

/// What a server says of itself.
struct Asked {
    data: Option<PathBuf>,
    /// The process that serves the session, as its host or container numbers it.
    backend: i64,
    user: String,
    database: String,
    /// Seconds since 1970.
    started: i64,
}

fn ask(engine: &dyn Engine, session: &mut dyn Session) -> kelvin_database::Result<Asked> {
    let data = engine.data_directory(session);
    let rows = session.query(
        "SELECT /* kelvin observer */ pg_backend_pid()::int8, current_user::text, current_database()::text, \
         floor(extract(epoch FROM pg_postmaster_start_time()))::int8",
    )?;
    Ok(Asked {
        data,
        backend: rows.int(0, 0)?,
        user: rows.text(0, 1)?.to_owned(),
        database: rows.text(0, 2)?.to_owned(),
        started: rows.int(0, 3)?,
    })
}

fn search(engine: &dyn Engine, asked: Asked) -> ServerPlacement {
    let Asked { data, backend, user, database, started } = asked;
    if !engine.describe().contains("host=/") && data.is_none() && !names_this_host(&engine.describe()) {
        return ServerPlacement::default();
    }
    let data = data.filter(|data| data.is_dir());
    let server = data
        .as_deref()
        .and_then(|data| by_file(data, started))
        .or_else(|| by_backend(backend, &user, &database));
    let data = data.or_else(|| fs::read_link(format!("/proc/{}/cwd", server?)).ok());
    let wal = data.as_deref().and_then(|data| fs::canonicalize(data.join("pg_wal")).ok());
    ServerPlacement { server, forks: true, data, wal }
}

fn names_this_host(address: &str) -> bool {
    ["@localhost:", "@127.", "@[::1]:"].iter().any(|here| address.contains(here))
}

/// The process that `postmaster.pid` names, if it is the server of this start.
fn by_file(data: &Path, started: i64) -> Option<u32> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let pid: u32 = lines.next()?.trim().parse().ok()?;
    let since: i64 = lines.nth(1)?.trim().parse().ok()?;
    // The file has the second in which the postmaster began, the server says when it was ready to note it.
    ((since - started).abs() <= 5 && is_postgres(pid)).then_some(pid)
}

/// The parent of the process that serves us, if that process's title says that it does.
fn by_backend(pid: i64, user: &str, database: &str) -> Option<u32> {
    let title = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let title = String::from_utf8_lossy(&title);
    if !title.contains(&format!(" {user} {database} ")) {
        return None;
    }
    let parent = ProcessStat::read(u32::try_from(pid).ok()?)?.parent;
    is_postgres(parent).then_some(parent)
}

fn is_postgres(pid: u32) -> bool {
    let name = SystemTree::default().process_name(pid);
    matches!(name.as_deref(), Some("postgres" | "postmaster"))
}
