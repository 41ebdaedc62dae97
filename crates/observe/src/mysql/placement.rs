//! The server's process and directories, if it runs on this host.

use std::fs;
use std::path::{Path, PathBuf};

use kelvin_database::{Engine, Session};
use kelvin_host::{ProcessStat, SystemTree, field};

use super::link::Link;
use super::sessions::text;
use crate::server::ServerPlacement;

/// Finds the server's process and directories. An address of this host can be the near end of a tunnel or of a
/// container, so a process is accepted only if it is a MySQL or MariaDB with the thread that serves this connection:
/// the thread has the number that the server reports, in this process's PID namespace; the process was started at the
/// reported time; and it has the server's data directory as its working directory.
///
/// Nothing is found if the server does not show thread numbers (MySQL without `performance_schema`, MariaDB before
/// 10.0).
pub fn locate_server(engine: &dyn Engine, session: &mut dyn Session) -> ServerPlacement {
    ask(session, None).map_or_else(|_| ServerPlacement::default(), |asked| search(engine, &asked))
}

/// The same over an observer's connection.
pub(super) fn find_by(engine: &dyn Engine, link: &mut Link) -> ServerPlacement {
    link.with(|session, server| ask(session, Some(server.mariadb)))
        .map_or_else(|_| ServerPlacement::default(), |asked| search(engine, &asked))
}

/// The server's description of itself.
struct Asked {
    /// The thread that serves the session, as its host or container numbers it.
    thread: Option<i64>,
    data: PathBuf,
    log: PathBuf,
    /// Seconds since it was started.
    uptime: f64,
}

fn ask(session: &mut dyn Session, mariadb: Option<bool>) -> kelvin_database::Result<Asked> {
    let mariadb = match mariadb {
        Some(known) => known,
        None => session.query("SELECT VERSION()")?.text(0, 0)?.contains("MariaDB"),
    };
    let rows = session.query("SELECT @@datadir, @@innodb_log_group_home_dir")?;
    let (data, log) = (PathBuf::from(rows.text(0, 0)?), PathBuf::from(text(&rows, 0, 1)?));
    let uptime = session.query("SHOW GLOBAL STATUS LIKE 'Uptime'")?.text(0, 1)?.parse().unwrap_or(0.0);
    let thread = session.query(if mariadb {
        "SELECT CAST(TID AS SIGNED) FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
    } else {
        "SELECT CAST(THREAD_OS_ID AS SIGNED) FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()"
    });
    let thread = thread.ok().filter(|rows| !rows.is_empty());
    let thread = thread.and_then(|rows| rows.optional(0, 0, kelvin_database::Rows::int).ok().flatten());
    Ok(Asked { thread, data, log, uptime })
}

fn search(engine: &dyn Engine, asked: &Asked) -> ServerPlacement {
    if !is_here(&engine.describe()) {
        return ServerPlacement::default();
    }
    let Some(server) = asked.thread.and_then(|thread| process_of(thread, &asked.data, asked.uptime)) else {
        return ServerPlacement::default();
    };
    // A relative directory of the log is relative to the data directory.
    let log = asked.data.join(&asked.log);
    // Since 8.0.30 the log has a separate directory in it.
    let inner = log.join("#innodb_redo");
    let log = fs::canonicalize(if inner.is_dir() { inner } else { log }).ok();
    ServerPlacement { server: Some(server), forks: false, data: fs::canonicalize(&asked.data).ok(), wal: log }
}

/// Whether an address may be of this host: a socket's path, or a name of the loopback network.
fn is_here(address: &str) -> bool {
    let loopback = ["@localhost:", "@127.", "@[::1]:", "//localhost:", "//127.", "//[::1]:"];
    address.contains("=/") || address.contains("=%2F") || loopback.iter().any(|here| address.contains(here))
}

/// The process of a thread, if it is the server.
fn process_of(thread: i64, data: &Path, uptime: f64) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let process: u32 = field(&status, "Tgid")?.parse().ok()?;
    // In another PID namespace a thread has several numbers: the one that the server knows is not valid here.
    if field(&status, "NSpid").is_some_and(|numbers| numbers.split_ascii_whitespace().count() != 1) {
        return None;
    }
    let name = SystemTree::default().process_name(process)?;
    if !matches!(name.as_str(), "mysqld" | "mariadbd") {
        return None;
    }
    let own = |path: &Path| fs::canonicalize(path).ok();
    // The server changes to its data directory at its start. Without permission to read that, only the start time is
    // checked.
    let directory = fs::read_link(format!("/proc/{process}/cwd")).ok();
    if directory.is_some_and(|directory| own(data) != Some(directory)) {
        return None;
    }
    let age = age(process)?;
    // It counts from when it was ready to, which is after it has brought its data in order.
    let is_of_this_start = age >= uptime - 2.0;
    is_of_this_start.then_some(process)
}

/// Seconds since a process began.
fn age(process: u32) -> Option<f64> {
    let now: f64 = fs::read_to_string("/proc/uptime").ok()?.split(' ').next()?.parse().ok()?;
    let started = ProcessStat::read(process)?.started;
    Some(now - started as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_another_host_is_not_here() {
        for here in [
            "mysql://root@/tpcc?socket=/run/mysqld/mysqld.sock",
            "mysql://joe@127.0.0.1:3306/x",
            "mysql://localhost:3306/",
        ] {
            assert!(is_here(here), "{here}");
        }
        for there in ["mysql://joe@db2:3306/x", "mariadb://joe@10.0.0.1/x"] {
            assert!(!is_here(there), "{there}");
        }
    }

    #[test]
    fn a_process_that_is_no_server_is_not_found_by_its_thread() {
        let thread = i64::from(crate::thread_id());
        assert_eq!(process_of(thread, Path::new("/"), 0.0), None);
        assert_eq!(process_of(-1, Path::new("/"), 0.0), None);
        assert!(age(std::process::id()).unwrap() >= 0.0);
    }
}
