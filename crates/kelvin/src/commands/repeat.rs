//! `kelvin run … --repeat`: repeats a run.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use kelvin_lab::BenchError;
use kelvin_lab::repeat::{self, RepeatEnd, RepeatEvent, RepeatPlan, RepeatSummary};
use kelvin_lab::store_bench::HistoryKey;
use kelvin_measure::text::trimmed_percent;
use kelvin_run::Spec;
use kelvin_run::spec::StartingData;
use kelvin_store::{GroupKind, NewGroup, Store};

use crate::args::{Format, Global};
use crate::document;
use crate::exit::{self, Code, Stopped};
use crate::group::{self, Group, HOW_TO_RESET, describe_duration, describe_run, failed, time_left};
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

    let group = group::find_again(&store, group)?;
    let shown = Group::new(&store, &group);
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
