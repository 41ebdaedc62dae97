//! The data of one point that the page's script draws.

use std::collections::BTreeMap;

use kelvin_measure::event::{LoadPart, RatePeriod, Series};
use kelvin_measure::text::count;
use serde::Serialize;

use super::TimeUnit;
use super::observed::{self, SeenCharts};
use crate::model::kinds_of_direction;
use crate::{OpenSecond, PointReport, RunReport, SecondReport, SourceReport};

/// The columns of one point, one value per second. Columns compress and parse better than rows.
#[derive(Serialize)]
pub(super) struct Charts {
    #[serde(flatten)]
    seconds: SecondColumns,
    /// End of the time axis: the end of the window, or of the last second while it is open.
    end: f64,
    /// Second, CSS class and text of each mark.
    marks: Vec<(f64, &'static str, String)>,
    distributions: Vec<(String, Vec<(f64, f64)>)>,
    /// Charts of host and database.
    pub(super) seen: Option<SeenCharts>,
}

/// The load, second by second.
#[derive(Debug, Clone, Serialize)]
pub struct SecondColumns {
    /// Seconds since the window opened.
    t: Vec<i64>,
    headline: Column,
    /// All transactions, if the headline does not count all.
    all: Option<Column>,
    /// Only in an open loop.
    open: Option<OpenCharts>,
    p50: Column,
    p95: Column,
    p99: Column,
    max: Column,
    /// For I/O jobs, each direction separately: a mean of reads and writes is meaningless.
    pub(super) directions: Option<Vec<DirectionCharts>>,
    /// The load of each of several sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SourceCharts>,
}

/// The columns of a source.
#[derive(Debug, Clone, Serialize)]
struct SourceCharts {
    name: String,
    /// Its throughput; for a tenant of a scenario, of all its transactions.
    headline: Column,
    /// For a tenant of a scenario, its latencies as seen by its clients.
    #[serde(flatten)]
    times: Option<TenantTimes>,
}

/// Percentiles of a tenant's latencies.
#[derive(Debug, Clone, Serialize)]
struct TenantTimes {
    p50: Column,
    p95: Column,
    p99: Column,
}

/// The columns of a direction.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DirectionCharts {
    pub(super) name: String,
    rate: Vec<Option<f64>>,
    p50: Vec<Option<f64>>,
    p95: Vec<Option<f64>>,
    p99: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    service_p99: Vec<Option<f64>>,
}

/// The columns of an open loop. The other latencies are then response times.
#[derive(Debug, Clone, Serialize)]
struct OpenCharts {
    due: Vec<Option<f64>>,
    refused: Vec<Option<u64>>,
    waiting: Vec<Option<u64>>,
    service_p99: Vec<Option<f64>>,
    lag_max: Vec<Option<f64>>,
}

/// One value per second.
type Column = Vec<Option<f64>>;

/// The throughput by second; none for a fraction of a second, which would be noise.
fn throughput(rows: &[&SecondReport], pick: &dyn Fn(&SecondReport) -> Option<f64>) -> Column {
    rows.iter().map(|s| pick(s).filter(|_| s.width > 0.2).map(|v| (v * 10.0).round() / 10.0)).collect()
}

/// Input for the columns of the seconds.
pub(crate) struct Seconds<'a> {
    /// The rows that are drawn.
    pub(crate) rows: Vec<&'a SecondReport>,
    /// The load of each of several sources.
    pub(crate) sources: &'a [SourceReport],
    /// The run's transaction types.
    pub(crate) kinds: &'a [Series],
    /// Directions of I/O.
    pub(crate) directions: &'a [String],
    pub(crate) per: RatePeriod,
    pub(crate) open_loop: bool,
    pub(crate) io: bool,
    /// Whether the sources are tenants: their loads have no common sum.
    pub(crate) scenario: bool,
}

