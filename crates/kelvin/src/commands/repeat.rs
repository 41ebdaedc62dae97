//! `kelvin run … --repeat`: repeats a run.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use kelvin_lab::BenchError;
use kelvin_lab::repeat::{
    self, Dependence, Drift, GroupRun, MissingEvidence, RepeatAnswer, RepeatEnd, RepeatEvent, RepeatMetric,
    RepeatPlan, RepeatSummary, RunNoise, Spread,
};
use kelvin_lab::store_bench::HistoryKey;
use kelvin_measure::Bounded;
use kelvin_measure::text::{
    bounded, count, duration, plural, significant, significant_or_none, trimmed_percent,
};
use kelvin_run::Spec;
use kelvin_run::spec::StartingData;
use kelvin_store::{GroupKind, NewGroup, Store};
use serde_json::{Value, json};

use super::groups;
use crate::args::{Format, Global};
use crate::document;
use crate::exit::{self, Code, Stopped};
use crate::measure::{WithMetrics, bench};
use crate::{out, paths, signal};

/// The flags for repeated runs.
pub(super) struct RepeatOptions<'a> {
    /// Format of the result; with jsonl every event is printed, too.
    pub(super) format: Format,
    /// Address of the Prometheus endpoint.
    pub(super) metrics: Option<SocketAddr>,
    /// Block devices that may be overwritten although they contain data.
    pub(super) destroys: &'a [PathBuf],
    /// Where the runs are entered in the history.
    pub(super) history: Option<HistoryKey>,
}

/// Repeats a run and prints the result.
pub(super) fn repeat(
    often: RepeatOptions<'_>,
    spec: &Spec,
    plan: &RepeatPlan,
    global: &Global,
) -> Result<Code> {
    let stop = signal::listen()?;
    let live = kelvin_live::for_run(global.quiet, often.format == Format::Jsonl);
    let mut live = WithMetrics::around(live, often.metrics)?;
    let store_path = paths::store(global.store.as_deref())?;
    let store = Store::open(&store_path)?;
    let plan = &RepeatPlan { earlier: repeat::earlier_groups(&store, plan)?, ..plan.clone() };
    let group = store.begin_group(&NewGroup {
        kind: GroupKind::Repeat,
        name: spec.label.clone(),
        created: jiff::Timestamp::now(),
        body: serde_json::to_value(plan)?,
    })?;
    live.message(&planned(plan, spec, group.0));
    let words = |progress: &RepeatEvent<'_>| describe_progress(progress, plan);
    let mut bench = bench(&store, &mut *live, &stop).in_history(often.history).destroying(often.destroys);
    let ran = repeat::run(plan, spec, group, &mut bench, &words);
    drop(bench);
    let ended = end_or_error(ran.map(|ran| ran.ended))?;

    let group = groups::find_again(&store, group)?;
    let shown = groups::Group::new(&store, &group);
    document::print(&shown, often.format)?;
    if often.format == Format::Text {
        out::line(&format!(
            "Again:  {0} groups {1}   One run:  {0} show RUN, {0} report RUN",
            paths::kelvin_command(&store_path),
            group.id
        ))?;
    }
    let summary = RepeatSummary::from_runs(plan, shown.rows()?);
    let trusted = !plan.until || summary.answer.correct;
    Ok(code(ended, trusted, summary.failed))
}

/// How the group ended; an error if not even the first run was made.
pub(super) fn end_or_error(ran: Result<RepeatEnd, BenchError>) -> Result<RepeatEnd> {
    match ran {
        Ok(ended) => Ok(ended),
        Err(BenchError::Interrupted) => Err(Stopped("interrupted before the first run ended".into()).into()),
        Err(BenchError::Failed(error)) => Err(anyhow!(error)),
    }
}

/// The exit code of a group of runs.
pub(super) fn code(ended: RepeatEnd, trusted: bool, failed: u64) -> Code {
    match ended {
        RepeatEnd::Failed(error) => {
            out::note(&format!("kelvin: {}", exit::describe(&anyhow!(error))));
            Code::Aborted
        }
        RepeatEnd::Interrupted => Code::Interrupted,
        RepeatEnd::TooManyVoid => Code::NotValid,
        RepeatEnd::Done if !trusted => Code::NotValid,
        RepeatEnd::Done if failed > 0 => Code::WithErrors,
        RepeatEnd::Done => Code::Success,
    }
}

/// How to ask for a reset of repeated runs.
const HOW_TO_RESET: &str = "--reset auto";

fn planned(plan: &RepeatPlan, spec: &Spec, group: i64) -> String {
    let runs = if plan.until {
        format!(
            "{} to {} runs, until the mean is known to ± {}",
            plan.runs,
            plan.most,
            trimmed_percent(plan.precision)
        )
    } else {
        format!("{} runs", plan.runs)
    };
    let reset = match spec.beginning() {
        StartingData::Left => format!("; the data are not reset between runs ({HOW_TO_RESET})"),
        StartingData::Made => "; each run creates its own data".into(),
        StartingData::Files => String::new(),
        StartingData::Reset(how) => format!("; reset before each: {how}"),
    };
    format!("group {group}: {runs}; {}{reset}", describe_duration(spec, plan.runs))
}

