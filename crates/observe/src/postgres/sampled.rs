//! Executions of the load's statements for the rows of their plans: `EXPLAIN (ANALYZE)` with the values that a session has sent, in a
//! transaction that is rolled back.

use std::collections::HashMap;
use std::time::Instant;

use kelvin_database::postgres::MARK;
use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::StatementTotals;
use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};

use super::link::Link;
use super::sql::V14;
use crate::server::figures::SHORT_TEXT;
use crate::server::sampled::{self, MOST_NODES, MOST_TEXTS, TIMES};
use crate::server::statement_text::{first_word, masked};
use crate::watch_plan::ExplainSample;

/// What was seen of a statement in `pg_stat_activity`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SentText {
    /// With its values. It is never stored.
    Complete(String),
    /// With parameters, whose values the server does not show.
    Parameters,
    /// Cut at `track_activity_query_size`.
    Cut,
}

/// Keeps statements as they were sent, and executes them.
#[derive(Debug)]
pub(super) struct SampledTexts {
    which: Option<ExplainSample>,
    sent: HashMap<i64, SentText>,
}

impl SampledTexts {
    pub(super) fn new(which: Option<ExplainSample>) -> Self {
        Self { which, sent: HashMap::new() }
    }

    /// Reads what the sessions of our own role have sent last. A reading that fails is left out.
    pub(super) fn collect(&mut self, link: &mut Link) {
        if self.which.is_none() || link.about.version < V14 {
            return;
        }
        let Ok(seen) = link.with(|session, _| read(session)) else { return };
        for (query, text) in seen {
            let known = self.sent.get(&query).is_some_and(|known| matches!(known, SentText::Complete(_)));
            // One that can be executed is kept; a later one has other values, and is no better.
            if !known && (self.sent.len() < MOST_TEXTS || self.sent.contains_key(&query)) {
                self.sent.insert(query, text);
            }
        }
    }

    /// Executes these statements; the window ended at `ended`. `texts` has the normalised text of each, and whether it is of our own
    /// role.
    pub(super) fn execute(
        &mut self,
        link: &mut Link,
        ended: Instant,
        top: &mut [StatementTotals],
        texts: &HashMap<i64, (String, bool)>,
    ) {
        if self.which.is_none() {
            return;
        }
        for one in top {
            let Some((text, ours)) = texts.get(&one.query) else { continue };
            let executed = self.executable(one.query, text, *ours, link.about.version).and_then(|sql| {
                let limit = sampled::limit(ended)?.as_millis();
                link.with(|session, _| {
                    Ok(analyze(session, &sql, limit).unwrap_or_else(|error| sampled::refused(&error)))
                })
            });
            one.sample = Some(executed.unwrap_or_else(SampledExecution::Refused));
        }
        self.sent.clear();
    }

    /// The text to execute, or why there is none.
    fn executable(
        &self,
        query: i64,
        text: &str,
        ours: bool,
        version: i64,
    ) -> std::result::Result<String, String> {
        if !ours {
            return Err("statement of another role: it would run with this role's privileges".into());
        }
        match first_word(text).as_str() {
            "select" | "with" => {}
            "insert" | "update" | "delete" | "merge" if self.which == Some(ExplainSample::Writes) => {}
            "insert" | "update" | "delete" | "merge" => {
                return Err("it changes data, and is executed only on request".into());
            }
            _ => return Err("not a query".into()),
        }
        if !has_parameters(text) {
            return Ok(text.to_owned());
        }
        match self.sent.get(&query) {
            Some(SentText::Complete(sent)) if first_word(sent) != first_word(text) => {
                Err("sent within another statement, such as EXECUTE".into())
            }
            Some(SentText::Complete(sent)) => Ok(sent.clone()),
            Some(SentText::Parameters) => {
                Err("sent with parameters, whose values the server does not show".into())
            }
            Some(SentText::Cut) => Err("longer than track_activity_query_size".into()),
            None if version < V14 => {
                Err("its values are not known: pg_stat_activity has query identifiers since PostgreSQL 14"
                    .into())
            }
            None => Err("its values are not known: it was in no sampled session".into()),
        }
    }
}

/// What sessions run or have run last, by the statement's identifier.
fn read(session: &mut dyn Session) -> Result<Vec<(i64, SentText)>> {
    let rows = session.query(&format!(
        "SELECT {MARK} DISTINCT ON (query_id) query_id, query, \
         octet_length(query) >= (SELECT setting::int8 - 4 FROM pg_settings WHERE name = 'track_activity_query_size') \
         FROM pg_stat_activity WHERE query_id IS NOT NULL AND backend_type = 'client backend' \
         AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid() \
         AND query NOT LIKE '%{MARK}%' ORDER BY query_id, query_start DESC"
    ))?;
    let one = |row| {
        let text = rows.text(row, 1)?;
        let sent = match rows.int(row, 2)? {
            1 => SentText::Cut,
            _ if has_parameters(text) => SentText::Parameters,
            _ => SentText::Complete(text.to_owned()),
        };
        Ok((rows.int(row, 0)?, sent))
    };
    (0..rows.len()).map(one).collect()
}

