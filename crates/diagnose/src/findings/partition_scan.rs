//! Was a partitioned table read as a whole for a part of it?

use kelvin_measure::query_analysis::{PartitionScan, QueryAnalysis};
use kelvin_measure::text;

use super::FindingDefinition;
use super::query_plans::{self, Affected};
use crate::{Effect, Evidence, Finding};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "partition-scan",
    question: "Did a query read all partitions but need few of their rows?",
    find,
};

/// Rows read below which a scan is nothing.
const ROWS: f64 = 10_000.0;
/// Share of them that was needed, below which leaving out partitions or an index would have saved most of the work.
const NEEDED: f64 = 0.1;

fn find(evidence: &Evidence) -> Vec<Finding> {
    of_queries(evidence).into_iter().collect()
}

/// The largest scan of which little was needed.
fn in_vain(one: &QueryAnalysis) -> Option<&PartitionScan> {
    let scans = one.partition_scans.iter().filter(|scan| scan.rows >= ROWS && scan.kept_share() < NEEDED);
    scans.max_by(|a, b| a.rows.total_cmp(&b.rows))
}

fn of_queries(evidence: &Evidence) -> Option<Finding> {
    let scanned = Affected::by(evidence, |one| in_vain(one).map(|scan| scan.rows))?;
    let facts = scanned.lines("read sequentially", |one| {
        in_vain(one).map_or_else(String::new, |scan| {
            format!(
                "{} partitions of {}, {} rows, of which it needed {}",
                scan.partitions,
                scan.table,
                text::rounded(scan.rows),
                text::percent(scan.kept_share())
            )
        })
    });
    let title =
        format!("{} a partitioned table sequentially for few of its rows", scanned.subject("read", "read"));
    Some(Finding {
        threshold: "10,000 rows or more of a partitioned table, all partitions of the plan read sequentially, less than 10 % \
            of the rows needed"
            .into(),
        next: "Partition by the column that these queries filter by, use that column itself in the condition \
            (not an expression), or create an index on it."
            .into(),
        ..query_plans::amber(
            ABOUT.id,
            title,
            facts,
            Effect::unknown("the time of the queries without these scans was not measured"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::query_plans::tests::{analysis, execution};
    use super::super::staged::Staged;
    use super::*;
    use crate::Severity;

    #[test]
    fn a_whole_table_for_few_rows_is_amber() {
        let found = |rows, kept| {
            let scan = PartitionScan { table: "lineitem".into(), partitions: 84, rows, kept };
            let one = QueryAnalysis { partition_scans: vec![scan], ..analysis("Q6") };
            find(&Staged::new().queries(&[execution("Q6", 1.0, "a")]).analyses(&[one]).done())
        };
        let scanned = found(6e6, 1e5);
        assert_eq!((scanned.len(), scanned[0].severity), (1, Severity::Amber));
        assert!(scanned[0].evidence[0].found.starts_with("84 partitions of lineitem"), "{scanned:?}");
        assert!(found(6e6, 5e6).is_empty() && found(500.0, 1.0).is_empty());
    }
}
