//! Repeated runs: the answer, with its evidence.

use std::fmt::Write as _;

use anyhow::Result;
use kelvin_lab::repeat::{
    Dependence, Drift, MissingEvidence, RepeatAnswer, RepeatMetric, RepeatPlan, RepeatSummary, Spread,
};
use kelvin_measure::Bounded;
use kelvin_measure::text::{bounded, count, plural, significant, significant_or_none, trimmed_percent};
use serde_json::{Value, json};

use super::stored::{self, Group};
use super::text::{ACCEPTED_UNKNOWN, accepts_noise, change, describe_p, noise_text};
use crate::out;

/// How to ask for a reset of repeated runs.
pub(crate) const HOW_TO_RESET: &str = "--reset auto";

/// The summary of a stored group, for programs.
pub(crate) fn json(shown: &Group<'_>) -> Result<Value> {
    let (store, group) = (shown.store, shown.stored);
    let plan: RepeatPlan = stored::plan(group)?;
    let summary = RepeatSummary::from_runs(&plan, shown.rows()?);
    let reset = stored::resets(store, group)?.first().map(|(_, how)| stored::reset_label(*how));
    Ok(json!({
        "event": "repeats", "group": group.id.0, "name": group.info.name, "plan": plan, "reset": reset, "summary": summary,
    }))
}

/// The summary of a stored group.
pub(crate) fn render_text(shown: &Group<'_>) -> Result<String> {
    let (store, group) = (shown.store, shown.stored);
    let plan: RepeatPlan = stored::plan(group)?;
    let summary = RepeatSummary::from_runs(&plan, shown.rows()?);
    let name = group.info.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
    let began = group.info.created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = stored::describe_first_run(store, group)?;
    let reset = stored::describe_resets(&stored::resets(store, group)?, HOW_TO_RESET);
    Ok(format!("\ngroup {}{name}: {what}, {began}\n\n{}", group.id, page(&plan, &summary, &reset)))
}

/// The result in one line.
pub(crate) fn summary_line(summary: &RepeatSummary) -> String {
    let close = summary.spread.as_ref().and_then(|spread| spread.half_width);
    let close = close.map_or(String::new(), |half_width| format!(", ± {}", trimmed_percent(half_width)));
    match &summary.answer {
        RepeatAnswer { correct: true, .. } => format!("yes{close}"),
        RepeatAnswer { more: Some(more), .. } => format!("no, {more} more{close}"),
        RepeatAnswer { missing, .. } if missing.contains(&MissingEvidence::NoDrift) => {
            format!("no, it drifts{close}")
        }
        RepeatAnswer { missing, .. } if missing.contains(&MissingEvidence::Valid) => {
            "no, too many void runs".into()
        }
        RepeatAnswer { .. } => format!("no{close}"),
    }
}

fn page(plan: &RepeatPlan, summary: &RepeatSummary, reset: &str) -> String {
    let mut text = String::new();
    if let Some(Spread { n, median, mean, interval, confidence, .. }) = &summary.spread
        && *n > 1
    {
        let name = &summary.figure.name;
        let runs = count(*n, "run");
        let interval = interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {}, {})", significant(low), significant(high), trimmed_percent(*confidence))
        });
        let words = format!(
            "{name}: mean {}{interval}, median {} of {runs}",
            significant(*mean),
            significant(*median)
        );
        out::wrapped(&mut text, &words, 0, 2, 100);
    }
    out::wrapped(&mut text, &format!("statistically sound: {}", answer(plan, summary)), 0, 2, 100);
    text.push('\n');
    table(&mut text, summary);
    if let Some(spread) = &summary.spread {
        write_spread(&mut text, &summary.figure, spread);
    }
    for (figure, spread) in &summary.beside {
        write_spread(&mut text, figure, spread);
    }
    text.push('\n');
    let mut say =
        |lead: &str, words: &str| out::wrapped(&mut text, &format!("{lead}{words}"), 0, lead.len(), 100);
    say("order   ", &in_order(summary.drift.as_ref(), summary.counted));
    say("depend  ", &dependence(summary));
    say("steady  ", &steady(summary));
    say("reset   ", reset);
    match summary.noise {
        Some(noise) if noise.accepted || noise.high > plan.precision => say("noise   ", &noise_text(&noise)),
        None if accepts_noise(&plan.spec) => say("noise   ", ACCEPTED_UNKNOWN),
        _ => {}
    }
    if summary.void > 0 {
        let runs =
            if summary.void == 1 { "1 run does".to_owned() } else { format!("{} runs do", summary.void) };
        say("dropped ", &format!("{runs} not count; up to {} are replaced", plan.replace));
    }
    if summary.failed > 0 {
        say("errors  ", &format!("{} failed permanently in counted runs", summary.failed));
    }
    text
}

