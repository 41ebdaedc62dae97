//! A sweep of I/O jobs: a row for each combination of options, or for each rate.

use std::fmt::Write as _;

use anyhow::Result;
use kelvin_diagnose::{Evidence, KeyFigure};
use kelvin_lab::repeat::GroupRun;
use kelvin_measure::Bounded;
use kelvin_measure::event::SeriesRole;
use kelvin_measure::text::{bounded, significant};
use kelvin_report::RunReport;
use kelvin_store::{GroupMember, PointStatistics, Store, StoredGroup};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::stored;
use crate::out;

/// The plan of a sweep, which is stored in the group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct SweepPlan {
    /// The specification that the values are applied to, as TOML.
    pub(crate) spec: String,
    /// The options and their values. The first option changes slowest; empty for a curve.
    pub(crate) axes: Vec<Axis>,
    /// For a curve, rates in percent of the highest throughput.
    pub(crate) curve: Option<Vec<f64>>,
}

/// An option with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Axis {
    pub(crate) option: String,
    pub(crate) values: Vec<String>,
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
    let plan: SweepPlan = stored::plan(group)?;
    let lines = lines(store, group)?;
    let name = group.info.name.as_ref().map_or(String::new(), |name| format!(" \"{name}\""));
    let began = group.info.created.strftime("%Y-%m-%d %H:%M:%S UTC");
    let what = stored::describe_first_run(store, group)?;
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
        ["rate", "target/s", "IOPS", "MiB/s", "mean µs", "p50 µs", "p95 µs", "p99 µs", "p99.9 µs", "CPU µs"];
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
    let plan: SweepPlan = stored::plan(group)?;
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
pub(crate) fn summary_line(rows: &[GroupRun]) -> String {
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
