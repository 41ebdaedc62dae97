//! Plans with the rows that there were: MariaDB's `ANALYZE FORMAT=JSON`, MySQL's `EXPLAIN ANALYZE`.
//!
//! Only what reads a table, and a condition on it, has numbers here; what missed them is decided as for PostgreSQL's plans.

mod json;
mod tree;

use std::collections::HashMap;

pub(super) use json::parse as parse_json;
use kelvin_database::postgres::explain::Node;
pub(super) use tree::parse as parse_tree;

/// How a condition is called among the nodes.
pub(super) const FILTER: &str = "Filter";
/// A condition that lets so many times as many or as few of the rows through as expected has missed by itself.
const OWN: f64 = 10.0;

/// Tables with their schemas by their names in a statement.
type Tables = HashMap<String, String>;

/// A node that may not need all rows of the one below.
fn partial(below: Node) -> Node {
    Node { kind: "Limit".into(), below: vec![below], ..Node::default() }
}

/// The condition on a table's rows, with the rows that meet it. It says nothing where the rows of the table alone explain what it missed,
/// and where nothing is joined with them: no other plan would follow from it.
fn filter(condition: &str, (estimated, actual): (f64, Option<f64>), is_joined: bool, of: Node) -> Node {
    let share = |rows: f64, of: f64| rows.max(1.0) / of.max(1.0);
    let (expected, found) =
        (share(estimated, of.estimated), share(actual.unwrap_or_default(), of.actual.unwrap_or_default()));
    let own = (expected / found).max(found / expected);
    Node {
        kind: FILTER.into(),
        relation: of.relation.clone(),
        alias: of.alias.clone(),
        conditions: vec![condition.to_owned()],
        estimated,
        actual: actual.filter(|_| is_joined && own >= OWN && of.relation.is_some()),
        loops: of.loops,
        blocks: of.blocks,
        below: vec![of],
        ..Node::default()
    }
}
