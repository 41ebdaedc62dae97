//! What each statement came to over a window: two readings of `pg_stat_statements` and their difference.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kelvin_database::{Result, Session};
use kelvin_measure::observation::{StatementTotals, UnavailableMetrics};

use super::link::Link;
use super::plans;
use super::sql::MARK;
use crate::server::figures::{LONGEST_TEXT, SHORT_TEXT};

/// All plans of a point together may take this long.
const PATIENCE: Duration = Duration::from_secs(3);

/// One entry's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Totals {
    calls: i64,
    total_ms: f64,
    rows: i64,
    hit: i64,
    read: i64,
    wal: i64,
}

/// Role, nested or not, statement.
type Key = (i64, bool, i64);

/// How the view is to be read here.
#[derive(Debug, Clone)]
struct StatementsView {
    /// The view's name with its schema, quoted.
    view: String,
    /// Whether it distinguishes nested statements (since 14).
    has_toplevel: bool,
}

/// Follows the statements.
#[derive(Debug)]
pub(super) struct Statements {
    most: usize,
    create_extension: bool,
    source: Option<StatementsView>,
    opened: Option<HashMap<Key, Totals>>,
    /// When the load began.
    before: HashMap<Key, Totals>,
}

impl Statements {
    pub(super) fn new(most: usize, create_extension: bool) -> Self {
        Self { most, create_extension, source: None, opened: None, before: HashMap::new() }
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
        self.before = link.with(|session, _| read(session, source))?.into_iter().collect();
        Ok(())
    }

    /// The texts of the statements that took the most time since the load began.
    pub(super) fn so_far(&self, link: &mut Link) -> std::result::Result<Vec<(i64, String)>, String> {
        let Some(source) = &self.source else { return Ok(Vec::new()) };
        let now = link.with(|session, _| read(session, source))?;
        let (top, _) = summed(&self.before, &now);
        let ids: Vec<i64> = top.iter().take(self.most).map(|one| one.query).collect();
        let texts = link.with(|session, _| texts(session, source, &ids))?;
        let short = |text: String| text.chars().take(SHORT_TEXT).collect();
        Ok(texts.into_iter().map(|(query, (text, _))| (query, short(text))).collect())
    }

    /// The window opens.
    pub(super) fn open(&mut self, link: &mut Link) -> std::result::Result<(), String> {
        self.opened = None;
        let Some(source) = &self.source else { return Ok(()) };
        self.opened = Some(link.with(|session, _| read(session, source))?.into_iter().collect());
        Ok(())
    }

    /// The window is closed: the statements that took the most time, and the time of all in milliseconds.
    pub(super) fn close(
        &mut self,
        link: &mut Link,
    ) -> std::result::Result<Option<(Vec<StatementTotals>, f64)>, String> {
        let (Some(source), Some(opened)) = (&self.source, self.opened.take()) else { return Ok(None) };
        let closed = link.with(|session, _| read(session, source))?;
        let (mut top, total_ms) = summed(&opened, &closed);
        top.truncate(self.most);
        let ids: Vec<i64> = top.iter().map(|one| one.query).collect();
        let texts = link.with(|session, _| texts(session, source, &ids))?;
        let until = Instant::now() + PATIENCE;
        for one in &mut top {
            let Some((text, ours)) = texts.get(&one.query) else { continue };
            one.text = text.chars().take(LONGEST_TEXT).collect();
            // Planning runs functions that are said to be immutable, as us: not those of other roles.
            if *ours && Instant::now() < until {
                // A plan that cannot be had is none; the totals are good without.
                one.plan =
                    link.with(|session, server| plans::plan(session, server.version, text)).ok().flatten();
            }
        }
        Ok(Some((top, total_ms)))
    }
}

