//! How the server would run a statement of which only the normalised text is known.
//!
//! Nothing is executed: `EXPLAIN` without `ANALYZE`, in a session whose transactions may only read. From 16
//! on `GENERIC_PLAN` takes the text with its placeholders; before, it is prepared and the generic plan of its execution
//! with NULLs asked for, which plans the same way (except that partitions are left out at once, since no key is NULL).

use kelvin_database::postgres::MARK;
use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_database::{Result, Session};
use kelvin_measure::observation::{QueryPlan, Scan};

use super::sql::V16;
use crate::server::statement_text::{hash, is_query};

/// What planning one statement may take, in milliseconds.
const PATIENCE_MS: u32 = 1000;

/// `plan_cache_mode` for a prepared statement's plan without values.
const GENERIC: &str = "force_generic_plan";

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
    Ok(parse(&json)
        .map(|(hash, scans)| Explained { plan: QueryPlan { hash, text, scans, faster: None }, json }))
}

fn generic(session: &mut dyn Session, text: &str) -> Result<(String, String)> {
    let explain = |options: &str| format!("EXPLAIN {MARK} ({options}) {text}");
    let json = lines(session, GENERIC, &explain("GENERIC_PLAN, VERBOSE, FORMAT JSON"))?;
    Ok((json, lines(session, GENERIC, &explain("GENERIC_PLAN"))?))
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
    let json = lines(session, GENERIC, &format!("EXPLAIN {MARK} (VERBOSE, FORMAT JSON) {execute}"))?;
    Ok((json, lines(session, GENERIC, &format!("EXPLAIN {MARK} {execute}"))?))
}

/// Runs an EXPLAIN. The settings hold to the end of this message, which is one transaction: planning may run functions, and
/// those must not write.
pub(super) fn lines(session: &mut dyn Session, mode: &str, sql: &str) -> Result<String> {
    let rows = session.query(&format!(
        "SELECT {MARK} set_config('statement_timeout', '{PATIENCE_MS}', true), \
         set_config('transaction_read_only', 'on', true), \
         set_config('plan_cache_mode', '{mode}', true); {sql}"
    ))?;
    let lines: Result<Vec<&str>> = (0..rows.len()).map(|row| rows.text(row, 0)).collect();
    Ok(lines?.join("\n"))
}

/// What identifies a plan, whatever it costs.
pub(super) fn plan_hash(plan: &Plan) -> String {
    format!("{:016x}", hash(&plan.shape()))
}

/// The hash and the scans of a plan in EXPLAIN's JSON; none when it is none.
fn parse(json: &str) -> Option<(String, Vec<Scan>)> {
    let plan = Plan::parse(json)?;
    let scan = |node: &Node| {
        let relation = node.relation.clone().filter(|_| node.kind.ends_with("Scan"))?;
        // The index of a bitmap is named below the heap's scan.
        let index =
            node.index.clone().or_else(|| node.below.iter().find_map(|below| below.bitmap_index(&relation)));
        Some(Scan { node: node.kind.clone(), relation, index })
    };
    let scans = plan.nodes().into_iter().filter_map(scan).collect();
    Some((plan_hash(&plan), scans))
}

#[cfg(test)]
mod tests {
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
    }
}
