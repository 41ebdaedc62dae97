//! Whether consecutive runs resemble each other, and the effective number of independent runs.

use kelvin_stats::dependence::{effective_count, independence};
use serde::Serialize;

use super::{ComparedFigure, chance};
use kelvin_measure::text::significant;

/// Dependence between runs for one metric; values of A and of B.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Dependence {
    /// Lag-1 autocorrelation of the logarithms; none if the values of a side are equal.
    pub lag1: (Option<f64>, Option<f64>),
    /// The probability that it is at least as large in a random order of the side's values.
    pub p: (Option<f64>, Option<f64>),
    /// The correlation of neighbouring runs for which the interval allows.
    pub phi: f64,
    /// The number of independent runs that would give the same precision of the mean, at that correlation.
    pub worth: (f64, f64),
}

impl ComparedFigure {
    /// None if the sides were measured alternately, with fewer than four runs per side, or if a run lacks the
    /// metric.
    pub fn dependence(&self, confidence: f64) -> Option<Dependence> {
        let phi = self.change(0.0, confidence).filter(|_| self.is_testable())?.phi?;
        let of = |values: &[f64]| {
            let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            let found = independence(&logarithms);
            (
                found.map(|found| found.lag1),
                found.map(|found| found.p_lag1),
                effective_count(values.len(), phi),
            )
        };
        let (a, b) = (of(&self.a_values), of(&self.b_values));
        Some(Dependence { lag1: (a.0, b.0), p: (a.1, b.1), phi, worth: (a.2, b.2) })
    }
}

impl Dependence {
    /// "lag-1 correlation 0.12 in A (p = 0.41), -0.30 in B (p = 0.90); allowed for: 0.35".
    pub(super) fn describe(&self) -> String {
        let side = |name: &str, lag1: Option<f64>, p: Option<f64>| match lag1.zip(p) {
            Some((lag1, p)) => format!("{lag1:.2} in {name} ({})", chance(p)),
            None => format!("unknown in {name} (all runs are equal)"),
        };
        let (a, b) = (side("A", self.lag1.0, self.p.0), side("B", self.lag1.1, self.p.1));
        format!("lag-1 correlation {a}, {b}; allowed for: {:.2}", self.phi)
    }

    /// "6 and 6 runs are equivalent to 3.6 and 3.6 independent ones".
    pub(crate) fn worth_words(&self, (a, b): (usize, usize)) -> String {
        let [of_a, of_b] = [self.worth.0, self.worth.1].map(significant);
        format!("{a} and {b} runs are equivalent to {of_a} and {of_b} independent ones")
    }

    /// "lag-1 correlation 0.12, p = 0.41, and -0.30, p = 0.90"; none if the values of both sides are equal.
    pub(crate) fn test_words(&self) -> Option<String> {
        let sides = [(self.lag1.0, self.p.0), (self.lag1.1, self.p.1)];
        let words = sides.map(|(lag1, p)| lag1.zip(p).map(|(lag1, p)| format!("{lag1:.2}, {}", chance(p))));
        let [a, b] = match words {
            [None, None] => return None,
            words => words.map(|side| side.unwrap_or_else(|| "unknown (all runs are equal)".into())),
        };
        Some(format!("lag-1 correlation {a}, and {b}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(consecutive: bool, a: &[f64], b: &[f64]) -> ComparedFigure {
        ComparedFigure {
            id: "tps".into(),
            name: "tps".into(),
            unit: "per second".into(),
            better: None,
            a: Some(a[0]),
            b: Some(b[0]),
            ratio: Some(b[0] / a[0]),
            interval: None,
            p: None,
            exploratory: false,
            a_values: a.to_vec(),
            b_values: b.to_vec(),
            a_at_least: vec![false; a.len()],
            b_at_least: vec![false; b.len()],
            paired: false,
            consecutive,
        }
    }

    #[test]
    fn trial_a4_a_comparison_tests_the_dependence_of_its_runs_and_says_what_they_are_worth() {
        let climbs = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0];
        let jumps = [100.0, 103.0, 99.0, 104.0, 100.0, 103.0];
        let found = figure(true, &climbs, &jumps).dependence(0.95).unwrap();
        assert!(found.lag1.0.unwrap() > 0.3 && found.lag1.1.unwrap() < 0.0, "{found:?}");
        assert!(found.p.0.unwrap() < 0.05 && found.p.1.unwrap() > 0.5, "{found:?}");
        assert!(found.phi > 0.0 && (1.0..6.0).contains(&found.worth.0), "{found:?}");
        assert!(
            found.describe().contains("in A (p = 0.0194)") && found.describe().contains("allowed for: 0."),
            "{found:?}"
        );
        assert!(found.worth_words((6, 6)).starts_with("6 and 6 runs are equivalent to "), "{found:?}");
        let tested = found.test_words().unwrap();
        assert!(
            tested.starts_with("lag-1 correlation 0.") && tested.contains(", p = 0.0194, and -0."),
            "{tested}"
        );
        assert_eq!(figure(false, &climbs, &jumps).dependence(0.95), None, "measured in turn");
        assert_eq!(figure(true, &climbs[..3], &jumps).dependence(0.95), None, "too few");
        let equal = figure(true, &[100.0; 6], &jumps).dependence(0.95).unwrap();
        assert!(equal.lag1.0.is_none() && equal.describe().contains("unknown in A"), "{equal:?}");
        assert!(equal.test_words().unwrap().contains("unknown (all runs are equal), and -0."), "{equal:?}");
    }
}
