//! `kelvin io sweep`: one run for each combination of some options, or a curve of rates, stored as a group.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use kelvin_diagnose::{Evidence, KeyFigure};
use kelvin_lab::repeat::GroupRun;
use kelvin_lab::{Bench, BenchError, Measured, Planned, bench};
use kelvin_measure::Bounded;
use kelvin_measure::event::SeriesRole;
use kelvin_measure::text::{bounded, count, duration, significant};
use kelvin_report::RunReport;
use kelvin_run::Spec;
use kelvin_run::spec::{Setting, Work};
use kelvin_storage::jobfile;
use kelvin_store::{
    GroupId, GroupKind, GroupMember, GroupSlot, NewGroup, PointStatistics, Store, StoredGroup,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::run::spec;
use super::{INTERRUPTED, USAGE};
use crate::args::io::{SweepArgs, texts};
use crate::args::{Format, Global};
use crate::commands::groups;
use crate::exit::Stopped;
use crate::measure::{self, WithMetrics};
use crate::{out, paths, signal};

/// More combinations than this are considered a mistake.
const MOST: usize = 1000;
/// Overhead of a run besides its load: probes, layout, the store.
const BESIDE: Duration = Duration::from_millis(300);

/// The plan of a sweep, which is stored in the group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct SweepPlan {
    /// The specification that the values are applied to, as TOML.
    spec: String,
    /// The options and their values. The first option changes slowest; empty for a curve.
    axes: Vec<Axis>,
    /// For a curve, rates in percent of the highest throughput.
    curve: Option<Vec<f64>>,
}

/// An option with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Axis {
    option: String,
    values: Vec<String>,
}

/// One run.
#[derive(Debug, Clone)]
struct Cell {
    /// Its label in the group: "bs=4k iodepth=8", "maximum", "50%".
    name: String,
    /// Options added to every job.
    set: Vec<(String, String)>,
}

impl Cell {
    fn spec(&self, base: &Spec) -> Spec {
        let mut spec = base.clone();
        if let Work::Io(io) = &mut spec.work {
            let set = self.set.iter();
            io.set.extend(set.map(|(option, value)| (option.clone(), Setting::Text(value.clone()))));
        }
        spec
    }
}

