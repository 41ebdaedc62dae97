//! Does the planner know the tables it plans for?

use kelvin_measure::observation::CaptureTime;
use kelvin_measure::text;

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "missing-statistics",
    question: "Does the planner have statistics for every table?",
    find,
};

/// Rows from which a guess matters: smaller tables are a page or few, whatever the plan.
const ROWS: u64 = 1000;

fn find(evidence: &Evidence) -> Vec<Finding> {
    let Some((relations, _)) = evidence.relations(CaptureTime::Before) else { return Vec::new() };
    let unknown = |r: &&kelvin_measure::observation::Relation| {
        r.kind == "table" && r.analyzed == Some(false) && r.rows.is_some_and(|rows| rows >= ROWS)
    };
    let tables: Vec<_> = relations.iter().filter(unknown).collect();
    if tables.is_empty() {
        return Vec::new();
    }
    let fact = |table: &&kelvin_measure::observation::Relation| {
        EvidenceLine::new(
            table.name.clone(),
            format!("{} rows, no statistics", text::rounded(table.rows.unwrap_or(0) as f64)),
        )
    };
    let names: Vec<&str> = tables.iter().take(3).map(|table| table.name.as_str()).collect();
    let more = if tables.len() > names.len() { ", …" } else { "" };
    vec![Finding {
        id: ABOUT.id,
        severity: Severity::Amber,
        point: None,
        title: format!(
            "{} had no statistics when the load began: {}{more}",
            text::count(tables.len(), "table"),
            names.join(", ")
        ),
        evidence: tables.iter().take(10).map(fact).collect(),
        effect: Effect::unknown("the plans based on statistics were not run"),
        below_precision: false,
        threshold: "a table of 1000 rows or more without planner statistics: its plans rely on guesses, and \
            may change during the run when autovacuum analyzes the table"
            .into(),
        next: "Run `analyze` (or `vacuum analyze`) after loading, before every run.".into(),
    }]
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::Relation;

    use super::super::staged::{Staged, table};
    use super::*;

    fn found(analyzed: Option<bool>, rows: u64) -> Vec<Finding> {
        let stock = Relation { analyzed, ..table("public.stock", rows, 0) };
        find(
            &Staged::new()
                .relations(CaptureTime::Before, vec![stock, table("public.item", 100_000, 0)], 1)
                .done(),
        )
    }

    #[test]
    fn a_table_without_statistics_is_amber() {
        let one = found(Some(false), 100_000);
        assert_eq!((one.len(), one[0].severity), (1, Severity::Amber));
        assert!(one[0].title.contains("public.stock") && !one[0].title.contains("item"));
    }

    #[test]
    fn small_known_or_unseen_tables_are_nothing() {
        assert!(
            found(Some(false), 40).is_empty()
                && found(Some(true), 100_000).is_empty()
                && found(None, 100_000).is_empty()
        );
        assert!(find(&Staged::new().done()).is_empty());
    }
}
