//! Sessions of other clients.

use crate::snapshot::{literal, sessions};
use crate::{Result, Session};

/// Refuses while others are in the database, or in any of the server's.
pub(crate) fn must_be_alone(session: &mut dyn Session, database: Option<&str>) -> Result<()> {
    sessions::must_be_alone(database, &mut || others(session, database))
}

/// The server itself ends its own workers before it copies.
fn others(session: &mut dyn Session, database: Option<&str>) -> Result<Vec<String>> {
    let place = database.map_or_else(
        || "backend_type = 'client backend'".to_owned(),
        // A backend whose type this role may not see is a client if it has a user.
        |name| {
            format!(
                "datname = {} AND (backend_type NOT LIKE 'autovacuum%' OR (backend_type IS NULL AND usesysid IS NOT NULL))",
                literal(name)
            )
        },
    );
    let rows = session.query(&format!(
        "SELECT pid::bigint, coalesce(nullif(application_name, ''), backend_type, 'unknown'), \
         coalesce(usename::text, '') FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND {place} ORDER BY pid"
    ))?;
    (0..rows.len())
        .map(|row| {
            let (pid, application, user) = (rows.int(row, 0)?, rows.text(row, 1)?, rows.text(row, 2)?);
            Ok(format!("process {pid} ({application}, user {user})"))
        })
        .collect()
}
