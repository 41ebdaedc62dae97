//! Executions of the load's statements for the rows of their plans: `ANALYZE FORMAT=JSON` (MariaDB) or `EXPLAIN ANALYZE` (MySQL) with the
//! values that a session has sent, in a transaction that may only read.

use std::collections::HashMap;
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
use crate::server::sampled::{ALL, LIMIT, MOST_NODES, MOST_TEXTS, TIMES};
use crate::server::statement_text::{first_word, masked};
use crate::watch_plan::ExplainSample;

/// MySQL executes statements for their plans since this version.
const EXPLAIN_ANALYZE: u32 = 80_018;

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
}

impl SampledTexts {
    pub(super) fn new(which: Option<ExplainSample>) -> Self {
        Self { which, by_digest: HashMap::new(), by_text: HashMap::new() }
    }

    /// Reads what the sessions of our own account execute or have executed last. A reading that fails is left out.
    pub(super) fn collect(&mut self, link: &mut Link) {
        if self.which.is_none() {
            return;
        }
        for (digest, sent) in link.with(|session, _| executed(session)).unwrap_or_default() {
            // One that can be executed is kept; a later one has other values, and is no better.
            if self.by_digest.len() < MOST_TEXTS {
                self.by_digest.entry(digest).or_insert(sent);
            }
        }
        for sent in link.with(|session, _| running(session)).unwrap_or_default() {
            if self.by_text.len() < MOST_TEXTS
                && let Some(comparable) = tokens::comparable(&sent)
            {
                self.by_text.entry(comparable).or_insert(sent);
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
                let left = ALL.saturating_sub(ended.elapsed());
                if left.is_zero() {
                    return Err(format!("the previous statements took {} s", ALL.as_secs()));
                }
                // The server's own message may repeat values.
                link.with(|session, server| {
                    Ok(analyze(session, server, &sql, LIMIT.min(left)).unwrap_or_else(|error| {
                        let code = error.code().to_owned();
                        SampledExecution::Refused(format!("the server ended it with the error {code}"))
                    }))
                })
            });
            one.sample = Some(executed.unwrap_or_else(SampledExecution::Refused));
        }
        self.by_digest.clear();
        self.by_text.clear();
    }

    /// The text to execute, or why there is none.
    fn executable(&self, query: i64, digest: &str, server: &Server) -> std::result::Result<String, String> {
        if !server.mariadb && server.version < EXPLAIN_ANALYZE {
            return Err("MySQL executes statements for their plans since 8.0.18".into());
        }
        match first_word(digest).as_str() {
            "select" | "with" => {}
            "insert" | "update" | "delete" | "replace" => {
                return Err("it changes data, and is not executed on MySQL and MariaDB".into());
            }
            _ => return Err("not a query".into()),
        }
        let by_text = || self.by_text.get(&tokens::comparable(digest)?);
        let sent = self.by_digest.get(&query).or_else(by_text);
        let sent = sent.ok_or("its values are not known: it was in no sampled session of this account")?;
        if let Some(word) = refused(sent) {
            return Err(format!("it may lock rows, write a file or change its limit of time: it has {word}"));
        }
        match plans::with_values(sent) {
            Some((_, true)) => Err("sent with parameters, whose values the server does not show".into()),
            Some((sql, false)) if matches!(first_word(&sql).as_str(), "select" | "with") => Ok(sql),
            _ => Err("it is longer than performance_schema_max_sql_text_length, or has a semicolon".into()),
        }
    }
}

/// The first of the words that a query to be executed must not have. A comment that the server executes is one.
fn refused(sql: &str) -> Option<&str> {
    let words = sql.split(|c| !tokens::is_of_word(c));
    let found =
        words.into_iter().find(|word| REFUSED.iter().any(|refused| word.eq_ignore_ascii_case(refused)));
    found.or_else(|| ["/*!", "/*M!"].into_iter().find(|comment| sql.contains(comment)))
}

