//! An A/B comparison: the verdict of each side, with its evidence.

use std::fmt::Write as _;

use anyhow::Result;
use kelvin_diagnose::Better;
use kelvin_lab::ab::{
    AbEvent, AbNoise, AbPlan, AbSummary, BlockLine, Compared, Control, Explored, InterimLook, Planning,
    VoidRun,
};
use kelvin_lab::repeat::RepeatMetric;
use kelvin_measure::Bounded;
use kelvin_measure::text::{
    bounded, cut, ends, plain_percent, plural, probability, significant, trimmed_percent,
};
use kelvin_report::{RunReport, compare};
use kelvin_stats::compare::ChangeVerdict;
use kelvin_store::{RunId, Store};
use serde_json::{Map, Value, json};

use super::ab_waits as waits;
use super::stored::{self, Group};
use super::text::{
    ACCEPTED_UNKNOWN, accepts_noise, change, describe_p, describe_run, failed, noise_text, time_left,
};
use crate::{document, out};

/// How to ask for a reset of runs from files.
pub(crate) const HOW_TO_RESET: &str = "[reset] how = \"auto\" in each file";

const WIDTH: usize = 100;

/// The progress message for an event.
pub(crate) fn describe_progress(progress: &AbEvent<'_>, plan: &AbPlan) -> String {
    match progress {
        AbEvent::Ran { row, blocks, pilot, left } => {
            let pilot = if *pilot { " of the pilot" } else { "" };
            let (block, what) = (row.slot.block + 1, &row.slot.treatment);
            let run = describe_run(row, plan.figure.as_deref());
            format!("{what}, {run} · block {block} of {blocks}{pilot}{}", time_left(*left))
        }
        AbEvent::Failed { error } => failed(error),
        AbEvent::Planned { planning, left } => {
            format!("{}{}", planned(plan, planning), time_left(*left))
        }
        AbEvent::Looks(looks) => describe_interim(looks),
        AbEvent::Looked { look: InterimLook { blocks, nominal }, ends } => {
            let found = if *ends { "the difference is clear; stopping" } else { "not clear yet; continuing" };
            format!(
                "interim analysis after {blocks} blocks: {found} (t-test, p < {} required)",
                probability(Some(*nominal))
            )
        }
    }
}

fn planned(plan: &AbPlan, planning: &Planning) -> String {
    let Planning { pilot, sd, freedom, needed, blocks } = planning;
    let effect = trimmed_percent(plan.effect.unwrap_or_default());
    let scatter = format!(
        "in the first {pilot} blocks, two runs of a block differ by {} (standard deviation, {freedom} \
         degrees of freedom)",
        trimmed_percent(*sd)
    );
    let power = trimmed_percent(plan.power);
    match needed {
        Some(needed) if needed <= blocks => {
            format!(
                "{scatter}: {needed} blocks detect an effect of {effect} with a probability of {power}; \
                 {blocks} are run"
            )
        }
        needed => {
            let needed =
                needed.map_or("too many blocks to count".to_owned(), |needed| format!("{needed} blocks"));
            format!(
                "{scatter}: detecting an effect of {effect} with a probability of {power} takes {needed}; \
                 {blocks} are run (--max-blocks)"
            )
        }
    }
}

fn describe_interim(looks: &[InterimLook]) -> String {
    let each: Vec<String> = looks
        .iter()
        .map(|look| format!("p < {} after {}", probability(Some(look.nominal)), look.blocks))
        .collect();
    format!(
        "it stops early only at these interim analyses, which share the significance level of 5 % \
         (O'Brien–Fleming boundary with Lan–DeMets spending): {}",
        each.join(", ")
    )
}

