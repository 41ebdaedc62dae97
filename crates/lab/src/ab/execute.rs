//! Executes the runs block by block.

use std::time::Duration;

use kelvin_store::GroupId;

use super::blocks::complete;
use super::interim::{AbProgress, InterimLook, clear};
use super::order::order;
use super::{AbPlan, Planning, Treatment};
use crate::bench::in_block;
use crate::repeat::{AttemptOutcome, Attempts, GroupRun, Ran, RepeatEnd};
use crate::{Bench, BenchError};
use kelvin_run::Spec;

/// Progress of the runs, for display to the user.
#[derive(Debug)]
pub enum AbEvent<'a> {
    /// A run has ended.
    Ran {
        /// The run.
        row: &'a GroupRun,
        /// The total number of blocks, as far as known.
        blocks: u32,
        /// Whether the run belongs to the pilot.
        pilot: bool,
        /// Estimated remaining time.
        left: Duration,
    },
    /// A run could not be made, or ended early.
    Failed {
        /// Why.
        error: String,
    },
    /// The pilot has determined the number of blocks.
    Planned {
        /// Its estimate.
        planning: &'a Planning,
        /// Estimated remaining time.
        left: Duration,
    },
    /// The interim analyses that may end the comparison, with their blocks and bounds.
    Looks(&'a [InterimLook]),
    /// An interim analysis was made.
    Looked {
        /// The interim analysis.
        look: InterimLook,
        /// Whether it ends the comparison.
        ends: bool,
    },
}

/// Runs the comparison; `specs` are those of the plan's sides. `words` describes the progress to the user.
///
/// # Errors
/// When not even the first run could be made.
pub fn run(
    plan: &AbPlan,
    specs: &[Spec],
    group: GroupId,
    bench: &mut impl Bench,
    words: &dyn Fn(&AbEvent<'_>) -> String,
) -> Result<Ran, BenchError> {
    let treatments = plan.treatments();
    let mut attempts = Attempts::new(bench, group, plan.replace, plan.figure.as_deref());
    let mut course = AbProgress::of(plan, &[]);
    if !course.looks.is_empty() {
        attempts.bench.report(&words(&AbEvent::Looks(&course.looks)));
    }
    let mut block = 0;
    while block < course.blocks {
        for (place, index) in order(plan.seed, plan.sides.len(), plan.control, block).into_iter().enumerate()
        {
            let (Some(treatment), left) = (treatments.get(index), treatments.len() - place - 1) else {
                continue;
            };
            let Some(spec) = specs.get(treatment.side) else { continue };
            let left = left as u32 + (course.blocks - block - 1) * treatments.len() as u32;
            if let Some(ended) = attempt(
                plan,
                &mut attempts,
                (&in_block(spec, block), block, treatment),
                (&course, left),
                words,
            )? {
                return Ok(Ran { rows: attempts.rows, ended });
            }
        }
        block += 1;
        let (now, ends) = after(plan, &mut attempts, &course, block, words);
        course = now;
        if ends {
            break;
        }
    }
    Ok(Ran { rows: attempts.rows, ended: RepeatEnd::Done })
}

/// Makes a run that counts, if the budget allows; otherwise returns how the comparison ended.
fn attempt<B: Bench>(
    plan: &AbPlan,
    attempts: &mut Attempts<'_, B>,
    (spec, block, treatment): (&Spec, u32, &Treatment),
    (course, left): (&AbProgress, u32),
    words: &dyn Fn(&AbEvent<'_>) -> String,
) -> Result<Option<RepeatEnd>, BenchError> {
    let pilot = plan.effect.is_some() && course.planning.is_none();
    loop {
        match attempts.measure(spec, block, &treatment.name)? {
            AttemptOutcome::Row => {
                let counts = attempts.rows.last().is_some_and(GroupRun::counts);
                attempts.tell(|row, pace| {
                    let left = pace.of(left + u32::from(!counts));
                    words(&AbEvent::Ran { row, blocks: course.blocks, pilot, left })
                });
                if counts {
                    return Ok(None);
                }
            }
            AttemptOutcome::Failed(error) => attempts.bench.report(&words(&AbEvent::Failed { error })),
            AttemptOutcome::Ended(ended) => return Ok(Some(ended)),
        }
    }
}

/// Steps after a block: the plan after the pilot, and an interim analysis.
fn after<B: Bench>(
    plan: &AbPlan,
    attempts: &mut Attempts<'_, B>,
    before: &AbProgress,
    block: u32,
    words: &dyn Fn(&AbEvent<'_>) -> String,
) -> (AbProgress, bool) {
    let found = complete(plan, &attempts.rows);
    // Nothing changes between the end of the pilot and the last block.
    let settled = plan.effect.is_none() || before.planning.is_some() && block < before.blocks;
    let course = if settled { before.clone() } else { AbProgress::of(plan, &found) };
    let mut messages = Vec::new();
    if let Some(planning) = course.planning.as_ref().filter(|_| course.planning != before.planning) {
        let left = course.blocks.saturating_sub(block) * plan.treatments().len() as u32;
        messages.push(words(&AbEvent::Planned { planning, left: attempts.pace(left) }));
        if !course.looks.is_empty() {
            messages.push(words(&AbEvent::Looks(&course.looks)));
        }
    }
    let mut ends = false;
    if let Some(look) = course.interim_look(found.len() as u32).filter(|look| look.blocks < course.blocks) {
        ends = clear(plan, &found, look.nominal);
        messages.push(words(&AbEvent::Looked { look, ends }));
    }
    for text in messages {
        attempts.bench.report(&text);
    }
    (course, ends)
}

#[cfg(test)]
mod tests;
