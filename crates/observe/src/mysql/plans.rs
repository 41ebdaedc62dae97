//! How the server would run a statement of which it has kept a text.
//!
//! Nothing is executed: `EXPLAIN FORMAT=JSON` in a transaction that is rolled back and, for queries that only read, may do no more. Of a digest MySQL keeps a
//! statement with its values; MariaDB does where the consumers of statements are on. Prepared statements have question marks in
//! either, and otherwise there is the digest's own text: each is then planned with the string '1', which every type can be
//! compared with and no index is lost by, and the plan says so.

use std::fmt::Write;

use kelvin_database::{Result, Session};
use kelvin_measure::observation::{QueryPlan, Scan};
use serde_json::Value;

use crate::server::statement_text::{hash, is_query};

/// What stands first in a plan that was made without the statement's own values.
const MADE_UP: &str = "planned with '1' in the place of each value";

/// The plan; none for what is no query, is cut off, or cannot be planned.
pub(super) fn plan(session: &mut dyn Session, sql: &str) -> Result<Option<QueryPlan>> {
    let Some((sql, made_up)) = with_values(sql) else { return Ok(None) };
    // Neither server explains in a transaction that may only read what would write if it were run.
    let reads = ["select", "with", "("]
        .iter()
        .any(|verb| sql.trim_start().get(..verb.len()).is_some_and(|first| first.eq_ignore_ascii_case(verb)));
    // A digest's text has a space before each bracket, with which a function is not found in the usual mode.
    session.run(
        "SET @kelvin_mode = @@SESSION.sql_mode, SESSION sql_mode = CONCAT(@@SESSION.sql_mode, ',IGNORE_SPACE')",
    )?;
    session.run(if reads { "START TRANSACTION READ ONLY" } else { "START TRANSACTION" })?;
    let json = session.query(&format!("EXPLAIN FORMAT=JSON {sql}"));
    session.run("ROLLBACK")?;
    session.run("SET SESSION sql_mode = @kelvin_mode")?;
    let json = json?;
    Ok(if json.is_empty() { None } else { parse(json.text(0, 0)?, made_up) })
}

/// The statement with a value for each of its question marks, and whether it had any; none for what is no single query. A text
/// with a semicolon may be two statements, of which EXPLAIN would be the first and the second would be run.
pub(super) fn with_values(sql: &str) -> Option<(String, bool)> {
    let sql = sql.trim().trim_end_matches(';').trim_end();
    // Both servers end a text that they have cut off so.
    if !is_query(sql) || sql.contains(';') || sql.ends_with("...") {
        return None;
    }
    let mut text = String::with_capacity(sql.len() + 16);
    let (mut made_up, mut word, mut counts) = (false, String::new(), false);
    let mut rest = sql.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' | '`' => {
                text.push(c);
                while let Some(inner) = rest.next() {
                    text.push(inner);
                    if inner == '\\' && c != '`' {
                        text.extend(rest.next());
                    } else if inner == c {
                        break;
                    }
                }
                counts = false;
            }
            // A number of rows is no string.
            '?' => {
                text.push_str(if counts { "1" } else { "'1'" });
                made_up = true;
            }
            // A list of any length.
            '.' if text.ends_with('(') && rest.peek() == Some(&'.') => {
                while rest.next_if_eq(&'.').is_some() {}
                text.push_str("'1'");
                made_up = true;
            }
            c => {
                text.push(c);
                if c.is_alphanumeric() || c == '_' {
                    word.push(c.to_ascii_lowercase());
                    if !matches!(rest.peek(), Some(next) if next.is_alphanumeric() || *next == '_') {
                        counts = matches!(word.as_str(), "limit" | "offset");
                        word.clear();
                    }
                } else if !c.is_whitespace() && c != ',' {
                    counts = false;
                }
            }
        }
    }
    Some((text, made_up))
}

/// The plan in EXPLAIN's JSON; none when it is none, or reads no table.
fn parse(json: &str, made_up: bool) -> Option<QueryPlan> {
    let value: Value = serde_json::from_str(json).ok()?;
    let mut found = PlanContent { shape: String::new(), text: String::new(), scans: Vec::new() };
    if made_up {
        found.text.push_str(MADE_UP);
        found.text.push('\n');
    }
    found.walk(value.get("query_block")?, 0);
    if found.scans.is_empty() {
        return None;
    }
    let hash = format!("{:016x}", hash(&found.shape));
    Some(QueryPlan { hash, text: found.text.trim_end().to_owned(), scans: found.scans, faster: None })
}

struct PlanContent {
    shape: String,
    text: String,
    scans: Vec<Scan>,
}

impl PlanContent {
    /// Adds what an object holds. Costs and numbers of rows are values and not objects, and the two servers have other names for
    /// what is around their tables.
    fn walk(&mut self, value: &Value, depth: usize) {
        match value {
            Value::Object(object) => {
                for (name, inner) in object {
                    let is_of_plan = inner.is_object()
                        || inner.as_array().is_some_and(|all| all.iter().any(Value::is_object));
                    if !is_of_plan || name == "cost_info" {
                        continue;
                    }
                    let _infallible = write!(self.shape, "({name}");
                    let mut depth = depth;
                    if name == "table" {
                        self.table(inner, depth);
                    } else if name != "nested_loop" {
                        let _infallible = writeln!(self.text, "{:1$}{name}", "", depth * 2);
                        depth += 1;
                    }
                    self.walk(inner, depth);
                    self.shape.push(')');
                }
            }
            Value::Array(all) => all.iter().for_each(|inner| self.walk(inner, depth)),
            _ => {}
        }
    }

