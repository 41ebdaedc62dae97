//! What the answer would be with the void runs in it.

use serde::Serialize;

use crate::StudyInput;
use crate::values::Counting;
use crate::verdict::{HypothesisAnswer, HypothesisVerdict, verdict};

/// Both answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sensitivity {
    /// Void runs that have the goal's metric.
    pub void_with_value: usize,
    /// With void runs left out, as it counts.
    pub without: HypothesisVerdict,
    /// With them; none where none of them has a value.
    pub with: Option<HypothesisVerdict>,
    /// Whether the conclusion depends on which.
    pub depends: bool,
}

/// Judges twice.
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
