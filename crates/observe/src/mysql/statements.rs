//! What each statement came to over a window: two readings of `performance_schema`'s digests and their difference.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kelvin_database::{Result, Session};
use kelvin_measure::observation::{QueryPlan, StatementTotals, UnavailableMetrics};

use super::link::{Link, Server};
use super::plans;
use super::sessions::text;
use crate::server::figures::{LONGEST_TEXT, SHORT_TEXT};

/// All plans of a point together may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// One digest's counters.
#[derive(Debug, Clone, Default, PartialEq)]
struct Totals {
    calls: f64,
    total_ms: f64,
    rows: f64,
    text: String,
}

/// By the first 64 bits of the digest.
type Reading = HashMap<i64, Totals>;

/// All digests of this database but those that read the server's own tables. A routine's statements have digests of their own
/// and are in the time of its CALL as well.
const DIGESTS: &str = "SELECT CAST(CONV(LEFT(DIGEST, 16), 16, -10) AS SIGNED), COUNT_STAR + 0e0, SUM_TIMER_WAIT / 1e9, \
     SUM_ROWS_SENT + SUM_ROWS_AFFECTED + 0e0, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest \
     WHERE DIGEST IS NOT NULL AND SCHEMA_NAME = DATABASE() \
     AND DIGEST_TEXT NOT LIKE '%performance_schema%' AND DIGEST_TEXT NOT LIKE '%information_schema%' AND DIGEST_TEXT NOT LIKE 'SHOW %'";

/// Follows the statements.
#[derive(Debug)]
pub(super) struct Statements {
    most: usize,
    readable: bool,
    opened: Option<Reading>,
    /// When the load began.
    before: Reading,
    /// Statements with their values, when the window opened.
    samples: HashMap<i64, String>,
}

impl Statements {
    pub(super) fn new(most: usize) -> Self {
        Self { most, readable: false, opened: None, before: HashMap::new(), samples: HashMap::new() }
    }

    /// Finds out whether there are digests to read.
    pub(super) fn begin(&mut self, link: &mut Link) -> Option<UnavailableMetrics> {
        let absent = |why: String| Some(UnavailableMetrics { what: "statements by text".into(), why });
        if !link.about.performance_schema {
            // Told with the counters.
            return None;
        }
        let enabled = link.with(|session, _| {
            let rows = session.query(
                "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.setup_consumers \
                 WHERE NAME = 'statements_digest' AND ENABLED = 'YES'",
            )?;
            Ok(rows.int(0, 0)? == 1)
        });
        match enabled {
            Ok(true) => {
                self.readable = true;
                None
            }
            Ok(false) => {
                absent("the performance_schema consumer statements_digest is off; turn it on".into())
            }
            Err(why) => absent(why),
        }
    }

    /// The load begins.
    pub(super) fn begin_load(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        if self.readable {
            self.before = link.with(read)?;
        }
        Ok(())
    }

    /// The texts of the statements that took the most time since the load began.
    pub(super) fn so_far(&self, link: &mut Link) -> std::result::Result<Vec<(i64, String)>, String> {
        if !self.readable {
            return Ok(Vec::new());
        }
        let (top, _) = grown(&self.before, link.with(read)?);
        let short = |one: StatementTotals| (one.query, one.text.chars().take(SHORT_TEXT).collect());
        Ok(top.into_iter().take(self.most).map(short).collect())
    }

    /// The window opens.
    pub(super) fn open(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.opened = if self.readable { Some(link.with(read)?) } else { None };
        // The users are connected. A server without samples has none to read.
        self.samples = if self.readable { link.with(samples).unwrap_or_default() } else { HashMap::new() };
        Ok(())
    }

    /// The window is closed: the statements that took the most time, and the time of all in milliseconds.
    pub(super) fn close(
        &mut self,
        link: &mut Link,
    ) -> std::result::Result<Option<(Vec<StatementTotals>, f64)>, String> {
        let Some(opened) = self.opened.take() else { return Ok(None) };
        let (mut top, total_ms) = grown(&opened, link.with(read)?);
        top.truncate(self.most);
        let until = Instant::now() + PATIENCE;
        for one in &mut top {
            if Instant::now() < until {
                // A plan that cannot be had is none; the totals are good without.
                let sample = self.samples.get(&one.query).map(String::as_str);
                one.plan = link.with(|session, _| explain(session, one, sample)).ok().flatten();
            }
        }
        Ok(Some((top, total_ms)))
    }
}

