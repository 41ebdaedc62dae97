//! Did InnoDB's purge fall behind, so that old row versions accumulated?

use kelvin_measure::text;
use kelvin_observe::metric;

use super::FindingDefinition;
use crate::{Effect, Evidence, EvidenceLine, Finding, Severity};

pub(super) const ABOUT: FindingDefinition = FindingDefinition {
    id: "history-list",
    question: "Did purge keep up, or did the history list grow?",
    find,
};

/// Transactions by which the history list must have grown to be reported.
const LEAST: f64 = 10_000.0;
/// Growth of the list, as a share of the window's transactions, from which it is reported.
const LEFT: f64 = 0.2;
/// From here on scans read many versions for each row: MySQL's manual names a million as what `innodb_max_purge_lag` is set to
/// for a problematic load.
const MANY: f64 = 1_000_000.0;

fn find(evidence: &Evidence) -> Vec<Finding> {
    evidence.points().filter_map(|point| of_point(evidence, point.point)).collect()
}

fn of_point(evidence: &Evidence, point: u32) -> Option<Finding> {
    let window = evidence.window(point)?;
    let seen = evidence.values_within(metric::HISTORY_LENGTH, window);
    let (first, last) = (seen.first()?.value, seen.last()?.value);
    let grown = last - first;
    let committed = evidence.mean_of_first_known(point, metric::COMMITS).map(|rate| rate * window.seconds());
    let behind = grown >= LEAST && committed.is_none_or(|committed| grown >= LEFT * committed);
    let many = last >= MANY;
    if !behind && !many {
        return None;
    }
    let mut facts = vec![
        EvidenceLine::new(
            "history list length at the window's start",
            format!("{} transactions", text::rounded(first)),
        ),
        EvidenceLine::new(
            "history list length at the window's end",
            format!("{} transactions", text::rounded(last)),
        ),
    ];
    facts.extend(
        committed
            .map(|number| EvidenceLine::new("transactions committed in the window", text::rounded(number))),
    );
    facts.extend(
        evidence
            .setting_number("innodb_purge_threads")
            .map(|number| EvidenceLine::new("innodb_purge_threads", text::number(number))),
    );
    Some(Finding {
        id: ABOUT.id,
        severity: if many && behind { Severity::Red } else { Severity::Amber },
        point: Some(point),
        title: if behind {
            format!(
                "Purge fell behind: the history list grew by {} transactions during the window, to {}",
                text::rounded(grown),
                text::rounded(last)
            )
        } else {
            format!("The history list holds {} transactions", text::rounded(last))
        },
        evidence: facts,
        effect: Effect::unknown("the cost of skipping old row versions was not measured"),
        below_precision: false,
        threshold: "amber when the list grew by at least 10,000 transactions and by at least 20 % of the \
            transactions committed in the window, or when it holds a million; red when both are true"
            .into(),
        next: "End transactions that stay open (SELECT * FROM information_schema.INNODB_TRX ORDER BY \
            trx_started): purge cannot pass them. Otherwise raise innodb_purge_threads, and measure until \
            the list length is stable; throughput that is only possible while the list grows cannot last."
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::staged::Staged;
    use super::*;

    fn severity(from: f64, each: f64) -> Option<Severity> {
        let staged = Staged::new()
            .metric_by("mysql.undo.history", move |second| from + each * second as f64)
            .metric("mysql.transactions.commit", 3000.0);
        find(&staged.done()).first().map(|finding| finding.severity)
    }

    #[test]
    fn a_history_that_grows_with_the_load_is_reported() {
        assert_eq!(severity(500.0, 2000.0), Some(Severity::Amber));
        assert_eq!(severity(500.0, 100.0), None, "2,000 in twenty seconds are nothing");
        assert_eq!(severity(9000.0, -10.0), None);
        assert_eq!(severity(2e6, 0.0), Some(Severity::Amber));
        assert_eq!(severity(2e6, 2000.0), Some(Severity::Red));
        assert_eq!(find(&Staged::new().done()), []);
    }
}
