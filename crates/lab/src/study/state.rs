//! Where a study stands: the plan, with what the ledger says of it.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_store::RunId;

use super::{Attempt, Deviation, LedgerEntry, LedgerEvent, PlannedRun, Results, StudyPlan};

/// Tries of one planned run, after which it is left without a result: what is void three times is void for a reason that
/// another try does not take away.
pub const MOST_TRIES: u32 = 3;

/// The ledger's entries, in terms of the plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// One for each planned run, in the plan's order.
    slots: Vec<Slot>,
    /// Which slot a block's treatment is.
    places: BTreeMap<(u32, String), usize>,
    /// Runs that were measured and do not count, in their order in time, with the reasons.
    pub void: Vec<(Attempt, Results, Vec<String>)>,
    /// Tries that came to nothing, in their order in time, with the reason.
    pub failed: Vec<(Attempt, String)>,
    /// Deviations in the order in which they were noticed.
    pub deviations: Vec<Deviation>,
    /// Measured runs of treatments that the plan does not have any more.
    pub strays: Vec<(Attempt, Results)>,
    /// The places of runs in whose place another was begun. One that was begun twice, the first having been interrupted, is
    /// one of the budget.
    replaced: BTreeSet<u32>,
    /// The last session.
    pub session: Option<StudySession>,
    /// Whether the last word is that nothing is left to run.
    pub finished: bool,
    /// Times that `kelvin study run` was begun.
    pub sessions: u32,
    /// Seconds that each measured run took, void ones included.
    pub seconds: Vec<f64>,
    /// The treatments and their order as the ledger has them last.
    pub planned: Option<LedgerEvent>,
    next_place: u32,
}

/// What was known when `kelvin study run` was last begun.
#[derive(Debug, Clone, PartialEq)]
pub struct StudySession {
    /// The file that holds the runs.
    pub store: std::path::PathBuf,
    /// The number of their group.
    pub group: i64,
    /// The machine.
    pub facts: super::EnvironmentFacts,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Slot {
    counted: Option<(u32, Results)>,
    /// Tries that were void or failed.
    tries: u32,
    /// The place of the last of them.
    last: Option<u32>,
}

/// A planned run that has a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The block, from 0.
    pub block: u32,
    /// Its cell, by its place in [`StudyPlan::cells`].
    pub cell: usize,
    /// Whether it is the control.
    pub control: bool,
    /// Its place in time.
    pub place: u32,
    /// What was measured.
    pub results: Results,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Next {
    /// The planned run, by its place in the plan.
    pub(super) planned: usize,
    /// How it is in the ledger.
    pub(super) attempt: Attempt,
    /// The place in time of the one that it replaces.
    pub(super) replaces: Option<u32>,
}

impl State {
    /// Where the study of this plan stands after these entries.
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

    /// Takes up one more entry.
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
                    // The first result stands: a second one of the same planned run has no place in the design.
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

    /// Runs that were begun, whatever came of them.
    pub fn begun_runs(&self) -> usize {
        self.next_place as usize
    }

    /// The results in the order of the plan: the same whatever happened between.
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

    /// The result of a planned run, by its place in the plan.
    pub fn result(&self, planned: usize) -> Option<&Results> {
        self.slots.get(planned)?.counted.as_ref().map(|(_, results)| results)
    }

    /// Tries of a planned run that were void or failed, by its place in the plan.
    pub fn tries(&self, planned: usize) -> u32 {
        self.slots.get(planned).map_or(0, |slot| slot.tries)
    }

    /// Every run of the store that the ledger names.
    pub fn known_runs(&self) -> BTreeSet<RunId> {
        let counted = self.slots.iter().filter_map(|slot| slot.counted.as_ref()).map(|(_, results)| results);
        let void = self.void.iter().map(|(_, results, _)| results);
        let strays = self.strays.iter().map(|(_, results)| results);
        counted.chain(void).chain(strays).map(|results| results.run).collect()
    }

    /// Replacements that are left.
    pub fn replacements_left(&self, budget: u32) -> u32 {
        budget.saturating_sub(self.replaced())
    }

    /// Runs made in the place of others.
    pub fn replaced(&self) -> u32 {
        self.replaced.len() as u32
    }

    /// What comes next: within the first block that has something left, what was not tried yet, in the plan's order; then
    /// what was tried in vain; nothing when nothing is left that may be run. So a block stays together in time, and an interrupted run is the next one.
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
