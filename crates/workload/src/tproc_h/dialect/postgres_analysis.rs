//! What `EXPLAIN (ANALYZE)` says of a query on PostgreSQL.

use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_database::{Error, Result, Session};
use kelvin_measure::query_analysis::{Misestimate, PartitionScan, QueryAnalysis};

use crate::tproc_h::answer::digest_of;

/// Rows below which a wrong estimate costs nothing.
const ROWS: f64 = 1000.0;
/// A node that missed by so much is the cause of what the nodes above it miss.
const MISSED: f64 = 100.0;

/// Hash of the plan's shape, by the definition that observed statements have.
pub(super) fn hash(plan: &Plan) -> String {
    digest_of(&plan.shape())
}

/// Executes a query for its plan.
pub(super) fn analyze(session: &mut dyn Session, sql: &str) -> Result<QueryAnalysis> {
    let block = session.query("select cast(current_setting('block_size') as bigint)")?.int(0, 0)?;
    let lines = session.query(&format!("explain (analyze, verbose, buffers, format json) {sql}"))?;
    let plan = Plan::parse(&lines.texts(0)?.join("\n"))
        .ok_or_else(|| Error::usage("the server's EXPLAIN returned no plan that can be read"))?;
    Ok(describe(&plan, block.unsigned_abs()))
}

fn describe(plan: &Plan, block: u64) -> QueryAnalysis {
    let nodes = plan.nodes();
    let spilled = |node: &&Node| Some(format!("{}: {}", node.label(), node.spill.as_ref()?));
    // One that was never executed has not asked for its workers.
    let executed = nodes.iter().filter(|node| node.loops > 0.0);
    let workers = executed.filter_map(|node| node.workers);
    let (workers_planned, workers_launched) =
        workers.fold((0, 0), |(planned, launched), one| (planned + one.0, launched + one.1));
    let [hit_bytes, read_bytes, temporary_bytes] =
        plan.root.blocks.map(|blocks| blocks.saturating_mul(block));
    QueryAnalysis {
        query: String::new(),
        parameters: String::new(),
        plan: hash(plan),
        took_ms: plan.execution_ms.unwrap_or_default(),
        rows: plan.root.actual.unwrap_or_default(),
        hit_bytes,
        read_bytes,
        temporary_bytes,
        spills: nodes.iter().filter_map(spilled).collect(),
        workers_planned,
        workers_launched,
        jit_ms: plan.jit_ms.unwrap_or_default(),
        misestimate: worst(&plan.root, false),
        partition_scans: nodes.iter().filter_map(|node| partition_scan(node)).collect(),
        waits: Vec::new(),
    }
}

/// The lowest node that missed its rows by [`MISSED`], of several the one that missed by most; otherwise the one that missed by
/// most. `is_partial`: the nodes above may not have asked for all of its rows.
fn worst(node: &Node, is_partial: bool) -> Option<Misestimate> {
    let more = |a: &Misestimate, b: &Misestimate| a.factor().total_cmp(&b.factor());
    let below = node.below.iter().filter_map(|below| worst(below, may_end_early(node, below, is_partial)));
    let below = below.max_by(more);
    if below.as_ref().is_some_and(|found| found.factor() >= MISSED) {
        return below;
    }
    below.into_iter().chain(misestimate(node, is_partial)).max_by(more)
}

fn misestimate(node: &Node, is_partial: bool) -> Option<Misestimate> {
    let actual = node.actual.filter(|_| node.loops > 0.0)?;
    let matters = actual.max(node.estimated) * node.loops >= ROWS;
    // These return a bitmap, and no rows.
    let has_rows = !matches!(node.kind.as_str(), "BitmapAnd" | "BitmapOr");
    let is_known = actual >= node.estimated || !is_partial;
    (matters && has_rows && is_known).then(|| Misestimate {
        node: node.label(),
        estimated: node.estimated,
        actual,
    })
}

/// Whether a node may stop asking one below it for rows before it has all of them.
fn may_end_early(node: &Node, below: &Node, is_partial: bool) -> bool {
    let looks_for_one = node.is_inner_unique || matches!(node.join.as_str(), "Semi" | "Anti");
    match node.kind.as_str() {
        // They take all rows before they return one.
        "Sort" | "Hash" => false,
        "Limit" | "Merge Join" => true,
        // With nothing in the hash, no row of the other side can match.
        "Hash Join" if below.relationship == "Outer" && node.below.iter().any(is_empty_hash) => true,
        "Nested Loop" if below.relationship == "Inner" && looks_for_one => true,
        _ => is_partial || matches!(below.relationship.as_str(), "SubPlan" | "InitPlan"),
    }
}

fn is_empty_hash(node: &Node) -> bool {
    node.relationship == "Inner" && node.actual == Some(0.0)
}

