//! Histograms of columns in conditions of which MySQL's and MariaDB's optimizers know nothing.

use super::tables::analyze_statement;
use super::{Change, Remedy, Rules, is_mariadb, quoted, quoted_part};
use crate::findings::misestimate::Missed;
use crate::{Effect, EffectBasis, Evidence};

/// None of the columns has statistics.
pub(super) fn remedy(evidence: &Evidence, table: &str, columns: &[String], missed: &Missed<'_>) -> Remedy {
    let list: Vec<String> = columns.iter().map(|column| quoted_part(evidence, column)).collect();
    let list = list.join(", ");
    let change = if is_mariadb(evidence) {
        of_mariadb(evidence, table, columns, &list)
    } else {
        let analyze = analyze_statement(evidence, table);
        Change::Statements {
            apply: vec![format!("{analyze} UPDATE HISTOGRAM ON {list}")],
            undo: vec![format!("{analyze} DROP HISTOGRAM ON {list}")],
            control: Vec::new(),
        }
    };
    Remedy {
        finding: "misestimate",
        title: format!("histogram of {table} ({})", columns.join(", ")),
        change,
        reason: missed.reason(),
        effect: Effect::up_to(missed.share, EffectBasis::StatementTime),
        rules: Rules::Allowed,
    }
}

/// MariaDB has no statement that removes statistics: they are rows of its tables, as its manual describes.
fn of_mariadb(evidence: &Evidence, table: &str, columns: &[String], list: &str) -> Change {
    let text = |name: &str| format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''"));
    let (schema, plain) = table.split_once('.').unwrap_or(("", table));
    let of_table = format!("db_name = {} AND table_name = {}", text(schema), text(plain));
    let names: Vec<String> = columns.iter().map(|column| text(column)).collect();
    let of_columns =
        format!("DELETE FROM mysql.column_stats WHERE {of_table} AND column_name IN ({})", names.join(", "));
    let analyze = analyze_statement(evidence, table);
    Change::Statements {
        // An account that may not take the statistics back fails before it makes any.
        apply: vec![of_columns.clone(), format!("{analyze} PERSISTENT FOR COLUMNS ({list}) INDEXES ()")],
        undo: vec![
            of_columns,
            // The number of rows was made with them: there were no other statistics.
            format!("DELETE FROM mysql.table_stats WHERE {of_table}"),
            format!("FLUSH TABLE {}", quoted(evidence, table)),
        ],
        // It renews InnoDB's own statistics, too.
        control: vec![analyze],
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{CaptureTime, StatementTotals};
    use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};
    use serde_json::json;

    use super::*;
    use crate::findings::staged::{Staged, statement, table};
    use crate::remedies;

    fn of(version: &str, nodes: Vec<MisestimatedNode>) -> Vec<Remedy> {
        let sample = Some(SampledExecution::Executed { took_ms: 1.0, misestimates: nodes });
        let one = StatementTotals { sample, ..statement(1, 75.0, 1, "a", &[]) };
        let staged = Staged::new().environment(json!({ "engine": "mysql" })).setting("version", version);
        let staged = staged.relations(CaptureTime::After, vec![table("k.parts", 200, 0)], 1);
        let evidence = staged.statements(vec![one, statement(2, 25.0, 1, "b", &[])]).done();
        let found = crate::findings_for(&evidence);
        remedies(&evidence, &found).into_iter().filter(|one| one.finding == "misestimate").collect()
    }

    fn node(kind: &str, columns: &[&str]) -> MisestimatedNode {
        MisestimatedNode {
            node: format!("{kind} on k.parts"),
            relation: Some("k.parts".into()),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            estimated: 10_000.0,
            actual: 10.0,
            loops: 1.0,
            ..MisestimatedNode::default()
        }
    }

    fn statements(remedy: &Remedy) -> (&[String], &[String]) {
        let Change::Statements { apply, undo, .. } = &remedy.change else { panic!("{remedy:?}") };
        (apply, undo)
    }

    #[test]
    fn a_condition_without_statistics_gets_a_histogram_that_can_be_taken_back() {
        let all = of("8.0.31", vec![node("Filter", &["b", "a`"])]);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            (all[0].title.as_str(), all[0].effect.high()),
            ("histogram of k.parts (a`, b)", Some(0.75))
        );
        let (apply, undo) = statements(&all[0]);
        assert_eq!(apply, ["ANALYZE TABLE `k`.`parts` UPDATE HISTOGRAM ON `a```, `b`"]);
        assert_eq!(undo, ["ANALYZE TABLE `k`.`parts` DROP HISTOGRAM ON `a```, `b`"]);
        let all = of("10.11.19-MariaDB", vec![node("Filter", &["o'b"])]);
        let (apply, undo) = statements(&all[0]);
        assert_eq!(apply[1], "ANALYZE TABLE `k`.`parts` PERSISTENT FOR COLUMNS (`o'b`) INDEXES ()");
        assert!(apply[0] == undo[0] && undo[0].ends_with("column_name IN ('o''b')"), "{undo:?}");
        let known = MisestimatedNode { has_statistics: true, ..node("Filter", &["a"]) };
        assert!(of("8.0.31", vec![known, node("Filter", &[])]).is_empty());
    }

    #[test]
    fn a_table_whose_rows_missed_is_analyzed() {
        for kind in ["Table scan", "Index lookup"] {
            let all = of("8.0.31", vec![node(kind, &[])]);
            assert_eq!(all.len(), 1, "{all:?}");
            assert_eq!((all[0].title.as_str(), all[0].effect.high()), ("analyze k.parts", Some(0.75)));
            let (apply, undo) = statements(&all[0]);
            assert_eq!((apply, undo.len()), (&["ANALYZE TABLE `k`.`parts`".to_owned()][..], 0));
            assert_eq!(all[0].reason, "k.parts: 200 rows by its statistics");
        }
    }
}
