//! Statistics on the columns of conditions whose rows the optimizer expected wrongly.

use super::{Remedy, Rules};
use crate::engine::engine_advice;
use crate::findings::misestimate;
use crate::{Effect, EffectBasis, Evidence};

/// Columns that one change may be about (PostgreSQL's `STATS_MAX_DIMENSIONS`).
const MOST_COLUMNS: usize = 8;
/// Changes that are proposed at most.
const MOST: usize = 5;

/// For nodes that compare columns of a table with values, where the engine has statistics on them and they are not there.
pub(super) fn remedies(evidence: &Evidence) -> Vec<Remedy> {
    let mut all: Vec<(Vec<String>, Remedy)> = Vec::new();
    for one in misestimate::missed(evidence) {
        let node = one.node;
        if node.columns.len() > MOST_COLUMNS || node.has_statistics {
            continue;
        }
        let Some(table) = &node.relation else { continue };
        let mut columns = node.columns.clone();
        columns.sort();
        let Some((title, change)) = engine_advice(evidence).column_statistics(table, &columns, node) else {
            continue;
        };
        let key: Vec<String> = std::iter::once(table.clone()).chain(columns).collect();
        // Those of the statement with the most time come first.
        if !all.iter().any(|(known, _)| *known == key) && all.len() < MOST {
            let effect = Effect::up_to(one.share, EffectBasis::StatementTime);
            let (reason, rules) = (one.reason(), Rules::Allowed);
            all.push((key, Remedy { finding: "misestimate", title, change, reason, effect, rules }));
        }
    }
    all.into_iter().map(|(_, remedy)| remedy).collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::StatementTotals;
    use kelvin_measure::sampled_execution::{MisestimatedNode, SampledExecution};

    use super::*;
    use crate::Change;
    use crate::findings::staged::{Staged, statement};

    fn found(change: impl Fn(&mut MisestimatedNode)) -> Vec<Remedy> {
        let mut node = MisestimatedNode {
            node: "Seq Scan on public.parts".into(),
            relation: Some("public.parts".into()),
            columns: vec!["b".into(), "a".into()],
            estimated: 10.0,
            actual: 1000.0,
            loops: 1.0,
            ..MisestimatedNode::default()
        };
        change(&mut node);
        let sample =
            Some(SampledExecution::Executed { took_ms: 1.0, misestimates: vec![node.clone(), node] });
        let one = StatementTotals { sample, ..statement(1, 75.0, 1, "a", &[]) };
        remedies(&Staged::new().statements(vec![one, statement(2, 25.0, 1, "b", &[])]).done())
    }

    #[test]
    fn columns_whose_rows_are_more_than_expected_get_one_object_that_can_be_dropped() {
        let all = found(|_| {});
        assert_eq!(all.len(), 1);
        assert_eq!(
            (all[0].title.as_str(), all[0].effect.high()),
            ("statistics on public.parts (a, b)", Some(0.75))
        );
        let Change::Statements { apply, undo, control } = &all[0].change else { panic!() };
        let create = "CREATE STATISTICS IF NOT EXISTS \"public\".\"kelvin_advice_parts_a_b_";
        assert!(apply[0].starts_with(create), "{apply:?}");
        assert!(
            apply[0].ends_with("(dependencies, ndistinct, mcv) ON \"a\", \"b\" FROM \"public\".\"parts\""),
            "{apply:?}"
        );
        assert!(
            undo[0].starts_with("DROP STATISTICS IF EXISTS \"public\".\"kelvin_advice_parts_a_b_"),
            "{undo:?}"
        );
        assert_eq!((apply[1].as_str(), control.len()), ("ANALYZE \"public\".\"parts\"", 1));
    }

    #[test]
    fn columns_with_dots_and_quotes_in_their_names_are_quoted_as_one() {
        let all = found(|node| node.columns = vec!["a.b".into(), "c\"d".into()]);
        let Change::Statements { apply, .. } = &all[0].change else { panic!() };
        assert!(apply[0].contains("ON \"a.b\", \"c\"\"d\" FROM \"public\".\"parts\""), "{apply:?}");
        assert!(apply[0].contains(" \"public\".\"kelvin_advice_parts_a_b_c\"\"d_"), "{apply:?}");
    }

    #[test]
    fn nothing_is_proposed_where_it_would_not_help() {
        assert!(found(|node| node.columns.truncate(1)).is_empty(), "one column");
        assert!(found(|node| node.has_statistics = true).is_empty(), "there is one");
        assert!(found(|node| node.actual = 1.0).is_empty(), "fewer than expected");
        assert!(found(|node| node.relation = None).is_empty(), "a join");
    }
}