/// The partitions of a table that a node collects, if all of them are read sequentially.
fn partition_scan(node: &Node) -> Option<PartitionScan> {
    let collects = matches!(node.kind.as_str(), "Append" | "Merge Append");
    if !collects || node.below.len() < 2 || node.partitions_removed > 0 {
        return None;
    }
    // The server numbers the alias of the partitioned table: "lineitem_12".
    let table = |below: &Node| {
        let (table, number) = below.alias.as_deref()?.rsplit_once('_')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        (is_number && below.kind == "Seq Scan").then(|| table.to_owned())
    };
    let first = table(node.below.first()?)?;
    if node.below.iter().any(|below| table(below).as_ref() != Some(&first)) {
        return None;
    }
    let kept = |below: &Node| below.actual.unwrap_or_default() * below.loops;
    let (kept, removed) = node
        .below
        .iter()
        .fold((0.0, 0.0), |(all, removed), below| (all + kept(below), removed + below.removed * below.loops));
    Some(PartitionScan { table: first, partitions: node.below.len() as u64, rows: kept + removed, kept })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, estimated: f64, actual: f64, below: Vec<Node>) -> Node {
        let actual = Some(actual);
        Node { kind: kind.into(), estimated, actual, loops: 1.0, below, ..Node::default() }
    }

    fn named(found: Option<Misestimate>) -> (String, f64) {
        found.map(|found| (found.node.clone(), found.factor())).unwrap()
    }

    #[test]
    fn the_lowest_node_that_missed_is_named() {
        let scan = node("Seq Scan", 10.0, 5000.0, Vec::new());
        let join = node("Hash Join", 1.0, 5000.0, vec![scan.clone(), node("Hash", 3.0, 3.0, Vec::new())]);
        assert_eq!(named(worst(&join, false)), ("Seq Scan".into(), 500.0));
        let nearly = node("Seq Scan", 100.0, 5000.0, Vec::new());
        let join = node("Hash Join", 1.0, 5000.0, vec![nearly]);
        assert_eq!(named(worst(&join, false)), ("Hash Join".into(), 5000.0));
        // Few rows are no matter.
        assert_eq!(worst(&node("Seq Scan", 1.0, 500.0, Vec::new()), false), None);
    }

    #[test]
    fn rows_that_nobody_asked_for_are_no_mistake() {
        let scan = || node("Index Scan", 1e6, 10.0, Vec::new());
        let limit = node("Limit", 10.0, 10.0, vec![scan()]);
        assert_eq!(worst(&limit, false), None);
        assert_eq!(worst(&node("Merge Join", 10.0, 10.0, vec![scan()]), false), None);
        let mut inner = scan();
        inner.relationship = "Inner".into();
        let mut join = node("Nested Loop", 10.0, 10.0, vec![inner]);
        assert_eq!(named(worst(&join, false)).1, 1e5);
        join.join = "Semi".into();
        assert_eq!(worst(&join, false), None);
        // A sort has taken all of them, and more rows than expected are more than expected.
        let sorted = node("Limit", 10.0, 10.0, vec![node("Sort", 10.0, 10.0, vec![scan()])]);
        assert_eq!(named(worst(&sorted, false)), ("Index Scan".into(), 1e5));
        let more = node("Limit", 10.0, 10.0, vec![node("Index Scan", 10.0, 1e6, Vec::new())]);
        assert_eq!(named(worst(&more, false)).1, 1e5);
        let mut empty = node("Hash", 10.0, 0.0, Vec::new());
        empty.relationship = "Inner".into();
        let outer = Node { relationship: "Outer".into(), ..scan() };
        assert_eq!(worst(&node("Hash Join", 10.0, 0.0, vec![outer, empty]), false), None);
        let never = Node { loops: 0.0, ..scan() };
        assert_eq!(worst(&never, false), None);
    }

    #[test]
    fn partitions_are_counted_when_all_are_scanned() {
        let partition = |alias: &str, kind: &str| Node {
            alias: Some(alias.into()),
            removed: 90.0,
            loops: 2.0,
            ..node(kind, 10.0, 10.0, Vec::new())
        };
        let append = |below| node("Append", 20.0, 20.0, below);
        let all = append(vec![partition("l_1", "Seq Scan"), partition("l_2", "Seq Scan")]);
        let found = partition_scan(&all).unwrap();
        assert_eq!((&found.table[..], found.partitions, found.rows, found.kept), ("l", 2, 400.0, 40.0));
        for others in [
            vec![partition("l_1", "Seq Scan"), partition("l_2", "Index Scan")],
            vec![partition("l_1", "Seq Scan"), partition("o_2", "Seq Scan")],
            vec![partition("lineitem", "Seq Scan"), partition("orders", "Seq Scan")],
            vec![partition("l_1", "Seq Scan")],
        ] {
            assert_eq!(partition_scan(&append(others)), None);
        }
        let pruned = Node { partitions_removed: 3, ..all };
        assert_eq!(partition_scan(&pruned), None);
    }

    #[test]
    fn a_plan_is_described_in_bytes() {
        let json = r#"[{"Plan": {"Node Type": "Gather", "Workers Planned": 2, "Workers Launched": 0, "Plan Rows": 4, "Actual Rows": 4,
            "Actual Loops": 1, "Shared Hit Blocks": 2, "Shared Read Blocks": 3, "Temp Written Blocks": 4, "Plans": [
            {"Node Type": "Sort", "Sort Method": "external merge", "Sort Space Type": "Disk", "Plan Rows": 2}]},
            "Execution Time": 9.5}]"#;
        let found = describe(&Plan::parse(json).unwrap(), 8192);
        assert_eq!((found.hit_bytes, found.read_bytes, found.temporary_bytes), (16_384, 24_576, 32_768));
        assert_eq!(found.spills, ["Sort: external merge"]);
        assert_eq!((found.workers_planned, found.workers_launched, found.took_ms), (2, 0, 9.5));
        assert_eq!(found.plan.len(), 16);
    }

    #[test]
    fn workers_of_what_was_never_executed_are_none() {
        let mut never = node("Gather", 10.0, 0.0, Vec::new());
        (never.loops, never.workers) = (0.0, Some((4, 0)));
        let executed = Node { workers: Some((2, 2)), ..node("Gather Merge", 10.0, 10.0, vec![never]) };
        let found = describe(&Plan { root: executed, ..Plan::default() }, 8192);
        assert_eq!((found.workers_planned, found.workers_launched), (2, 2));
    }
}
