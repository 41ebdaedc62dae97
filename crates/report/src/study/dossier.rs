//! Everything that stands on a study's page.

use kelvin_lab::analysis::{self, Analysis};
use kelvin_lab::study::{Deviation, Entry, Event, Lock, Plan, State, Study, notebook};
use serde::Serialize;

use super::notes;

/// A study with its analysis.
#[derive(Debug, Clone, Serialize)]
pub struct Dossier {
    /// What was found.
    pub analysis: Analysis,
    /// What was asked.
    pub question: String,
    /// The study that it continues.
    pub parent: Option<String>,
    /// What the answer holds for, in the author's words.
    pub universe: Vec<(String, String)>,
    /// The machine and the versions of the last session.
    pub facts: Vec<(String, String)>,
    /// The hypothesis in a sentence.
    pub statement: String,
    /// Why it should be so.
    pub mechanism: String,
    /// What else could explain the same.
    pub rivals: Vec<String>,
    /// When it was fixed, with its hash and the runs that had been begun before; none when it was not.
    pub lock: Option<(String, String, usize)>,
    /// What is not as it was fixed, or as it was before.
    pub deviations: Vec<String>,
    /// How each factor is applied: name, levels, how.
    pub method: Vec<(String, String, String)>,
    /// Blocks, seed, controls, reset, in words.
    pub design: Vec<(String, String)>,
    /// The run of which every run is a variation, as TOML; no password.
    pub run_toml: String,
    /// Measured runs in the order of time.
    pub runs: Vec<Member>,
    /// Runs that could not be made.
    pub failed: Vec<Tried>,
    /// Planned runs that have no result.
    pub missing: usize,
    /// What a person wrote, by phase.
    pub notes: [Vec<String>; 8],
    /// The version that made the page.
    pub kelvin: String,
}

/// A measured run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Member {
    /// Its number in the store.
    pub run: i64,
    /// Its place in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// The goal's figure.
    pub value: Option<f64>,
    /// Why it does not count.
    pub void: Option<String>,
    /// A page of its own, beside the study's.
    pub page: Option<String>,
}

/// A run that could not be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tried {
    /// Its place in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// Why not.
    pub why: String,
}

impl Dossier {
    /// Brings together what the files of a study say. `page` names the page of a run where there is one, relative to the
    /// study's.
    pub fn of(
        study: &Study,
        lock: Option<&Lock>,
        entries: &[Entry],
        notebook: &str,
        analysis: Analysis,
        page: &dyn Fn(i64) -> Option<String>,
    ) -> Self {
        let plan = Plan::of(study);
        let state = State::of(&plan, entries);
        let goal = &study.goal.metric;
        let mut runs = Vec::new();
        let mut failed = Vec::new();
        for entry in entries {
            let (attempt, results, void) = match &entry.event {
                Event::Measured { attempt, results } => (attempt, results, None),
                Event::Void { attempt, results, why } => (attempt, results, Some(why.join("; "))),
                Event::Failed { attempt, why } => {
                    failed.push(Tried {
                        place: attempt.place + 1,
                        block: attempt.block + 1,
                        treatment: attempt.treatment.clone(),
                        why: why.clone(),
                    });
                    continue;
                }
                _ => continue,
            };
            runs.push(Member {
                run: results.run.0,
                place: attempt.place + 1,
                block: attempt.block + 1,
                treatment: attempt.treatment.clone(),
                value: results.value(goal),
                void,
                page: page(results.run.0),
            });
        }
        let method = study
            .factors
            .iter()
            .map(|factor| (factor.name().to_owned(), factor.levels().join(", "), factor.applied_by()));
        let facts = state
            .session
            .as_ref()
            .map(|session| session.facts.iter().map(|(name, value)| (name.clone(), value.clone())).collect());
        let mut deviations: Vec<String> = state.deviations.iter().map(Deviation::describe).collect();
        // Changed since the last session, too.
        for one in lock.and_then(|lock| lock.deviations(study).ok()).unwrap_or_default() {
            let words = one.describe();
            if !deviations.contains(&words) {
                deviations.push(words);
            }
        }
        Self {
            question: study.question.clone(),
            parent: study.parent.clone(),
            universe: study.universe.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            facts: facts.unwrap_or_default(),
            statement: study.hypothesis.statement.clone(),
            mechanism: study.hypothesis.mechanism.clone(),
            rivals: study.hypothesis.rivals.clone(),
            lock: lock.map(|lock| {
                (lock.at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(), lock.sha256.clone(), lock.runs_before)
            }),
            deviations,
            method: method.collect(),
            design: design(study, &plan),
            run_toml: kelvin_measure::redact(&study.run.to_toml()),
            runs,
            failed,
            missing: state.missing(),
            notes: notes::phases(notebook, &notebook::template(study)),
            kelvin: env!("CARGO_PKG_VERSION").into(),
            analysis,
        }
    }
}

fn design(study: &Study, plan: &Plan) -> Vec<(String, String)> {
    let design = &study.design;
    let mut lines = vec![
        ("design".to_owned(), format!("{}, {} cells", design.kind.as_str(), plan.cells.len())),
        ("blocks".into(), format!("{}, each with every cell once, in shuffled order", design.blocks)),
        ("seed of the order".into(), design.seed.to_string()),
        (
            "control".into(),
            if design.control { "the base once more in each block".into() } else { "none".into() },
        ),
        ("reset".into(), study.run.beginning().in_words("how = \"auto\" in [run.reset]")),
        ("runs planned".into(), plan.runs.len().to_string()),
        ("replacements allowed".into(), plan.replacements.to_string()),
        ("smallest effect that matters".into(), analysis::words::plain(study.goal.smallest_effect.ratio())),
    ];
    if let Some(resolution) = plan.resolution {
        lines.push(("resolution".into(), resolution.to_string()));
        let letters = "ABCDEFGHJKLMNOP".chars().zip(&study.axes);
        let named: Vec<String> = letters.map(|(letter, axis)| format!("{letter} {}", axis.name)).collect();
        lines.push((
            "generators".into(),
            format!("{} with {}", study.design.generators.join(", "), named.join(", ")),
        ));
    }
    lines
}
