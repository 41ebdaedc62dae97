//! Sessions of other clients.

use crate::snapshot::sessions;
use crate::{Result, Session};

/// Refuses while others are in the session's database.
pub(super) fn must_be_alone(session: &mut dyn Session, database: &str) -> Result<()> {
    sessions::must_be_alone(Some(database), &mut || others(session))
}

/// Without the PROCESS privilege a session sees only those of its own account.
fn others(session: &mut dyn Session) -> Result<Vec<String>> {
    let rows = session.query(
        "SELECT CAST(id AS SIGNED), user FROM information_schema.processlist WHERE db = DATABASE() \
         AND id <> CONNECTION_ID() AND command <> 'Daemon' ORDER BY id",
    )?;
    (0..rows.len())
        .map(|row| Ok(format!("connection {} (user {})", rows.int(row, 0)?, rows.text(row, 1)?)))
        .collect()
}
