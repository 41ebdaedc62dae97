//! Who waits for rows, of which relation, and who holds them.

use kelvin_database::{Error, Rows};
use kelvin_measure::observation::{Blocker, Observation};

use super::figures::optional;
use super::link::{Link, Once};
use super::sql;
use crate::waits::Counted;
use crate::watch::Feed;

/// Those who wait for one holder that are named.
const NAMED: usize = 16;

/// Looks at the locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    ask: Once,
    ask_blockers: Once,
}

impl Locks {
    /// One look.
    pub(super) fn look(
        &mut self,
        link: &mut Link,
        counted: &mut Counted,
        feed: &mut Feed,
    ) -> Result<(), String> {
        let rows = self.ask.run(link, |_| sql::row_waiters())?;
        for row in 0..rows.len() {
            let told = |e: kelvin_database::Error| e.to_string();
            counted.rows(rows.text(row, 0).map_err(told)?, rows.int(row, 1).map_err(told)? as u32);
        }
        let somebody_waits = !rows.is_empty();
        counted.looked_at_locks();
        if somebody_waits {
            let rows = self.ask_blockers.run(link, |_| sql::blockers())?;
            let read: Result<Vec<Blocker>, Error> = (0..rows.len()).map(|row| blocker(rows, row)).collect();
            let blockers = read.map_err(|error| error.to_string())?;
            // Between two looks at the table they may have gone.
            if !blockers.is_empty() {
                feed.send(Observation::Blocking { at: feed.now(), blockers });
            }
        }
        Ok(())
    }
}

fn blocker(rows: &Rows, row: usize) -> Result<Blocker, Error> {
    let waiting = rows.text(row, 4)?.split(' ').filter_map(|pid| pid.parse().ok());
    Ok(Blocker {
        pid: rows.int(row, 0)?,
        application: rows.text(row, 1)?.chars().take(40).collect(),
        transaction_ms: optional(rows, row, 2, Rows::float)?,
        doing: rows.text(row, 3)?.to_owned(),
        waiting: waiting.take(NAMED).collect(),
    })
}