/// Makes the runs and prints the table.
pub(super) fn sweep(args: &SweepArgs, global: &Global) -> Result<ExitCode> {
    let words = texts(&args.words)?;
    let parsed = jobfile::parse_arguments(&words)?;
    if args.flags.load.fleet.is_given() {
        bail!("a sweep of I/O jobs runs on this host; omit the flags of a fleet");
    }
    let base = spec(&parsed, &args.flags)?;
    let plan = SweepPlan::of(args, &base)?;
    let cells = plan.cells();
    for cell in &cells {
        cell.spec(&base).validate().with_context(|| cell.name.clone())?;
        bench::suits(&cell.spec(&base)).map_err(|why| anyhow!(why))?;
    }
    if plan.curve.is_some() {
        suits_curve(&base)?;
    }
    if args.flags.load.print_spec {
        out::write(&base.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    let stop = signal::listen()?;
    let live = kelvin_live::for_run(global.quiet, args.flags.load.output.events());
    let mut live = WithMetrics::around(live, args.flags.load.metrics)?;
    let store = Store::open(paths::store(global.store.as_deref())?)?;
    let group = store.begin_group(&NewGroup {
        kind: GroupKind::Sweep,
        name: base.label.clone(),
        created: jiff::Timestamp::now(),
        body: serde_json::to_value(&plan)?,
    })?;
    let runs = plan.runs();
    let planned: Option<Duration> = cells.iter().map(|cell| cell.spec(&base).planned()).sum();
    // Each rate of a curve takes as long as the run that finds the highest rate.
    let planned = planned.map(|planned| planned * (runs / cells.len().max(1)) as u32 + BESIDE * runs as u32);
    let takes = planned.map_or("their duration is known after the first".into(), |planned| {
        format!("at most about {}", duration(planned.as_secs_f64()))
    });
    live.message(&format!("group {group}: {}; {takes}", count(runs, "run")));
    let mut bench = measure::bench(&store, &mut *live, &stop)
        .in_history(args.flags.history()?)
        .destroying(&args.flags.i_know_it_destroys);
    let ended = make(&plan, &base, cells, group, &mut bench);
    drop(bench);
    let failed = match ended {
        Ok(failed) => failed,
        Err(BenchError::Interrupted) if store.members(group)?.is_empty() => {
            return Err(Stopped("interrupted before the first run ended".into()).into());
        }
        Err(BenchError::Interrupted) => {
            show(&store, group, args.flags.load.output.format())?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(BenchError::Failed(error)) => return Err(anyhow!(error)),
    };
    show(&store, group, args.flags.load.output.format())?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(USAGE) })
}

fn show(store: &Store, group: GroupId, format: Format) -> Result<()> {
    groups::show(store, &group.to_string(), format)?;
    if format != Format::Text {
        return Ok(());
    }
    let kelvin = paths::kelvin_command(store.path());
    out::line(&format!("Again:  {kelvin} groups {group}   One run:  {kelvin} show RUN"))
}

/// Makes the runs. Returns the number of those that could not be made or do not count.
fn make(
    plan: &SweepPlan,
    base: &Spec,
    cells: Vec<Cell>,
    group: GroupId,
    bench: &mut dyn Bench,
) -> Result<usize, BenchError> {
    let began = Instant::now();
    let total = plan.runs();
    let mut waiting: std::collections::VecDeque<Cell> = cells.into();
    let (mut made, mut failed) = (0_usize, 0);
    while let Some(cell) = waiting.pop_front() {
        if bench.stopped() {
            return Err(BenchError::Interrupted);
        }
        let slot = GroupSlot { place: made as u32, block: 0, treatment: cell.name.clone() };
        let spec = cell.spec(base);
        let result = match bench.measure(&Planned { spec: &spec, group, slot: &slot, metrics: &[] }) {
            Ok(measured) => {
                if made == 0 && plan.curve.is_some() {
                    let cells =
                        plan.rates(base, &measured).map_err(|error| BenchError::Failed(error.into()))?;
                    waiting.extend(cells);
                }
                failed += usize::from(!measured.counts());
                of_run(&cell, &measured)
            }
            Err(BenchError::Failed(error)) if made > 0 => {
                failed += 1;
                format!("{}: the run could not be completed: {error}", cell.name)
            }
            Err(error) => return Err(error),
        };
        made += 1;
        let left = began.elapsed().as_secs_f64() / made as f64 * total.saturating_sub(made) as f64;
        let left = if made < total { format!(" · about {} left", duration(left)) } else { String::new() };
        bench.report(&format!("{result} · {made} of {total}{left}"));
    }
    Ok(failed)
}

fn of_run(cell: &Cell, measured: &Measured) -> String {
    let figure = measured.figures.first();
    let value = figure.and_then(|figure| figure.value).map_or("–".into(), significant);
    let void = if measured.counts() { String::new() } else { format!(", {}", measured.judgement.describe()) };
    format!("{}, run {}: {value} IOPS{void}", cell.name, measured.run)
}

impl SweepPlan {
    fn of(args: &SweepArgs, base: &Spec) -> Result<Self> {
        let given = [
            ("bs", &args.bs),
            ("iodepth", &args.iodepth),
            ("rwmixread", &args.rwmixread),
            ("numjobs", &args.numjobs),
        ];
        let axes: Vec<Axis> = given
            .into_iter()
            .filter(|(_, values)| !values.is_empty())
            .map(|(option, values)| Axis { option: option.into(), values: values.clone() })
            .collect();
        let curve = args.rate_curve.as_ref().map(|percents| percents.0.clone());
        if axes.is_empty() && curve.is_none() {
            bail!(
                "nothing to sweep: give values for --bs, --iodepth, --rwmixread or --numjobs, or --rate-curve 10..100%"
            );
        }
        for axis in &axes {
            for (index, value) in axis.values.iter().enumerate() {
                if value.is_empty()
                    || value.contains(char::is_whitespace)
                    || axis.values[..index].contains(value)
                {
                    bail!("--{}: {value:?} is empty, or given twice", axis.option);
                }
            }
        }
        if axes.iter().any(|axis| axis.option == "rwmixread") {
            let jobs = base.jobs()?;
            if let Some(job) = jobs.jobs.iter().find(|job| !(job.pattern.reads && job.pattern.writes)) {
                bail!("--rwmixread: job {} does not mix reads and writes (rw=randrw or rw=rw)", job.name);
            }
        }
        let plan = Self { spec: base.to_toml(), axes, curve };
        if plan.runs() > MOST {
            bail!("too many combinations: {} ({MOST} allowed)", plan.runs());
        }
        Ok(plan)
    }

    /// The number of runs.
    fn runs(&self) -> usize {
        match &self.curve {
            Some(curve) => 1 + curve.len(),
            None => self.axes.iter().map(|axis| axis.values.len()).product(),
        }
    }

    /// The runs that are known in advance: all runs of a sweep, or for a curve the run that finds the highest rate.
    fn cells(&self) -> Vec<Cell> {
        if self.curve.is_some() {
            return vec![Cell { name: MAXIMUM.into(), set: Vec::new() }];
        }
        let mut cells = vec![Cell { name: String::new(), set: Vec::new() }];
        for Axis { option, values } in &self.axes {
            let each = |cell: &Cell| -> Vec<Cell> {
                let one = |value: &String| {
                    let mut set = cell.set.clone();
                    set.push((option.clone(), value.clone()));
                    let name: Vec<String> = set.iter().map(|(o, v)| format!("{o}={v}")).collect();
                    Cell { name: name.join(" "), set }
                };
                values.iter().map(one).collect()
            };
            cells = cells.iter().flat_map(each).collect();
        }
        cells
    }

    /// The runs of a curve, once the highest rate is known.
    fn rates(&self, base: &Spec, maximum: &Measured) -> Result<Vec<Cell>> {
        let highest = maximum.value("iops").filter(|iops| *iops > 0.0);
        let highest = highest.context("the run that measures the highest rate did no I/O")?;
        let jobs = base.jobs()?;
        let job = jobs.jobs.first().context("there is no job")?;
        // Each worker has a separate limit for each direction.
        let share = highest / f64::from(job.clones.max(1));
        let reads = match (job.pattern.reads, job.pattern.writes) {
            (true, true) => job.pattern.mix_read / 100.0,
            (reads, _) => f64::from(u8::from(reads)),
        };
        let cell = |percent: &f64| {
            let rate = share * percent / 100.0;
            let of = |part: f64| ((rate * part).round() as u64).max(1);
            Cell {
                name: format!("{}%", significant(*percent)),
                set: vec![
                    ("rate_iops".into(), format!("{},{},{}", of(reads), of(1.0 - reads), of(1.0))),
                    ("rate_process".into(), "poisson".into()),
                ],
            }
        };
        Ok(self.curve.iter().flatten().map(cell).collect())
    }
}

/// The treatment of the run that finds the highest rate.
const MAXIMUM: &str = "maximum";

/// A total rate can be distributed evenly only among clones of one job.
fn suits_curve(base: &Spec) -> Result<()> {
    let jobs = base.jobs()?;
    let [job] = jobs.jobs.as_slice() else {
        bail!(
            "--rate-curve takes one job (numjobs may be larger): a rate cannot be divided among different \
             jobs"
        );
    };
    if job.rate.limits() {
        bail!("job {} sets a rate; remove it: a rate curve first measures the highest rate", job.name);
    }
    if job.course.runtime.is_none() || !job.course.time_based {
        bail!(
            "job {} needs runtime=… and time_based for a rate curve: at 10 % of the rate, a fixed size takes \
             ten times as long",
            job.name
        );
    }
    Ok(())
}

/// A run of a sweep with its columns.
struct Line {
    member: GroupMember,
    figures: Vec<KeyFigure>,
    sums: PointStatistics,
    /// Mean, p50, p95, p99 and p99.9 in µs. With a rate they are response times, and I/Os that had not begun at the end of
    /// the window rank above all others.
    times: [Option<Bounded>; 5],
    /// Whether the rate was not reached.
    behind: bool,
    series: Vec<(String, SeriesRole)>,
    asked: Option<f64>,
}

fn lines(store: &Store, group: &StoredGroup) -> Result<Vec<Line>> {
    let line = |member: GroupMember| -> Result<Line> {
        let run = store.load(member.run)?;
        let evidence = Evidence::from_run(&run)?;
        let point = evidence.point(0);
        let report = RunReport::from_run(&run)?;
        let times = report.points.first().map(|point| {
            let seen = point.client_latency();
            [seen.mean_us, seen.p50_us, seen.p95_us, seen.p99_us, seen.p999_us]
        });
        let schedule = report.points.first().and_then(|point| point.schedule.as_ref());
        Ok(Line {
            times: times.unwrap_or_default(),
            behind: schedule.is_some_and(|schedule| schedule.overloaded),
            figures: kelvin_diagnose::key_figures(&run, &evidence, 0, &[])?,
            sums: run.point_statistics(0)?,
            series: run.info.kinds.iter().map(|series| (series.name.clone(), series.role)).collect(),
            asked: point.and_then(|point| Some(point.window.as_ref()?.schedule?.rate)),
            member,
        })
    };
    store.members(group.id)?.into_iter().map(line).collect()
}

impl Line {
    fn value(&self, id: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.id == id)?.value
    }

    /// Completion time of all I/Os in µs at a percentile; the mean for `None`.
    fn completion(&self, percent: Option<f64>) -> Option<f64> {
        micros(&self.sums.all.latency, percent)
    }
}