/// Whether it has a parameter: a dollar and a digit. In a string they are one too many, which leaves the statement out.
fn has_parameters(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair[0] == b'$' && pair[1].is_ascii_digit())
}

/// Executes a statement, for so many milliseconds at most, and rolls back. It is prepared, since the server then refuses a text of several statements, of which only the first
/// would be explained.
fn analyze(session: &mut dyn Session, sql: &str, patience: u128) -> Result<SampledExecution> {
    let writes = matches!(first_word(sql).as_str(), "insert" | "update" | "delete" | "merge");
    let access = if writes { "READ WRITE" } else { "READ ONLY" };
    session.run(&format!("BEGIN {MARK} {access}"))?;
    let executed = in_transaction(session, sql, patience);
    // A session's advisory locks outlive the transaction, and the load would wait for them.
    session.run(&format!("ROLLBACK; SELECT {MARK} pg_advisory_unlock_all()"))?;
    executed
}

fn in_transaction(session: &mut dyn Session, sql: &str, patience: u128) -> Result<SampledExecution> {
    // The observers' own connections plan without JIT and workers: the load's does not.
    for setting in [
        format!("statement_timeout = {patience}"),
        "jit = DEFAULT".into(),
        "max_parallel_workers_per_gather = DEFAULT".into(),
    ] {
        session.run(&format!("SET {MARK} LOCAL {setting}"))?;
    }
    let explain = format!("EXPLAIN {MARK} (ANALYZE, VERBOSE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}");
    let statement = session.prepare(&explain)?;
    let mut rows = Rows::default();
    session.execute(statement, &[], &mut rows)?;
    let lines: Result<Vec<&str>> = (0..rows.len()).map(|row| rows.text(row, 0)).collect();
    let Some(plan) = Plan::parse(&lines?.join("\n")) else {
        return Ok(SampledExecution::Refused("the server's plan cannot be read".into()));
    };
    // Those below, which explain the others, come last.
    let all = plan.all_misestimated(TIMES);
    let above = all.len().saturating_sub(MOST_NODES);
    let mut misestimates: Vec<MisestimatedNode> = all.into_iter().skip(above).map(describe).collect();
    for one in &mut misestimates {
        one.has_statistics = has_statistics(session, one)?;
    }
    Ok(SampledExecution::Executed { took_ms: plan.execution_ms.unwrap_or_default(), misestimates })
}

fn describe(node: &Node) -> MisestimatedNode {
    MisestimatedNode {
        node: node.label(),
        condition: masked(&node.conditions.join(" AND "), SHORT_TEXT),
        relation: node.relation.clone(),
        columns: node.equal_columns(),
        has_statistics: false,
        estimated: node.estimated,
        actual: node.actual.unwrap_or_default(),
        loops: node.loops,
        pages: node.blocks[0] + node.blocks[1],
    }
}

/// Whether the table has a statistics object on all of the node's columns.
fn has_statistics(session: &mut dyn Session, node: &MisestimatedNode) -> Result<bool> {
    let Some(relation) = node.relation.as_ref().filter(|_| node.columns.len() > 1) else { return Ok(false) };
    let text = |text: &String| format!("'{}'", text.replace('\'', "''"));
    let columns: Vec<String> = node.columns.iter().map(text).collect();
    let rows = session.query(&format!(
        "SELECT {MARK} count(*)::int8 FROM pg_statistic_ext JOIN pg_class AS c ON c.oid = stxrelid \
         JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname || '.' || c.relname = {} \
         AND (SELECT count(*) FROM pg_attribute AS a WHERE a.attrelid = stxrelid AND a.attnum = ANY (stxkeys) \
          AND a.attname IN ({})) = {}",
        text(relation),
        columns.join(", "),
        columns.len()
    ))?;
    Ok(rows.int(0, 0)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_ours_known_and_asked_for_is_executed() {
        let mut texts = SampledTexts::new(Some(ExplainSample::Reads));
        texts.sent.insert(1, SentText::Complete("select 1 from t where a = 5".into()));
        texts.sent.insert(2, SentText::Parameters);
        texts.sent.insert(3, SentText::Cut);
        let normalised = "select 1 from t where a = $1";
        let of = |texts: &SampledTexts, query, text, ours| texts.executable(query, text, ours, V14);
        assert_eq!(of(&texts, 1, normalised, true).unwrap(), "select 1 from t where a = 5");
        assert_eq!(of(&texts, 9, "select count(*) from t", true).unwrap(), "select count(*) from t");
        for (query, text, ours, why) in [
            (1, normalised, false, "another role"),
            (2, normalised, true, "sent with parameters"),
            (3, normalised, true, "track_activity_query_size"),
            (4, normalised, true, "in no sampled session"),
            (1, "delete from t", true, "changes data"),
            (1, "vacuum t", true, "not a query"),
        ] {
            let refused = of(&texts, query, text, ours).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        texts.which = Some(ExplainSample::Writes);
        assert!(of(&texts, 1, "delete from t", true).is_ok());
        texts.sent.insert(1, SentText::Complete("execute p(5)".into()));
        assert!(of(&texts, 1, normalised, true).unwrap_err().contains("EXECUTE"));
    }
}
