//! `kelvin study plan`: lists every run in advance.

use anyhow::Result;
use kelvin_lab::study::{DesignKind, Direction, Estimate, PlannedRun, Power, pooled_variation, restarts};
use kelvin_measure::text::{count, cut, duration, percent, whole};

use super::page::{WIDTH, head, paragraph, table};
use super::{StudyStatus, find};
use crate::args::PlanArgs;
use crate::exit::Code;
use crate::out;

/// Maximum width of a level's column.
const LEVEL: usize = 14;

/// Prints the plan.
pub(super) fn plan(args: &PlanArgs) -> Result<Code> {
    let situation = StudyStatus::read(find(&args.study)?)?;
    out::write(&render(&situation, args.cv.map(kelvin_lab::study::Share::ratio)))?;
    Ok(Code::Success)
}

/// The whole plan as text.
pub(super) fn render(situation: &StudyStatus, cv: Option<f64>) -> String {
    let mut text = String::new();
    head(&mut text, situation);
    factors(&mut text, situation);
    summary(&mut text, situation, cv);
    aliases(&mut text, situation);
    runs(&mut text, situation);
    text
}

/// The part of the plan for the notebook: without the runs and what the study's file contains.
pub(super) fn notebook_text(situation: &StudyStatus) -> String {
    let mut text = String::new();
    summary(&mut text, situation, None);
    aliases(&mut text, situation);
    text
}

fn factors(text: &mut String, situation: &StudyStatus) {
    let mut rows = vec![["factor", "levels, base first", "applied by", ""].map(str::to_owned).to_vec()];
    for (index, factor) in situation.study.factors.iter().enumerate() {
        let letter = char::from(b'A' + index as u8);
        rows.push(vec![
            format!("{letter} {}", cut(factor.name(), 20)),
            cut(&factor.levels().join(", "), 28),
            cut(&factor.applied_by(), 40),
            if restarts(factor) { "restarts" } else { "" }.to_owned(),
        ]);
    }
    text.push('\n');
    table(text, &rows, |_| true);
}

fn summary(text: &mut String, situation: &StudyStatus, cv: Option<f64>) {
    let (study, plan, state) = (&situation.study, &situation.plan, &situation.state);
    text.push('\n');
    let control = if study.design.control { " and the base a second time as a control" } else { "" };
    let words = format!(
        "{}, {}; {} with every cell{control}: {}, shuffled within each block with seed {}",
        study.design.kind.as_str(),
        count(plan.cells.len(), "cell"),
        count(study.design.blocks as usize, "block"),
        count(plan.runs.len(), "run"),
        study.design.seed
    );
    paragraph(text, "design  ", &words);

    let restarting: Vec<bool> = study.factors.iter().map(restarts).collect();
    if restarting.contains(&true) {
        let words = format!(
            "{} of {} start with a restart; runs are not grouped to save restarts, because in a non-random \
             order drift of the machine could look like an effect",
            count(plan.restarts(&restarting), "run"),
            plan.runs.len()
        );
        paragraph(text, "restart ", &words);
    }

    paragraph(text, "reset   ", &study.run.beginning().describe("how = \"auto\" in [run.reset]"));

    let estimate = situation.estimate();
    let (total, left) = (estimate.seconds(plan.runs.len()), estimate.seconds(state.missing()));
    let how = if estimate.measured {
        "as measured".to_owned()
    } else {
        format!("assumed: ramp-up, window and {}", duration(Estimate::allowance(study)))
    };
    let words = format!(
        "about {} in total, {} left ({} per run, {how}); {:.1} machine hours",
        duration(total),
        duration(left),
        duration(estimate.run_seconds),
        total / 3600.0
    );
    paragraph(text, "time    ", &words);

    paragraph(text, "power   ", &power(situation, cv));
}

