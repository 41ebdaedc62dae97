//! What each statement came to over a window: two readings of `performance_schema`'s digests and their difference.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{QueryPlan, StatementTotals, UnavailableMetrics};

use super::link::{Link, Server};
use super::plans;
use super::sampled::SampledTexts;
use super::sessions::text;
use crate::activity::{Level, StatementReading, StatementSums, by_query, grown, total_ms};
use crate::server::figures::{LONGEST_TEXT, SHORT_TEXT};
use crate::watch_plan::WatchPlan;

/// All plans of a point together may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why there is nothing of `performance_schema`.
pub(super) const NO_PERFORMANCE_SCHEMA: &str = "performance_schema is off (MariaDB's default), or the account cannot read it; start the server with performance_schema=ON, \
     and GRANT SELECT ON performance_schema.* TO the account";

/// The sums, and the texts by the first 64 bits of the digest.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) sums: StatementReading,
    pub(super) texts: HashMap<i64, String>,
}

/// All digests of this database but those that read the server's own tables. A routine's statements have digests of their own
/// and are in the time of its CALL as well.
/// MySQL counts CPU time since 8.0.28, where the consumer is on.
fn digests(server: &Server, cpu: bool) -> String {
    let cpu =
        if cpu && !server.mariadb && server.version >= CPU_TIME { "SUM_CPU_TIME / 1e9" } else { "NULL" };
    format!(
        "SELECT CAST(CONV(LEFT(DIGEST, 16), 16, -10) AS SIGNED), COUNT_STAR + 0e0, SUM_TIMER_WAIT / 1e9, \
         SUM_ROWS_SENT + SUM_ROWS_AFFECTED + 0e0, DIGEST_TEXT, SUM_ROWS_EXAMINED + 0e0, SUM_ROWS_AFFECTED + 0e0, {cpu}, \
         SUM_CREATED_TMP_DISK_TABLES + 0e0, SUM_SORT_MERGE_PASSES + 0e0 \
         FROM performance_schema.events_statements_summary_by_digest \
         WHERE DIGEST IS NOT NULL AND SCHEMA_NAME = DATABASE() \
         AND DIGEST_TEXT NOT LIKE '%performance_schema%' AND DIGEST_TEXT NOT LIKE '%information_schema%' AND DIGEST_TEXT NOT LIKE 'SHOW %'"
    )
}

/// The version with CPU time by statement.
pub(super) const CPU_TIME: u32 = 80_028;

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
    sampled: SampledTexts,
}

impl Statements {
    pub(super) fn new(plan: &WatchPlan) -> Self {
        Self {
            most: plan.statements,
            readable: false,
            opened: None,
            before: Reading::default(),
            samples: HashMap::new(),
            sampled: SampledTexts::new(plan.explain),
        }
    }

    /// Keeps what sessions have sent lately, where statements are to be executed for their plans.
    pub(super) fn collect(&mut self, link: &mut Link) {
        if self.opened.is_some() {
            self.sampled.collect(link);
        }
    }

    /// Finds out whether there are digests to read.
    pub(super) fn begin(&mut self, link: &mut Link) -> Option<UnavailableMetrics> {
        if !link.about.performance_schema {
            // Reported with the counters.
            return None;
        }
        let why = available(link).err();
        self.readable = why.is_none();
        why.map(|why| UnavailableMetrics { what: "statements by text".into(), why })
    }

    /// The load begins.
    pub(super) fn begin_load(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        if self.readable {
            self.before = link.with(|session, server| read(session, server, false))?;
        }
        Ok(())
    }

    /// The texts of the statements that took the most time since the load began.
    pub(super) fn so_far(&self, link: &mut Link) -> std::result::Result<Vec<(i64, String)>, String> {
        if !self.readable {
            return Ok(Vec::new());
        }
        let now = link.with(|session, server| read(session, server, false))?;
        let top = by_query(&grown(&self.before.sums, &now.sums));
        let short = |query| (query, now.text(query).chars().take(SHORT_TEXT).collect());
        Ok(top.into_iter().take(self.most).map(|(query, _)| short(query)).collect())
    }

