//! What each statement came to over a window: two readings of `pg_stat_statements` and their difference.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kelvin_database::postgres::MARK;
use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{Planning, StatementTotals, UnavailableMetrics};

use super::link::Link;
use super::sampled::SampledTexts;
use super::{custom_plans, plans};
use crate::activity::{Level, StatementReading, StatementSums, by_query, grown, total_ms};
use crate::server::figures::{LONGEST_TEXT, SHORT_TEXT};
use crate::server::statement_text::{is_query, masked};
use crate::watch_plan::WatchPlan;

/// The mark is among so many of a statement's first characters.
const MARKED: usize = 60;

/// All plans of a point together may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// How the view is to be read here.
#[derive(Debug, Clone)]
pub(super) struct StatementsView {
    /// The view's name with its schema, quoted.
    pub(super) view: String,
    /// Whether it distinguishes nested statements from others (since 14).
    has_toplevel: bool,
    /// Whether it has times of compilation (since 15).
    has_jit: bool,
}

/// Follows the statements.
#[derive(Debug)]
pub(super) struct Statements {
    most: usize,
    create_extension: bool,
    /// Whether the load is ours, whose sessions report how their statements were planned.
    ours: bool,
    source: Option<StatementsView>,
    opened: Option<StatementReading>,
    /// When the load began.
    before: StatementReading,
    sampled: SampledTexts,
}

impl Statements {
    pub(super) fn new(plan: &WatchPlan) -> Self {
        Self {
            most: plan.statements,
            create_extension: plan.create_extension,
            ours: plan.apart,
            source: None,
            opened: None,
            before: StatementReading::new(),
            sampled: SampledTexts::new(plan.explain),
        }
    }

    /// Keeps what sessions have sent lately, where statements are to be executed for their plans.
    pub(super) fn collect(&mut self, link: &mut Link) {
        if self.opened.is_some() {
            self.sampled.collect(link);
        }
    }

    /// Determines what can be read, and reports what cannot and why.
    pub(super) fn begin(&mut self, link: &mut Link) -> Vec<UnavailableMetrics> {
        let absent = |what: &str, why: String| vec![UnavailableMetrics { what: what.into(), why }];
        let create = self.create_extension;
        match link.with(|session, _| find(session, create)) {
            Err(why) | Ok(Err(why)) => absent("statements", why),
            Ok(Ok((source, track))) => {
                self.source = Some(source);
                match track.as_str() {
                    "all" => Vec::new(),
                    "none" => {
                        absent("statements", "pg_stat_statements.track is none; set it to top or all".into())
                    }
                    _ => absent(
                        "statements within functions",
                        "pg_stat_statements.track is top, which counts a function as one statement; set it \
                         to all to see nested statements"
                            .into(),
                    ),
                }
            }
        }
    }

    /// The load begins.
    pub(super) fn begin_load(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        let Some(source) = &self.source else { return Ok(()) };
        self.before = link.with(|session, _| read(session, source))?;
        Ok(())
    }

    /// The texts of the statements that took the most time since the load began.
    pub(super) fn so_far(&self, link: &mut Link) -> std::result::Result<Vec<(i64, String)>, String> {
        let Some(source) = &self.source else { return Ok(Vec::new()) };
        let now = link.with(|session, _| read(session, source))?;
        let top = by_query(&grown(&self.before, &now));
        let ids: Vec<i64> = top.iter().take(self.most).map(|(query, _)| *query).collect();
        let texts = link.with(|session, _| texts(session, source, &ids))?;
        let short = |text: String| text.chars().take(SHORT_TEXT).collect();
        Ok(texts.into_iter().map(|(query, (text, _))| (query, short(text))).collect())
    }

    /// The window opens.
    pub(super) fn open(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.opened = None;
        let Some(source) = &self.source else { return Ok(()) };
        self.opened = Some(link.with(|session, _| read(session, source))?);
        Ok(())
    }

