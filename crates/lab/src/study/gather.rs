//! Builds a [`StudyInput`] from a study's file, its ledger, and its stored runs.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{BottleneckOutcome, Evidence, NoisePrice};
use kelvin_store::{RunId, Store};

use crate::conditions::DesignCell;
use crate::factor::{FactorKind, LevelValue};
use crate::study::{self, DesignKind, LedgerEntry, Results, State, Study, StudyPlan};
use kelvin_analysis::{
    Claim, Direction, Factor, Goal, IPC, Level, MetricInfo, Prediction, Run, Scale, StudyDesign, StudyInput,
};

const CONFIDENCE: f64 = 0.95;

/// Facts about a stored run that its ledger entry does not contain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredRunFacts {
    /// Instructions per cycle of the server; none if its counters were unavailable.
    pub ipc: Option<f64>,
    /// The resource that limited it, according to its verdict; none if undecided.
    pub limit: Option<String>,
    /// Whether its specification lets it count regardless of the CPU time that other processes took.
    pub accepts_noise: bool,
    /// What other processes cost it; none where that is unknown.
    pub noise: Option<NoisePrice>,
}

/// Facts about a run of a study's group from the store; none if the run is not in that group, so that values of a run
/// with the same id in another store are never used.
///
/// # Errors
/// When the run does not exist, or is damaged.
pub fn stored_run_facts(
    store: &Store,
    group: i64,
    run: RunId,
) -> kelvin_store::Result<Option<StoredRunFacts>> {
    if store.membership(run)?.is_none_or(|member| member.group.0 != group) {
        return Ok(None);
    }
    let evidence = Evidence::from_run(&store.load(run)?)?;
    let limit = kelvin_diagnose::verdict(&evidence, 0, &kelvin_diagnose::findings_for(&evidence)).and_then(
        |verdict| match verdict.outcome {
            BottleneckOutcome::Compound { classes } => Some(classes.join(" and ")),
            BottleneckOutcome::Bound { class } => Some(class),
            BottleneckOutcome::Void { .. } | BottleneckOutcome::Undetermined { .. } => None,
        },
    );
    Ok(Some(StoredRunFacts {
        ipc: evidence.mean(0, IPC),
        limit,
        accepts_noise: kelvin_diagnose::is_noise_accepted(&evidence),
        noise: kelvin_diagnose::noise(&evidence, 0),
    }))
}

/// Every measured run of the ledger, void ones included.
pub fn measured(entries: &[LedgerEntry]) -> Vec<RunId> {
    let run = |entry: &LedgerEntry| match &entry.event {
        study::LedgerEvent::Measured { results, .. } | study::LedgerEvent::Void { results, .. } => {
            Some(results.run)
        }
        _ => None,
    };
    entries.iter().filter_map(run).collect()
}

