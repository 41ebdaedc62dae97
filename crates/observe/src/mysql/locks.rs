//! Who waits for rows, of which table, and who holds them.

use kelvin_database::{Error, Rows};
use kelvin_measure::observation::Blocker;

use super::link::Link;
use super::sessions::text;
use super::sql;
use crate::server::sessions::{first_of_queue, session_numbers, waiters};
use crate::server::shortened;
use crate::server::statement_text::masked;

/// A statement's text is cut after so many characters.
const LONGEST_TEXT: usize = 120;

/// How many wait for rows, by table.
pub(super) fn row_waiters(link: &mut Link) -> Result<Vec<(String, u32)>, String> {
    link.with(|session, server| waiters(&session.query(sql::row_waiters(server))?))
}

/// Who holds what others wait for.
pub(super) fn blockers(link: &mut Link) -> Result<Vec<Blocker>, String> {
    let blockers = link.with(|session, server| {
        let rows = session.query(sql::blockers(server))?;
        (0..rows.len()).map(|row| blocker(&rows, row)).collect()
    })?;
    Ok(first_of_queue(blockers))
}

fn blocker(rows: &Rows, row: usize) -> Result<Blocker, Error> {
    let (command, state, statement) = (text(rows, row, 3)?, text(rows, row, 4)?, text(rows, row, 5)?);
    let lock = text(rows, row, 7)?;
    let doing = match (command, statement) {
        ("Sleep", _) => "Idle in transaction".to_owned(),
        (_, "") => state.to_owned(),
        _ => format!("{state}: {}", masked(statement, LONGEST_TEXT)),
    };
    Ok(Blocker {
        pid: rows.int(row, 0)?,
        application: shortened(text(rows, row, 1)?),
        transaction_ms: rows.optional(row, 2, Rows::float)?,
        doing,
        waiting: session_numbers(text(rows, row, 6)?),
        lock: if lock.is_empty() { "row" } else { lock }.into(),
        statement: masked(statement, LONGEST_TEXT),
        waiting_statement: masked(text(rows, row, 8)?, LONGEST_TEXT),
        waited_ms: rows.optional(row, 9, Rows::float)?,
        ..Blocker::default()
    })
}