    fn table(&mut self, table: &Value, depth: usize) {
        let text = |key: &str| table.get(key).and_then(Value::as_str);
        let (Some(name), Some(access)) = (text("table_name"), text("access_type")) else { return };
        let index = text("key");
        let _infallible = write!(self.shape, "|{name}|{access}|{}", index.unwrap_or_default());
        let mut line = format!("{name}: {access}");
        if let Some(index) = index {
            let parts = table.get("used_key_parts").and_then(Value::as_array);
            let parts: Vec<&str> = parts.into_iter().flatten().filter_map(Value::as_str).collect();
            let _infallible = write!(line, " on {index} ({})", parts.join(", "));
        }
        let rows = table.get("rows_examined_per_scan").or_else(|| table.get("rows"));
        if let Some(rows) = rows.and_then(Value::as_u64) {
            let _infallible = write!(line, ", {rows} rows");
        }
        let _infallible = writeln!(self.text, "{:1$}{line}", "", depth * 2);
        // Named as PostgreSQL's: what reads all of a table is found by it.
        let node = if access.eq_ignore_ascii_case("all") { "Seq Scan" } else { access };
        self.scans.push(Scan {
            node: node.to_owned(),
            relation: name.to_owned(),
            index: index.map(str::to_owned),
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_single_queries_are_planned_and_with_a_value_for_each_that_is_missing() {
        for (sql, expected, made_up) in [
            (
                "SELECT `c` FROM `t` WHERE `id` = ? LIMIT ?",
                "SELECT `c` FROM `t` WHERE `id` = '1' LIMIT 1",
                true,
            ),
            (
                "select 1 from t where a in (...) limit ?, ?",
                "select 1 from t where a in ('1') limit 1, 1",
                true,
            ),
            ("SELECT * FROM t WHERE limit_of = ?;", "SELECT * FROM t WHERE limit_of = '1'", true),
            (
                "(SELECT '?' FROM `a?b` WHERE c = \"?\\\"?\")",
                "(SELECT '?' FROM `a?b` WHERE c = \"?\\\"?\")",
                false,
            ),
        ] {
            assert_eq!(with_values(sql), Some((expected.to_owned(), made_up)), "{sql}");
        }
        for sql in [
            "COMMIT",
            "CALL p(?)",
            "SELECT 1; DROP TABLE t",
            "SELECT `a` FROM ...",
            "selectx",
            "",
            "SHOW TABLES",
        ] {
            assert_eq!(with_values(sql), None, "{sql}");
        }
    }

    const MYSQL: &str = r#"{"query_block": {"select_id": 1, "cost_info": {"query_cost": "1.00"}, "nested_loop": [
        {"table": {"table_name": "d", "access_type": "const", "possible_keys": ["PRIMARY"], "key": "PRIMARY",
         "used_key_parts": ["d_w_id", "d_id"], "rows_examined_per_scan": 1, "cost_info": {"read_cost": "0.00"}}},
        {"table": {"table_name": "s", "access_type": "ALL", "rows_examined_per_scan": 100000,
         "attached_condition": "(`k`.`s`.`s_quantity` < 10)"}}]}}"#;
    const MARIADB: &str = r#"{"query_block": {"select_id": 1, "cost": 0.1, "filesort": {"sort_key": "h.a", "temporary_table": {
        "nested_loop": [{"table": {"table_name": "h", "access_type": "range", "key": "k", "key_length": "4",
         "used_key_parts": ["a"], "rows": 20, "filtered": 100}}]}}}}"#;

    #[test]
    fn both_servers_plans_are_read() {
        let plan = parse(MYSQL, false).unwrap();
        assert_eq!(plan.text, "d: const on PRIMARY (d_w_id, d_id), 1 rows\ns: ALL, 100000 rows");
        assert_eq!((plan.scans[1].node.as_str(), plan.scans[1].relation.as_str()), ("Seq Scan", "s"));
        assert_eq!(
            parse(&MYSQL.replace("100000", "7").replace("1.00", "2.00"), true).unwrap().hash,
            plan.hash
        );
        assert_ne!(parse(&MYSQL.replace("\"ALL\"", "\"index\""), false).unwrap().hash, plan.hash);
        let plan = parse(MARIADB, true).unwrap();
        assert_eq!(
            plan.text,
            format!("{MADE_UP}\nfilesort\n  temporary_table\n    h: range on k (a), 20 rows")
        );
        for none in ["", "{}", "[]", r#"{"query_block": {"table": {"message": "Impossible WHERE"}}}"#] {
            assert_eq!(parse(none, false), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_readers_panic(text in ".{0,200}", tail in "[a-z?'\"`;.( ,]{0,60}") {
            let _ = (with_values(&text), parse(&text, true));
            let planned = with_values(&format!("select {tail}"));
            prop_assert!(planned.is_none_or(|(sql, _)| !sql.contains(';')));
        }
    }
}