/// The input of the analysis. Runs of treatments that are no longer in the study are left out.
pub fn analysis_input(
    study: &Study,
    entries: &[LedgerEntry],
    stored: &BTreeMap<i64, StoredRunFacts>,
) -> StudyInput {
    let plan = StudyPlan::of(study);
    let state = State::of(&plan, entries);
    let mut figures = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut secondary = Vec::new();
    let mut runs = Vec::new();
    let mut add = |results: &Results, place, block, cell: &DesignCell, control, void: Option<String>| {
        let Some(cell) = indexes(study, cell) else { return };
        for figure in &results.figures {
            if seen.insert(figure.id.clone()) {
                let of = MetricInfo {
                    name: figure.name.clone(),
                    unit: figure.unit.clone(),
                    better: figure.better,
                };
                figures.insert(figure.id.clone(), of);
                secondary.push(figure.id.clone());
            }
        }
        let exact = results.figures.iter().filter(|figure| !figure.at_least);
        let known = exact.filter_map(|figure| Some((figure.id.clone(), figure.value?)));
        let mut values: BTreeMap<String, f64> = known.collect();
        let more = stored.get(&results.run.0);
        if let Some(ipc) = more.and_then(|more| more.ipc) {
            values.insert(IPC.into(), ipc);
        }
        let limit = more.and_then(|more| more.limit.clone());
        // If the store no longer exists, the study's file has the answer.
        let accepts_noise = more.map_or(study.run.accept_noise, |more| more.accepts_noise);
        let noise = more.and_then(|more| more.noise);
        let run = results.run.0;
        runs.push(Run { run, place, block, cell, control, values, void, limit, accepts_noise, noise });
    };
    for counted in state.counted(&plan) {
        let cell = &plan.cells[counted.cell];
        add(&counted.results, counted.place, counted.block, cell, counted.control, None);
    }
    for (attempt, results, why) in &state.void {
        if let Some(treatment) = plan.treatments.iter().find(|t| t.name == attempt.treatment) {
            let cell = &plan.cells[treatment.cell];
            add(results, attempt.place, attempt.block, cell, treatment.control, Some(why.join("; ")));
        }
    }
    runs.sort_by_key(|run| run.place);
    if runs.iter().any(|run| run.values.contains_key(IPC)) {
        figures.entry(IPC.into()).or_insert_with(|| MetricInfo {
            name: "IPC of the server".into(),
            unit: "1".into(),
            better: Some(kelvin_diagnose::Better::Higher),
        });
        if !secondary.iter().any(|id| id == IPC) {
            secondary.push(IPC.into());
        }
    }
    secondary.retain(|id| *id != study.goal.metric && runs.iter().any(|run| run.values.contains_key(id)));
    StudyInput {
        name: study.name.clone(),
        design: match study.design.kind {
            DesignKind::Ab => StudyDesign::Ab,
            DesignKind::Factorial => StudyDesign::Factorial,
            DesignKind::Fractional => StudyDesign::Fraction { generators: study.design.generators.clone() },
            DesignKind::Sweep => StudyDesign::Sweep,
        },
        factors: factors(study),
        runs,
        goal: Goal {
            metric: study.goal.metric.clone(),
            better: study.goal.direction,
            smallest: study.goal.smallest_effect.ratio(),
        },
        claim: claim(study),
        secondary,
        figures,
        confidence: CONFIDENCE,
        scale: Scale::Ratio,
    }
}

/// The level of each factor in a cell, by index.
fn indexes(study: &Study, cell: &DesignCell) -> Option<Vec<usize>> {
    let index = |(setting, axis): (&crate::conditions::FactorSetting, &study::Axis)| {
        axis.levels.iter().position(|level| *level == setting.level)
    };
    cell.0.iter().zip(&study.axes).map(index).collect()
}

fn factors(study: &Study) -> Vec<Factor> {
    let level = |of: &crate::factor::Factor, name: &String| Level {
        name: name.clone(),
        number: match of.level(name).map(|level| &level.value) {
            Some(LevelValue::Integer(number)) => Some(*number as f64),
            Some(LevelValue::Number(number)) => Some(*number),
            _ => None,
        },
    };
    let factor = |(axis, of): (&study::Axis, &crate::factor::Factor)| Factor {
        name: axis.name.clone(),
        levels: axis.levels.iter().map(|name| level(of, name)).collect(),
        users: matches!(of.how(), FactorKind::Spec(path) if path == "load.users"),
    };
    study.axes.iter().zip(&study.factors).map(factor).collect()
}

fn claim(study: &Study) -> Option<Claim> {
    let hypothesis = &study.hypothesis;
    let factor = study.axes.iter().position(|axis| axis.name == hypothesis.factor)?;
    let level = |name: &String| study.axes[factor].levels.iter().position(|level| level == name);
    let direction = |direction: study::Direction| match direction {
        study::Direction::Higher => Direction::Up,
        study::Direction::Lower => Direction::Down,
        study::Direction::Same => Direction::Same,
    };
    let (of_goal, others): (Vec<_>, Vec<_>) =
        hypothesis.predicts.iter().partition(|prediction| prediction.metric == study.goal.metric);
    let of_goal = of_goal.first()?;
    Some(Claim {
        from: vec![(factor, level(&hypothesis.from)?)],
        to: vec![(factor, level(&hypothesis.to)?)],
        direction: direction(of_goal.direction),
        least: of_goal.by.map(study::Share::ratio),
        signature: others
            .into_iter()
            .map(|prediction| Prediction {
                metric: prediction.metric.clone(),
                direction: direction(prediction.direction),
                size: prediction.by.map(study::Share::ratio),
            })
            .collect(),
    })
}
