//! What a prepared statement with a generic plan would cost with a plan for its values, by the planner.
//!
//! The values of the load are not known. Those that the planner's statistics have are: the most common one of each column that is
//! compared with a parameter, and a rare one. A statement with a parameter of another kind is left out, and one that reads
//! partitions: which of them a generic plan reads is decided when it is executed, and its cost is that of all.

use std::collections::BTreeMap;

use kelvin_database::postgres::MARK;
use kelvin_database::postgres::explain::{Node, Plan, equal_parameters};
use kelvin_database::{Result, Rows, Session};
use kelvin_measure::observation::CustomPlan;
use serde_json::Value;

use super::plans::{Explained, lines, plan_hash};

/// A column that a parameter is compared with.
#[derive(Debug, Clone, PartialEq)]
struct ComparedColumn {
    schema: String,
    table: String,
    column: String,
}

/// The cheapest plan for a set of values, if it is another one than the generic plan and costs less.
pub(super) fn cheapest(
    session: &mut dyn Session,
    text: &str,
    generic: &Explained,
) -> Result<Option<CustomPlan>> {
    let Ok(json) = serde_json::from_str::<Value>(&generic.json) else { return Ok(None) };
    let Some(plan) = Plan::from_value(&json[0]) else { return Ok(None) };
    let Some(generic_cost) = plan.cost else { return Ok(None) };
    let mut columns = BTreeMap::new();
    find_columns(&json[0]["Plan"], &mut columns);
    // Before 16 partitions are left out of this plan as well, since it is made for NULLs.
    let leaves_out = plan.nodes().iter().any(|node| node.partitions_removed > 0);
    if columns.is_empty() || leaves_out || reads_partitions(session, &appended(&plan.root))? {
        return Ok(None);
    }
    let mut known = Vec::new();
    for column in columns.values() {
        let Some(values) = common_and_rare(session, column)? else { return Ok(None) };
        known.push(values);
    }
    session.run(&format!("PREPARE {MARK} kelvin_custom AS {text}"))?;
    let found = compare(session, &columns, &known);
    session.run("DEALLOCATE kelvin_custom")?;
    let cheaper = found?.into_iter().filter(|one| one.hash != generic.plan.hash && one.cost < generic_cost);
    Ok(cheaper.min_by(|a, b| a.cost.total_cmp(&b.cost)).map(|one| CustomPlan { generic_cost, ..one }))
}

/// The plans for all of the common values, and for all of the rare ones.
fn compare(
    session: &mut dyn Session,
    columns: &BTreeMap<usize, ComparedColumn>,
    known: &[[String; 2]],
) -> Result<Vec<CustomPlan>> {
    let count = session.query(&format!(
        "SELECT {MARK} coalesce(cardinality(parameter_types), 0)::int8 FROM pg_prepared_statements WHERE name = 'kelvin_custom'"
    ))?;
    if !columns.keys().copied().eq(1..=count.int(0, 0)?.max(0) as usize) {
        return Ok(Vec::new());
    }
    let mut plans = Vec::new();
    for (at, frequency) in ["the most common value", "a rare value"].into_iter().enumerate() {
        let values: Vec<&str> = known.iter().map(|values| values[at].as_str()).collect();
        let sql =
            format!("EXPLAIN {MARK} (VERBOSE, FORMAT JSON) EXECUTE kelvin_custom({})", values.join(", "));
        let json = lines(session, "force_custom_plan", &sql)?;
        let Some(plan) = Plan::parse(&json) else { continue };
        let Some(cost) = plan.cost else { continue };
        let named: Vec<String> =
            columns.values().map(|one| format!("{}.{}", one.table, one.column)).collect();
        let values = format!("{frequency} of {}", named.join(" and "));
        plans.push(CustomPlan { hash: plan_hash(&plan), cost, generic_cost: cost, values });
    }
    Ok(plans)
}

/// The tables whose rows are appended to each other: partitions, or those of a UNION ALL.
fn appended(node: &Node) -> Vec<String> {
    if !matches!(node.kind.as_str(), "Append" | "Merge Append") {
        return node.below.iter().flat_map(appended).collect();
    }
    tables(node)
}