/// "about 2 min for the load alone", from the specification.
pub(super) fn describe_duration(spec: &Spec, runs: u32) -> String {
    let Some(each) = spec.planned() else { return "their duration is known after the first".into() };
    format!("about {} for the load alone", duration((each * runs).as_secs_f64()))
}

/// The progress message for an event.
fn describe_progress(progress: &RepeatEvent<'_>, plan: &RepeatPlan) -> String {
    match progress {
        RepeatEvent::Ran { row, counted, of, left } => {
            let place =
                if row.counts() { format!("{counted} of {of}") } else { format!("still {counted} of {of}") };
            format!("{} · {place}{}", describe_run(row, plan.figure.as_deref()), time_left(*left))
        }
        RepeatEvent::Failed { error } => failed(error),
    }
}

/// "run 12: 45,210 NOPM", and whether it is void.
pub(super) fn describe_run(row: &GroupRun, figure: Option<&str>) -> String {
    let figure = row.figure(figure);
    let value = bounded(figure.and_then(kelvin_diagnose::KeyFigure::bounded), significant_or_none);
    let name = figure.map_or("", |figure| figure.name.as_str());
    let void = row.void.as_ref().map_or(String::new(), |why| format!(", {why}"));
    format!("run {}: {value} {name}{void}", row.run)
}

pub(super) fn failed(error: &str) -> String {
    format!("a run could not be completed and counts as void: {error}")
}

pub(super) fn time_left(left: Duration) -> String {
    if left.is_zero() { String::new() } else { format!(" · about {} left", duration(left.as_secs_f64())) }
}

/// A share with its sign: "+0.85 %".
pub(super) fn change(share: f64) -> String {
    format!("{}{}", if share < 0.0 { "-" } else { "+" }, trimmed_percent(share.abs()))
}

/// The summary of a stored group, for programs.
pub(super) fn json(shown: &groups::Group<'_>) -> Result<Value> {
    let (store, group) = (shown.store, shown.stored);
    let plan: RepeatPlan = groups::plan(group)?;
    let summary = RepeatSummary::from_runs(&plan, shown.rows()?);
    let reset = groups::resets(store, group)?.first().map(|(_, how)| groups::reset_label(*how));
    Ok(json!({
        "event": "repeats", "group": group.id.0, "name": group.info.name, "plan": plan, "reset": reset, "summary": summary,
    }))
}

/// The summary of a stored group.
pub(super) fn render_text(shown: &groups::Group<'_>) -> Result<String> {
    let (store, group) = (shown.store, shown.stored);
    let plan: RepeatPlan = groups::plan(group)?;
    let summary = RepeatSummary::from_runs(&plan, shown.rows()?);
    let name = group.info.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
    let began = group.info.created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = groups::describe_first_run(store, group)?;
    let reset = groups::describe_resets(&groups::resets(store, group)?, HOW_TO_RESET);
    Ok(format!("\ngroup {}{name}: {what}, {began}\n\n{}", group.id, page(&plan, &summary, &reset)))
}

/// The result in one line.
pub(super) fn summary_line(summary: &RepeatSummary) -> String {
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

/// The answer for the HTML page.
pub(super) fn for_page(plan: &RepeatPlan, summary: &RepeatSummary) -> kelvin_report::group::Answer {
    kelvin_report::group::Answer {
        class: "",
        sentence: format!("Statistically sound: {}.", answer(plan, summary).trim_end_matches('.')),
        figures: summary.spread.as_ref().map_or_else(Vec::new, super::group_page::mean),
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

/// The text for accepted noise whose cost is unknown.
pub(super) const ACCEPTED_UNKNOWN: &str = "accepted (--accept-noise): its cost is not known";

/// Whether a specification, in TOML, accepts noise.
pub(super) fn accepts_noise(spec: &str) -> bool {
    Spec::parse(spec, "the plan").is_ok_and(|spec| spec.accept_noise)
}

/// The cost of other processes' CPU use for the runs.
pub(super) fn noise_text(noise: &RunNoise) -> String {
    let accepted = if noise.accepted { "accepted (--accept-noise): " } else { "" };
    let runs = if noise.runs == 1 {
        "the run's result".into()
    } else {
        format!("a run's result, {} on average", trimmed_percent(noise.estimate))
    };
    format!("{accepted}foreign CPU explains up to {} of {runs}", trimmed_percent(noise.high))
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

/// A probability in a sentence: "p = 0.031".
pub(super) fn describe_p(p: f64) -> String {
    if p < 0.001 { "p < 0.001".into() } else { format!("p = {p:.3}") }
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
fn answer(plan: &RepeatPlan, summary: &RepeatSummary) -> String {
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
