//! Executions of the load's statements for the rows of their plans: `ANALYZE FORMAT=JSON` (MariaDB) or `EXPLAIN ANALYZE` (MySQL) with the
//! values that a session has sent, in a transaction that may only read.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_database::{Error, Result, Rows, Session};
use kelvin_measure::observation::StatementTotals;
use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};

use super::link::{Link, Server};
use super::sessions::text;
use super::{executed_plans, plans, tokens};
use crate::server::figures::SHORT_TEXT;
use crate::server::link::PATIENCE;
use crate::server::sampled::{self, MOST_NODES, MOST_TEXTS, TIMES};
use crate::server::statement_text::{first_word, masked};
use crate::watch_plan::ExplainSample;

/// MySQL executes statements for their plans since this version.
const EXPLAIN_ANALYZE: u32 = 80_018;
/// MySQL accepts the format of such a plan since this version; before, there was one only.
const ANALYZE_FORMAT: u32 = 80_021;
/// MariaDB distinguishes statements within stored routines since this version; before, it recorded none.
const NESTING: u32 = 100_502;

/// The sessions' last statements are read so often at most: there may be thousands.
const BETWEEN_READINGS: Duration = Duration::from_secs(5);

/// Words of a query that may lock rows, write a file, take a lock for the session, or set another limit of time. Where they stand in a string
/// the statement is left out as well: what a string is depends on the server's settings.
const REFUSED: [&str; 10] = [
    "into",
    "update",
    "share",
    "get_lock",
    "release_lock",
    "release_all_locks",
    "service_get_read_locks",
    "service_get_write_locks",
    "service_release_locks",
    "max_execution_time",
];

/// Sessions of our account (the same user name) in this database.
const OURS: &str = "LEFT(USER(), CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))";

/// Keeps statements as they were sent, and executes them. They are never stored.
#[derive(Debug)]
pub(super) struct SampledTexts {
    which: Option<ExplainSample>,
    by_digest: HashMap<i64, String>,
    /// By what they have in common with the text of their digest: MariaDB shows no digest of a session's statement by default.
    by_text: HashMap<String, String>,
    /// When the sessions' last statements were read.
    read: Option<Instant>,
}

impl SampledTexts {
    pub(super) fn new(which: Option<ExplainSample>) -> Self {
        Self { which, by_digest: HashMap::new(), by_text: HashMap::new(), read: None }
    }

    /// Reads what the sessions of our own account execute or have executed last. A reading that fails is left out.
    pub(super) fn collect(&mut self, link: &mut Link) {
        if self.which.is_none() {
            return;
        }
        if self.read.is_none_or(|read| read.elapsed() >= BETWEEN_READINGS) {
            self.read = Some(Instant::now());
            for (digest, sent) in link.with(executed).unwrap_or_default() {
                keep(&mut self.by_digest, digest, sent);
            }
        }
        for sent in link.with(|session, _| running(session)).unwrap_or_default() {
            if let Some(comparable) = tokens::comparable(&sent) {
                keep(&mut self.by_text, comparable, sent);
            }
        }
    }

    /// Executes these statements; the window ended at `ended`.
    pub(super) fn execute(&mut self, link: &mut Link, ended: Instant, top: &mut [StatementTotals]) {
        if self.which.is_none() {
            return;
        }
        for one in top {
            let executed = self.executable(one.query, &one.text, &link.about).and_then(|sql| {
                let limit = sampled::limit(ended)?;
                link.with(|session, server| {
                    Ok(analyze(session, server, &sql, limit).unwrap_or_else(|error| sampled::refused(&error)))
                })
            });
            one.sample = Some(executed.unwrap_or_else(SampledExecution::Refused));
        }
        *self = Self::new(self.which);
    }

    /// The text to execute, or why there is none.
    fn executable(&self, query: i64, digest: &str, server: &Server) -> std::result::Result<String, String> {
        if !server.mariadb && server.version < EXPLAIN_ANALYZE {
            return Err("EXPLAIN ANALYZE requires MySQL 8.0.18 or later".into());
        }
        match first_word(digest).as_str() {
            "select" | "with" => {}
            "insert" | "update" | "delete" | "replace" => {
                return Err("it changes data, and is not executed on MySQL and MariaDB".into());
            }
            _ => return Err("not a query".into()),
        }
        let by_digest = self.by_digest.get(&query);
        let by_text = || self.by_text.get(&tokens::comparable(digest)?);
        let sent = by_digest.filter(|sent| single_query(sent).is_ok()).or_else(by_text).or(by_digest);
        single_query(sent.ok_or("its values are not known: it was in no sampled session of this account")?)
    }
}

