//! The state of a study: the plan, combined with the ledger.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_store::RunId;

use super::{Attempt, Deviation, LedgerEntry, LedgerEvent, PlannedRun, Results, StudyPlan};

/// Maximum number of attempts for a planned run, after which it is left without a result. Three void attempts have a
/// cause that another attempt does not remove.
const MOST_TRIES: u32 = 3;

/// The state according to the ledger's entries, in terms of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// One slot per planned run, in the plan's order.
    slots: Vec<Slot>,
    /// The slot of each block and treatment.
    places: BTreeMap<(u32, String), usize>,
    /// Void runs in time order, with the reasons.
    pub void: Vec<(Attempt, Results, Vec<String>)>,
    /// Failed attempts in time order, with the reason.
    pub failed: Vec<(Attempt, String)>,
    /// Deviations in the order in which they were noticed.
    pub deviations: Vec<Deviation>,
    /// Measured runs of treatments that are no longer in the plan.
    pub strays: Vec<(Attempt, Results)>,
    /// The positions of runs that were replaced. A replacement that was started twice, because it was interrupted,
    /// counts once against the budget.
    replaced: BTreeSet<u32>,
    /// The last session.
    pub session: Option<StudySession>,
    /// Whether the last entry states that no runs remain.
    pub finished: bool,
    /// The number of times that `kelvin study run` was started.
    pub sessions: u32,
    /// The duration of each measured run in seconds, void ones included.
    pub seconds: Vec<f64>,
    /// The treatments and their order according to the ledger's last plan.
    pub planned: Option<LedgerEvent>,
    next_place: u32,
}

/// The facts of the last start of `kelvin study run`.
#[derive(Debug, Clone, PartialEq)]
pub struct StudySession {
    /// The file that holds the runs.
    pub store: std::path::PathBuf,
    /// The id of their group.
    pub group: i64,
    /// The machine.
    pub facts: super::EnvironmentFacts,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Slot {
    counted: Option<(u32, Results)>,
    /// Attempts that were void or failed.
    tries: u32,
    /// The position of the last of them.
    last: Option<u32>,
}

/// A planned run with a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The block, from 0.
    pub block: u32,
    /// Its cell, as an index into [`StudyPlan::cells`].
    pub cell: usize,
    /// Whether it is the control.
    pub control: bool,
    /// Its position in time.
    pub place: u32,
    /// The result.
    pub results: Results,
}

/// The next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Next {
    /// The planned run, as an index into the plan.
    pub(super) planned: usize,
    /// The attempt for the ledger.
    pub(super) attempt: Attempt,
    /// The position of the attempt that it replaces.
    pub(super) replaces: Option<u32>,
}

impl State {
    /// The state of a study with this plan after these entries.
    pub fn of(plan: &StudyPlan, entries: &[LedgerEntry]) -> Self {
        let mut state = Self { slots: vec![Slot::default(); plan.runs.len()], ..Self::default() };
        for (index, &run) in plan.runs.iter().enumerate() {
            state.places.insert((run.block, plan.treatment(run).name.clone()), index);
        }
        for entry in entries {
            state.absorb(entry);
        }
        state
    }

    /// Applies another entry.
    pub(super) fn absorb(&mut self, entry: &LedgerEntry) {
        match &entry.event {
            planned @ LedgerEvent::Planned { .. } => self.planned = Some(planned.clone()),
            LedgerEvent::Session { store, group, facts, .. } => {
                self.sessions += 1;
                self.finished = false;
                self.session =
                    Some(StudySession { store: store.clone(), group: *group, facts: facts.clone() });
            }
            LedgerEvent::Deviation(deviation) => self.deviations.push(deviation.clone()),
            LedgerEvent::Started { attempt } => self.next_place = self.next_place.max(attempt.place + 1),
            LedgerEvent::Measured { attempt, results } => {
                self.seconds.push(results.seconds);
                match self.slot(attempt) {
                    // The first result counts: the design has no place for a second result of the same planned run.
                    Some(slot) if slot.counted.is_none() => {
                        slot.counted = Some((attempt.place, results.clone()));
                    }
                    _ => self.strays.push((attempt.clone(), results.clone())),
                }
            }
            LedgerEvent::Void { attempt, why, results } => {
                self.seconds.push(results.seconds);
                self.tried(attempt);
                self.void.push((attempt.clone(), results.clone(), why.clone()));
            }
            LedgerEvent::Failed { attempt, why } => {
                self.tried(attempt);
                self.failed.push((attempt.clone(), why.clone()));
            }
            LedgerEvent::Replaced { of, .. } => {
                self.replaced.insert(*of);
            }
            LedgerEvent::Interrupted { .. } => {}
            LedgerEvent::Finished { .. } => self.finished = true,
        }
    }

