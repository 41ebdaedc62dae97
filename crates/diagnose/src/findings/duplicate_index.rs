//! Are there several indexes with the same columns?

use super::FindingDefinition;
use super::useless_indexes::{cost, useless, working, written};
use kelvin_measure::text;

use crate::noise::WANTED;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "duplicate-index",
    question: "Are there several indexes with the same columns?",
    find,
};

fn find(evidence: &Evidence) -> Vec<Finding> {
    let found: Vec<_> = useless(evidence).into_iter().filter(|one| one.twin.is_some()).collect();
    let Some(first) = found.first() else { return Vec::new() };
    let more = if found.len() > 1 { format!(", and {} more", found.len() - 1) } else { String::new() };
    let entries: u64 = found.iter().map(|one| one.entries).sum();
    let share = written(evidence).share(entries);
    let mut facts = vec![EvidenceLine::new(
        "share of the row versions and index entries that the load wrote",
        text::percent(share),
    )];
    let working = working(evidence);
    facts.extend(working.map(|working| {
        EvidenceLine::new("transaction time on the CPU, in the log and in data files", text::percent(working))
    }));
    let cost = cost(evidence, entries);
    facts.extend(found.iter().take(10).map(|one| EvidenceLine::new(&one.index.name, one.reason())));
    vec![Finding {
        id: ABOUT.id,
        severity: if matches!(cost, Effect::Bounded { low, .. } if low >= WANTED) {
            Severity::Red
        } else {
            Severity::Amber
        },
        point: None,
        title: format!(
            "The index {} has the same columns as {}{more}: each row is indexed twice",
            first.index.name,
            first.twin.unwrap_or_default()
        ),
        evidence: facts,
        effect: cost,
        below_precision: false,
        threshold: "two indexes of one table with the same method, columns, options and condition, of which \
            the second enforces no constraint, and 1000 entries or more were written into it; red if their \
            share of all row versions and index entries that the load wrote, multiplied by the smallest \
            possible overlap of writing work and writing statements, is 10 % of the transactions' time or \
            more"
            .into(),
        next: "Drop the second index; `kelvin advise` shows the statements, and --prove measures the gain."
            .into(),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::useless_indexes::tests::{load, load_at};
    use super::*;

    #[test]
    fn a_second_one_is_red_where_much_of_what_was_written_is_in_it_and_names_the_first() {
        let two = [("a", "s_i_id", false, 0), ("pk", "s_i_id", true, 90)];
        let found = find(&load(&two, 5000));
        // Of rows, entries and entries again.
        assert_eq!((found[0].severity, found[0].evidence[0].found.as_str()), (Severity::Red, "33 %"));
        let columns: Vec<String> = (0..10).map(|one| format!("c{one}")).collect();
        let others = columns.iter().map(|column| (column.as_str(), column.as_str(), false, 1));
        let many: Vec<_> = two.into_iter().chain(others).collect();
        assert_eq!(find(&load(&many, 5000))[0].severity, Severity::Amber);
        // A third of a fifth of the time: what waits for rows is not made longer by an index.
        let waiting = find(&load_at(&two, 5000, 16.0));
        assert_eq!(waiting[0].severity, Severity::Amber);
        assert!(waiting[0].effect.high().is_some_and(|high| high < 0.1), "{:?}", waiting[0].effect);
        assert!(found[0].title.contains("public.a has the same columns as public.pk"), "{}", found[0].title);
        assert!(find(&load(&[("a", "s_i_id", false, 0), ("b", "s_w_id", false, 0)], 5000)).is_empty());
    }
}
