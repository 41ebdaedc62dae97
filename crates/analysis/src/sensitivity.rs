//! The verdict with the void runs included.

use serde::Serialize;

use crate::StudyInput;
use crate::values::Counting;
use crate::verdict::{HypothesisAnswer, HypothesisVerdict, verdict};

/// The verdicts without and with void runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Void runs with a value of the goal's metric.
    pub void_with_value: usize,
    /// The verdict without void runs, which is the one that counts.
    pub without: HypothesisVerdict,
    /// The verdict with void runs; none if no void run has a value.
    pub with: Option<HypothesisVerdict>,
    /// Whether the conclusion depends on the void runs.
    pub depends: bool,
}

/// Judges with and without void runs.
pub(crate) fn sensitivity(input: &StudyInput, without: &HypothesisVerdict) -> Sensitivity {
    let void = input.runs.iter().filter(|run| {
        run.void.is_some()
            && !run.control
            && run.values.get(&input.goal.metric).is_some_and(|value| value.is_finite())
    });
    let void_with_value = void.count();
    let with = (void_with_value > 0).then(|| verdict(input, Counting::All));
    let depends = with.as_ref().is_some_and(|with| {
        with.answer != without.answer
            || (without.answer != HypothesisAnswer::NotTestable && with.equivalent != without.equivalent)
    });
    Sensitivity { void_with_value, without: without.clone(), with, depends }
}