    fn slot(&mut self, attempt: &Attempt) -> Option<&mut Slot> {
        let index = *self.places.get(&(attempt.block, attempt.treatment.clone()))?;
        self.slots.get_mut(index)
    }

    fn tried(&mut self, attempt: &Attempt) {
        if let Some(slot) = self.slot(attempt) {
            slot.tries += 1;
            slot.last = Some(attempt.place);
        }
    }

    /// Planned runs without a result.
    pub fn missing(&self) -> usize {
        self.slots.iter().filter(|slot| slot.counted.is_none()).count()
    }

    /// Planned runs with a result.
    pub fn counted_runs(&self) -> usize {
        self.slots.len() - self.missing()
    }

    /// Number of runs that were started, whatever their result.
    pub fn begun_runs(&self) -> usize {
        self.next_place as usize
    }

    /// The results in the order of the plan, regardless of interruptions.
    pub fn counted(&self, plan: &StudyPlan) -> Vec<Counted> {
        let counted = |(&run, slot): (&PlannedRun, &Slot)| {
            let (place, results) = slot.counted.clone()?;
            let treatment = plan.treatment(run);
            Some(Counted {
                block: run.block,
                cell: treatment.cell,
                control: treatment.control,
                place,
                results,
            })
        };
        plan.runs.iter().zip(&self.slots).filter_map(counted).collect()
    }

    /// The result of a planned run, by its index in the plan.
    pub fn result(&self, planned: usize) -> Option<&Results> {
        self.slots.get(planned)?.counted.as_ref().map(|(_, results)| results)
    }

    /// The number of void or failed attempts of a planned run, by its index in the plan.
    pub fn tries(&self, planned: usize) -> u32 {
        self.slots.get(planned).map_or(0, |slot| slot.tries)
    }

    /// Every run in the store that the ledger refers to.
    pub fn known_runs(&self) -> BTreeSet<RunId> {
        let counted = self.slots.iter().filter_map(|slot| slot.counted.as_ref()).map(|(_, results)| results);
        let void = self.void.iter().map(|(_, results, _)| results);
        let strays = self.strays.iter().map(|(_, results)| results);
        counted.chain(void).chain(strays).map(|results| results.run).collect()
    }

    /// The remaining number of replacements.
    pub fn replacements_left(&self, budget: u32) -> u32 {
        budget.saturating_sub(self.replaced())
    }

    /// The number of replaced runs.
    pub fn replaced(&self) -> u32 {
        self.replaced.len() as u32
    }

    /// The next attempt; none when no run may be started. Within the first block with open runs, those without an
    /// attempt come first, in the plan's order, then those to repeat. So a block stays together in time, and an
    /// interrupted run is the next one.
    pub(super) fn next(&self, plan: &StudyPlan, budget: u32) -> Option<Next> {
        let budget_left = self.replacements_left(budget) > 0;
        let paid = |slot: &Slot| slot.last.is_some_and(|last| self.replaced.contains(&last));
        let open = |slot: &Slot| {
            slot.counted.is_none()
                && (slot.tries == 0 || ((budget_left || paid(slot)) && slot.tries < MOST_TRIES))
        };
        let candidates = plan.runs.iter().zip(&self.slots).enumerate().filter(|(_, (_, slot))| open(slot));
        let next = candidates.min_by_key(|(index, (run, slot))| (run.block, slot.tries, *index));
        next.map(|(planned, (&run, slot))| Next {
            planned,
            attempt: Attempt {
                place: self.next_place,
                block: run.block,
                treatment: plan.treatment(run).name.clone(),
            },
            replaces: slot.last,
        })
    }
}
