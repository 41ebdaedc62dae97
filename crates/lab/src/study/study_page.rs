//! Collects the content of a study's page from its files.

use kelvin_analysis::notes;
use kelvin_analysis::{Analysis, FailedRun, Member, StudyPageContent};

use super::{Deviation, LedgerEntry, LedgerEvent, Lock, State, Study, StudyPlan, notebook};

/// Collects the content of the study's files. `page` returns the page of a run if there is one, relative to the
/// study's.
pub fn study_page_content(
    study: &Study,
    lock: Option<&Lock>,
    entries: &[LedgerEntry],
    notebook: &str,
    analysis: Analysis,
    page: &dyn Fn(i64) -> Option<String>,
) -> StudyPageContent {
    let plan = StudyPlan::of(study);
    let state = State::of(&plan, entries);
    let goal = &study.goal.metric;
    let mut runs = Vec::new();
    let mut failed = Vec::new();
    for entry in entries {
        let (attempt, results, void) = match &entry.event {
            LedgerEvent::Measured { attempt, results } => (attempt, results, None),
            LedgerEvent::Void { attempt, results, why } => (attempt, results, Some(why.join("; "))),
            LedgerEvent::Failed { attempt, why } => {
                failed.push(FailedRun {
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
    // Changes since the last session are included.
    for one in lock.and_then(|lock| lock.deviations(study).ok()).unwrap_or_default() {
        let words = one.describe();
        if !deviations.contains(&words) {
            deviations.push(words);
        }
    }
    StudyPageContent {
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

fn design(study: &Study, plan: &StudyPlan) -> Vec<(String, String)> {
    let design = &study.design;
    let mut lines = vec![
        ("design".to_owned(), format!("{}, {} cells", design.kind.as_str(), plan.cells.len())),
        ("blocks".into(), format!("{}, each with every cell once, in random order", design.blocks)),
        ("order seed".into(), design.seed.to_string()),
        (
            "control".into(),
            if design.control { "a second run of the base in each block".into() } else { "none".into() },
        ),
        ("reset".into(), study.run.beginning().describe("how = \"auto\" in [run.reset]")),
        ("runs planned".into(), plan.runs.len().to_string()),
        ("replacements allowed".into(), plan.replacements.to_string()),
        (
            "smallest effect that matters".into(),
            kelvin_measure::text::plain_percent(study.goal.smallest_effect.ratio()),
        ),
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
