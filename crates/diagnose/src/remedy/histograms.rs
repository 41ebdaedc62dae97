//! Histograms of columns in conditions of which MySQL's and MariaDB's optimizers know nothing.

use super::tables::{FAILS_AS_ROWS, analyze_statement, by_hand};
use super::{Remedy, Rules, is_mariadb, quoted_part};
use crate::findings::misestimate::Missed;
use crate::{Effect, EffectBasis, Evidence};

/// None of the columns has statistics.
pub(super) fn remedy(evidence: &Evidence, table: &str, columns: &[String], missed: &Missed<'_>) -> Remedy {
    let list: Vec<String> = columns.iter().map(|column| quoted_part(evidence, column)).collect();
    let (analyze, list) = (analyze_statement(evidence, table), list.join(", "));
    let statement = if is_mariadb(evidence) {
        format!("{analyze} PERSISTENT FOR COLUMNS ({list}) INDEXES ()")
    } else {
        format!("{analyze} UPDATE HISTOGRAM ON {list}")
    };
    Remedy {
        finding: "misestimate",
        title: format!("histogram of {table} ({})", columns.join(", ")),
        change: by_hand(&format!("{statement}; {FAILS_AS_ROWS}")),
        reason: missed.reason(),
        effect: Effect::up_to(missed.share, EffectBasis::StatementTime),
        rules: Rules::Allowed,
    }
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{CaptureTime, StatementTotals};
    use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};
    use serde_json::json;

    use super::*;
    use crate::findings::staged::{Staged, statement, table};
    use crate::{Change, remedies};

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

    fn statement_of(remedy: &Remedy) -> &str {
        let Change::Manual { how } = &remedy.change else { panic!("{remedy:?}") };
        how.split_once("; ").unwrap().0
    }

    #[test]
    fn a_condition_without_statistics_gets_a_histogram() {
        let all = of("8.0.31", vec![node("Filter", &["b", "a`"])]);
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(
            (all[0].title.as_str(), all[0].effect.high()),
            ("histogram of k.parts (a`, b)", Some(0.75))
        );
        assert_eq!(statement_of(&all[0]), "ANALYZE TABLE `k`.`parts` UPDATE HISTOGRAM ON `a```, `b`");
        let all = of("10.11.19-MariaDB", vec![node("Filter", &["o'b"])]);
        assert_eq!(
            statement_of(&all[0]),
            "ANALYZE TABLE `k`.`parts` PERSISTENT FOR COLUMNS (`o'b`) INDEXES ()"
        );
        let known = MisestimatedNode { has_statistics: true, ..node("Filter", &["a"]) };
        assert!(of("8.0.31", vec![known, node("Filter", &[])]).is_empty());
    }

    #[test]
    fn a_table_whose_rows_missed_is_analyzed() {
        for kind in ["Table scan", "Index lookup"] {
            let all = of("8.0.31", vec![node(kind, &[])]);
            assert_eq!(all.len(), 1, "{all:?}");
            assert_eq!((all[0].title.as_str(), all[0].effect.high()), ("analyze k.parts", Some(0.75)));
            assert_eq!(statement_of(&all[0]), "ANALYZE TABLE `k`.`parts`");
            assert_eq!(all[0].reason, "k.parts: 200 rows by its statistics");
        }
    }
}