    /// The window is closed: the statements that took the most time, and the time of all in milliseconds.
    pub(super) fn close(
        &mut self,
        link: &mut Link,
    ) -> std::result::Result<Option<(Vec<StatementTotals>, f64)>, String> {
        let (Some(source), Some(opened)) = (&self.source, self.opened.take()) else { return Ok(None) };
        let ended = Instant::now();
        let closed = link.with(|session, _| read(session, source))?;
        let grown = grown(&opened, &closed);
        let mut top: Vec<StatementTotals> =
            by_query(&grown).into_iter().take(self.most).map(totals).collect();
        let ids: Vec<i64> = top.iter().map(|one| one.query).collect();
        let texts = link.with(|session, _| texts(session, source, &ids))?;
        let until = Instant::now() + PATIENCE;
        let mut compared = Vec::new();
        for (at, one) in top.iter_mut().enumerate() {
            let Some((text, ours)) = texts.get(&one.query) else { continue };
            one.text = text.chars().take(LONGEST_TEXT).collect();
            // Planning runs functions that are said to be immutable, as us: not those of other roles.
            if *ours && Instant::now() < until {
                // A plan that cannot be had is none; the totals are good without.
                let plan = link.with(|session, server| plans::plan(session, server.version, text));
                let Some(explained) = plan.ok().flatten() else { continue };
                one.plan = Some(explained.plan.clone());
                if !one.is_planned_each_time().unwrap_or(!self.ours) {
                    compared.push((at, text, explained));
                }
            }
        }
        // Behind the plans of all, which other findings need.
        for (at, text, explained) in compared {
            if Instant::now() >= until {
                break;
            }
            let custom = link.with(|session, _| custom_plans::cheapest(session, text, &explained));
            top[at].custom_plan = custom.ok().flatten();
        }
        self.sampled.execute(link, ended, &mut top, &texts);
        Ok(Some((top, total_ms(&grown))))
    }
}

/// The view and what is tracked, or why there is none.
pub(super) fn find(
    session: &mut dyn Session,
    create: bool,
) -> Result<std::result::Result<(StatementsView, String), String>> {
    let rows = session.query(&format!(
        "SELECT {MARK} coalesce((SELECT reset_val FROM pg_settings WHERE name = 'pg_stat_statements.track'), ''), \
         EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_stat_statements'), \
         EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_stat_statements')"
    ))?;
    let (track, available, created) =
        (rows.text(0, 0)?.to_owned(), rows.int(0, 1)? == 1, rows.int(0, 2)? == 1);
    if track.is_empty() {
        let install = if available { "" } else { "install PostgreSQL's contrib package, " };
        return Ok(Err(format!(
            "pg_stat_statements is not loaded; {install}set shared_preload_libraries = 'pg_stat_statements', restart the \
             server and CREATE EXTENSION pg_stat_statements"
        )));
    }
    if !created {
        if !create {
            return Ok(Err(
                "pg_stat_statements is loaded but not created; CREATE EXTENSION pg_stat_statements in this \
                 database"
                    .into(),
            ));
        }
        let read_only =
            |value| format!("SELECT {MARK} set_config('default_transaction_read_only', '{value}', false)");
        session.run(&read_only("off"))?;
        let created = session.run(&format!("CREATE {MARK} EXTENSION IF NOT EXISTS pg_stat_statements"));
        session.run(&read_only("on"))?;
        created?;
    }
    let rows = session.query(&format!(
        "SELECT {MARK} quote_ident(nspname) || '.pg_stat_statements', \
         (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname = 'total_exec_time'), \
         (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname = 'toplevel'), \
         (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname = 'jit_emission_time') \
         FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace \
         JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = 'pg_stat_statements' \
         WHERE extname = 'pg_stat_statements'"
    ))?;
    if rows.is_empty() || rows.int(0, 1)? == 0 {
        return Ok(Err(
            "the extension pg_stat_statements is an older version; ALTER EXTENSION pg_stat_statements UPDATE"
                .into(),
        ));
    }
    let source = StatementsView {
        view: rows.text(0, 0)?.to_owned(),
        has_toplevel: rows.int(0, 2)? == 1,
        has_jit: rows.int(0, 3)? == 1,
    };
    // It may be made and yet refuse.
    read(session, &source)?;
    Ok(Ok((source, track)))
}

