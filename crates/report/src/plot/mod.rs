//! Charts of I/O: from log files and results of fio and Kelvin, and from stored runs.
//!
//! Reads and writes are never combined in one line: each has a separate chart or a labelled colour.

mod draw;
mod latency;
mod log;
mod matrix;
mod measurements;
mod page;
mod png;
mod series;
#[cfg(test)]
mod tests;
mod time;

use std::collections::BTreeMap;

use kelvin_measure::event::{LoadPart, direction_of};
use kelvin_storage::Direction;
use kelvin_storage::job::Jobs;
use kelvin_storage::log::LogKind;

pub use latency::CompletionTimes;
pub use log::{HistogramRow, IoLogFile, LONGEST, Row, Rows, is_log, read};
pub use measurements::{DirectionMeasurement, JobMeasurement};
pub use page::page;
pub use png::Painter;
pub use series::{LogSeries, Point};

use crate::{PointReport, RunReport};

/// A chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chart {
    /// File name without extension: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The chart as an SVG document.
    pub svg: String,
}

impl Chart {
    fn new(name: &str, title: &str, svg: String) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let mut name: String = name.chars().map(safe).collect();
        while name.contains("--") {
            name = name.replace("--", "-");
        }
        Self { name: name.trim_matches(['-', '.']).to_owned(), title: title.to_owned(), svg }
    }
}

/// The sources of charts.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    series: Vec<LogSeries>,
    times: BTreeMap<Direction, Vec<CompletionTimes>>,
    measured: Vec<JobMeasurement>,
}

impl Inputs {
    /// Adds a log.
    pub fn log(&mut self, log: &IoLogFile) {
        self.series.extend(series::series_of_log(log));
        let Rows::Histograms(rows) = &log.rows else { return };
        for direction in Direction::ALL {
            let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
            for (nanos, count) in
                rows.iter().filter(|row| row.direction == direction).flat_map(|row| &row.counts)
            {
                let sum = bins.entry(*nanos).or_default();
                *sum = sum.saturating_add(*count);
            }
            let count = latency::count(bins.values());
            if count > 0 {
                let name = log.name.trim_end_matches(".log").to_owned();
                let times = CompletionTimes {
                    name,
                    count,
                    bins: bins.into_iter().collect(),
                    percentiles: Vec::new(),
                };
                self.times.entry(direction).or_default().push(times);
            }
        }
    }

    /// Adds the jobs of a result.
    pub fn measured(&mut self, measured: Vec<JobMeasurement>) {
        for one in &measured {
            for did in &one.did {
                let known =
                    did.times.iter().filter(|times| !times.bins.is_empty() || !times.percentiles.is_empty());
                self.times.entry(did.direction).or_default().extend(known.cloned());
            }
        }
        self.measured.extend(measured);
    }

    /// Adds a stored run of I/O jobs. `jobs` are those of its specification; `over_time` selects whether its
    /// seconds are drawn as well.
    pub fn run(&mut self, report: &RunReport, jobs: &Jobs, over_time: bool) {
        if over_time {
            self.series.extend(seconds(report));
        }
        let measured = JobMeasurement::from_run(report, jobs);
        let options = options(&measured);
        for point in &report.points {
            for (direction, mut times) in times_of(report, point) {
                times.name.push_str(&options);
                self.times.entry(direction).or_default().push(times);
            }
            // The report has already omitted values that its samples do not support.
            for curve in point.distributions.iter().filter(|_| point.open_loop) {
                let Some(direction) = direction(&curve.kind) else { continue };
                let name = format!("{}, response times", series_name(report, point, &curve.kind));
                let percentiles = curve.points.iter().map(|(percent, us)| (*percent, us * 1e3)).collect();
                let times = CompletionTimes { name, count: u64::MAX, bins: Vec::new(), percentiles };
                self.times.entry(direction).or_default().push(times);
            }
        }
        self.measured.extend(measured);
    }

    /// All charts for which there is data.
    pub fn charts(&self) -> Vec<Chart> {
        let about = |prefix: &str| {
            let mut found = self.measured.iter().filter(|one| one.job == prefix);
            // If two jobs have that name, it is unknown to which the log belongs.
            found.next().filter(|_| found.next().is_none()).map(JobMeasurement::about)
        };
        let mut charts = time::charts_by_file(&self.series, &about);
        charts.extend(time::compared(&self.series));
        charts.extend(time::written(&self.series));
        charts.extend(matrix::bars(&self.measured));
        charts.extend(matrix::maps(&self.measured));
        for (direction, times) in &self.times {
            charts.extend(latency::charts(*direction, times));
        }
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for chart in &mut charts {
            let many = taken.entry(chart.name.clone()).or_default();
            *many += 1;
            if *many > 1 {
                chart.name = format!("{}-{many}", chart.name);
            }
        }
        charts
    }
}

/// The options that distinguish the runs of a sweep, if each run has one job.
fn options(measured: &[JobMeasurement]) -> String {
    let [one] = measured else { return String::new() };
    let words = [
        one.mix.map(|mix| format!(", {mix} % reads")),
        one.block_size.as_ref().map(|size| format!(", bs {size}")),
        one.depth.map(|depth| format!(", depth {depth}")),
        one.jobs.filter(|jobs| *jobs > 1).map(|jobs| format!(", {jobs} jobs")),
    ];
    words.into_iter().flatten().collect()
}