fn micros(times: &kelvin_measure::Histogram, percent: Option<f64>) -> Option<f64> {
    match percent {
        None => times.mean().map(|nanos| nanos / 1e3),
        Some(percent) => times.percentile(percent).map(|nanos| nanos as f64 / 1e3),
    }
}

/// The table of a stored sweep.
pub(crate) fn text(store: &Store, group: &StoredGroup) -> Result<String> {
    let plan: SweepPlan = groups::plan(group)?;
    let lines = lines(store, group)?;
    let name = group.info.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
    let began = group.info.created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = groups::describe_first_run(store, group)?;
    let mut text = format!("\ngroup {}{name}: {what}, {began}\n\n", group.id);
    let counted = lines.iter().filter(|line| line.member.void.is_none());
    let best = best(counted.map(|line| (line.figures.first(), line.member.slot.treatment.as_str())));
    out::wrapped(&mut text, &best, 0, 2, 100);
    text.push('\n');
    if plan.curve.is_some() {
        curve(&mut text, &lines);
    } else {
        cells(&mut text, &plan, &lines);
    }
    for line in &lines {
        if let Some(why) = &line.member.void {
            out::wrapped(&mut text, &format!("run {}, {why}", line.member.run), 0, 6, 100);
        }
    }
    text.push('\n');
    Ok(text)
}