fn tables(node: &Node) -> Vec<String> {
    node.relation.iter().cloned().chain(node.below.iter().flat_map(tables)).collect()
}

/// Whether one of these tables is a partition.
fn reads_partitions(session: &mut dyn Session, tables: &[String]) -> Result<bool> {
    if tables.is_empty() {
        return Ok(false);
    }
    let names: Vec<String> = tables.iter().map(|name| quoted(name)).collect();
    let rows = session.query(&format!(
        "SELECT {MARK} EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relispartition AND n.nspname || '.' || c.relname IN ({}))",
        names.join(", ")
    ))?;
    Ok(rows.int(0, 0)? == 1)
}

/// A string as SQL has it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The most common value of a column and one that is rare, as SQL has them; none without statistics.
fn common_and_rare(session: &mut dyn Session, one: &ComparedColumn) -> Result<Option<[String; 2]>> {
    let rows = session.query(&format!(
        "SELECT {MARK} quote_literal(coalesce(common[1], others[cardinality(others) / 2 + 1])), \
         quote_literal(coalesce(others[cardinality(others) / 2 + 1], common[cardinality(common)])) \
         FROM (SELECT most_common_vals::text::text[] AS common, histogram_bounds::text::text[] AS others FROM pg_stats \
          WHERE schemaname = {} AND tablename = {} AND attname = {} ORDER BY inherited LIMIT 1) AS statistics",
        quoted(&one.schema),
        quoted(&one.table),
        quoted(&one.column)
    ))?;
    if rows.is_empty() {
        return Ok(None);
    }
    let value = |column| Ok(rows.optional(0, column, Rows::text)?.map(str::to_owned));
    let (common, rare): (Option<String>, Option<String>) = (value(0)?, value(1)?);
    Ok(common.zip(rare).map(|(common, rare)| [common, rare]))
}

/// Parameters by number, with the column that each is compared with for equality.
fn find_columns(node: &Value, found: &mut BTreeMap<usize, ComparedColumn>) {
    let text = |key: &str| node[key].as_str();
    if let (Some(schema), Some(table)) = (text("Schema"), text("Relation Name")) {
        for condition in ["Index Cond", "Recheck Cond", "Filter"].into_iter().filter_map(text) {
            for (parameter, column) in equal_parameters(condition) {
                let (schema, table) = (schema.to_owned(), table.to_owned());
                found.entry(parameter).or_insert(ComparedColumn { schema, table, column });
            }
        }
    }
    for below in node["Plans"].as_array().into_iter().flatten() {
        find_columns(below, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_has_the_columns_of_its_own_table() {
        let plan = serde_json::json!({ "Node Type": "Nested Loop", "Plans": [
            { "Node Type": "Bitmap Heap Scan", "Schema": "public", "Relation Name": "a", "Recheck Cond": "(a.kind = $1)",
              "Plans": [{ "Node Type": "Bitmap Index Scan", "Index Cond": "(a.kind = $1)" }] },
            { "Node Type": "Seq Scan", "Schema": "s", "Relation Name": "b", "Filter": "(b.x = $2)" } ] });
        let mut found = BTreeMap::new();
        find_columns(&plan, &mut found);
        let short: Vec<_> =
            found.iter().map(|(at, one)| (*at, one.table.as_str(), one.column.as_str())).collect();
        assert_eq!(short, [(1, "a", "kind"), (2, "b", "x")]);
    }

    #[test]
    fn tables_are_appended_below_an_append_only() {
        let scan =
            |name: &str| serde_json::json!({ "Node Type": "Seq Scan", "Schema": "s", "Relation Name": name });
        let join = |kind: &str| {
            let both = serde_json::json!({ "Node Type": kind, "Plans": [
                { "Node Type": "Sort", "Plans": [scan("a")] }, scan("b") ] });
            serde_json::json!({ "Plan": { "Node Type": "Hash Join", "Plans": [scan("c"), both] } })
        };
        let of = |kind| appended(&Plan::from_value(&join(kind)).unwrap().root);
        assert_eq!((of("Append"), of("Merge Append")), (vec!["s.a".into(), "s.b".into()], of("Append")));
        assert!(of("Nested Loop").is_empty());
    }
}
