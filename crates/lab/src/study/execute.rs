//! Executes the remaining runs of a study, from any state.
//!
//! Every line of the ledger is on disk before the next step, and the next step follows from the plan and the ledger
//! alone. A study that was interrupted at any moment therefore continues as if it had not been interrupted.

use super::state::Next;
use super::{Ledger, LedgerEvent, Results, State, Study, StudyError, StudyPlan, progress};
use crate::bench::{self, Bench, BenchError, Planned};
use crate::conditions::CellConditions;
use kelvin_run::spec::Spec;
use kelvin_store::{GroupId, GroupSlot, RunId};

/// Maximum number of consecutive failures: beyond it, the cause is not the run.
const MOST_FAILURES: u32 = 3;

/// A study that is being run.
#[derive(Debug)]
pub struct Execution<'a> {
    /// The study.
    pub study: &'a Study,
    /// Every run.
    pub plan: &'a StudyPlan,
    /// The group of its runs in the store.
    pub group: GroupId,
    /// The maximum number of repeated runs, including those of earlier sessions.
    pub budget: u32,
    /// The ledger of the events.
    pub ledger: &'a mut Ledger,
    /// The current state.
    pub state: &'a mut State,
}

/// The environment of the runs.
pub trait StudyEnvironment {
    /// After a failed run: waits until the database answers again, starting it if it is managed.
    fn revive(&mut self) -> Result<(), BenchError>;

    /// Marks a run as void that the bench counted, so that the store agrees with the ledger.
    fn set_void(&mut self, run: RunId, why: &str) -> Result<(), BenchError>;
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StudyEnd {
    /// Every planned run has a result.
    Complete,
    /// So many planned runs have no result, and the budget for replacements is exhausted.
    Missing(usize),
    /// A stop was requested. The same command continues from here.
    Interrupted,
}

/// The result of an attempt.
enum Tried {
    Measured,
    Failed(String),
    Interrupted,
}

/// Restores everything when it is dropped, even on a panic, unless it was restored before.
struct RestoreOnDrop<'a> {
    conditions: &'a mut dyn CellConditions,
    done: bool,
}

impl RestoreOnDrop<'_> {
    fn undo(&mut self) -> Result<(), StudyError> {
        self.done = true;
        self.conditions.undo().map_err(|source| StudyError::Conditions {
            what: "the study's changes could not be restored; `kelvin study recover` tries again".into(),
            source,
        })
    }
}

impl Drop for RestoreOnDrop<'_> {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.conditions.undo();
        }
    }
}

/// Executes the remaining runs. All changes are restored, however it ends.
pub fn execute(
    mut execution: Execution<'_>,
    bench: &mut dyn Bench,
    conditions: &mut dyn CellConditions,
    surroundings: &mut dyn StudyEnvironment,
) -> Result<StudyEnd, StudyError> {
    let mut undone = RestoreOnDrop { conditions, done: false };
    let ran = execution.all(bench, &mut undone, surroundings);
    let put_back = undone.undo();
    // The first error is reported; changes that could not be restored are in the undo journal.
    let ended = ran?;
    put_back?;
    if ended != StudyEnd::Interrupted {
        let (counted, missing) = (execution.state.counted_runs(), execution.state.missing());
        execution.log(LedgerEvent::Finished { counted, missing })?;
    }
    Ok(ended)
}