fn row(text: &mut String, columns: &[(usize, String)]) {
    let mut line = String::new();
    for (width, value) in columns {
        let _ = write!(line, "{value:>width$}  ");
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn format_value(value: Option<f64>) -> String {
    value.map_or("–".into(), significant)
}

/// A row for each combination. With mixed reads and writes, each direction has a row below it.
fn cells(text: &mut String, plan: &SweepPlan, lines: &[Line]) {
    let wide = |axis: &Axis| {
        axis.values.iter().map(|value| value.chars().count()).chain([axis.option.len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = plan.axes.iter().map(wide).collect();
    let mut heading: Vec<(usize, String)> =
        plan.axes.iter().zip(&widths).map(|(axis, width)| (*width, axis.option.clone())).collect();
    for name in ["IOPS", "MiB/s", "mean µs", "p50 µs", "p95 µs", "p99 µs", "CPU µs"] {
        heading.push((9, name.into()));
    }
    heading.push((5, "run".into()));
    row(text, &heading);
    for line in lines {
        let set: Vec<(&str, &str)> =
            line.member.slot.treatment.split(' ').filter_map(|one| one.split_once('=')).collect();
        let of = |axis: &Axis| {
            set.iter().find(|(option, _)| *option == axis.option).map_or("?", |(_, value)| *value).to_owned()
        };
        let mut columns: Vec<(usize, String)> =
            plan.axes.iter().zip(&widths).map(|(axis, width)| (*width, of(axis))).collect();
        let times = [None, Some(50.0), Some(95.0), Some(99.0)].map(|percent| line.completion(percent));
        let values = [line.value("iops"), line.value("bandwidth")].into_iter().chain(times);
        columns.extend(values.chain([line.value("cpu")]).map(|value| (9, format_value(value))));
        let void = if line.member.void.is_some() { " void" } else { "" };
        columns.push((5, format!("{}{void}", line.member.run)));
        row(text, &columns);
        by_series(text, &widths, line);
    }
}

fn by_series(text: &mut String, widths: &[usize], line: &Line) {
    let transactions: Vec<_> = line
        .series
        .iter()
        .zip(&line.sums.kinds)
        .filter(|((_, role), _)| *role == SeriesRole::Transaction)
        .collect();
    if transactions.len() < 2 {
        return;
    }
    let indent: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
    for ((name, _), kind) in transactions {
        let rate = (line.sums.seconds > 0.0).then(|| kind.committed as f64 / line.sums.seconds);
        let times = [None, Some(50.0), Some(95.0), Some(99.0)].map(|percent| micros(&kind.latency, percent));
        let mut columns = vec![(indent, name.clone()), (9, format_value(rate)), (9, String::new())];
        columns.extend(times.into_iter().map(|value| (9, format_value(value))));
        row(text, &columns);
    }
}

/// A row for each rate. Times count from the intended start.
fn curve(text: &mut String, lines: &[Line]) {
    let heading =
        ["rate", "asked/s", "IOPS", "MiB/s", "mean µs", "p50 µs", "p95 µs", "p99 µs", "p99.9 µs", "CPU µs"];
    let mut columns: Vec<(usize, String)> = heading.iter().map(|name| (9, (*name).to_owned())).collect();
    columns.push((5, "run".into()));
    row(text, &columns);
    for line in lines {
        let mut columns = vec![(9, line.member.slot.treatment.clone()), (9, format_value(line.asked))];
        columns.extend([line.value("iops"), line.value("bandwidth")].map(|value| (9, format_value(value))));
        columns.extend(line.times.map(|time| (9, bounded(time, format_value))));
        columns.push((9, format_value(line.value("cpu"))));
        let behind = if line.behind { " behind" } else { "" };
        columns.push((5, format!("{}{behind}", line.member.run)));
        row(text, &columns);
    }
    if lines.iter().any(|line| line.behind) {
        out::wrapped(
            text,
            "behind: the rate was not sustained. I/Os that had not started when the window closed count as \
             longer than all others; a percentile among them is only a lower bound (≥)",
            0,
            0,
            100,
        );
    }
    out::wrapped(
        text,
        "rows with a rate show response times, from the scheduled start of an I/O to its completion; the row \
         of the maximum shows completion times: a closed loop has no scheduled starts",
        0,
        0,
        100,
    );
}

/// The result as JSON.
pub(crate) fn json(store: &Store, group: &StoredGroup) -> Result<Value> {
    let plan: SweepPlan = groups::plan(group)?;
    let cell = |line: &Line| {
        let figures: serde_json::Map<String, Value> =
            line.figures.iter().map(|figure| (figure.id.clone(), json!(figure.value))).collect();
        let at_least: Vec<&str> =
            line.figures.iter().filter(|figure| figure.at_least).map(|figure| figure.id.as_str()).collect();
        let set: serde_json::Map<String, Value> = line
            .member
            .slot
            .treatment
            .split(' ')
            .filter_map(|one| one.split_once('='))
            .map(|(option, value)| (option.to_owned(), value.into()))
            .collect();
        json!({
            "run": line.member.run.0, "treatment": line.member.slot.treatment, "set": set, "asked": line.asked,
            "figures": figures, "at_least": at_least, "void": line.member.void,
        })
    };
    let cells: Vec<Value> = lines(store, group)?.iter().map(cell).collect();
    Ok(json!({
        "event": "sweep", "group": group.id.0, "name": group.info.name, "axes": plan.axes, "curve": plan.curve, "cells": cells,
    }))
}

/// The result in one line: the best run.
pub(crate) fn in_short(rows: &[GroupRun]) -> String {
    let counted = rows.iter().filter(|row| row.counts());
    best(counted.map(|row| (row.figures.first(), row.slot.treatment.as_str())))
}

/// The best of the runs that count, each with its first metric and its options.
fn best<'a>(counted: impl Iterator<Item = (Option<&'a KeyFigure>, &'a str)>) -> String {
    let known = counted.filter_map(|(figure, set)| Some((figure?.value?, set)));
    known.max_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(
        || "no run counts".into(),
        |(iops, set)| format!("highest: {} IOPS with {set}", significant(iops)),
    )
}
