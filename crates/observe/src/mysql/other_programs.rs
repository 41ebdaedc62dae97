//! Sessions of other programs that connect with the load's account.

use std::collections::BTreeMap;

use kelvin_database::{Result, Rows, Session, mysql};

use super::link::Server;
use super::sessions::text;

/// Names of other programs' sessions that are kept.
const KEPT: usize = 1000;
/// Kelvins that can be seen beside each other on one server.
const KELVINS: usize = 8;

/// Other programs' sessions, as the server lists them.
#[derive(Debug, Default)]
pub(super) struct OtherPrograms {
    names: BTreeMap<i64, String>,
    /// Our connection that says that a Kelvin watches this server.
    marked: Option<i64>,
}

impl OtherPrograms {
    /// Whether a session of our account is another program's. Behind a proxy the connection numbers are the proxy's, and
    /// it is unknown.
    pub(super) fn is_foreign(server: &Server, connection: i64) -> bool {
        mysql::is_own_session(server.connection) && !mysql::is_own_session(connection)
    }

    /// Announces this watcher to every other Kelvin by a named lock, which all servers have and which restricts
    /// no session. A server that rejects it (Galera in its strict mode) shows other Kelvins as other clients.
    pub(super) fn mark(&mut self, session: &mut dyn Session, server: &Server) -> Result<()> {
        if self.marked.replace(server.connection) == Some(server.connection) {
            return Ok(());
        }
        for number in 0..KELVINS {
            if session.query(&format!("SELECT CAST(GET_LOCK('{}', 0) AS SIGNED)", lock(number)))?.int(0, 0)?
                == 1
            {
                break;
            }
        }
        Ok(())
    }

    /// Asks for the names of those that are not known yet.
    pub(super) fn meet(&mut self, session: &mut dyn Session, server: &Server, rows: &Rows) -> Result<()> {
        let mut unknown = Vec::new();
        for row in 0..rows.len() {
            let connection = rows.int(row, 0)?;
            if text(rows, row, 1)? == server.user
                && Self::is_foreign(server, connection)
                && !self.names.contains_key(&connection)
            {
                unknown.push(connection);
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        if self.names.len() + unknown.len() > KEPT {
            self.names.clear();
        }
        let kelvin = another_kelvin(session, server).unwrap_or(false);
        for connection in unknown {
            let name = program(session, server, connection).unwrap_or_else(|| {
                let who = if kelvin { "kelvin or another client" } else { "another client" };
                format!("{who} of {}", server.user)
            });
            self.names.insert(connection, name.chars().take(40).collect());
        }
        Ok(())
    }

    /// What the session's program is called.
    pub(super) fn name(&self, connection: i64) -> &str {
        self.names.get(&connection).map_or("another client", String::as_str)
    }
}

fn lock(number: usize) -> String {
    format!("kelvin watches {number}")
}

/// What the client said of itself when it connected; a server without `performance_schema` has not kept it.
fn program(session: &mut dyn Session, server: &Server, connection: i64) -> Option<String> {
    if !server.performance_schema {
        return None;
    }
    let asked = format!(
        "SELECT ATTR_VALUE FROM performance_schema.session_account_connect_attrs WHERE PROCESSLIST_ID = {connection} \
         AND ATTR_NAME = 'program_name'"
    );
    let rows = session.query(&asked).ok()?;
    rows.text(0, 0).ok().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Whether another Kelvin watches this server.
fn another_kelvin(session: &mut dyn Session, server: &Server) -> Result<bool> {
    let locks: Vec<String> = (0..KELVINS)
        .map(|number| format!("COALESCE(CAST(IS_USED_LOCK('{}') AS SIGNED), 0)", lock(number)))
        .collect();
    let rows = session.query(&format!("SELECT {}", locks.join(", ")))?;
    for column in 0..KELVINS {
        let holder = rows.int(0, column)?;
        if holder != 0 && holder != server.connection && !mysql::is_own_session(holder) {
            return Ok(true);
        }
    }
    Ok(false)
}