/// The summary of a stored group, for programs.
pub(crate) fn json(shown: &Group<'_>) -> Result<Value> {
    let (store, group) = (shown.store, shown.stored);
    let plan: AbPlan = stored::plan(group)?;
    let summary = AbSummary::from_runs(&plan, shown.rows()?);
    let sides = reports(store, &plan, &summary)?;
    let differs = differences(&plan, &sides);
    let resets: Map<String, Value> = stored::resets(store, group)?
        .into_iter()
        .map(|(treatment, how)| (treatment, stored::reset_label(how).into()))
        .collect();
    Ok(json!({
        "event": "ab", "group": group.id.0, "name": group.info.name, "plan": plan, "reset": resets, "summary": summary,
        "differences": differs, "waits": waits::changed(&summary, &sides),
    }))
}

/// The summary of a stored group.
pub(crate) fn render_text(shown: &Group<'_>) -> Result<String> {
    let (store, group) = (shown.store, shown.stored);
    let plan: AbPlan = stored::plan(group)?;
    let summary = AbSummary::from_runs(&plan, shown.rows()?);
    let sides = reports(store, &plan, &summary)?;
    let differs = differences(&plan, &sides);
    let name = group.info.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
    let began = group.info.created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = stored::describe_first_run(store, group)?;
    let colour = document::text_options(false).colour;
    let mut of_waits = String::new();
    for one in waits::changed(&summary, &sides) {
        say(&mut of_waits, "waits    ", &one.sentence());
    }
    Ok(format!(
        "\ngroup {}{name}: A/B, {what}, {began}\n\n{}{of_waits}",
        group.id,
        page(
            &plan,
            &summary,
            &differs,
            &stored::describe_resets(&stored::resets(store, group)?, HOW_TO_RESET),
            colour
        )
    ))
}

/// The result in one line.
pub(crate) fn summary_line(summary: &AbSummary) -> String {
    if summary.comparisons.is_empty() {
        return "too few blocks".into();
    }
    let each = summary.comparisons.iter().map(|one| {
        let verdict = one.verdict.label();
        let interval = ends(one.low, one.high, |ratio| format!("{ratio:.3}"));
        format!("{}/A {:.3} ({interval}): {verdict}", one.side, one.ratio)
    });
    each.collect::<Vec<_>>().join("; ")
}

/// A difference between the runs of a side and those of A.
#[derive(Debug, serde::Serialize)]
struct Difference {
    side: String,
    /// Whether the specifications ask for the difference.
    intended: bool,
    what: String,
    a: String,
    b: String,
}

/// A sentence for each wait that changed from A to another side, and whether it limited the throughput.
pub(crate) fn waits_that_changed(store: &Store, plan: &AbPlan, summary: &AbSummary) -> Result<Vec<String>> {
    let sides = reports(store, plan, summary)?;
    Ok(waits::changed(summary, &sides).iter().map(waits::SideWaits::sentence).collect())
}

/// The reports of each side's runs in complete blocks, including the second runs for the control.
fn reports(store: &Store, plan: &AbPlan, summary: &AbSummary) -> Result<Vec<Vec<RunReport>>> {
    let treatments = plan.treatments();
    let of = |side: usize| -> Result<Vec<RunReport>> {
        let of_side = |block: &BlockLine| {
            let runs = treatments.iter().zip(block.runs.clone());
            runs.filter_map(|(one, run)| run.filter(|_| one.side == side)).collect::<Vec<i64>>()
        };
        let runs = summary.blocks.iter().flat_map(of_side);
        Ok(runs.map(|run| RunReport::load(store, RunId(run))).collect::<kelvin_report::Result<_>>()?)
    };
    (0..plan.sides.len()).map(of).collect()
}

/// Differences between the runs of A and those of each side, including the second runs for the control: the intended ones
/// of the specifications, and others that may matter.
fn differences(plan: &AbPlan, sides: &[Vec<RunReport>]) -> Vec<Difference> {
    let base: Vec<&RunReport> = sides.first().into_iter().flatten().collect();
    let mut found = Vec::new();
    for (side, named) in plan.sides.iter().enumerate().skip(1) {
        let other: Vec<&RunReport> = sides.get(side).into_iter().flatten().collect();
        for one in compare::differing(&base, &other).iter().filter(|one| one.matters) {
            let spec = one.name.strip_prefix("spec ");
            found.push(Difference {
                side: named.name.clone(),
                intended: spec.is_some(),
                what: spec.unwrap_or(&one.name).to_owned(),
                a: compare::Difference::describe_values(&one.a),
                b: compare::Difference::describe_values(&one.b),
            });
        }
    }
    found
}

