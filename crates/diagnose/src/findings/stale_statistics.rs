//! Statistics from before a table's rows changed, as the cause of what the planner expected.

use kelvin_measure::observation::{CaptureTime, Relation};
use kelvin_measure::text;

use super::misestimate;
use crate::engine::{NodeKinds, StatisticsAdvice, engine_advice};
use crate::{Evidence, EvidenceLine, Finding};

/// Share of a table's rows whose changes may explain a wrong number: after so many, autovacuum updates the statistics
/// (`autovacuum_analyze_scale_factor`), unless it is off, slow or set otherwise.
const STALE: f64 = 0.1;

/// The kinds of the engine's nodes, if statistics may be stale without a sign.
fn kinds(evidence: &Evidence) -> Option<NodeKinds> {
    engine_advice(evidence).statistics().uncounted
}

/// The kind of a node that reads a table.
fn kind(node: &str) -> Option<&str> {
    node.split_once(" on ").map(|(kind, _)| kind)
}

/// The table that a node reads ("Index Scan on public.orders using public.i"), if its statistics are stale.
fn table_of<'a>(evidence: &'a Evidence, node: &str) -> Option<&'a Relation> {
    let table = named(evidence, node)?;
    let reads_all = kinds(evidence).is_some_and(|kinds| kind(node) == Some(kinds.whole_table));
    // One without any is missing-statistics.
    ((reads_all || is_changed(table)) && table.analyzed != Some(false)).then_some(table)
}

/// The same, if new statistics may help. Those of an index may be stale without a sign.
fn renewable<'a>(evidence: &'a Evidence, node: &str) -> Option<&'a Relation> {
    let reads = kinds(evidence).is_some_and(|kinds| kind(node) != Some(kinds.filter));
    table_of(evidence, node).or_else(|| named(evidence, node).filter(|_| reads))
}

fn is_changed(table: &Relation) -> bool {
    let changed = |changed: u64| changed as f64 >= STALE * table.rows.unwrap_or(u64::MAX).max(1) as f64;
    table.changed_since_analyze.is_some_and(changed)
}

/// The table that a node reads.
fn named<'a>(evidence: &'a Evidence, node: &str) -> Option<&'a Relation> {
    let name = node.split_once(" on ")?.1.split(" using ").next()?;
    let (relations, _) =
        evidence.relations(CaptureTime::After).or_else(|| evidence.relations(CaptureTime::Before))?;
    // The log's plans have no schemas, unless they are verbose.
    let is_named = |one: &&Relation| one.name == name || one.name.rsplit('.').next() == Some(name);
    let mut named = relations.iter().filter(|one| one.kind == "table").filter(is_named);
    named.next().filter(|_| named.next().is_none())
}

/// The stale ones of the tables that these nodes read, each once.
fn tables_of<'a, 'n>(evidence: &'a Evidence, nodes: impl Iterator<Item = &'n str>) -> Vec<&'a Relation> {
    once(nodes.filter_map(|node| table_of(evidence, node)))
}

fn once<'a>(all: impl Iterator<Item = &'a Relation>) -> Vec<&'a Relation> {
    let mut tables: Vec<&Relation> = Vec::new();
    for table in all {
        if !tables.iter().any(|known| known.name == table.name) {
            tables.push(table);
        }
    }
    tables
}

/// The tables of all nodes that missed for which new statistics may help, with the share of the statements' time that they can take away at most, if that is known.
pub(crate) fn stale_tables(evidence: &Evidence) -> (Vec<&Relation>, Option<f64>) {
    let mut counted = Vec::new();
    let mut share = 0.0;
    let missed = misestimate::missed(evidence);
    for one in missed.iter().filter(|one| renewable(evidence, &one.node.node).is_some()) {
        // A statement with several nodes, or at several points: where its share is largest, which comes first.
        if !counted.contains(&one.statement.query) {
            counted.push(one.statement.query);
            share += one.share;
        }
    }
    let others = misestimate::without_times(evidence);
    let of_others = tables_of(evidence, others.iter().map(|one| one.node.as_str())).is_empty();
    let nodes = missed.iter().map(|one| &one.node.node).chain(others.iter().map(|one| &one.node));
    (once(nodes.filter_map(|node| renewable(evidence, node))), of_others.then_some(share))
}

/// "500,000 changes since ANALYZE 3 h 20 min ago, 600,000 rows now"; of changes that are not known "200 rows by statistics updated 2 h 00 min
/// ago".
fn fact(table: &Relation) -> String {
    if !is_changed(table) {
        let of = table.analyzed_ago.map_or_else(
            || "its statistics".to_owned(),
            |ago| format!("statistics updated {} ago", text::duration(ago)),
        );
        return format!("{} rows by {of}", text::rounded(table.rows.unwrap_or(0) as f64));
    }
    let ago = table.analyzed_ago.map_or_else(String::new, |ago| format!(" {} ago", text::duration(ago)));
    let number = |value: Option<u64>| text::rounded(value.unwrap_or(0) as f64);
    format!(
        "{} changes since ANALYZE{ago}, {} rows now",
        number(table.changed_since_analyze),
        number(table.rows)
    )
}

/// Why `ANALYZE` may help: "public.parts: 500,000 changes since ANALYZE, 600,000 rows now".
pub(crate) fn reason(tables: &[&Relation]) -> String {
    text::few(tables.iter().map(|table| format!("{}: {}", table.name, fact(table))), 3)
}

/// Says that stale statistics of the tables that these nodes read may be the cause.
pub(super) fn name_cause<'n>(
    evidence: &Evidence,
    nodes: impl Iterator<Item = &'n str>,
    finding: &mut Finding,
) {
    let tables = tables_of(evidence, nodes);
    if tables.is_empty() {
        return;
    }
    let names = text::few(tables.iter().map(|table| &table.name), 3);
    finding.title = format!("{}; stale statistics of {names}", finding.title);
    let line =
        |table: &&Relation| EvidenceLine::new(format!("stale statistics of {}", table.name), fact(table));
    finding.evidence.extend(tables.iter().take(5).map(line));
    let StatisticsAdvice { renew, renewed_by, .. } = engine_advice(evidence).statistics();
    finding.next = format!(
        "{renew} {names}, and find out why {renewed_by}. If estimates stay wrong, there is another cause. {}",
        finding.next
    );
}

#[cfg(test)]
mod tests {
    use super::super::staged::{Staged, table};
    use super::*;

    fn tables(changed: Option<u64>, analyzed: bool, node: &str) -> usize {
        let parts = Relation {
            changed_since_analyze: changed,
            analyzed: Some(analyzed),
            ..table("public.parts", 1000, 0)
        };
        let all = vec![parts, table("a.twice", 1000, 0), table("b.twice", 1000, 0)];
        let evidence = Staged::new().relations(CaptureTime::Before, all, 1).done();
        tables_of(&evidence, [node, node].into_iter()).len()
    }

    #[test]
    fn a_tenth_of_the_rows_makes_statistics_stale() {
        for node in ["Seq Scan on parts", "Index Scan on public.parts using public.i"] {
            assert_eq!(tables(Some(100), true, node), 1, "{node}");
            assert_eq!(tables(Some(99), true, node), 0, "{node}");
            assert_eq!(tables(None, true, node), 0, "not counted");
            assert_eq!(tables(Some(100), false, node), 0, "they are missing");
        }
        for node in ["Hash Join", "Seq Scan on twice", "Seq Scan on other", "Index Scan using i"] {
            assert_eq!(tables(Some(100), true, node), 0, "{node}");
        }
    }
}
