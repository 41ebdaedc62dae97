//! How the server would run a statement of which only the normalised text is known.
//!
//! Nothing is executed: `EXPLAIN` without `ANALYZE`, in a session whose transactions may only read. From 16
//! on `GENERIC_PLAN` takes the text with its placeholders; before, it is prepared and the generic plan of its execution
//! with NULLs asked for, which plans the same way (except that partitions are left out at once, since no key is NULL).

use std::fmt::Write;

use kelvin_database::postgres::MARK;
use kelvin_database::{Result, Session};
use kelvin_measure::observation::{QueryPlan, Scan};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::sql::V16;
use crate::server::statement_text::is_query;

/// What planning one statement may take, in milliseconds.
const PATIENCE_MS: u32 = 1000;

/// A plan, and all of it as JSON.
pub(super) struct Explained {
    pub(super) plan: QueryPlan,
    pub(super) json: String,
}

/// The plan; none for what is no query or cannot be planned without its values.
pub(super) fn plan(session: &mut dyn Session, version: i64, text: &str) -> Result<Option<Explained>> {
    if !is_query(text) {
        return Ok(None);
    }
    let (json, text) = if version >= V16 { generic(session, text)? } else { prepared(session, text)? };
    Ok(parse(&json).map(|(hash, scans)| Explained { plan: QueryPlan { hash, text, scans }, json }))
}

fn generic(session: &mut dyn Session, text: &str) -> Result<(String, String)> {
    let json = lines(session, &format!("EXPLAIN {MARK} (GENERIC_PLAN, VERBOSE, FORMAT JSON) {text}"))?;
    Ok((json, lines(session, &format!("EXPLAIN {MARK} (GENERIC_PLAN) {text}"))?))
}

fn prepared(session: &mut dyn Session, text: &str) -> Result<(String, String)> {
    session.run(&format!("PREPARE {MARK} kelvin_plan AS {text}"))?;
    let outputs = explain_prepared(session);
    session.run("DEALLOCATE kelvin_plan")?;
    outputs
}

fn explain_prepared(session: &mut dyn Session) -> Result<(String, String)> {
    let count = session
        .query(&format!(
            "SELECT {MARK} coalesce(cardinality(parameter_types), 0) FROM pg_prepared_statements \
             WHERE name = 'kelvin_plan'"
        ))?
        .int(0, 0)?;
    let nulls = vec!["NULL"; count.max(0) as usize].join(", ");
    let execute =
        if count > 0 { format!("EXECUTE kelvin_plan({nulls})") } else { "EXECUTE kelvin_plan".into() };
    let json = lines(session, &format!("EXPLAIN {MARK} (VERBOSE, FORMAT JSON) {execute}"))?;
    Ok((json, lines(session, &format!("EXPLAIN {MARK} {execute}"))?))
}

/// Runs an EXPLAIN. What is set before it holds to the end of this one message.
fn lines(session: &mut dyn Session, sql: &str) -> Result<String> {
    let rows = session.query(&format!(
        "SELECT {MARK} set_config('statement_timeout', '{PATIENCE_MS}', true), \
         set_config('plan_cache_mode', 'force_generic_plan', true); {sql}"
    ))?;
    let lines: Result<Vec<&str>> = (0..rows.len()).map(|row| rows.text(row, 0)).collect();
    Ok(lines?.join("\n"))
}

/// The hash and the scans of a plan in EXPLAIN's JSON; none when it is none.
fn parse(json: &str) -> Option<(String, Vec<Scan>)> {
    let value: Value = serde_json::from_str(json).ok()?;
    let root = value.get(0)?.get("Plan")?;
    let (mut shape, mut scans) = (String::new(), Vec::new());
    walk(root, &mut shape, &mut scans)?;
    let digest = Sha256::digest(shape.as_bytes());
    let mut hash = String::with_capacity(16);
    for byte in digest.iter().take(8) {
        let _infallible = write!(hash, "{byte:02x}");
    }
    Some((hash, scans))
}

/// Adds a node and those below it, in the plan's order; none for what is not a node.
fn walk(node: &Value, shape: &mut String, scans: &mut Vec<Scan>) -> Option<()> {
    let text = |key: &str| node.get(key).and_then(Value::as_str);
    let kind = text("Node Type")?;
    let qualified =
        |name: &str| text("Schema").map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
    let relation = text("Relation Name").map(qualified);
    let index = text("Index Name").map(qualified);
    let _infallible = write!(
        shape,
        "({kind}|{}|{}",
        relation.as_deref().unwrap_or_default(),
        index.as_deref().unwrap_or_default()
    );
    let below = node.get("Plans").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if let Some(relation) = relation.filter(|_| kind.ends_with("Scan")) {
        // The index of a bitmap is named below the heap's scan.
        let index = index.or_else(|| below.iter().find_map(|child| bitmap_index(child, &relation)));
        scans.push(Scan { node: kind.to_owned(), relation, index });
    }
    for child in below {
        walk(child, shape, scans)?;
    }
    shape.push(')');
    Some(())
}

/// The first index of a bitmap, in the schema of its relation.
fn bitmap_index(node: &Value, relation: &str) -> Option<String> {
    if let Some(name) = node.get("Index Name").and_then(Value::as_str) {
        let schema = relation.split_once('.').map(|(schema, _)| format!("{schema}."));
        return Some(format!("{}{name}", schema.unwrap_or_default()));
    }
    node.get("Plans")?.as_array()?.iter().find_map(|child| bitmap_index(child, relation))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(index: &str, cost: f64) -> String {
        format!(
            r#"[{{"Plan": {{"Node Type": "Nested Loop", "Total Cost": {cost}, "Plans": [
            {{"Node Type": "Index Scan", "Schema": "public", "Relation Name": "stock", "Index Name": "{index}"}},
            {{"Node Type": "Bitmap Heap Scan", "Schema": "public", "Relation Name": "item", "Plans": [
             {{"Node Type": "BitmapAnd", "Plans": [{{"Node Type": "Bitmap Index Scan", "Index Name": "item_a"}},
              {{"Node Type": "Bitmap Index Scan", "Index Name": "item_b"}}]}}]}}]}}}}]"#
        )
    }

    #[test]
    fn the_hash_follows_the_way_and_not_the_costs() {
        let (hash, scans) = parse(&json("stock_pkey", 1.0)).unwrap();
        assert_eq!(hash.len(), 16);
        assert_eq!(parse(&json("stock_pkey", 99.0)).unwrap().0, hash);
        assert_ne!(parse(&json("stock_other", 1.0)).unwrap().0, hash);
        let short: Vec<_> = scans
            .iter()
            .map(|scan| (scan.node.as_str(), scan.relation.as_str(), scan.index.as_deref()))
            .collect();
        assert_eq!(
            short,
            [
                ("Index Scan", "public.stock", Some("public.stock_pkey")),
                ("Bitmap Heap Scan", "public.item", Some("public.item_a"))
            ]
        );
        for bad in ["", "[]", "{}", "[{\"Plan\": 1}]", "[{\"Plan\": {\"Plans\": []}}]"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in ".{0,200}") {
            let _ = parse(&text);
        }
    }
}
