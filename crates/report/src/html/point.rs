//! One point on the page: its values and texts for the template.

use std::collections::BTreeMap;

use kelvin_measure::event::RatePeriod;
use minijinja::context;
use minijinja::value::Value;
use serde::Serialize;

use super::charts::Charts;
use super::observed::SeenCharts;
use crate::text::{
    TOO_SHORT, client_waits, describe_loop, describe_p99_interval, footnotes, generator, when,
};
use crate::{PointReport, RunReport};
use kelvin_measure::text::rate;

/// One point. The values of the report are also its fields.
#[derive(Serialize)]
pub(super) struct PointView<'a> {
    #[serde(flatten)]
    figures: &'a PointReport,
    /// Its index among the points, from 0; part of the ids of its charts.
    index: usize,
    /// "8 virtual users", "1,500/s requested from 8 virtual users".
    name: String,
    /// "8 virtual users".
    users_words: String,
    /// Whether it is the best point of the run.
    best: bool,
    /// The headline value.
    pace: String,
    /// All transactions in the headline's unit.
    total: String,
    /// The same, according to the server's own statistics.
    server_pace: Option<String>,
    /// Whether there are charts over time.
    drawn: bool,
    /// Titles of the charts of host and database.
    seen: Vec<String>,
    /// Directions of I/O that have a latency chart.
    directions: Vec<String>,
    /// Kinds of occurrences that are marked in the charts.
    marked: Marked,
    /// Occurrences on host and database during the load: text, time, and values.
    occurrences: Vec<OccurrenceView<'a>>,
    /// The self-audit: whether each rule holds, its text with the bounds, and samples.
    audits: Vec<(bool, &'a str, String, u64)>,
    /// The number of rules of the self-audit that hold.
    audits_holding: usize,
    /// The number of judged invariants, and of those that hold.
    invariants_judged: (usize, usize),
    /// Resource use and lateness of the load generator, as text.
    generator_words: String,
    /// Notes below the tables of response times and service times.
    response_notes: Vec<String>,
    service_notes: Vec<String>,
    /// The reason why the precision is unknown.
    too_short: Option<&'static str>,
    /// The interval of the p99.
    p99_words: Option<String>,
    /// What the sessions' waits for their client include.
    client_waits: Option<&'static str>,
    /// The colours of the sessions' wait classes.
    class_colours: BTreeMap<&'a str, usize>,
    /// Only for I/O jobs.
    io: Option<IoView>,
}

#[derive(Serialize)]
struct Marked {
    checkpoint: bool,
    vacuum: bool,
    other: bool,
}

/// An occurrence during the load.
#[derive(Serialize)]
struct OccurrenceView<'a> {
    words: String,
    when: String,
    figures: &'a BTreeMap<String, f64>,
}

/// The values of a point that only I/O jobs have.
#[derive(Serialize)]
struct IoView {
    names: Vec<String>,
    mebibytes: Option<f64>,
    loop_words: String,
    time: Option<String>,
    written: Option<String>,
    histograms: Vec<String>,
}

impl<'a> PointView<'a> {
    pub(super) fn new(report: &RunReport, point: &'a PointReport, index: usize, charts: &'a Charts) -> Self {
        let per = report.headline_per;
        let words = report.vocabulary();
        let has = |kind: &str| charts.seen.as_ref().is_some_and(|seen| seen.has(kind));
        let judged: Vec<bool> =
            point.checks.invariants.iter().filter(|i| i.not_judged.is_none()).map(|i| i.holds).collect();
        let occurrences = point.observed.iter().flat_map(|o| &o.occurrences);
        Self {
            figures: point,
            index,
            name: point.name(),
            users_words: point.users(),
            best: report.best().is_some_and(|best| best.point == point.point),
            pace: rate(point.headline(per)),
            total: rate(point.transactions(per)),
            server_pace: server_pace(point, per),
            drawn: charts.is_drawn(),
            seen: charts.seen.as_ref().map(SeenCharts::titles).unwrap_or_default(),
            directions: charts.directions(),
            marked: Marked { checkpoint: has("checkpoint"), vacuum: has("vacuum"), other: has("other") },
            occurrences: occurrences
                .map(|o| OccurrenceView { words: o.label(), when: when(o), figures: &o.figures })
                .collect(),
            audits: point
                .checks
                .audit
                .iter()
                .map(|a| (a.valid, a.name.as_str(), a.bounds(), a.samples))
                .collect(),
            audits_holding: point.checks.audit.iter().filter(|a| a.valid).count(),
            invariants_judged: (judged.len(), judged.iter().filter(|holds| **holds).count()),
            generator_words: generator(&point.generator, words).join("; "),
            response_notes: footnotes(point.response.iter().chain(&point.response_all), words),
            service_notes: footnotes(point.latency.iter(), words),
            too_short: point.too_short().then_some(TOO_SHORT),
            p99_words: p99_words(point),
            client_waits: point.observed.as_ref().and_then(|seen| client_waits(seen.sessions.as_ref()?)),
            class_colours: charts.seen.as_ref().map(SeenCharts::class_colours).unwrap_or_default(),
            io: report.is_io().then(|| IoView::new(report, point)),
        }
    }
}

impl PointView<'_> {
    pub(super) fn is_best(&self) -> bool {
        self.best
    }
}

fn server_pace(point: &PointReport, per: RatePeriod) -> Option<String> {
    point.server_transactions(per).map(|value| rate(Some(value)))
}

/// The interval of a point's p99, if the text report prints it.
pub(super) fn p99_words(point: &PointReport) -> Option<String> {
    let interval = point.p99_within_run.filter(|_| point.open_loop)?;
    Some(describe_p99_interval(&interval, point.words))
}

impl IoView {
    fn new(report: &RunReport, point: &PointReport) -> Self {
        let drawn = crate::plot::PointCharts::new(report, point);
        Self {
            names: report.jobs_of(point).map(|job| job.job.clone()).collect(),
            mebibytes: report.mebibytes_of(point),
            loop_words: describe_loop(point).to_owned(),
            time: drawn.time,
            written: drawn.written,
            histograms: drawn.histograms,
        }
    }
}

/// Labels on the page of I/O jobs.
pub(super) fn io_labels(report: &RunReport) -> Value {
    context! { times => crate::text::times_of(report) }
}