impl Execution<'_> {
    fn all(
        &mut self,
        bench: &mut dyn Bench,
        undone: &mut RestoreOnDrop<'_>,
        surroundings: &mut dyn StudyEnvironment,
    ) -> Result<StudyEnd, StudyError> {
        let mut failures = 0;
        loop {
            if bench.stopped() {
                self.log(LedgerEvent::Interrupted { place: None })?;
                return Ok(StudyEnd::Interrupted);
            }
            let Some(next) = self.state.next(self.plan, self.budget) else {
                return Ok(match self.state.missing() {
                    0 => StudyEnd::Complete,
                    missing => StudyEnd::Missing(missing),
                });
            };
            match self.one(next, bench, undone, surroundings)? {
                Tried::Measured => failures = 0,
                Tried::Interrupted => return Ok(StudyEnd::Interrupted),
                Tried::Failed(last) => {
                    failures += 1;
                    if failures >= MOST_FAILURES {
                        return Err(StudyError::Failing { failures, last });
                    }
                    if let Some(ended) = self.revive(surroundings, &last)? {
                        return Ok(ended);
                    }
                }
            }
        }
    }

    /// One attempt, from its conditions to its entry in the ledger.
    fn one(
        &mut self,
        next: Next,
        bench: &mut dyn Bench,
        undone: &mut RestoreOnDrop<'_>,
        surroundings: &mut dyn StudyEnvironment,
    ) -> Result<Tried, StudyError> {
        let Next { planned, attempt, replaces } = next;
        let began = std::time::Instant::now();
        if let Some(of) = replaces {
            self.log(LedgerEvent::Replaced { of, by: attempt.place })?;
        }
        self.log(LedgerEvent::Started { attempt: attempt.clone() })?;
        bench.report(&progress::line(self.study, self.plan, self.state, &attempt));

        let run = self.plan.runs[planned];
        let mut spec = self.specification(run.block, &attempt.treatment);
        let slot =
            GroupSlot { place: attempt.place, block: attempt.block, treatment: attempt.treatment.clone() };
        let metrics = self.study.observed();
        let measured = undone.conditions.apply(self.plan.cell(run), &mut spec).and_then(|()| {
            bench.measure(&Planned { spec: &spec, group: self.group, slot: &slot, metrics: &metrics })
        });
        match measured {
            Err(BenchError::Interrupted) => {
                self.log(LedgerEvent::Interrupted { place: Some(attempt.place) })?;
                Ok(Tried::Interrupted)
            }
            Err(BenchError::Failed(error)) => {
                let why = kelvin_measure::redact(&whole(&*error));
                bench.report(&format!("run {} failed: {why}", attempt.place + 1));
                self.log(LedgerEvent::Failed { attempt, why: why.clone() })?;
                Ok(Tried::Failed(why))
            }
            Ok(measured) => {
                let results = Results {
                    run: measured.run,
                    seconds: began.elapsed().as_secs_f64().max(measured.seconds),
                    figures: measured.figures,
                };
                let mut why = measured.judgement.reasons;
                if results.value(&self.study.goal.metric).is_none() && why.is_empty() {
                    let reason = format!("it has no value for the goal's metric, {}", self.study.goal.metric);
                    let noted = surroundings.set_void(results.run, &reason);
                    noted.map_err(|error| StudyError::Around(error.into()))?;
                    why.push(reason);
                }
                if why.is_empty() {
                    self.log(LedgerEvent::Measured { attempt, results })?;
                } else {
                    bench.report(&format!("run {} is void: {}", results.run, why.join("; ")));
                    self.log(LedgerEvent::Void { attempt, why, results })?;
                }
                Ok(Tried::Measured)
            }
        }
    }

    /// After a failed run, the database must answer before the next conditions are applied.
    fn revive(
        &mut self,
        surroundings: &mut dyn StudyEnvironment,
        last: &str,
    ) -> Result<Option<StudyEnd>, StudyError> {
        match surroundings.revive() {
            Ok(()) => {}
            Err(BenchError::Interrupted) => {
                self.log(LedgerEvent::Interrupted { place: None })?;
                return Ok(Some(StudyEnd::Interrupted));
            }
            Err(BenchError::Failed(error)) => {
                return Err(StudyError::Failing {
                    failures: 1,
                    last: format!("{last}; the database did not become available again: {}", whole(&*error)),
                });
            }
        }
        Ok(None)
    }

    /// The specification of a run before factors are applied.
    fn specification(&self, block: u32, treatment: &str) -> Spec {
        let mut spec = bench::in_block(&self.study.run, block);
        if spec.label.is_none() {
            spec.label = Some(format!("{} · {treatment}", self.study.name));
        }
        spec
    }

    fn log(&mut self, event: LedgerEvent) -> Result<(), StudyError> {
        let entry = self.ledger.append(event)?;
        self.state.absorb(&entry);
        Ok(())
    }
}

/// An error with its causes; repeated causes are left out.
fn whole(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    chain.fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        before if before.contains(&cause) => text,
        before => format!("{before}: {cause}"),
    })
}