/// The first side without a single result.
fn never_ran<'a>(plan: &'a AbPlan, summary: &AbSummary) -> Option<&'a str> {
    let treatments = plan.treatments();
    let ran = |side: usize| {
        let mut columns = treatments.iter().enumerate().filter(|(_, one)| one.side == side);
        columns.any(|(column, _)| summary.blocks.iter().any(|b| matches!(b.runs.get(column), Some(Some(_)))))
    };
    plan.sides.iter().enumerate().find(|(side, _)| !ran(*side)).map(|(_, side)| side.name.as_str())
}

fn page(plan: &AbPlan, summary: &AbSummary, differs: &[Difference], reset: &str, colour: bool) -> String {
    let mut text = String::new();
    answer(&mut text, summary);
    text.push('\n');
    for side in &plan.sides {
        let _ = writeln!(text, "{}: {}", side.name, side.source);
    }
    match never_ran(plan, summary) {
        Some(side) => {
            let _ = writeln!(text, "\n{side} has no run: the differences between the sides are not known");
        }
        None => write_differences(&mut text, differs, colour),
    }
    text.push('\n');
    table(&mut text, plan, summary);
    text.push('\n');
    write_progress(&mut text, plan, summary);
    say(&mut text, "reset    ", reset);
    write_control(&mut text, plan, summary);
    for one in &summary.comparisons {
        comparison(&mut text, one, plan);
    }
    if let Some(detectable) = summary.detectable {
        let words = format!(
            "with this number of blocks and this scatter, an effect of about {} is detected with a \
             probability of {}",
            trimmed_percent(detectable),
            trimmed_percent(plan.power)
        );
        say(&mut text, "power    ", &words);
    }
    write_noise(&mut text, plan, summary);
    exploratory(&mut text, &summary.exploratory);
    text
}

/// A sentence for each comparison that says which side differs.
fn answer(text: &mut String, summary: &AbSummary) {
    for one in &summary.comparisons {
        say(text, "", &format!("{}: {}", one.verdict.label(), verdict(one, &summary.figure)));
    }
    if summary.comparisons.is_empty() {
        say(text, "", "not testable: fewer than two blocks are complete");
    }
    if summary.too_many_void {
        say(text, "", "too many void runs: fix the cause before using the other runs");
    }
}

/// What happened during the comparison.
fn write_progress(text: &mut String, plan: &AbPlan, summary: &AbSummary) {
    let before = text.len();
    if let Some(planning) = &summary.course.planning {
        say(text, "plan     ", &planned(plan, planning));
    }
    if !summary.course.looks.is_empty() {
        say(text, "interim  ", &describe_interim(&summary.course.looks));
    }
    if !summary.is_complete() {
        let words = format!("{} of {} blocks are complete", summary.complete, summary.course.blocks);
        say(text, "blocks   ", &words);
    } else if summary.stopped_early {
        let (done, of) = (summary.complete, summary.course.blocks);
        say(text, "blocks   ", &format!("stopped after {done} of {of}: the interim analysis was conclusive"));
    }
    if !summary.void.is_empty() {
        let runs = plural(summary.void.len(), "run does", "runs do");
        let words = format!("{} {runs} not count; up to {} are replaced", summary.void.len(), plan.replace);
        say(text, "dropped  ", &words);
        for void in &summary.void {
            out::wrapped(text, &describe_void(void), 9, 13, WIDTH);
        }
    }
    if summary.failed > 0 {
        say(text, "errors   ", &format!("{} failed permanently in counted runs", summary.failed));
    }
    if text.len() > before {
        text.push('\n');
    }
}

