//! The planner's use of the proposed indexes, if HypoPG is installed.

use kelvin_database::Engine;
use kelvin_diagnose::{Change, Evidence, Remedy};
use kelvin_measure::text::{count, number};
use kelvin_observe::engine::try_indexes;
use kelvin_observe::postgres::HypotheticalUse;

/// Adds the result to the reasons of the changes that create an index. No index is created. Without HypoPG, `--prove`
/// compares runs with and without a real index.
pub(super) fn check(engine: &dyn Engine, evidence: &Evidence, changes: &mut [Remedy]) {
    let mut texts: Vec<&str> = evidence
        .points()
        .filter_map(|point| evidence.statements(point.point))
        .flat_map(|(statements, _)| statements.iter().map(|one| one.text.as_str()))
        .collect();
    texts.sort_unstable();
    texts.dedup();
    for remedy in changes {
        let Change::Statements { apply, .. } = &remedy.change else { continue };
        let create = apply.iter().map(String::as_str).filter(|sql| sql.starts_with("CREATE INDEX"));
        let create: Vec<&str> = create.collect();
        if create.is_empty() {
            continue;
        }
        let said = match try_indexes(engine, &create, &texts) {
            Ok(Some(found)) => describe(&found),
            Ok(None) => return,
            Err(error) => format!("HypoPG: {error}"),
        };
        remedy.reason = format!("{}; {said}", remedy.reason);
    }
}

/// "HypoPG: the planner uses it for 1 of 12 statements, at a cost of 8.44 instead of 2,541".
fn describe(found: &HypotheticalUse) -> String {
    let HypotheticalUse { planned, taken, costs } = found;
    let statements = count(*planned, "statement");
    match costs {
        Some((before, after)) => format!(
            "HypoPG: the planner uses it for {taken} of {statements}, at a cost of {} instead of {}",
            number(*after),
            number(*before)
        ),
        None => format!("HypoPG: the planner uses it for none of {statements}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_has_the_number_of_statements_and_the_largest_gain() {
        let found = HypotheticalUse { planned: 12, taken: 1, costs: Some((2541.0, 8.4)) };
        assert_eq!(
            describe(&found),
            "HypoPG: the planner uses it for 1 of 12 statements, at a cost of 8.40 instead of 2,541"
        );
        let found = HypotheticalUse { planned: 1, taken: 0, costs: None };
        assert_eq!(describe(&found), "HypoPG: the planner uses it for none of 1 statement");
    }
}