fn table(text: &mut String, summary: &RepeatSummary) {
    let heading = |figure: &RepeatMetric| {
        let per = matches!(figure.unit.as_str(), "per minute" | "per second" | "1" | "");
        if per { figure.name.clone() } else { format!("{}, {}", figure.name, figure.unit) }
    };
    let mut headings = vec![heading(&summary.figure)];
    headings.extend(summary.beside.iter().map(|(figure, _)| heading(figure)));
    let widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count().max(12)).collect();
    let _ = write!(text, "order    run");
    for (heading, width) in headings.iter().zip(&widths) {
        let _ = write!(text, "  {heading:>width$}");
    }
    text.push('\n');
    for run in &summary.runs {
        let _ = write!(text, "{:>5}  {:>5}", run.order, run.run);
        let judged = run.value.map(|value| Bounded { value, at_least: run.at_least });
        let beside = run.beside.iter().map(|value| value.map(Bounded::exactly));
        for (value, width) in std::iter::once(judged).chain(beside).zip(&widths) {
            let _ = write!(text, "  {:>width$}", bounded(value, significant_or_none));
        }
        text.push('\n');
        if let Some(why) = &run.void {
            out::wrapped(text, why, 14, 20, 100);
        }
    }
}

fn write_spread(text: &mut String, figure: &RepeatMetric, spread: &Spread) {
    let Spread { n, median, median_interval, mean, interval, confidence, half_width, cv, cv_interval } =
        spread;
    let _ = writeln!(text, "\n{} ({}) over {}", figure.name, figure.unit, count(*n, "run"));
    let range = |confidence: f64, low: f64, high: f64| {
        format!("{} interval {} to {}", trimmed_percent(confidence), significant(low), significant(high))
    };
    let of_median = median_interval.map_or_else(
        || "no 95 % interval of the median with fewer than 6 runs".to_owned(),
        |(low, high, reached)| {
            format!("{} (order statistics; covers {})", range(0.95, low, high), trimmed_percent(reached))
        },
    );
    let _ = writeln!(text, "  median  {:>12}   {of_median}", significant(*median));
    let of_mean = interval.zip(*half_width).map_or_else(
        || "no interval".to_owned(),
        |((low, high), half)| {
            let range = range(*confidence, low, high);
            format!("{range}, ± {} (geometric; allows for dependence)", trimmed_percent(half))
        },
    );
    let _ = writeln!(text, "  mean    {:>12}   {of_mean}", significant(*mean));
    let of_cv = cv_interval.map_or_else(String::new, |(low, high)| {
        format!(
            ", 95 % interval {} to {} if runs are independent",
            trimmed_percent(low),
            trimmed_percent(high)
        )
    });
    let _ = writeln!(
        text,
        "  CV      {:>12}   standard deviation over mean{of_cv}",
        cv.map_or("–".into(), trimmed_percent)
    );
}

/// Whether runs depend on earlier runs, and how that is accounted for.
fn dependence(summary: &RepeatSummary) -> String {
    let Some(Dependence { lag1, von_neumann, p, phi, worth, earlier }) = &summary.dependence else {
        return format!(
            "whether runs depend on earlier runs cannot be determined from {}; at least 4 are needed",
            count(summary.counted, "run")
        );
    };
    let found =
        if *p < 0.05 { "runs resemble the previous ones" } else { "no dependence on previous runs shown" };
    let source = if *earlier == 0 {
        "the prior, 0 to 0.7, and these runs".to_owned()
    } else {
        format!(
            "the prior, 0 to 0.7, {} of the same specification, and these runs",
            count(*earlier, "earlier group")
        )
    };
    format!(
        "{found}: lag-1 correlation {lag1:.2}, von Neumann's ratio {von_neumann:.2} (2 if independent), {}; \
         the interval of the mean allows for a correlation of about {phi:.2} ({source}), at which {} are \
         equivalent to {} independent ones",
        describe_p(*p),
        count(summary.counted, "run"),
        significant(*worth)
    )
}