/// Statements by the first 64 bits of their digest, where the server keeps a session's last ones.
fn executed(session: &mut dyn Session) -> Result<Vec<(i64, String)>> {
    let rows = session.query(&format!(
        "SELECT CAST(CONV(LEFT(h.DIGEST, 16), 16, -10) AS SIGNED), MIN(h.SQL_TEXT) \
         FROM performance_schema.events_statements_history h JOIN performance_schema.threads t ON t.THREAD_ID = h.THREAD_ID \
         WHERE h.DIGEST IS NOT NULL AND h.SQL_TEXT IS NOT NULL AND h.CURRENT_SCHEMA = DATABASE() \
         AND t.PROCESSLIST_USER = {OURS} AND t.PROCESSLIST_ID <> CONNECTION_ID() GROUP BY 1"
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
    let limited = |limit: Duration| {
        if server.mariadb {
            format!("SET SESSION max_statement_time = {}", limit.as_secs_f64())
        } else {
            format!("SET SESSION max_execution_time = {}", limit.as_millis().max(1))
        }
    };
    session.run("START TRANSACTION READ ONLY")?;
    session.run(&limited(limit))?;
    let executed = in_transaction(session, server, sql);
    session.run("ROLLBACK")?;
    session.run(&limited(PATIENCE))?;
    // A session's named locks outlive the transaction, and the load would wait for them. Older servers have no such function.
    let _unknown = session.run("DO RELEASE_ALL_LOCKS()");
    executed
}

fn in_transaction(session: &mut dyn Session, server: &Server, sql: &str) -> Result<SampledExecution> {
    session.run(&format!("EXPLAIN {}{sql}", if server.mariadb { "EXTENDED " } else { "" }))?;
    let notes = session.query("SHOW WARNINGS")?;
    let tables = match warning(&notes, &[1003])? {
        Some(row) => tokens::tables(text(&notes, row, 2)?),
        None => HashMap::new(),
    };
    let plan = if server.mariadb {
        let rows = session.query(&format!("ANALYZE FORMAT=JSON {sql}"))?;
        executed_plans::parse_json(of_first_row(&rows)?, &tables, is_limited(sql))
    } else {
        let rows = session.query(&format!("EXPLAIN ANALYZE {sql}"))?;
        // MySQL returns the rows until then, and no error.
        if warning(&session.query("SHOW WARNINGS")?, &[1317, 3024])?.is_some() {
            return Ok(SampledExecution::Refused("it was ended at its limit of time".into()));
        }
        executed_plans::parse_tree(of_first_row(&rows)?, &tables)
    };
    match plan {
        Ok(plan) => Ok(found(session, server, &plan)),
        Err(why) => Ok(SampledExecution::Refused(format!("the server's plan cannot be read: {why}"))),
    }
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

    fn server(mariadb: bool, version: u32) -> Server {
        Server {
            mariadb,
            version,
            started: 0,
            performance_schema: true,
            waits: false,
            transactions: true,
            connection: 0,
            user: String::new(),
        }
    }

    #[test]
    fn only_what_is_known_and_only_reads_is_executed() {
        let mut texts = SampledTexts::new(Some(ExplainSample::Writes));
        let mut of = |sent: &str, digest: &str| {
            texts.by_digest.insert(1, sent.to_owned());
            texts.executable(1, digest, &server(true, 101_100))
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
                .executable(2, digest, &server(true, 101_100))
                .unwrap_err()
                .contains("in no sampled session")
        );
        texts.by_text.insert(tokens::comparable(digest).unwrap(), "select 1 from t where a = 7".into());
        assert!(texts.executable(2, digest, &server(true, 101_100)).unwrap().ends_with('7'));
        assert!(texts.executable(2, digest, &server(false, 80_017)).unwrap_err().contains("8.0.18"));
    }

    #[test]
    fn a_statement_that_may_stop_early_is_known_by_its_text() {
        assert!(is_limited("select 1 from t LIMIT 5") && !is_limited("select limits from t"));
    }
}
