//! The results of `EXPLAIN (ANALYZE)` for a query on PostgreSQL.

use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_database::{Error, Result, Session};
use kelvin_measure::query_analysis::{Misestimate, PartitionScan, QueryAnalysis};

use crate::tproc_h::digest::digest_of;

/// Hash of the plan's shape, as for observed statements.
pub(super) fn hash(plan: &Plan) -> String {
    digest_of(&plan.shape())
}

/// Executes a query with analysis of its plan.
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
    // Nodes that were never executed have not requested their workers.
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
        misestimate: plan.misestimated(false).map(misestimate),
        partition_scans: nodes.iter().filter_map(|node| partition_scan(node)).collect(),
        waits: Vec::new(),
    }
}

fn misestimate(node: &Node) -> Misestimate {
    Misestimate { node: node.label(), estimated: node.estimated, actual: node.actual.unwrap_or_default() }
}

/// The partitions of a table below an Append node, if all of them are scanned.
fn partition_scan(node: &Node) -> Option<PartitionScan> {
    let collects = matches!(node.kind.as_str(), "Append" | "Merge Append");
    if !collects || node.below.len() < 2 || node.partitions_removed > 0 {
        return None;
    }
    // The server numbers the partitioned table's alias: "lineitem_12".
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
