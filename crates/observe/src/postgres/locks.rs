//! Who waits for rows, and of which relation.

use super::link::{Link, Once};
use super::sql;
use super::waits::Counted;

/// Looks at the locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    ask: Once,
}

impl Locks {
    /// One look.
    pub(super) fn look(&mut self, link: &mut Link, counted: &mut Counted) -> Result<(), String> {
        let rows = self.ask.run(link, |_| sql::row_waiters())?;
        for row in 0..rows.len() {
            let told = |e: kelvin_database::Error| e.to_string();
            counted.rows(rows.text(row, 0).map_err(told)?, rows.int(row, 1).map_err(told)? as u32);
        }
        counted.looked_at_locks();
        Ok(())
    }
}