impl Seconds<'_> {
    pub(crate) fn columns(&self) -> SecondColumns {
        let (rows, per, unit) = (&self.rows, self.per, TimeUnit::of(self.io));
        let latency =
            |pick: fn(&SecondReport) -> Option<f64>, response: fn(&OpenSecond) -> Option<f64>| -> Column {
                let us = |s: &SecondReport| s.open.as_ref().map_or_else(|| pick(s), response);
                rows.iter().map(|s| us(s).map(|us| unit.rounded(us))).collect()
            };
        let due = |s: &SecondReport| Some(s.open?.due? as f64 * per.seconds() / s.width);
        let open = self.open_loop.then(|| OpenCharts {
            due: throughput(rows, &due),
            refused: rows.iter().map(|s| s.open?.refused).collect(),
            waiting: rows.iter().map(|s| s.open?.waiting).collect(),
            service_p99: rows.iter().map(|s| s.p99_us.map(|us| unit.rounded(us))).collect(),
            lag_max: rows.iter().map(|s| Some(unit.rounded(s.open?.lag_max_us?))).collect(),
        });
        let has_total = self.kinds.iter().any(|kind| !kind.headline);
        SecondColumns {
            t: rows.iter().map(|s| s.second).collect(),
            headline: throughput(rows, &|s| Some(s.headline(per))),
            all: has_total.then(|| throughput(rows, &|s| Some(s.transactions(per)))),
            open,
            p50: latency(|s| s.p50_us, |o| o.response_p50_us),
            p95: latency(|s| s.p95_us, |o| o.response_p95_us),
            p99: latency(|s| s.p99_us, |o| o.response_p99_us),
            max: latency(|s| s.max_us, |o| o.response_max_us),
            directions: self.io.then(|| self.each_direction(unit)),
            sources: self.sources.iter().map(|source| self.of_source(source)).collect(),
        }
    }

    /// The load of a source in the drawn seconds.
    fn of_source(&self, source: &SourceReport) -> SourceCharts {
        let own = source.seconds.iter().filter(|s| s.part != LoadPart::Tail);
        let own: BTreeMap<i64, &SecondReport> = own.map(|s| (s.second, s)).collect();
        let pace =
            |s: &SecondReport| if self.scenario { s.transactions(self.per) } else { s.headline(self.per) };
        let headline = throughput(&self.rows, &|s| own.get(&s.second).copied().map(pace));
        let unit = TimeUnit::of(self.io);
        let column = |pick: fn(&SecondReport) -> Option<f64>| -> Column {
            let in_row = |row: &&SecondReport| own.get(&row.second).copied().and_then(pick);
            self.rows.iter().map(|row| in_row(row).map(|us| unit.rounded(us))).collect()
        };
        let times = self.scenario.then(|| TenantTimes {
            p50: column(|s| s.open.map_or(s.p50_us, |open| open.response_p50_us)),
            p95: column(|s| s.open.map_or(s.p95_us, |open| open.response_p95_us)),
            p99: column(|s| s.open.map_or(s.p99_us, |open| open.response_p99_us)),
        });
        SourceCharts { name: source.name.clone(), headline, times }
    }

    /// The directions of I/O that have data.
    fn each_direction(&self, unit: TimeUnit) -> Vec<DirectionCharts> {
        let (rows, per) = (&self.rows, self.per);
        let each = self.directions.iter().enumerate().filter_map(|(at, name)| {
            let kinds: Vec<usize> = kinds_of_direction(self.kinds, name).collect();
            let ended = |s: &SecondReport| kinds.iter().filter_map(|kind| s.good.get(*kind)).sum::<u64>();
            // The series of I/O jobs are those of all phases; directions that are absent from this phase are
            // not drawn.
            rows.iter().find(|s| ended(s) > 0)?;
            let time = |which: usize| -> Column {
                rows.iter().map(|s| Some(unit.rounded(s.directions.get(at)?[which]?))).collect()
            };
            Some(DirectionCharts {
                name: name.clone(),
                rate: throughput(rows, &|s| Some(ended(s) as f64 * per.seconds() / s.width)),
                p50: time(0),
                p95: time(1),
                p99: time(2),
                max: time(3),
                service_p99: time(4),
            })
        });
        each.collect()
    }
}

impl Charts {
    pub(super) fn of(report: &RunReport, point: &PointReport) -> Self {
        let unit = TimeUnit::of(report.is_io());
        // The tail belongs to no result, and its first second would duplicate the window's last.
        let rows: Vec<_> = point.seconds.iter().filter(|s| s.part != LoadPart::Tail).collect();
        let end = rows.last().map_or(0.0, |last| last.second as f64 + last.width).max(point.window_s);
        let distributions = point.distributions.iter().map(|d| {
            let round = |(p, us): &(f64, f64)| ((p * 1e4).round() / 1e4, unit.rounded(*us));
            (d.kind.clone(), d.points.iter().map(round).collect())
        });
        let seconds = Seconds {
            rows,
            sources: &point.sources,
            kinds: &report.kinds,
            directions: &point.io.directions,
            per: report.headline_per,
            open_loop: point.open_loop,
            io: report.is_io(),
            scenario: report.is_scenario(),
        };
        Self {
            seconds: seconds.columns(),
            end,
            marks: marks(report, point),
            seen: SeenCharts::of(report, point, &observed::seconds(point)),
            distributions: distributions.collect(),
        }
    }

    /// Whether there are charts over time.
    pub(super) fn is_drawn(&self) -> bool {
        self.seconds.t.len() > 1
    }

    /// The directions of I/O.
    pub(super) fn directions(&self) -> Vec<String> {
        self.seconds.directions.iter().flatten().map(|one| one.name.clone()).collect()
    }
}

fn marks(report: &RunReport, point: &PointReport) -> Vec<(f64, &'static str, String)> {
    let mut marks = vec![(0.0, "phase", "measured window opens".to_owned())];
    if point.closed {
        marks.push((point.window_s, "phase", "measured window closes".into()));
    }
    for s in point.seconds.iter().filter(|s| s.errors > 0) {
        let text = count(s.errors, "error");
        marks.push((s.second as f64, "error", text));
    }
    for error in &point.errors {
        // A second before the window with errors and no finished transaction has no row.
        if !point.seconds.iter().any(|s| s.second == error.first_s) {
            marks.push((error.first_s as f64, "error", format!("{} {}", error.class, error.code)));
        }
    }
    let steps = report.scenario.iter().flat_map(|scenario| &scenario.steps).filter(|step| step.annotated);
    marks.extend(steps.map(|step| (step.at as f64 / 1e9, "step", step.text.clone())));
    marks.extend(point.timeline.iter().map(|(s, text)| (*s as f64, "note", text.clone())));
    marks
}
