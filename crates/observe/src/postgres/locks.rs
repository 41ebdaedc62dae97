//! Who waits for locks, of which relation, and who holds them.

use kelvin_database::{Error, Rows};
use kelvin_measure::observation::Blocker;

use super::link::{Link, Once};
use super::sql;
use crate::server::sessions::{NAMED, session_numbers, waiters};
use crate::server::shortened;
use crate::server::statement_text::masked;

/// A statement's text is cut after so many characters.
const LONGEST_STATEMENT: usize = 200;

/// Looks at the locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    ask: Once,
    ask_blockers: Once,
}

impl Locks {
    pub(super) fn row_waiters(&mut self, link: &mut Link) -> Result<Vec<(String, u32)>, String> {
        waiters(self.ask.run(link, |_| sql::row_waiters())?).map_err(|error| error.to_string())
    }

    pub(super) fn blockers(&mut self, link: &mut Link) -> Result<Vec<Blocker>, String> {
        let rows = self.ask_blockers.run(link, sql::blockers)?;
        let read: Result<_, _> = (0..rows.len()).map(|row| blocker(rows, row)).collect();
        read.map_err(|error: Error| error.to_string())
    }
}

fn blocker(rows: &Rows, row: usize) -> Result<Blocker, Error> {
    let text = |column| rows.optional(row, column, Rows::text).map(Option::unwrap_or_default);
    let mut waiting = session_numbers(rows.text(row, 4)?);
    waiting.truncate(NAMED);
    Ok(Blocker {
        pid: rows.int(row, 0)?,
        application: shortened(rows.text(row, 1)?),
        transaction_ms: rows.optional(row, 2, Rows::float)?,
        doing: rows.text(row, 3)?.to_owned(),
        waiting,
        waiters: rows.int(row, 5)? as u32,
        lock: text(6)?.to_owned(),
        statement: masked(text(7)?, LONGEST_STATEMENT),
        waited_ms: rows.optional(row, 8, Rows::float)?,
        waiting_statement: masked(text(9)?, LONGEST_STATEMENT),
    })
}