fn power(situation: &StudyStatus, asked: Option<f64>) -> String {
    let (study, plan) = (&situation.study, &situation.plan);
    let (cv, from) = match (asked, pooled_variation(study, plan, &situation.state)) {
        (Some(cv), _) => (cv, "as given".to_owned()),
        (None, Some((cv, degrees))) if degrees >= 3 => {
            (cv, format!("as measured, {degrees} degrees of freedom"))
        }
        (None, _) => (study.design.assumed_cv.ratio(), "assumed".to_owned()),
    };
    let power = Power::new(study, plan, cv);
    let claim = study.hypothesis.predicts.iter().find(|one| one.metric == study.goal.metric);
    let same = claim.filter(|claim| claim.direction == Direction::Same);
    let matters = study.goal.smallest_effect;
    // Distinguishing an effect from zero needs less than supporting the hypothesis, for which the estimate must reach
    // the effect.
    let (what, supported, aim, named, settled) = match same {
        Some(claim) => {
            let margin = claim.by.unwrap_or(matters);
            ("a difference", "ruled out, if there is none,", margin, "the margin", "ruled out")
        }
        None => (
            "an effect",
            "called supported",
            matters,
            "the smallest effect that matters",
            "distinguished from zero",
        ),
    };
    let resolves = match power.resolves {
        Some(effect) => format!(
            "{what} of {} on {} is {supported} with a probability of {:.0} %",
            percent(effect),
            study.goal.metric,
            Power::probability() * 100.0
        ),
        None => "too few runs to test any effect".into(),
    };
    let planned = study.design.blocks;
    let needed = match power.blocks_needed {
        Some(blocks) if blocks <= planned => {
            format!("{aim} can be {settled} with {}; {planned} are planned", count(blocks as usize, "block"))
        }
        Some(blocks) => format!(
            "TOO FEW: {aim}, {named}, can be {settled} with {}; {planned} are planned",
            count(blocks as usize, "block")
        ),
        None => format!("{aim} cannot be {settled} with any number of runs"),
    };
    format!(
        "{} at each level of {}; with {} variation from run to run ({from}) {resolves}; {needed}",
        count(power.runs_a_level as usize, "run"),
        study.hypothesis.factor,
        percent(power.cv),
    )
}

fn aliases(text: &mut String, situation: &StudyStatus) {
    if situation.study.design.kind != DesignKind::Fractional {
        return;
    }
    let resolution = situation.plan.resolution.unwrap_or(0);
    text.push_str(&format!(
        "\naliases: effects on one line cannot be distinguished (resolution {})\n",
        ["–", "I", "II", "III", "IV", "V", "VI", "VII", "VIII"]
            .get(resolution)
            .copied()
            .unwrap_or("above VIII")
    ));
    for set in &situation.plan.aliases {
        out::wrapped(text, &set.join(" = "), 2, 4, WIDTH);
    }
}

fn runs(text: &mut String, situation: &StudyStatus) {
    let (study, plan, state) = (&situation.study, &situation.plan, &situation.state);
    let restarting: Vec<bool> = study.factors.iter().map(restarts).collect();
    let estimate = situation.estimate();
    let mut head = vec!["run".to_owned(), "block".into()];
    head.extend(study.axes.iter().map(|axis| cut(&axis.name, LEVEL)));
    head.extend(["note", "left", study.goal.metric.as_str()].map(|name| cut(name, LEVEL)));
    let mut rows = vec![head];
    let mut before: Option<PlannedRun> = None;
    let mut left = state.missing();
    for (index, &run) in plan.runs.iter().enumerate() {
        let changes = plan.changes(before, run);
        let mut row = vec![(index + 1).to_string(), (run.block + 1).to_string()];
        for (factor, setting) in plan.cell(run).0.iter().enumerate() {
            let mark = if changes.contains(&factor) { "*" } else { "" };
            row.push(format!("{}{mark}", cut(&setting.level, LEVEL - 1)));
        }
        let restart = changes.iter().any(|&factor| restarting[factor]);
        let control = plan.treatment(run).control;
        let words = [control.then_some("control"), restart.then_some("restart")];
        row.push(words.into_iter().flatten().collect::<Vec<_>>().join(", "));
        let result = state.result(index);
        row.push(if result.is_some() { "done".into() } else { duration(estimate.seconds(left)) });
        if result.is_none() {
            left = left.saturating_sub(1);
        }
        row.push(outcome(situation, index));
        rows.push(row);
        before = Some(run);
    }
    text.push_str("\nruns (*: changed before the run; left: time from its start to the end of the study)\n");
    let levels = 2..2 + study.axes.len() + 1;
    table(text, &rows, |column| levels.contains(&column));
}

fn outcome(situation: &StudyStatus, planned: usize) -> String {
    let tries = situation.state.tries(planned);
    let value = situation.state.result(planned).and_then(|result| result.value(&situation.study.goal.metric));
    let value =
        value.map(|value| if value >= 1000.0 { whole(value.round() as u64) } else { format!("{value:.3}") });
    match (value, tries) {
        (Some(value), 0) => value,
        (Some(value), tries) => format!("{value} (try {})", tries + 1),
        (None, 0) => String::new(),
        (None, tries) => format!("tried ×{tries}"),
    }
}