/// The plan of a statement with the values that the server has kept of one, else of its text without values.
fn explain(
    session: &mut dyn Session,
    one: &StatementTotals,
    sample: Option<&str>,
) -> Result<Option<QueryPlan>> {
    if let Some(sample) = sample
        && let Ok(Some(plan)) = plans::plan(session, sample)
    {
        return Ok(Some(plan));
    }
    plans::plan(session, &one.text)
}

/// Statements with their values, by digest: MySQL keeps one of each, MariaDB the last ones of each session that is connected, where
/// that was switched on.
fn samples(session: &mut dyn Session, server: &Server) -> Result<HashMap<i64, String>> {
    const OF: &str = "CAST(CONV(LEFT(DIGEST, 16), 16, -10) AS SIGNED)";
    let rows = session.query(&if server.mariadb {
        format!(
            "SELECT {OF}, MIN(SQL_TEXT) FROM performance_schema.events_statements_history \
             WHERE DIGEST IS NOT NULL AND SQL_TEXT IS NOT NULL AND CURRENT_SCHEMA = DATABASE() GROUP BY 1"
        )
    } else {
        format!(
            "SELECT {OF}, QUERY_SAMPLE_TEXT FROM performance_schema.events_statements_summary_by_digest \
             WHERE DIGEST IS NOT NULL AND QUERY_SAMPLE_TEXT IS NOT NULL AND SCHEMA_NAME = DATABASE()"
        )
    })?;
    (0..rows.len()).map(|row| Ok((rows.int(row, 0)?, rows.text(row, 1)?.to_owned()))).collect()
}

fn read(session: &mut dyn Session, _server: &Server) -> Result<Reading> {
    let rows = session.query(DIGESTS)?;
    let one = |row| {
        let totals = Totals {
            calls: rows.float(row, 1)?,
            total_ms: rows.float(row, 2)?,
            rows: rows.float(row, 3)?,
            text: text(&rows, row, 4)?.chars().take(LONGEST_TEXT).collect(),
        };
        Ok((rows.int(row, 0)?, totals))
    };
    (0..rows.len()).map(one).collect()
}

/// Differences by statement, the longest first, and the time of all. A CALL's time has that of the routine's statements in it,
/// which then are not counted again.
fn grown(opened: &Reading, closed: Reading) -> (Vec<StatementTotals>, f64) {
    let mut statements: Vec<StatementTotals> = closed
        .into_iter()
        .filter_map(|(query, now)| {
            // One that counts less than before was forgotten in between and has begun anew.
            let then = opened.get(&query).filter(|then| then.calls <= now.calls).cloned().unwrap_or_default();
            let calls = now.calls - then.calls;
            (calls > 0.0).then(|| StatementTotals {
                query,
                text: now.text,
                calls: calls as u64,
                total_ms: (now.total_ms - then.total_ms).max(0.0),
                rows: (now.rows - then.rows).max(0.0) as u64,
                blocks_hit: None,
                blocks_read: None,
                wal_bytes: None,
                plan: None,
            })
        })
        .collect();
    statements
        .sort_by(|one, other| other.total_ms.total_cmp(&one.total_ms).then(one.query.cmp(&other.query)));
    let is_call = |one: &&StatementTotals| one.text.starts_with("CALL ");
    let calls: f64 = statements.iter().filter(is_call).map(|one| one.total_ms).sum();
    let all: f64 = statements.iter().map(|one| one.total_ms).sum();
    (statements, if calls > 0.0 { calls.max(all - calls) } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(calls: f64, total_ms: f64, text: &str) -> Totals {
        Totals { calls, total_ms, rows: calls, text: text.into() }
    }

    #[test]
    fn differences_are_sorted_and_a_routines_time_is_counted_once() {
        let opened = Reading::from([
            (1, totals(10.0, 100.0, "SELECT ?")),
            (2, totals(3.0, 3.0, "UPDATE `t`")),
            (3, totals(9.0, 90.0, "COMMIT")),
        ]);
        let closed = || {
            Reading::from([
                (1, totals(20.0, 160.0, "SELECT ?")),
                (2, totals(3.0, 3.0, "UPDATE `t`")),
                // Forgotten and begun anew.
                (3, totals(2.0, 4.0, "COMMIT")),
            ])
        };
        let (statements, total) = grown(&opened, closed());
        let short: Vec<_> = statements.iter().map(|one| (one.query, one.calls, one.total_ms)).collect();
        assert_eq!(short, [(1, 10, 60.0), (3, 2, 4.0)]);
        assert_eq!(total, 64.0);
        let mut with_call = closed();
        with_call.insert(4, totals(5.0, 80.0, "CALL `neword` (...)"));
        assert_eq!(grown(&opened, with_call).1, 80.0);
    }
}