/// The view and what is tracked, or why there is none.
fn find(
    session: &mut dyn Session,
    create: bool,
) -> Result<std::result::Result<(StatementsView, String), String>> {
    let rows = session.query(&format!(
        "{MARK} SELECT coalesce((SELECT reset_val FROM pg_settings WHERE name = 'pg_stat_statements.track'), ''), \
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
        session.run(&format!("{MARK} CREATE EXTENSION IF NOT EXISTS pg_stat_statements"))?;
    }
    let rows = session.query(&format!(
        "{MARK} SELECT quote_ident(nspname) || '.pg_stat_statements', \
         (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname = 'total_exec_time'), \
         (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attname = 'toplevel') \
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
    let source = StatementsView { view: rows.text(0, 0)?.to_owned(), has_toplevel: rows.int(0, 2)? == 1 };
    // It may be made and yet refuse.
    read(session, &source)?;
    Ok(Ok((source, track)))
}

/// All entries of this database but those of the observers.
fn read(session: &mut dyn Session, source: &StatementsView) -> Result<Vec<(Key, Totals)>> {
    let toplevel = if source.has_toplevel { "toplevel" } else { "true" };
    let rows = session.query(&format!(
        "{MARK} SELECT userid::int8, {toplevel}, queryid, calls, total_exec_time, rows, shared_blks_hit, \
         shared_blks_read, wal_bytes::int8 FROM {} WHERE queryid IS NOT NULL AND query NOT LIKE '{MARK}%' \
         AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())",
        source.view
    ))?;
    (0..rows.len())
        .map(|row| {
            let key = (rows.int(row, 0)?, rows.int(row, 1)? == 1, rows.int(row, 2)?);
            let totals = Totals {
                calls: rows.int(row, 3)?,
                total_ms: rows.float(row, 4)?,
                rows: rows.int(row, 5)?,
                hit: rows.int(row, 6)?,
                read: rows.int(row, 7)?,
                wal: rows.optional(row, 8, kelvin_database::Rows::int)?.unwrap_or(0),
            };
            Ok((key, totals))
        })
        .collect()
}

/// Texts by identifier, and whether a statement of this text was run by our own role.
fn texts(
    session: &mut dyn Session,
    source: &StatementsView,
    ids: &[i64],
) -> Result<HashMap<i64, (String, bool)>> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
    let rows = session.query(&format!(
        "{MARK} SELECT DISTINCT ON (queryid) queryid, query, \
         userid = (SELECT oid FROM pg_roles WHERE rolname = current_user) AS ours \
         FROM {} WHERE queryid IN ({}) AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
         ORDER BY queryid, ours DESC",
        source.view,
        ids.join(", ")
    ))?;
    let one = |row| Ok((rows.int(row, 0)?, (rows.text(row, 1)?.to_owned(), rows.int(row, 2)? == 1)));
    (0..rows.len()).map(one).collect()
}

/// Differences by statement, the longest first, and the time of all that are not within others.
fn summed(opened: &HashMap<Key, Totals>, closed: &[(Key, Totals)]) -> (Vec<StatementTotals>, f64) {
    let mut total_ms = 0.0;
    let mut sums: HashMap<i64, Totals> = HashMap::new();
    for (key, now) in closed {
        // One that counts less than before was forgotten in between and has begun anew.
        let then = opened.get(key).filter(|then| then.calls <= now.calls).copied().unwrap_or_default();
        if now.calls == then.calls {
            continue;
        }
        let took = (now.total_ms - then.total_ms).max(0.0);
        if key.1 {
            total_ms += took;
        }
        let sum = sums.entry(key.2).or_default();
        sum.calls += now.calls - then.calls;
        sum.total_ms += took;
        sum.rows += now.rows - then.rows;
        sum.hit += now.hit - then.hit;
        sum.read += now.read - then.read;
        sum.wal += now.wal - then.wal;
    }
    let count = |value: i64| value.max(0).unsigned_abs();
    let mut statements: Vec<StatementTotals> = sums
        .into_iter()
        .map(|(query, sum)| StatementTotals {
            query,
            text: String::new(),
            calls: count(sum.calls),
            total_ms: sum.total_ms,
            rows: count(sum.rows),
            blocks_hit: Some(count(sum.hit)),
            blocks_read: Some(count(sum.read)),
            wal_bytes: Some(count(sum.wal)),
            plan: None,
        })
        .collect();
    statements
        .sort_by(|one, other| other.total_ms.total_cmp(&one.total_ms).then(one.query.cmp(&other.query)));
    (statements, total_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(calls: i64, total_ms: f64) -> Totals {
        Totals { calls, total_ms, rows: calls, hit: 2 * calls, read: 0, wal: 10 * calls }
    }

    #[test]
    fn differences_are_summed_over_roles_and_nested_time_is_counted_once() {
        let opened = HashMap::from([
            ((1, true, 7), totals(10, 100.0)),
            ((1, false, 8), totals(5, 5.0)),
            ((1, true, 9), totals(3, 3.0)),
            ((1, true, 11), totals(100, 50.0)),
        ]);
        let closed = [
            ((1, true, 7), totals(20, 160.0)),
            ((2, true, 7), totals(1, 1.0)),
            ((1, false, 8), totals(6, 45.0)),
            ((1, true, 9), totals(3, 3.0)),
            // Forgotten and begun anew.
            ((1, true, 11), totals(2, 4.0)),
        ];
        let (statements, total) = summed(&opened, &closed);
        let short: Vec<_> = statements.iter().map(|one| (one.query, one.calls, one.total_ms)).collect();
        assert_eq!(short, [(7, 11, 61.0), (8, 1, 40.0), (11, 2, 4.0)]);
        assert_eq!(total, 65.0);
        assert_eq!((statements[0].blocks_hit, statements[0].wal_bytes), (Some(22), Some(110)));
    }
}
