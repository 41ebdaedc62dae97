//! The HTML page of a group: its answer and the evidence.

use anyhow::Result;
use kelvin_lab::repeat::GroupRun;
use kelvin_lab::{ab, repeat};
use kelvin_measure::text::{cut, significant, trimmed_percent};
use kelvin_report::group::{Answer, GroupPage, GroupPageRun, Ratios};
use kelvin_store::GroupKind;

use super::stored::{Group, describe_first_run, plan};
use super::text::{ACCEPTED_UNKNOWN, accepts_noise, noise_text};

/// The page of a group. `text` is the text that is printed when the group ends.
pub(super) fn describe(shown: &Group<'_>, text: String) -> Result<GroupPage> {
    let (rows, group) = (shown.rows()?, shown.stored);
    let mut page = GroupPage {
        group: group.id.0,
        kind: match group.info.kind {
            GroupKind::Repeat => "repeated runs",
            GroupKind::Ab => "A/B comparison",
            GroupKind::Study => "study",
            GroupKind::Sweep => "sweep",
        },
        name: group.info.name.as_ref().map(|name| cut(name, 200)),
        what: describe_first_run(shown.store, group)?,
        began: group.info.created.strftime("%Y-%m-%d %H:%M").to_string(),
        answers: Vec::new(),
        figure: None,
        ratios: Vec::new(),
        runs: Vec::new(),
        text,
    };
    // The metric that was judged; by default the headline.
    let mut judged: Option<String> = None;
    match group.info.kind {
        GroupKind::Repeat => {
            let plan: repeat::RepeatPlan = plan(group)?;
            let summary = repeat::RepeatSummary::from_runs(&plan, rows);
            judged = Some(summary.figure.id.clone());
            page.answers.push(super::repeat::for_page(&plan, &summary));
            add_noise(&mut page, accepts_noise(&plan.spec), summary.noise.as_ref());
        }
        GroupKind::Ab => {
            let plan: ab::AbPlan = plan(group)?;
            let summary = ab::AbSummary::from_runs(&plan, rows);
            judged = Some(summary.figure.id.clone());
            (page.answers, page.ratios) = super::ab::for_page(&summary);
            let accepted = plan.sides.iter().any(|side| accepts_noise(&side.spec));
            add_noise(&mut page, accepted, summary.noise.as_ref().map(|noise| &noise.runs));
        }
        GroupKind::Sweep => page.answers.push(sentence(&super::sweep::summary_line(rows))),
        GroupKind::Study => page.answers.push(sentence(
            "The result of a study is in its folder: kelvin study show, kelvin study analyze and kelvin \
             study report",
        )),
    }
    let figure = rows.iter().find_map(|row| row.figure(judged.as_deref()));
    page.figure = figure.map(|figure| (figure.name.clone(), figure.unit.clone()));
    page.runs = rows.iter().map(|row| run(row, judged.as_deref())).collect();
    Ok(page)
}

/// Adds to the first answer the noise that the runs were accepted with.
fn add_noise(page: &mut GroupPage, accepted: bool, noise: Option<&repeat::RunNoise>) {
    if let Some(answer) = page.answers.first_mut().filter(|_| accepted) {
        answer.figures.push(("noise".into(), noise.map_or_else(|| ACCEPTED_UNKNOWN.into(), noise_text)));
    }
}

/// An answer that is not a comparison.
fn sentence(text: &str) -> Answer {
    Answer { class: "", sentence: format!("{text}."), figures: Vec::new() }
}

fn run(row: &GroupRun, judged: Option<&str>) -> GroupPageRun {
    let value = row.bounded(judged);
    GroupPageRun {
        run: row.run.0,
        block: row.slot.block + 1,
        treatment: row.slot.treatment.clone(),
        value: value.map(|value| value.value),
        at_least: value.is_some_and(|value| value.at_least),
        void: row.void.clone(),
    }
}

/// "Mean of the counted runs: 1,027 (95 % interval …)" as names and values.
pub(super) fn mean(spread: &repeat::Spread) -> Vec<(String, String)> {
    let mut figures = vec![("mean".to_owned(), significant(spread.mean))];
    if let Some((low, high)) = spread.interval {
        let name = format!("{} interval", trimmed_percent(spread.confidence));
        figures.push((name, format!("{} to {}", significant(low), significant(high))));
    }
    figures.push(("median".into(), significant(spread.median)));
    figures.push(("counted runs".into(), spread.n.to_string()));
    figures
}

/// The ratios of a side to A, by block.
pub(super) fn ratios(
    summary: &ab::AbSummary,
    one: &ab::Compared,
    index: usize,
    confidence: String,
) -> Ratios {
    let ratio = |block: &ab::BlockLine| (block.block, block.ratios.get(index).copied().flatten());
    Ratios {
        side: one.side.clone(),
        blocks: summary.blocks.iter().map(ratio).collect(),
        ratio: one.ratio,
        low: one.low,
        high: one.high,
        confidence,
    }
}