/// Keeps a statement, unless there is one that can be executed: a later one has other values, and is no better.
fn keep<K: Eq + Hash>(all: &mut HashMap<K, String>, key: K, sent: String) {
    let is_wanted = match all.get(&key) {
        Some(kept) => single_query(kept).is_err(),
        None => all.len() < MOST_TEXTS,
    };
    if is_wanted {
        all.insert(key, sent);
    }
}

/// The text to execute of a statement as it was sent, or why there is none.
fn single_query(sent: &str) -> std::result::Result<String, String> {
    if let Some(word) = refused(sent) {
        return Err(format!(
            "it may lock rows, write a file, change its time limit or use a session's variable: it has {word}"
        ));
    }
    match plans::with_values(sent) {
        Some((_, true)) => Err("sent with parameters, whose values the server does not show".into()),
        Some((sql, false)) if matches!(first_word(&sql).as_str(), "select" | "with") => Ok(sql),
        _ => Err("it is longer than performance_schema_max_sql_text_length, or has a semicolon".into()),
    }
}

/// The first of the words that a query to be executed must not have. A comment that the server executes is one, and so is a user variable, which
/// has another value in this session; what follows its sign may be part of a string.
fn refused(sql: &str) -> Option<&str> {
    let mut words = sql.split(|c| !tokens::is_of_word(c));
    let is_variable = |word: &str| word.starts_with('@') && !word.starts_with("@@");
    let has_variable = words.clone().any(is_variable);
    let found = words.find(|word| REFUSED.iter().any(|refused| word.eq_ignore_ascii_case(refused)));
    found
        .or_else(|| ["/*!", "/*M!"].into_iter().find(|comment| sql.contains(comment)))
        .or(has_variable.then_some("@"))
}

/// Statements by the first 64 bits of their digest, where the server keeps a session's last ones.
fn executed(session: &mut dyn Session, server: &Server) -> Result<Vec<(i64, String)>> {
    let outside =
        if !server.mariadb || server.version >= NESTING { "AND NESTING_EVENT_LEVEL = 0" } else { "" };
    let rows = session.query(&format!(
        "SELECT CAST(CONV(LEFT(DIGEST, 16), 16, -10) AS SIGNED), MIN(SQL_TEXT) \
         FROM performance_schema.events_statements_history \
         WHERE DIGEST IS NOT NULL AND SQL_TEXT IS NOT NULL AND CURRENT_SCHEMA = DATABASE() {outside} \
         AND THREAD_ID IN (SELECT THREAD_ID FROM performance_schema.threads \
         WHERE PROCESSLIST_USER = {OURS} AND PROCESSLIST_ID <> CONNECTION_ID()) GROUP BY 1"
    ))?;
    (0..rows.len()).map(|row| Ok((rows.int(row, 0)?, rows.text(row, 1)?.to_owned()))).collect()
}

/// What sessions execute at the moment.
fn running(session: &mut dyn Session) -> Result<Vec<String>> {
    let rows = session.query(&format!(
        "SELECT DISTINCT INFO FROM information_schema.PROCESSLIST WHERE INFO IS NOT NULL AND COMMAND = 'Query' \
         AND DB = DATABASE() AND USER = {OURS} AND ID <> CONNECTION_ID()"
    ))?;
    (0..rows.len()).map(|row| Ok(rows.text(row, 0)?.to_owned())).collect()
}

/// Executes a query, for so long at most, and rolls back.
fn analyze(
    session: &mut dyn Session,
    server: &Server,
    sql: &str,
    limit: Duration,
) -> Result<SampledExecution> {
    let until = Instant::now() + limit;
    // A plain SELECT locks rows where transactions are SERIALIZABLE.
    session.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
    session.run("START TRANSACTION READ ONLY")?;
    let executed = in_transaction(session, server, sql, until);
    session.run("ROLLBACK")?;
    session.run(&limited(server, PATIENCE))?;
    // A session's named locks outlive the transaction, and the load would wait for them. Older servers have no such function.
    let _unknown = session.run("DO RELEASE_ALL_LOCKS()");
    Ok(executed?.map_or_else(SampledExecution::Refused, |plan| found(session, server, &plan)))
}

