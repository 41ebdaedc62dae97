//! The start of a session: the plan, the environment, and the deviations.

use std::path::Path;

use kelvin_store::GroupId;

use super::{
    Deviation, EnvironmentFacts, Ledger, LedgerEvent, Lock, State, Study, StudyError, StudyPlan, lock,
};

/// The facts that are known before the first run of a session.
#[derive(Debug)]
pub struct Opening<'a> {
    /// The study.
    pub study: &'a Study,
    /// Every run.
    pub plan: &'a StudyPlan,
    /// The lock; none if the study is not locked.
    pub lock: Option<&'a Lock>,
    /// The machine, and the database's version.
    pub facts: EnvironmentFacts,
    /// The file that holds the runs.
    pub store: &'a Path,
    /// Their group in the store.
    pub group: GroupId,
}

/// Writes the session and its deviations from the lock and from the previous session into the ledger. Returns the
/// deviations that the ledger did not contain yet.
pub fn begin(
    ledger: &mut Ledger,
    state: &mut State,
    opening: &Opening<'_>,
) -> Result<Vec<Deviation>, StudyError> {
    let mut deviations = Vec::new();
    let planned = planned(opening.study, opening.plan);
    if let Some(before) = &state.planned {
        deviations.extend(replanned(before, &planned));
    }
    if let Some(lock) = opening.lock {
        deviations.extend(lock.deviations(opening.study)?);
    }
    if let Some(before) = &state.session {
        deviations.extend(lock::environment(&before.facts, &opening.facts));
    }
    deviations.retain(|deviation| !is_known(state, deviation));

    let mut log = |event: LedgerEvent| -> Result<(), StudyError> {
        let entry = ledger.append(event)?;
        state.absorb(&entry);
        Ok(())
    };
    log(LedgerEvent::Session {
        store: opening.store.to_owned(),
        group: opening.group.0,
        lock: opening.lock.map(|lock| lock.sha256.clone()),
        facts: opening.facts.clone(),
    })?;
    for deviation in &deviations {
        log(LedgerEvent::Deviation(deviation.clone()))?;
    }
    if state.planned.as_ref() != Some(&planned) {
        let entry = ledger.append(planned)?;
        state.absorb(&entry);
    }
    Ok(deviations)
}

/// Whether the last entry about this value is the same. A deviation that reappears is recorded again.
fn is_known(state: &State, deviation: &Deviation) -> bool {
    let same_place = |known: &&Deviation| known.of == deviation.of && known.key == deviation.key;
    // A deviation of the environment is relative to the previous session, so it is always new.
    deviation.of != "environment" && state.deviations.iter().rev().find(same_place) == Some(deviation)
}

fn planned(study: &Study, plan: &StudyPlan) -> LedgerEvent {
    let blocks = 0..study.design.blocks;
    let order = |block: u32| {
        plan.runs.iter().filter(|run| run.block == block).map(|run| run.treatment).collect::<Vec<_>>()
    };
    LedgerEvent::Planned {
        seed: study.design.seed,
        blocks: study.design.blocks,
        treatments: plan.treatments.iter().map(|treatment| treatment.name.clone()).collect(),
        order: blocks.map(order).collect(),
    }
}

fn replanned(before: &LedgerEvent, now: &LedgerEvent) -> Vec<Deviation> {
    let (
        LedgerEvent::Planned { seed: old_seed, blocks: old_blocks, treatments: old_treatments, .. },
        LedgerEvent::Planned { seed, blocks, treatments, .. },
    ) = (before, now)
    else {
        return Vec::new();
    };
    let pairs = [
        ("seed", old_seed.to_string(), seed.to_string()),
        ("blocks", old_blocks.to_string(), blocks.to_string()),
        ("treatments", old_treatments.join(", "), treatments.join(", ")),
    ];
    let changed = pairs.into_iter().filter(|(_, from, to)| from != to);
    changed
        .map(|(key, from, to)| Deviation {
            of: "plan".into(),
            key: key.into(),
            from: Some(from),
            to: Some(to),
        })
        .collect()
}