fn in_order(drift: Option<&Drift>, counted: usize) -> String {
    let Some(Drift { change, p, matters }) = drift else {
        return format!(
            "whether the result drifts cannot be determined from {}; at least 5 are needed",
            count(counted, "run")
        );
    };
    let found = format!(
        "{} from the first run to the last, {} (slope of a line fitted to the runs in order)",
        self::change(*change),
        describe_p(*p)
    );
    if *matters { format!("it drifts: {found}") } else { format!("no drift that matters: {found}") }
}

fn steady(summary: &RepeatSummary) -> String {
    let state = &summary.steady;
    let mut parts = Vec::new();
    if state.steady > 0 {
        parts.push(format!("{} of {} windows kept their level", state.steady, summary.counted));
    }
    if state.unknown > 0 {
        let are = if state.unknown == 1 { "is" } else { "are" };
        parts.push(format!("{} {are} too short to judge (under 10 s)", count(state.unknown, "window")));
    }
    for (run, how) in &state.not_steady {
        parts.push(format!("run {run} did not: {how}"));
    }
    if parts.is_empty() { "no counted runs".into() } else { parts.join("; ") }
}

/// The confidence of the judged interval.
fn confidence(plan: &RepeatPlan) -> &'static str {
    if plan.until { "95 %, with a stopping interval of 97 %" } else { "95 %" }
}

/// Whether the goals of the plan are met, with the reasons.
pub(super) fn answer(plan: &RepeatPlan, summary: &RepeatSummary) -> String {
    let RepeatAnswer { correct, more, missing, precision } = &summary.answer;
    let half_width = summary.spread.as_ref().and_then(|spread| spread.half_width);
    let known = half_width.map_or(String::new(), trimmed_percent);
    if *correct {
        return format!(
            "yes: {} runs count, the mean is known to ± {known} ({}; requested: ± {}), there is no drift, \
             and not too many runs are void",
            summary.counted,
            confidence(plan),
            trimmed_percent(*precision)
        );
    }
    let reasons: Vec<String> = missing
        .iter()
        .map(|what| match what {
            MissingEvidence::Runs => {
                let enough = plan.runs.max(RepeatPlan::FEWEST);
                let runs = plural(summary.counted, "run counts", "runs count");
                format!("{} {runs}; {enough} are needed", summary.counted)
            }
            MissingEvidence::Bounds => {
                let of = summary.runs.iter().filter(|run| run.void.is_none() && run.at_least).count();
                format!(
                    "{} of {} lies among unanswered arrivals and is only a lower bound (≥), and so is the \
                     mean: set a lower rate or a longer window",
                    summary.figure.name,
                    count(of, "run")
                )
            }
            MissingEvidence::Precision => {
                format!(
                    "the mean is only known to ± {known} ({}; requested: ± {})",
                    confidence(plan),
                    trimmed_percent(*precision)
                )
            }
            MissingEvidence::NoDrift => {
                "the result drifts from run to run and so has no single mean: find what changes (growing \
                                 data: --reset auto; a ramp-up that is too short); more runs alone do not \
                                 help"
                    .into()
            }
            MissingEvidence::Valid => format!(
                "{} {} not count, and only {} may be replaced: fix the causes listed in their reports",
                count(summary.void, "run"),
                if summary.void == 1 { "does" } else { "do" },
                plan.replace
            ),
            MissingEvidence::Figure => {
                format!("{} is missing in some runs, or not above 0", summary.figure.name)
            }
        })
        .collect();
    let lead = match more {
        Some(1) => "no, 1 more run".to_owned(),
        Some(more) => format!("no, {more} more runs"),
        None if missing.contains(&MissingEvidence::Precision) && missing.len() == 1 => {
            "no, and more than a thousand runs would be needed".into()
        }
        None => "no".into(),
    };
    format!("{lead}: {}", reasons.join("; "))
}

#[cfg(test)]
mod tests;