/// All entries of this database but those of the observers.
pub(super) fn read(session: &mut dyn Session, source: &StatementsView) -> Result<StatementReading> {
    let toplevel = if source.has_toplevel { "toplevel" } else { "true" };
    let jit = if source.has_jit {
        // The code is generated while the executor starts, which total_exec_time does not include.
        "jit_inlining_time + jit_optimization_time + jit_emission_time"
    } else {
        "NULL::float8"
    };
    // Zero for whoever does not track it is no count.
    let planned = |column: &str| {
        format!(
            "CASE WHEN current_setting('pg_stat_statements.track_planning', true) = 'on' THEN {column}::float8 END"
        )
    };
    let rows = session.query(&format!(
        "SELECT {MARK} userid::int8, {toplevel}, queryid, calls, total_exec_time, rows, shared_blks_hit, \
         shared_blks_read, wal_bytes::int8, shared_blks_dirtied, \
         temp_blks_written * current_setting('block_size')::float8, {jit}, \
         {}, {} FROM {} WHERE queryid IS NOT NULL AND left(query, {MARKED}) NOT LIKE '%{MARK}%' \
         AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
        planned("plans"),
        planned("total_plan_time"),
        source.view
    ))?;
    (0..rows.len())
        .map(|row| {
            let level = if rows.int(row, 1)? == 1 { Level::Top } else { Level::Nested };
            let key = (rows.int(row, 0)?, level, rows.int(row, 2)?);
            let sums = StatementSums {
                calls: rows.float(row, 3)?,
                total_ms: rows.float(row, 4)?,
                rows: rows.float(row, 5)?,
                hits: Some(rows.float(row, 6)?),
                reads: Some(rows.float(row, 7)?),
                writes: Some(rows.float(row, 9)?),
                log_bytes: Some(rows.optional(row, 8, Rows::float)?.unwrap_or(0.0)),
                temporary_bytes: Some(rows.float(row, 10)?),
                jit_ms: rows.optional(row, 11, Rows::float)?,
                plans: rows.optional(row, 12, Rows::float)?,
                planning_ms: rows.optional(row, 13, Rows::float)?,
                ..StatementSums::default()
            };
            Ok((key, sums))
        })
        .collect()
}

/// Texts by identifier, and whether a statement of this text was run by our own role. What is no query the view may have with its
/// values, passwords among them.
pub(super) fn texts(
    session: &mut dyn Session,
    source: &StatementsView,
    ids: &[i64],
) -> Result<HashMap<i64, (String, bool)>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let rows = session.query(&format!(
        "SELECT {MARK} DISTINCT ON (queryid) queryid, query, \
         userid = (SELECT oid FROM pg_roles WHERE rolname = current_user) AS ours \
         FROM {} WHERE queryid IN ({}) AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         ORDER BY queryid, ours DESC",
        source.view,
        ids.join(", ")
    ))?;
    let one = |row| {
        let text = rows.text(row, 1)?;
        let text = if is_query(text) { text.to_owned() } else { masked(text, LONGEST_TEXT) };
        Ok((rows.int(row, 0)?, (text, rows.int(row, 2)? == 1)))
    };
    (0..rows.len()).map(one).collect()
}

/// As a run's events have them.
fn totals((query, sums): (i64, StatementSums)) -> StatementTotals {
    StatementTotals {
        query,
        text: String::new(),
        calls: sums.calls as u64,
        total_ms: sums.total_ms,
        rows: sums.rows as u64,
        blocks_hit: sums.hits.map(|pages| pages as u64),
        blocks_read: sums.reads.map(|pages| pages as u64),
        wal_bytes: sums.log_bytes.map(|bytes| bytes as u64),
        temporary_bytes: sums.temporary_bytes.map(|bytes| bytes as u64),
        jit_ms: sums.jit_ms,
        planning: sums.plans.zip(sums.planning_ms).map(|(plans, ms)| Planning { plans: plans as u64, ms }),
        ..StatementTotals::default()
    }
}