/// Sets the limit of time of the session's queries. 0 would be none.
fn limited(server: &Server, limit: Duration) -> String {
    let limit = limit.as_millis().max(1);
    if server.mariadb {
        format!("SET SESSION max_statement_time = {}", limit as f64 / 1000.0)
    } else {
        format!("SET SESSION max_execution_time = {limit}")
    }
}

/// The query's plan, or why there is none.
fn in_transaction(
    session: &mut dyn Session,
    server: &Server,
    sql: &str,
    until: Instant,
) -> Result<std::result::Result<Plan, String>> {
    let left = || limited(server, until.saturating_duration_since(Instant::now()));
    session.run(&left())?;
    // The formats are named: a server may have another one by default (explain_format).
    session
        .run(&format!("EXPLAIN {} {sql}", if server.mariadb { "EXTENDED" } else { "FORMAT=TRADITIONAL" }))?;
    let notes = session.query("SHOW WARNINGS")?;
    let tables = match warning(&notes, &[1003])? {
        Some(row) => tokens::tables(text(&notes, row, 2)?),
        None => HashMap::new(),
    };
    session.run(&left())?;
    let plan = if server.mariadb {
        let rows = session.query(&format!("ANALYZE FORMAT=JSON {sql}"))?;
        executed_plans::parse_json(of_first_row(&rows)?, &tables, is_limited(sql))
    } else {
        let format = if server.version >= ANALYZE_FORMAT { "FORMAT=TREE " } else { "" };
        let rows = session.query(&format!("EXPLAIN ANALYZE {format}{sql}"))?;
        // MySQL returns the rows until then, and no error.
        if warning(&session.query("SHOW WARNINGS")?, &[1317, 3024])?.is_some() {
            return Ok(Err("it was ended at its limit of time".into()));
        }
        executed_plans::parse_tree(of_first_row(&rows)?, &tables)
    };
    Ok(plan.map_err(|why| format!("the server's plan cannot be read: {why}")))
}

fn of_first_row(rows: &Rows) -> Result<&str> {
    if rows.is_empty() { Err(Error::usage("the server returned no plan")) } else { rows.text(0, 0) }
}

