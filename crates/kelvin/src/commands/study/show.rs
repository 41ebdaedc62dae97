//! `kelvin study show`: the state of a study.

use anyhow::Result;
use kelvin_measure::text::{count, cut, duration, whole};

use super::page::{head, paragraph, table};
use super::{StudyStatus, find};
use crate::args::FolderArgs;
use crate::exit::Code;
use crate::out;

/// Prints the state of a study.
pub(super) fn show(args: &FolderArgs) -> Result<Code> {
    let situation = StudyStatus::read(find(&args.study)?)?;
    out::write(&render(&situation))?;
    Ok(Code::Success)
}

/// The whole page as text.
pub(super) fn render(situation: &StudyStatus) -> String {
    let mut text = String::new();
    head(&mut text, situation);
    text.push('\n');
    text.push_str(&happened(situation));
    cells(&mut text, situation);
    text
}

/// What happened during the runs: the fifth phase of the notebook.
pub(super) fn happened(situation: &StudyStatus) -> String {
    let mut text = String::new();
    let (plan, state) = (&situation.plan, &situation.state);
    let left = match state.missing() {
        0 => String::new(),
        missing => format!("; about {} left", duration(situation.estimate().seconds(missing))),
    };
    let words = format!(
        "{}: {} of {} runs done, {} void, {} failed; {} of {} replacements left{left}",
        situation.label(),
        state.counted_runs(),
        plan.runs.len(),
        state.void.len(),
        state.failed.len(),
        situation.replacements_left(),
        plan.replacements
    );
    paragraph(&mut text, "state       ", &words);
    if let Some(session) = &state.session {
        let words = format!(
            "{}; group {} in {}",
            count(state.sessions as usize, "session"),
            session.group,
            session.store.display()
        );
        paragraph(&mut text, "runs        ", &words);
    }
    if situation.folder.undo_path().exists() {
        let words = format!(
            "changes made for a run may not have been restored: kelvin study recover {}",
            situation.folder.path().display()
        );
        paragraph(&mut text, "CHANGED     ", &words);
    }
    for deviation in &state.deviations {
        paragraph(&mut text, "deviation   ", &deviation.describe());
    }
    for (attempt, results, why) in &state.void {
        let words = format!(
            "run {} (block {}, {}): {}",
            results.run,
            attempt.block + 1,
            attempt.treatment,
            why.join("; ")
        );
        paragraph(&mut text, "void        ", &words);
    }
    for (attempt, why) in &state.failed {
        let words = format!("block {}, {}: {why}", attempt.block + 1, attempt.treatment);
        paragraph(&mut text, "failed      ", &words);
    }
    for (attempt, results) in &state.strays {
        let words = format!(
            "run {} (block {}, {}) does not match any planned treatment",
            results.run,
            attempt.block + 1,
            attempt.treatment
        );
        paragraph(&mut text, "stray       ", &words);
    }
    text
}

/// The cells with their measurements. The analysis interprets them.
fn cells(text: &mut String, situation: &StudyStatus) {
    let counted = situation.state.counted(&situation.plan);
    if counted.is_empty() {
        return;
    }
    let metric = &situation.study.goal.metric;
    let mut rows = vec![vec![
        "cell".to_owned(),
        "runs".into(),
        format!("median {}", cut(metric, 20)),
        "low".into(),
        "high".into(),
    ]];
    for treatment in &situation.plan.treatments {
        let of = counted.iter().filter(|one| one.cell == treatment.cell && one.control == treatment.control);
        let mut values: Vec<f64> = of.filter_map(|one| one.results.value(metric)).collect();
        values.sort_by(f64::total_cmp);
        let figure = |value: Option<f64>| match value {
            Some(value) if value >= 1000.0 => whole(value.round() as u64),
            Some(value) => format!("{value:.3}"),
            None => "–".into(),
        };
        rows.push(vec![
            cut(&treatment.name, 56),
            values.len().to_string(),
            figure(kelvin_stats::rank::median(&values)),
            figure(values.first().copied()),
            figure(values.last().copied()),
        ]);
    }
    text.push('\n');
    table(text, &rows, |column| column == 0);
}
