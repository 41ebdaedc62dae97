//! The HTML page of a group: its answer and the evidence.

use anyhow::Result;
use kelvin_lab::repeat::GroupRun;
use kelvin_lab::{ab, repeat};
use kelvin_measure::text::{cut, ends, plain_percent, probability, significant, trimmed_percent};
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
            page.answers.push(repeat_answer(&plan, &summary));
            add_noise(&mut page, accepts_noise(&plan.spec), summary.noise.as_ref());
        }
        GroupKind::Ab => {
            let plan: ab::AbPlan = plan(group)?;
            let summary = ab::AbSummary::from_runs(&plan, rows);
            judged = Some(summary.figure.id.clone());
            (page.answers, page.ratios) = ab_answers(&summary);
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

/// The answer of repeated runs.
fn repeat_answer(plan: &repeat::RepeatPlan, summary: &repeat::RepeatSummary) -> Answer {
    Answer {
        class: "",
        sentence: format!(
            "Statistically sound: {}.",
            super::repeat::answer(plan, summary).trim_end_matches('.')
        ),
        figures: summary.spread.as_ref().map_or_else(Vec::new, mean),
    }
}

/// The answers of a comparison, and the ratios by block.
fn ab_answers(summary: &ab::AbSummary) -> (Vec<Answer>, Vec<Ratios>) {
    if summary.comparisons.is_empty() {
        let sentence = "Not testable: fewer than two blocks are complete.".into();
        let none = Answer { class: "not-testable", sentence, figures: Vec::new() };
        return (vec![none], Vec::new());
    }
    let answers = summary.comparisons.iter().map(|one| {
        let interval = ends(one.low, one.high, |ratio| format!("{ratio:.4}"));
        let control = summary.control.as_ref();
        let floor =
            control.map(|control| ("not resolvable below".to_owned(), trimmed_percent(control.floor)));
        let figures = [
            (format!("{}/A", one.side), format!("{:.4}", one.ratio)),
            (format!("{} interval", plain_percent(one.confidence)), interval),
            ("p (exact)".into(), probability(Some(one.p))),
            ("complete blocks".into(), summary.complete.to_string()),
        ];
        Answer {
            class: ab::verdict_label(one.verdict),
            sentence: format!(
                "{}: {}.",
                first_upper(one.verdict.label()),
                super::ab::verdict(one, &summary.figure)
            ),
            figures: figures.into_iter().chain(floor).collect(),
        }
    });
    let each = summary.comparisons.iter().enumerate();
    let ratios = each.map(|(at, one)| ratios(summary, one, at, plain_percent(one.confidence)));
    (answers.collect(), ratios.collect())
}

fn first_upper(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
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
fn mean(spread: &repeat::Spread) -> Vec<(String, String)> {
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
fn ratios(summary: &ab::AbSummary, one: &ab::Compared, index: usize, confidence: String) -> Ratios {
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