/// A void run, its place in the plan, and why it does not count.
pub(crate) fn describe_void(void: &VoidRun) -> String {
    format!("run {} ({}, block {}): {}", void.run, void.treatment, void.block, void.why)
}

fn say(text: &mut String, lead: &str, words: &str) {
    out::wrapped(text, &format!("{lead}{words}"), 0, lead.len(), WIDTH);
}

fn write_differences(text: &mut String, differs: &[Difference], colour: bool) {
    for (intended, title) in
        [(true, "what was changed"), (false, "what else differs, and may also be the cause")]
    {
        let of: Vec<&Difference> = differs.iter().filter(|one| one.intended == intended).collect();
        let (red, plain) = if colour && !intended { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        if !of.is_empty() {
            let _ = writeln!(text, "\n{red}{title}{plain}");
        }
        // A script's text has many lines: it is cut.
        let line = |value: &str| cut(value, WIDTH - 8);
        for Difference { side, what, a, b, .. } in of {
            let _ = writeln!(text, "  {red}{what}{plain}\n    A: {}\n    {side}: {}", line(a), line(b));
        }
    }
    if differs.is_empty() {
        let _ = writeln!(text, "\nno recorded difference between the sides");
    }
}

fn table(text: &mut String, plan: &AbPlan, summary: &AbSummary) {
    let width = plan.treatments().iter().map(|one| one.name.len() + 1).sum::<usize>().max(6);
    let _ = write!(text, "block  {:<width$}", "order");
    for name in &summary.treatments {
        let _ = write!(text, " {name:>12}");
    }
    for side in plan.sides.iter().skip(1) {
        let _ = write!(text, " {:>8}", format!("{}/A", side.name));
    }
    let _ = writeln!(text, "   {} ({})", summary.figure.name, summary.figure.unit);
    for BlockLine { block, order, values, at_least, ratios, .. } in &summary.blocks {
        let _ = write!(text, "{block:>5}  {:<width$}", order.join(" "));
        for (value, at_least) in values.iter().zip(at_least) {
            let value = value.map(|value| Bounded { value, at_least: *at_least });
            let _ = write!(text, " {:>12}", bounded(value, |value| value.map_or("–".into(), significant)));
        }
        for ratio in ratios {
            let _ = write!(text, " {:>8}", ratio.map_or("–".into(), |ratio| format!("{ratio:.4}")));
        }
        text.push('\n');
    }
}

fn write_control(text: &mut String, plan: &AbPlan, summary: &AbSummary) {
    let Some(Control { ratio, low, high, floor }) = summary.control else {
        if !plan.control {
            let words = "none (--no-control): the variation between identical runs is not known";
            say(text, "control  ", words);
        }
        return;
    };
    let what = if plan.control_of_a { "A'/A" } else { "second run of each side over its first" };
    let apart = if low > 1.0 || high < 1.0 {
        "; identical runs differ, which happens by chance in 5 % of comparisons: check the order of the runs \
         before trusting the other results"
    } else {
        ""
    };
    let words = format!(
        "{what} {ratio:.4}, 95 % interval {low:.4} to {high:.4}: effects below {} are not resolvable here{apart}",
        trimmed_percent(floor)
    );
    say(text, "control  ", &words);
}

/// The cost of other processes' CPU use for the runs, and for the comparison in blocks. Always shown if noise was accepted;
/// otherwise only if it matters.
fn write_noise(text: &mut String, plan: &AbPlan, summary: &AbSummary) {
    let accepted = plan.sides.iter().any(|side| accepts_noise(&side.spec));
    let Some(AbNoise { runs, explained, more_blocks }) =
        summary.noise.filter(|noise| accepted || noise.runs.high >= plan.noise)
    else {
        if accepted {
            say(text, "noise    ", ACCEPTED_UNKNOWN);
        }
        return;
    };
    let cost = match (explained, more_blocks) {
        (Some(share), Some(more)) if more > 0 => format!(
            "; it explains {} of the scatter between blocks: {more} more block{} would compensate for it",
            trimmed_percent(share),
            plural(more, "", "s")
        ),
        (Some(_), _) => "; the scatter between blocks does not depend on it, so it costs no blocks".into(),
        (None, _) => "; too few blocks are complete, or they differ too little, to estimate its cost in \
                      blocks"
            .into(),
    };
    say(text, "noise    ", &format!("{}{cost}", noise_text(&runs)));
}

fn comparison(text: &mut String, one: &Compared, plan: &AbPlan) {
    let Compared { side, ratio, low, high, confidence, p, p_of_t, hodges_lehmann, .. } = one;
    let why = match (plan.sides.len() > 2, *confidence > 0.95 + 1e-9) {
        (true, _) => ", for 95 % over all sides together",
        (false, true) => ", because of interim analyses",
        (false, false) => "",
    };
    let (test, of_t, bounds) = if *low > 0.0 && high.is_finite() {
        ("sign flips", format!(", {}", describe_p(*p_of_t)), "")
    } else {
        (
            "signed ranks",
            String::new(),
            "; values that are only lower bounds (≥) count as their bounds, so the interval is open at the \
             affected end",
        )
    };
    let words = format!(
        "{side}/A {ratio:.4}, {} interval {} (t on logarithms of blocks{why}){of_t}; {} ({test}); Hodges–Lehmann \
         {hodges_lehmann:.4}{bounds}",
        plain_percent(*confidence),
        ends(*low, *high, |ratio| format!("{ratio:.4}")),
        describe_p(*p)
    );
    say(text, "ratio    ", &words);
}

pub(super) fn verdict(one: &Compared, figure: &RepeatMetric) -> String {
    let Compared { side, ratio, low, high, noise, .. } = one;
    let name = &figure.name;
    let range = ends(*low, *high, |ratio| change(ratio - 1.0));
    match one.verdict {
        ChangeVerdict::NotTestable => {
            format!("{side} against A needs at least {} complete blocks", AbPlan::FEWEST)
        }
        ChangeVerdict::NoChange | ChangeVerdict::Undetermined => {
            format!("no difference between {side} and A in {name} is shown ({range})")
        }
        ChangeVerdict::WithinNoise => format!(
            "{side} differs from A in {name} by {} ({range}), which does not exceed {}: the smallest change \
             that matters or can be resolved here",
            change(ratio - 1.0),
            trimmed_percent(*noise)
        ),
        ChangeVerdict::Changed => {
            let better = match figure.better {
                Some(Better::Higher) => Some(*ratio > 1.0),
                Some(Better::Lower) => Some(*ratio < 1.0),
                None => None,
            };
            let way = better.map_or("", |better| if better { ", better" } else { ", worse" });
            let than = if *ratio > 1.0 { "above" } else { "below" };
            let more = if *low > 0.0 && high.is_finite() { "" } else { " or more" };
            format!(
                "{side}'s {name} is {}{more} {than} A's ({range}){way}",
                trimmed_percent((ratio - 1.0).abs())
            )
        }
    }
}

fn exploratory(text: &mut String, explored: &[Explored]) {
    if explored.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\nexploratory (p adjusted for {} metrics, Holm){:>17} {:>12} {:>8}  {:<17} {:>7} {:>8}",
        explored.len(),
        "A",
        "side",
        "ratio",
        "95 % interval",
        "p",
        "adjusted"
    );
    for Explored { side, figure, a, b, ratio, low, high, p, adjusted } in explored {
        let name = format!("{side}: {} ({})", figure.name, figure.unit);
        let interval = ends(*low, *high, |ratio| format!("{ratio:.4}"));
        let _ = writeln!(
            text,
            "  {name:<46} {:>12} {:>12} {ratio:>8.4}  {interval:<17} {:>7} {:>8}",
            significant(*a),
            significant(*b),
            probability(Some(*p)),
            probability(Some(*adjusted))
        );
    }
}

#[cfg(test)]
pub(crate) mod tests;
