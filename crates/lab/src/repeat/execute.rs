//! Makes the runs, replaces void ones, and ends when the plan is complete.

use std::time::Duration;

use kelvin_store::{GroupId, GroupSlot};

use super::spread::needed;
use super::summary::known;
use super::{GroupRun, RepeatPlan, Spread};
use crate::bench::in_block;
use crate::{Bench, BenchError, Measured, Planned};
use kelvin_run::Spec;

/// Progress of the runs, for display to the user.
#[derive(Debug)]
pub enum RepeatEvent<'a> {
    /// A run has ended.
    Ran {
        /// The run.
        row: &'a GroupRun,
        /// Counted runs so far.
        counted: u32,
        /// Planned number of counted runs, as far as known.
        of: u32,
        /// Estimated remaining time.
        left: Duration,
    },
    /// A run could not be made, or ended early.
    Failed {
        /// Why.
        error: String,
    },
}

/// How the repetitions ended.
#[derive(Debug)]
pub enum RepeatEnd {
    /// As planned.
    Done,
    /// More runs were void than may be replaced.
    TooManyVoid,
    /// A stop was requested.
    Interrupted,
    /// Runs could not be made.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// Runs that were made.
#[derive(Debug)]
pub struct Ran {
    /// All runs, including void ones.
    pub rows: Vec<GroupRun>,
    /// How the repetitions ended.
    pub ended: RepeatEnd,
}

/// Repeats the run. `words` describes the progress to the user.
///
/// # Errors
/// When not even the first run could be made.
pub fn run(
    plan: &RepeatPlan,
    spec: &Spec,
    group: GroupId,
    bench: &mut impl Bench,
    words: &dyn Fn(&RepeatEvent<'_>) -> String,
) -> Result<Ran, BenchError> {
    let mut attempts = Attempts::new(bench, group, plan.replace, plan.figure.as_deref());
    let mut ended = RepeatEnd::Done;
    while let Some(of) = wanted(plan, &attempts.rows) {
        let block = counted(&attempts.rows);
        let spec = in_block(spec, block);
        match attempts.measure(&spec, block, "")? {
            AttemptOutcome::Row => {
                let (counted, left) = (counted(&attempts.rows), wanted(plan, &attempts.rows));
                let missing = left.map_or(0, |of| of.saturating_sub(counted));
                attempts.tell(|row, pace| {
                    words(&RepeatEvent::Ran { row, counted, of: left.unwrap_or(of), left: pace.of(missing) })
                });
            }
            AttemptOutcome::Failed(error) => attempts.bench.report(&words(&RepeatEvent::Failed { error })),
            AttemptOutcome::Ended(how) => {
                ended = how;
                break;
            }
        }
    }
    Ok(Ran { rows: attempts.rows, ended })
}

fn counted(rows: &[GroupRun]) -> u32 {
    rows.iter().filter(|row| row.counts()).count() as u32
}

/// The total number of runs that should count; `None` when there are enough.
fn wanted(plan: &RepeatPlan, rows: &[GroupRun]) -> Option<u32> {
    let have = counted(rows);
    if have < plan.runs {
        return Some(plan.runs);
    }
    if !plan.until || have >= plan.most {
        return None;
    }
    let values = known(rows, plan.figure.as_deref());
    let belief = plan.belief();
    let close = Spread::of(&values, &belief, plan.confidence()).and_then(|spread| spread.half_width);
    if close.is_some_and(|half_width| half_width <= plan.precision) {
        return None;
    }
    // An estimate that the next run corrects.
    Some(
        needed(&values, &belief, plan.precision, plan.confidence())
            .map_or(plan.most, |n| n.clamp(have + 1, plan.most)),
    )
}

/// The result of one attempt.
pub(crate) enum AttemptOutcome {
    /// A run was made: the last of the rows. It may be void.
    Row,
    /// No run was made, and there will be another attempt.
    Failed(String),
    /// No run was made, and there will be no other attempt.
    Ended(RepeatEnd),
}

/// Attempts at runs, and the number that may be replaced.
pub(crate) struct Attempts<'a, B: Bench> {
    pub(crate) bench: &'a mut B,
    pub(crate) rows: Vec<GroupRun>,
    group: GroupId,
    replace: u32,
    lost: u32,
    place: u32,
    pace: Pace,
    /// The metric that the runs are made for; the headline by default.
    figure: Option<String>,
}

impl<'a, B: Bench> Attempts<'a, B> {
    pub(crate) fn new(bench: &'a mut B, group: GroupId, replace: u32, figure: Option<&str>) -> Self {
        let figure = figure.map(str::to_owned);
        Self { bench, rows: Vec::new(), group, replace, lost: 0, place: 0, pace: Pace::default(), figure }
    }