/// The row of the first warning with one of these codes.
fn warning(rows: &Rows, codes: &[i64]) -> Result<Option<usize>> {
    for row in 0..rows.len() {
        if codes.contains(&rows.int(row, 1)?) {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Whether it may stop before it has all rows. MariaDB's plan does not say so.
fn is_limited(sql: &str) -> bool {
    sql.split(|c| !tokens::is_of_word(c))
        .any(|word| ["limit", "fetch", "rownum"].iter().any(|stops| word.eq_ignore_ascii_case(stops)))
}

fn found(session: &mut dyn Session, server: &Server, plan: &Plan) -> SampledExecution {
    // Those below, which explain the others, come last.
    let all = plan.all_misestimated(TIMES);
    let above = all.len().saturating_sub(MOST_NODES);
    let mut misestimates: Vec<MisestimatedNode> = all.into_iter().skip(above).map(describe).collect();
    for one in misestimates.iter_mut().filter(|one| !one.columns.is_empty()) {
        // Where it may not be read, no statistics are proposed.
        one.has_statistics = has_statistics(session, server, one).unwrap_or(true);
    }
    SampledExecution::Executed { took_ms: plan.execution_ms.unwrap_or_default(), misestimates }
}

fn describe(node: &Node) -> MisestimatedNode {
    let condition = node.conditions.join(" AND ");
    let alias = node.alias.as_deref().filter(|_| node.kind == executed_plans::FILTER);
    MisestimatedNode {
        node: node.label(),
        condition: masked(&condition, SHORT_TEXT),
        relation: node.relation.clone(),
        columns: alias.map_or_else(Vec::new, |alias| tokens::columns(&condition, alias)),
        has_statistics: false,
        estimated: node.estimated,
        actual: node.actual.unwrap_or_default(),
        loops: node.loops,
        pages: node.blocks[0],
    }
}

/// Whether the optimizer has a histogram of one of the condition's columns; on MariaDB any statistics of one.
fn has_statistics(session: &mut dyn Session, server: &Server, node: &MisestimatedNode) -> Result<bool> {
    let Some((schema, table)) = node.relation.as_deref().and_then(|table| table.split_once('.')) else {
        return Ok(true);
    };
    let text = |text: &str| format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
    let (schema, table) = (text(schema), text(table));
    let columns: Vec<String> = node.columns.iter().map(|column| text(column)).collect();
    let (view, of) = if server.mariadb {
        ("mysql.column_stats", "db_name")
    } else {
        ("information_schema.COLUMN_STATISTICS", "SCHEMA_NAME")
    };
    let rows = session.query(&format!(
        "SELECT 1 FROM {view} WHERE {of} = {schema} AND TABLE_NAME = {table} AND COLUMN_NAME IN ({})",
        columns.join(", ")
    ))?;
    Ok(!rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_and_only_reads_is_executed() {
        let mut texts = SampledTexts::new(Some(ExplainSample::Writes));
        let mut of = |sent: &str, digest: &str| {
            texts.by_digest.insert(1, sent.to_owned());
            texts.executable(1, digest, &Server::staged(true, 101_100))
        };
        let digest = "SELECT ? FROM `t` WHERE `a` = ?";
        assert_eq!(of("select 1 from t where a = 5;", digest).unwrap(), "select 1 from t where a = 5");
        for (sent, why) in [
            ("select 1 from t where a = ?", "sent with parameters"),
            ("select 1 from t where a = 5 FOR/**/UPDATE", "it has UPDATE"),
            ("select 1 from t lock in share mode", "it has share"),
            ("select 1 into outfile '/tmp/x' from t", "it has into"),
            ("select get_lock('a', 5)", "it has get_lock"),
            ("select /*+ MAX_EXECUTION_TIME(9) */ 1", "it has MAX_EXECUTION_TIME"),
            ("select 1 /*!50000 from t */", "it has /*!"),
            ("select a from t where b = @v", "it has @"),
            ("select a from t where b like '%@secret'", "it has @"),
            ("select 1; drop table t", "semicolon"),
            ("select 'cut...", "longer than"),
            ("delete from t", "longer than"),
            ("call p()", "longer than"),
        ] {
            let refused = of(sent, digest).unwrap_err();
            assert!(refused.contains(why), "{sent}: {refused}");
        }
        for (digest, why) in
            [("DELETE FROM `t`", "changes data"), ("CALL `p` ( )", "not a query"), ("COMMIT", "not a query")]
        {
            assert!(of("select 1", digest).unwrap_err().contains(why));
        }
        assert!(
            texts
                .executable(2, digest, &Server::staged(true, 101_100))
                .unwrap_err()
                .contains("in no sampled session")
        );
        texts.by_text.insert(tokens::comparable(digest).unwrap(), "select 1 from t where a = 7".into());
        assert!(texts.executable(2, digest, &Server::staged(true, 101_100)).unwrap().ends_with('7'));
        assert!(texts.executable(2, digest, &Server::staged(false, 80_017)).unwrap_err().contains("8.0.18"));
    }

    #[test]
    fn a_text_is_kept_until_there_is_one_that_can_be_executed() {
        let mut texts = HashMap::new();
        for sent in [
            "select a from t where b = ?",
            "select a from t where b = 'cut...",
            "select a from t where b = 5",
        ] {
            keep(&mut texts, 1, sent.to_owned());
            assert_eq!(texts[&1], sent);
        }
        keep(&mut texts, 1, "select a from t where b = 6".to_owned());
        assert!(texts[&1].ends_with('5'));
    }

    #[test]
    fn no_limit_of_time_is_written_as_none() {
        let none = Duration::from_nanos(1);
        assert_eq!(limited(&Server::staged(true, 101_100), none), "SET SESSION max_statement_time = 0.001");
        assert_eq!(limited(&Server::staged(false, 80_031), none), "SET SESSION max_execution_time = 1");
    }

    #[test]
    fn a_statement_that_may_stop_early_is_known_by_its_text() {
        assert!(is_limited("select 1 from t LIMIT 5") && !is_limited("select limits from t"));
    }
}