fn direction(kind: &str) -> Option<Direction> {
    Direction::ALL.into_iter().find(|direction| direction.word() == direction_of(kind))
}

/// The seconds of all points of a run.
fn seconds(report: &RunReport) -> Vec<LogSeries> {
    report.points.iter().flat_map(|point| seconds_of(report, point)).collect()
}

/// "run 3 read", with the point if there are several.
fn series_name(report: &RunReport, point: &PointReport, kind: &str) -> String {
    let name = format!("run {} {kind}", report.run);
    if report.points.len() > 1 { format!("{name}, {}", point.name()) } else { name }
}

/// Completion times of each series of a point, by direction.
fn times_of(report: &RunReport, point: &PointReport) -> Vec<(Direction, CompletionTimes)> {
    let each = point.io.bins.iter().filter_map(|(kind, bins)| {
        let count = latency::count(bins.iter().map(|bin| &bin.1));
        let name = series_name(report, point, kind);
        Some((direction(kind)?, CompletionTimes { name, count, bins: bins.clone(), percentiles: Vec::new() }))
    });
    each.collect()
}

/// The charts of a point of I/O jobs in the report; none for other workloads.
#[derive(Debug, Default)]
pub(crate) struct PointCharts {
    /// I/Os per second with moving average and trend, one colour per direction.
    pub(crate) time: Option<String>,
    /// Bandwidth of writes over the bytes already written.
    pub(crate) written: Option<String>,
    /// Histograms of completion times, one per direction.
    pub(crate) histograms: Vec<String>,
}

impl PointCharts {
    pub(crate) fn new(report: &RunReport, point: &PointReport) -> Self {
        if !report.is_io() {
            return Self::default();
        }
        let series = seconds_of(report, point);
        let iops: Vec<LogSeries> =
            series.iter().filter(|one| one.quantity == LogKind::Iops).cloned().collect();
        let mut times: BTreeMap<Direction, Vec<CompletionTimes>> = BTreeMap::new();
        for (direction, one) in times_of(report, point) {
            times.entry(direction).or_default().push(one);
        }
        let histograms = times.iter().flat_map(|(direction, all)| latency::histograms(*direction, all));
        Self {
            time: time::charts_by_file(&iops, &|_| None).pop().map(|chart| chart.svg),
            written: time::written(&series).map(|chart| chart.svg),
            histograms: histograms.map(|chart| chart.svg).collect(),
        }
    }
}

/// Mean I/O size of a direction in bytes, over the point; none if no job reports it.
fn mean_size(report: &RunReport, point: &PointReport, direction: Direction) -> Option<f64> {
    let targets = report.jobs_of(point).flat_map(|job| &job.targets);
    let (mut ios, mut bytes) = (0_u64, 0_u64);
    for target in targets.filter(|target| target.direction == direction.word()) {
        ios = ios.saturating_add(target.ios);
        bytes = bytes.saturating_add(target.bytes);
    }
    (ios > 0 && bytes > 0).then(|| bytes as f64 / ios as f64)
}

/// A last second of a window that is at most this fraction of a second is too short for a rate.
const SLIVER: f64 = 0.2;

/// I/Os and bytes per second of each direction of a point, over all devices.
fn seconds_of(report: &RunReport, point: &PointReport) -> Vec<LogSeries> {
    let several = report.points.len() > 1;
    let name = format!("run {}", report.run);
    let name = if several { format!("{name} {}", point.name()) } else { name };
    let mut found = Vec::new();
    for direction in Direction::ALL {
        let kinds: Vec<usize> = report.kinds_of_direction(direction.word()).collect();
        let series = |quantity: LogKind, each: f64, how: String| {
            let mut points: Vec<Point> = Vec::new();
            for second in
                point.seconds.iter().filter(|second| second.part == LoadPart::Measured && second.width > 0.0)
            {
                let ended: u64 = kinds.iter().filter_map(|at| second.good.get(*at)).sum();
                let (amount, end) = (ended as f64 * each, second.second as f64 + second.width);
                let alone = Point { time: end, width: second.width, value: 0.0, low: 0.0, high: 0.0 };
                // The rate of a fraction of a second is noise. It is merged into the preceding second, so
                // that the mean of the points is that of the whole window, as in the tables.
                let (before, amount) = match points.pop_if(|_| second.width <= SLIVER) {
                    Some(last) => (last.width, last.value * last.width + amount),
                    None => (0.0, amount),
                };
                let width = before + second.width;
                let value = amount / width;
                points.push(Point { width, value, low: value, high: value, ..alone });
            }
            let prefix = report.details.jobs.first().map_or_else(String::new, |job| job.job.clone());
            LogSeries { name: name.clone(), prefix, quantity, direction, how, points }
        };
        let iops = series(LogKind::Iops, 1.0, "seconds of the measured window".into());
        if iops.points.iter().all(|point| point.value <= 0.0) {
            continue;
        }
        found.push(iops);
        if let Some(size) = mean_size(report, point, direction) {
            let how = format!(
                "seconds of the measured window, I/Os × their mean size of {} KiB",
                kelvin_measure::text::significant(size / 1024.0)
            );
            found.push(series(LogKind::Bandwidth, size, how));
        }
    }
    found
}
