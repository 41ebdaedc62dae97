//! Sessions of other clients. No session is ended for a copy: the sessions in the way are reported.

use std::time::{Duration, Instant};

use crate::{Error, ErrorClass, Result};

/// How long sessions that are ending may take.
const PATIENCE: Duration = Duration::from_secs(3);

/// Refuses while `others` are in the database, or in any of the server's, after a short wait for those that are
/// disconnecting.
pub(crate) fn must_be_alone(
    database: Option<&str>,
    others: &mut dyn FnMut() -> Result<Vec<String>>,
) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let others = others()?;
        if others.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(in_use(database, &others));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
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
    fn sessions_that_use_the_database_are_listed() {
        let others = ["process 12 (psql, user me)".to_owned()];
        assert_eq!(
            in_use(Some("shop"), &others).message(),
            "the database \"shop\" is in use by process 12 (psql, user me); nothing was changed"
        );
        assert!(in_use(None, &others).message().starts_with("the server is in use by process 12"));
    }
}
