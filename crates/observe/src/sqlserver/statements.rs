//! What each statement and procedure came to: two readings of the plan cache's counters and their difference.
//!
//! The server counts by cached plan, and forgets a plan's counters with the plan; what is added up here is of the plans that a
//! statement has at the moment. A procedure's statements are counted by themselves as well.

use std::collections::HashMap;

use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::{FasterPlan, QueryPlan, StatementTotals, UnavailableMetrics};

use super::link::{Link, Server};
use super::shown_text::shown;
use super::{plan_xml, sql};
use crate::activity::{Level, StatementReading, StatementSums, by_query, grown, total_ms};
use crate::server::figures::{LONGEST_TEXT, SHORT_TEXT};
use crate::server::statement_text::hash;

/// Executions of another plan from which its mean time says something.
const FEWEST: f64 = 10.0;

/// Bytes of a page.
const PAGE: f64 = 8192.0;

/// The sums, and the names of the procedures among them.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) sums: StatementReading,
    pub(super) procedures: HashMap<i64, String>,
}

/// Reads all statements and procedures of this database.
pub(super) fn read(session: &mut dyn Session, server: &Server) -> Result<Reading> {
    let mut reading = Reading::default();
    let rows = session.query(&sql::statements(server.has(sql::SPILLS)))?;
    for row in 0..rows.len() {
        let value = |column| rows.optional(row, column, Rows::float);
        let sums = sums(value(1)?, value(2)?, value(3)?, value(4)?, [value(5)?, value(6)?, value(7)?]);
        let temporary_bytes = value(8)?.map(|pages| pages * PAGE);
        reading.sums.insert((0, Level::Top, rows.int(row, 0)?), StatementSums { temporary_bytes, ..sums });
    }
    let rows = session.query(sql::PROCEDURES)?;
    for row in 0..rows.len() {
        let value = |column| rows.optional(row, column, Rows::float);
        let text = format!("EXEC {}", rows.text(row, 0)?);
        let query = hash(&text);
        let sums = sums(value(1)?, value(2)?, value(3)?, None, [value(4)?, value(5)?, value(6)?]);
        reading.sums.insert((0, Level::Call, query), sums);
        reading.procedures.insert(query, text);
    }
    Ok(reading)
}

fn sums(
    calls: Option<f64>,
    total_ms: Option<f64>,
    cpu_ms: Option<f64>,
    rows: Option<f64>,
    [logical, physical, writes]: [Option<f64>; 3],
) -> StatementSums {
    StatementSums {
        calls: calls.unwrap_or(0.0),
        total_ms: total_ms.unwrap_or(0.0),
        cpu_ms,
        rows: rows.unwrap_or(0.0),
        hits: logical.zip(physical).map(|(logical, physical)| (logical - physical).max(0.0)),
        reads: physical,
        writes,
        ..StatementSums::default()
    }
}

/// A statement's text and plan.
#[derive(Debug)]
pub(super) struct Cached {
    /// Without values.
    pub(super) text: String,
    pub(super) plan: Option<QueryPlan>,
    /// The plan's file, without values.
    pub(super) file: Option<String>,
}

/// The texts of statements, with their plans where these are asked for. What is no longer cached is not there.
pub(super) fn cached(
    session: &mut dyn Session,
    queries: &[i64],
    plans: bool,
) -> Result<HashMap<i64, Cached>> {
    if queries.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = session.query(&sql::texts(queries, plans))?;
    let mut found = HashMap::new();
    for row in 0..rows.len() {
        let text = |column| rows.optional(row, column, Rows::text);
        let xml = if plans { text(3)? } else { None };
        let of = text(2)?.map_or(String::new(), |procedure| format!("/* in {procedure} */ "));
        let cached = Cached {
            text: format!("{of}{}", shown(text(1)?.unwrap_or_default().trim(), LONGEST_TEXT)),
            plan: xml.and_then(plan_xml::parse),
            file: xml.map(plan_xml::without_values),
        };
        found.insert(rows.int(row, 0)?, cached);
    }
    Ok(found)
}

/// A plan with which Query Store saw a statement take less than half of what it takes now; none where there is none.
pub(super) fn faster(session: &mut dyn Session, queries: &[i64]) -> Result<HashMap<i64, FasterPlan>> {
    let rows = session.query(&sql::query_store(queries))?;
    let mut plans: HashMap<i64, Vec<Kept>> = HashMap::new();
    for row in 0..rows.len() {
        let kept = Kept {
            plan: rows.int(row, 1)?,
            level: rows.optional(row, 2, Rows::int)?,
            calls: rows.float(row, 3)?,
            mean_ms: rows.optional(row, 4, Rows::float)?.unwrap_or(f64::NAN),
            last: rows.optional(row, 5, Rows::text)?.unwrap_or_default().to_owned(),
        };
        plans.entry(rows.int(row, 0)?).or_default().push(kept);
    }
    Ok(plans.into_iter().filter_map(|(query, plans)| Some((query, better(plans)?))).collect())
}

/// What Query Store kept of a plan.
struct Kept {
    plan: i64,
    level: Option<i64>,
    calls: f64,
    mean_ms: f64,
    /// When it was last executed, as text that sorts.
    last: String,
}

