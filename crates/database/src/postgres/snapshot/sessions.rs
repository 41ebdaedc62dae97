//! Other connected sessions. No session is ended for a copy; a session that prevents it is reported.

use std::time::{Duration, Instant};

use crate::snapshot::literal;
use crate::{Error, ErrorClass, Result, Session};

/// How long sessions that are ending may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Refuses while others are in the database, or in any of the server's, after those had a moment that are just leaving.
pub(crate) fn must_be_alone(session: &mut dyn Session, database: Option<&str>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let others = others(session, database)?;
        if others.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(in_use(database, &others));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The server itself ends its own workers before it copies.
fn others(session: &mut dyn Session, database: Option<&str>) -> Result<Vec<String>> {
    let place = database.map_or_else(
        || "backend_type = 'client backend'".to_owned(),
        // Whose kind this role may not see is a client's when it has a user.
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

fn in_use(database: Option<&str>, others: &[String]) -> Error {
    let what = database.map_or_else(|| "the server".to_owned(), |name| format!("the database {name:?}"));
    Error::new(
        ErrorClass::LockNotAvailable,
        format!("{what} is in use by {}; nothing was changed", others.join(", ")),
    )
    .with_help("end these sessions and try again: kelvin does not end other clients' sessions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_in_the_way_is_told() {
        let others = ["process 12 (psql, user me)".to_owned()];
        assert_eq!(
            in_use(Some("shop"), &others).message(),
            "the database \"shop\" is in use by process 12 (psql, user me); nothing was changed"
        );
        assert!(in_use(None, &others).message().starts_with("the server is in use by process 12"));
    }
}