    /// Makes one run. If the first counted run lacks the metric, the others would lack it, too, and the repetitions
    /// end.
    pub(crate) fn measure(
        &mut self,
        spec: &Spec,
        block: u32,
        treatment: &str,
    ) -> Result<AttemptOutcome, BenchError> {
        if self.bench.stopped() {
            return Ok(AttemptOutcome::Ended(RepeatEnd::Interrupted));
        }
        if self.lost > self.replace {
            return Ok(AttemptOutcome::Ended(RepeatEnd::TooManyVoid));
        }
        let slot = GroupSlot { place: self.place, block, treatment: treatment.into() };
        self.place += 1;
        match self.bench.measure(&Planned { spec, group: self.group, slot: &slot, metrics: &[] }) {
            Ok(measured) => {
                self.lost += u32::from(!measured.counts());
                self.pace.took(&measured);
                self.rows.push(GroupRun::of(&measured, &slot));
                Ok(self
                    .without_figure()
                    .map_or(AttemptOutcome::Row, |why| AttemptOutcome::Ended(RepeatEnd::Failed(why.into()))))
            }
            Err(BenchError::Interrupted) => Ok(AttemptOutcome::Ended(RepeatEnd::Interrupted)),
            // An immediate failure has a cause that another attempt does not remove.
            Err(error) if self.rows.is_empty() => Err(error),
            Err(BenchError::Failed(error)) => {
                self.lost += 1;
                if self.lost > self.replace {
                    return Ok(AttemptOutcome::Ended(RepeatEnd::Failed(error)));
                }
                Ok(AttemptOutcome::Failed(error.to_string()))
            }
        }
    }

    /// Why the metric is missing, after the first run that counts.
    fn without_figure(&self) -> Option<String> {
        let id = self.figure.as_deref()?;
        let mut counted = self.rows.iter().filter(|row| row.counts());
        let (Some(first), None) = (counted.next(), counted.next()) else { return None };
        if first.bounded(Some(id)).is_some() {
            return None;
        }
        let why = match id.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok()) {
            Some(percent) => {
                let needed = (10.0 / (1.0 - percent / 100.0) - 1e-6).ceil();
                format!(
                    "its window had too few samples; {needed:.0} are needed: use a longer window or another \
                    figure"
                )
            }
            None => "it was not measured: use another figure, or do not disable observation".into(),
        };
        Some(format!("run {} has no {id}, and the other runs would not have it either: {why}", first.run))
    }

    /// The estimated time for this number of runs.
    pub(crate) fn pace(&self, runs: u32) -> Duration {
        self.pace.of(runs)
    }

    /// Reports the last run.
    pub(crate) fn tell(&mut self, words: impl FnOnce(&GroupRun, &Pace) -> String) {
        if let Some(row) = self.rows.last() {
            let text = words(row, &self.pace);
            self.bench.report(&text);
        }
    }
}

/// Duration of a run.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    runs: u32,
    seconds: f64,
}

impl Pace {
    fn took(&mut self, measured: &Measured) {
        self.runs += 1;
        self.seconds += measured.seconds;
    }

    /// The estimated time for this number of runs.
    pub(crate) fn of(&self, runs: u32) -> Duration {
        let seconds = self.seconds / f64::from(self.runs.max(1)) * f64::from(runs);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