    /// The window opens.
    pub(super) fn open(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.opened = None;
        self.samples.clear();
        if self.readable {
            self.opened = Some(link.with(|session, server| read(session, server, false))?);
            // The users are connected. A server without samples has none to read.
            self.samples = link.with(samples).unwrap_or_default();
        }
        Ok(())
    }

    /// The window is closed: the statements that took the most time, and the time of all in milliseconds.
    pub(super) fn close(
        &mut self,
        link: &mut Link,
    ) -> std::result::Result<Option<(Vec<StatementTotals>, f64)>, String> {
        let Some(opened) = self.opened.take() else { return Ok(None) };
        let ended = Instant::now();
        let closed = link.with(|session, server| read(session, server, false))?;
        let grown = grown(&opened.sums, &closed.sums);
        let totals = |(query, sums): (i64, StatementSums)| StatementTotals {
            query,
            text: closed.text(query).to_owned(),
            calls: sums.calls as u64,
            total_ms: sums.total_ms,
            rows: sums.rows as u64,
            disk_tables: sums.disk_tables.map(|tables| tables as u64),
            merge_passes: sums.merge_passes.map(|passes| passes as u64),
            ..StatementTotals::default()
        };
        let mut top: Vec<_> = by_query(&grown).into_iter().take(self.most).map(totals).collect();
        let until = Instant::now() + PATIENCE;
        for one in &mut top {
            if Instant::now() < until {
                // A plan that cannot be had is none; the totals are good without.
                let sample = self.samples.get(&one.query).map(String::as_str);
                one.plan = link.with(|session, _| explain(session, &one.text, sample)).ok().flatten();
            }
        }
        self.sampled.execute(link, ended, &mut top);
        Ok(Some((top, total_ms(&grown))))
    }
}

/// The plan of a statement with the values that there are of one, else of its text without values.
pub(super) fn explain(
    session: &mut dyn Session,
    text: &str,
    sample: Option<&str>,
) -> Result<Option<QueryPlan>> {
    if let Some(sample) = sample
        && let Ok(Some(plan)) = plans::plan(session, sample)
    {
        return Ok(Some(plan));
    }
    plans::plan(session, text)
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

/// Why there are no digests to read.
pub(super) fn available(link: &mut Link) -> std::result::Result<(), String> {
    if !link.about.performance_schema {
        return Err(NO_PERFORMANCE_SCHEMA.into());
    }
    let enabled = link.with(|session, _| {
        let rows = session.query(
            "SELECT CAST(COUNT(*) AS SIGNED) FROM performance_schema.setup_consumers \
             WHERE NAME = 'statements_digest' AND ENABLED = 'YES'",
        )?;
        Ok(rows.int(0, 0)? == 1)
    })?;
    if enabled {
        Ok(())
    } else {
        Err("the performance_schema consumer statements_digest is off; turn it on".into())
    }
}

impl Reading {
    fn text(&self, query: i64) -> &str {
        self.texts.get(&query).map_or("", String::as_str)
    }
}

/// The digest's text, marked as the servers do it where it is cut: a part of a statement is not what is to be explained.
fn cut(digest: &str) -> String {
    let mut text: String = digest.chars().take(LONGEST_TEXT).collect();
    if text.len() < digest.len() {
        text.push_str("...");
    }
    text
}

/// Reads all digests; with `cpu` their CPU time.
pub(super) fn read(session: &mut dyn Session, server: &Server, cpu: bool) -> Result<Reading> {
    let rows = session.query(&digests(server, cpu))?;
    let mut reading = Reading::default();
    for row in 0..rows.len() {
        let query = rows.int(row, 0)?;
        let digest = text(&rows, row, 4)?;
        // The routine's statements have digests of their own.
        let level = if digest.starts_with("CALL ") { Level::Call } else { Level::Top };
        let sums = StatementSums {
            calls: rows.float(row, 1)?,
            total_ms: rows.float(row, 2)?,
            cpu_ms: rows.optional(row, 7, Rows::float)?,
            rows: rows.float(row, 3)?,
            reads: Some(rows.float(row, 5)?),
            writes: Some(rows.float(row, 6)?),
            disk_tables: Some(rows.float(row, 8)?),
            merge_passes: Some(rows.float(row, 9)?),
            ..StatementSums::default()
        };
        reading.sums.insert((0, level, query), sums);
        reading.texts.insert(query, cut(digest));
    }
    Ok(reading)
}