fn better(mut plans: Vec<Kept>) -> Option<FasterPlan> {
    plans.retain(|kept| kept.calls >= FEWEST && kept.mean_ms > 0.0);
    plans.sort_by(|one, other| one.last.cmp(&other.last));
    let now = plans.pop()?;
    let best = plans.into_iter().min_by(|one, other| one.mean_ms.total_cmp(&other.mean_ms))?;
    (best.mean_ms * 2.0 < now.mean_ms).then(|| FasterPlan {
        hash: format!("0x{:016X}", best.plan),
        mean_ms: best.mean_ms,
        now_ms: now.mean_ms,
        executed: best.last,
        optimizer: best.level.zip(now.level).map(|(then, now)| (then.to_string(), now.to_string())),
    })
}

/// Follows the statements of a run.
#[derive(Debug)]
pub(super) struct Statements {
    most: usize,
    opened: Option<Reading>,
    /// When the load began.
    before: Reading,
}

impl Statements {
    pub(super) fn new(most: usize) -> Self {
        Self { most, opened: None, before: Reading::default() }
    }

    pub(super) fn begin(server: &Server) -> impl Iterator<Item = UnavailableMetrics> {
        let of = [("statements by text", "dm_exec_query_stats"), ("spills of statements", sql::SPILLS)];
        of.into_iter()
            .filter(|(_, view)| !server.has(view))
            .map(|(what, view)| UnavailableMetrics { what: what.into(), why: server.why_not(view) })
    }

    /// The load begins.
    pub(super) fn begin_load(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.before = link.with(read)?;
        Ok(())
    }

    /// The texts of the statements that took the most time since the load began.
    pub(super) fn so_far(&self, link: &mut Link) -> std::result::Result<Vec<(i64, String)>, String> {
        let (top, texts) = link.with(|session, server| {
            let now = read(session, server)?;
            let top: Vec<i64> = by_query(&grown(&self.before.sums, &now.sums))
                .into_iter()
                .take(self.most)
                .map(|(query, _)| query)
                .collect();
            let cached = cached(session, &top, false)?;
            let mut texts = now.procedures;
            texts.extend(cached.into_iter().map(|(query, cached)| (query, cached.text)));
            Ok((top, texts))
        })?;
        let short = |query: i64| Some((query, texts.get(&query)?.chars().take(SHORT_TEXT).collect()));
        Ok(top.into_iter().filter_map(short).collect())
    }

    /// The window opens.
    pub(super) fn open(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.opened = Some(link.with(read)?);
        Ok(())
    }

    /// The window is closed: the statements that took the most time, and the time of all in milliseconds.
    pub(super) fn close(
        &mut self,
        link: &mut Link,
    ) -> std::result::Result<Option<(Vec<StatementTotals>, f64)>, String> {
        let Some(opened) = self.opened.take() else { return Ok(None) };
        let closed = link.with(read)?;
        let grown = grown(&opened.sums, &closed.sums);
        let top: Vec<_> = by_query(&grown).into_iter().take(self.most).collect();
        let queries: Vec<i64> = top.iter().map(|(query, _)| *query).collect();
        // Totals are good without texts and plans.
        let mut cached = link.with(|session, _| cached(session, &queries, true)).unwrap_or_default();
        if link.about.query_store {
            let found = link.with(|session, _| faster(session, &queries)).unwrap_or_default();
            for (query, faster) in found {
                if let Some(plan) = cached.get_mut(&query).and_then(|cached| cached.plan.as_mut()) {
                    plan.faster = Some(faster);
                }
            }
        }
        let totals = |(query, sums): (i64, StatementSums)| {
            let cached = cached.remove(&query);
            let procedure = closed.procedures.get(&query);
            let (text, plan) = cached.map_or((String::new(), None), |cached| (cached.text, cached.plan));
            StatementTotals {
                query,
                text: procedure.cloned().unwrap_or(text),
                calls: sums.calls as u64,
                total_ms: sums.total_ms,
                rows: sums.rows as u64,
                blocks_hit: sums.hits.map(|pages| pages as u64),
                blocks_read: sums.reads.map(|pages| pages as u64),
                temporary_bytes: sums.temporary_bytes.map(|bytes| bytes as u64),
                plan,
                ..StatementTotals::default()
            }
        };
        Ok(Some((top.into_iter().map(totals).collect(), total_ms(&grown))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(plan: i64, calls: f64, mean_ms: f64, last: &str) -> Kept {
        Kept { plan, level: Some(if plan == 1 { 110 } else { 150 }), calls, mean_ms, last: last.into() }
    }

    #[test]
    fn a_plan_that_was_twice_as_fast_is_remembered_and_an_older_slower_one_is_not() {
        let found = better(vec![
            kept(2, 5000.0, 90.0, "2026-11-23 09:00:00"),
            kept(1, 9000.0, 2.0, "2026-10-01 09:00:00"),
            kept(3, 2.0, 0.1, "2026-10-02 09:00:00"),
        ])
        .unwrap();
        assert_eq!((found.hash.as_str(), found.mean_ms, found.now_ms), ("0x0000000000000001", 2.0, 90.0));
        assert_eq!(found.optimizer, Some(("110".to_owned(), "150".to_owned())));
        assert_eq!(better(vec![kept(2, 50.0, 2.0, "b"), kept(1, 50.0, 90.0, "a")]), None);
        assert_eq!(better(vec![kept(2, 50.0, 2.0, "b"), kept(1, 50.0, 1.5, "a")]), None);
        assert_eq!(better(vec![kept(2, 50.0, 2.0, "b")]), None);
    }
}
