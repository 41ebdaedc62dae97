//! A watcher's own connection to MySQL or MariaDB.

use kelvin_database::{Engine, Result, Session};

use super::sql;
use crate::server::link::{PATIENCE, bounded};

/// What a connection's server is and shows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Server {
    /// Whether it is MariaDB.
    pub(super) mariadb: bool,
    /// Major, minor and patch as one number: 80031, 101119.
    pub(super) version: u32,
    /// When it was started, in seconds since 1970, to a second or two.
    pub(super) started: i64,
    /// Whether `performance_schema` is on.
    pub(super) performance_schema: bool,
    /// Whether its consumer `events_waits_current` is on, and at least one instrument of waits within the server.
    pub(super) waits: bool,
    /// Whether other sessions' transactions may be seen (the privilege PROCESS).
    pub(super) transactions: bool,
    /// Our own connection's number, and the user as which it is known.
    pub(super) connection: i64,
    pub(super) user: String,
}

impl Server {
    /// A server of this version, for tests.
    #[cfg(test)]
    pub(super) fn staged(mariadb: bool, version: u32) -> Self {
        Self {
            mariadb,
            version,
            started: 0,
            performance_schema: true,
            waits: false,
            transactions: true,
            connection: 0,
            user: String::new(),
        }
    }

    /// Whether it is still the life of the server that was seen before.
    pub(super) fn is_same_life(&self, other: &Self) -> bool {
        (self.started - other.started).abs() <= 3
    }
}

/// A connection of the observers.
pub(super) type Link = crate::server::link::Link<Server>;

/// Opens a connection and asks the server about itself.
pub(super) fn connect(engine: &dyn Engine) -> Result<(Box<dyn Session>, Server)> {
    let mut session = bounded(engine)?;
    let rows = session.query(sql::WHO)?;
    let version = rows.text(0, 0)?.to_owned();
    let mariadb = version.contains("MariaDB");
    let connection = rows.int(0, 2)?;
    let user = rows.text(0, 3)?;
    let user = user.rsplit_once('@').map_or(user, |(name, _)| name).to_owned();
    let uptime = session.query(sql::UPTIME)?;
    let uptime: i64 = uptime.text(0, 1)?.parse().unwrap_or(0);
    let mut server = Server {
        mariadb,
        version: number(&version),
        started: rows.int(0, 1)? - uptime,
        performance_schema: rows.int(0, 4)? != 0,
        waits: false,
        transactions: true,
        connection,
        user,
    };
    let seconds = PATIENCE.as_secs();
    session.run(&if mariadb {
        format!("SET SESSION max_statement_time = {seconds}")
    } else {
        format!("SET SESSION max_execution_time = {}", PATIENCE.as_millis())
    })?;
    // Lists of those who wait for one holder may be long.
    session.run("SET SESSION lock_wait_timeout = 1, group_concat_max_len = 100000")?;
    if !mariadb {
        // Sizes of tables as they are, not as they were up to a day ago.
        session.run("SET SESSION information_schema_stats_expiry = 0")?;
    }
    server.transactions = session.query(sql::TRANSACTIONS).is_ok();
    if server.performance_schema {
        // Our own statements are no part of the load's. Without the privilege they are distinguished by their text.
        let _not_allowed = session.run(
            "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' WHERE PROCESSLIST_ID = CONNECTION_ID()",
        );
        match session.query(sql::WAITS) {
            Ok(rows) => server.waits = rows.int(0, 0)? > 0 && rows.int(0, 1)? > 0,
            Err(_not_allowed) => server.performance_schema = false,
        }
    }
    Ok((session, server))
}

/// "8.0.31-log" as 80031; what is left out is 0.
fn number(version: &str) -> u32 {
    // Old MariaDB puts a version before its own for replicas that know none beyond 5.
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut parts = version[..end].split('.').map(|part| part.parse().unwrap_or(0_u32).min(99));
    let mut next = || parts.next().unwrap_or(0);
    next() * 10_000 + next() * 100 + next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        for (version, expected) in [
            ("8.0.31", 80_031),
            ("10.11.19-MariaDB-0+deb12u1", 101_119),
            ("5.5.5-10.4.2-MariaDB", 100_402),
            ("11.4-MariaDB", 110_400),
            ("9.1.0-commercial", 90_100),
            ("", 0),
        ] {
            assert_eq!(number(version), expected, "{version}");
        }
    }
}
