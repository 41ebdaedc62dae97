//! The progress of a study as a line for the user.

use super::{Attempt, Estimate, State, Study, StudyPlan};
use kelvin_measure::text::duration;

/// "run 7 of 54 · block 1 of 6 · commit=off · about 38 min left".
pub(super) fn line(study: &Study, plan: &StudyPlan, state: &State, attempt: &Attempt) -> String {
    let left = state.missing();
    let estimate = Estimate::of(study, &state.seconds);
    format!(
        "run {} of {} · block {} of {} · {} · about {} left",
        plan.runs.len() - left + 1,
        plan.runs.len(),
        attempt.block + 1,
        study.design.blocks,
        attempt.treatment,
        duration(estimate.seconds(left))
    )
}
