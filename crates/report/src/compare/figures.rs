//! The metrics of one load on both sides, and the conclusions.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_measure::event::RatePeriod;
use kelvin_measure::{Bounded, labels};
use kelvin_stats::compare::{ComparedSamples, MeasuredChange, compare_bounds, detectable, ruled_out};
use kelvin_stats::holm;
use kelvin_stats::power::{FEWEST, POWER};
use serde::Serialize;

use super::{ComparisonVerdict, percent, share};
use crate::{LatencyRow, PointReport, RunReport};
use kelvin_measure::text::ends;

/// The family-wise error rate of a comparison of several loads.
pub(super) const ERROR: f64 = 0.05;

/// Recommended number of runs per side.
pub(crate) const ADVISED: usize = 6;

/// Key metrics in the table in addition to throughput and latencies, if known.
pub(super) const RESOURCES: [&str; 6] =
    ["bandwidth", "client-cpu", "server-cpu", "cpu", "server-instructions", "wal"];

/// One metric of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedFigure {
    /// The id by which it is selected, such as "nopm" or "p99"; for a transaction type, preceded by the
    /// type's name.
    pub id: String,
    /// The name, such as "NOPM" or "New-Order p95".
    pub name: String,
    /// "per minute", "per second", "us", "ms", "bytes" …
    pub unit: String,
    /// Whether higher or lower is better; none if unknown.
    pub better: Option<Better>,
    /// Geometric mean of the runs of A; none if a value is unknown or not positive.
    pub a: Option<f64>,
    /// The same for B.
    pub b: Option<f64>,
    /// B/A; `None` if one of them is unknown.
    pub ratio: Option<f64>,
    /// The interval of the ratio, at the comparison's confidence; none with fewer than four runs per side.
    pub interval: Option<(f64, f64)>,
    /// The probability of at least this difference by chance; for a secondary metric, adjusted for their
    /// number (Holm). `None` with fewer than four runs per side.
    pub p: Option<f64>,
    /// Whether it is one of many metrics other than the judged one: its result is only a hint.
    pub exploratory: bool,
    /// The values of the runs of A, in the order of the runs that have this load.
    pub a_values: Vec<f64>,
    /// The values of the runs of B.
    pub b_values: Vec<f64>,
    /// The values of A that are lower bounds: percentiles that fall among unanswered arrivals.
    pub a_at_least: Vec<bool>,
    /// The same for B.
    pub b_at_least: Vec<bool>,
    /// Whether the values of A and B at the same index are from the same block.
    pub paired: bool,
    /// Whether the runs of each side were made consecutively, so that the interval allows for their
    /// dependence.
    pub consecutive: bool,
}

impl ComparedFigure {
    /// The statistical result; `None` with a single run per side, or if a run lacks the metric.
    pub fn change(&self, noise: f64, confidence: f64) -> Option<MeasuredChange> {
        compare_bounds(self.sides(), (&self.a_at_least, &self.b_at_least), noise, confidence)
    }

    fn sides(&self) -> ComparedSamples<'_> {
        let (a, b) = (&self.a_values[..], &self.b_values[..]);
        match (self.paired, self.consecutive) {
            (true, _) => ComparedSamples::Paired { a, b },
            (false, true) => ComparedSamples::Consecutive { a, b },
            (false, false) => ComparedSamples::Independent { a, b },
        }
    }

    /// The values of A and B, and whether they are bounds.
    pub(crate) fn bounded(&self) -> [Option<Bounded>; 2] {
        [(self.a, &self.a_at_least), (self.b, &self.b_at_least)]
            .map(|(value, marks)| Some(Bounded { value: value?, at_least: marks.contains(&true) }))
    }

    /// Whether a value is only a lower bound.
    fn has_bounds(&self) -> bool {
        self.a_at_least.contains(&true) || self.b_at_least.contains(&true)
    }

    /// The ratio, if no value is a bound.
    pub(crate) fn exact_ratio(&self) -> Option<f64> {
        self.ratio.filter(|_| !self.has_bounds())
    }

    /// The smallest relative change that is ruled out in both directions (two one-sided tests); `None` if a
    /// value is a bound.
    pub fn ruled_out(&self, confidence: f64) -> Option<f64> {
        if self.has_bounds() { None } else { ruled_out(self.sides(), confidence) }
    }

    /// The smallest relative change that this number of runs with this scatter detects with a probability of
    /// 90 %; none if a value is a bound.
    pub fn detectable(&self, noise: f64, confidence: f64) -> Option<f64> {
        if self.has_bounds() { None } else { detectable(self.sides(), noise, confidence, POWER) }
    }

    /// Whether each side has enough runs for a test.
    pub(super) fn is_testable(&self) -> bool {
        self.fewest() >= FEWEST
    }

    /// Number of runs of the side that has fewer.
    pub fn fewest(&self) -> usize {
        self.a_values.len().min(self.b_values.len())
    }
}

/// The compared points of both sides. If paired, those of A and B in the same block are at the same index.
pub(super) struct Matched<'a> {
    pub(super) a: Vec<Point<'a>>,
    pub(super) b: Vec<Point<'a>>,
    pub(super) paired: bool,
    /// Whether the runs of each side were made consecutively.
    pub(super) consecutive: bool,
    /// A note on the points that were left out for pairing.
    pub(super) note: Option<String>,
}

/// A point with its run's key metrics and block.
#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) run: i64,
    pub(super) figures: &'a PointReport,
    pub(super) key: &'a [KeyFigure],
    pub(super) block: Option<(i64, u32)>,
}

/// Pairs points of the same block if both sides come from one group with blocks. Changes between blocks then
/// cancel out.
pub(super) fn matched<'a>(a: Vec<Point<'a>>, b: Vec<Point<'a>>) -> Matched<'a> {
    let blocks = |side: &[Point<'a>]| -> Option<BTreeMap<(i64, u32), Point<'a>>> {
        let all: BTreeMap<_, _> = side.iter().filter_map(|p| Some((p.block?, *p))).collect();
        // If a block has several runs of a side, there is no pairing.
        (all.len() == side.len()).then_some(all)
    };
    let independent = |mut a: Vec<Point<'a>>, mut b: Vec<Point<'a>>| {
        // Run numbers increase with time.
        a.sort_by_key(|point| point.run);
        b.sort_by_key(|point| point.run);
        let consecutive = consecutive(&a, &b);
        Matched { a, b, paired: false, consecutive, note: None }
    };
    let (Some(of_a), Some(of_b)) = (blocks(&a), blocks(&b)) else { return independent(a, b) };
    let common: BTreeSet<(i64, u32)> =
        of_a.keys().filter(|block| of_b.contains_key(block)).copied().collect();
    let complete = common.len() == a.len() && common.len() == b.len();
    if common.is_empty() || (common.len() < FEWEST && !complete) {
        return independent(a, b);
    }
    let alone: Vec<i64> = of_a
        .iter()
        .chain(&of_b)
        .filter(|(block, _)| !common.contains(block))
        .map(|(_, point)| point.run)
        .collect();
    let note = match alone.as_slice() {
        [] => None,
        [one] => Some(format!("run {one} is left out: its block has no run of the other side")),
        several => Some(format!(
            "runs {} are left out: their blocks have no run of the other side",
            super::caveats::join_runs(several)
        )),
    };
    let pick = |side: &BTreeMap<_, Point<'a>>| common.iter().filter_map(|b| side.get(b).copied()).collect();
    Matched { a: pick(&of_a), b: pick(&of_b), paired: true, consecutive: false, note }
}

/// Whether each side was measured consecutively, or almost: the order of the runs in time switches between
/// the sides less often than a random order does on average. Effects that last from one run to the next then
/// affect only one side.
fn consecutive(a: &[Point<'_>], b: &[Point<'_>]) -> bool {
    let mut runs: Vec<(i64, bool)> = a.iter().map(|point| (point.run, false)).collect();
    runs.extend(b.iter().map(|point| (point.run, true)));
    runs.sort_unstable();
    let changes = runs.windows(2).filter(|pair| pair[0].1 != pair[1].1).count();
    changes < 2 * a.len() * b.len() / runs.len().max(1)
}

/// The metric that is judged if the throughput was fixed.
pub(super) const RESPONSE: &str = "response p99";

type Rows = fn(&PointReport) -> &Vec<LatencyRow>;
type Pick = fn(&LatencyRow) -> Option<Bounded>;
const PICKS: [(&str, Pick); 4] =
    [("mean", |r| r.mean_us), ("p50", |r| r.p50_us), ("p95", |r| r.p95_us), ("p99", |r| r.p99_us)];

/// The metrics of the table, the judged one first, and every key metric.
pub(super) fn figures(
    report: &RunReport,
    open_loop: bool,
    points: &Matched<'_>,
    confidence: f64,
) -> (Vec<ComparedFigure>, Vec<ComparedFigure>) {
    let per = report.headline_per;
    let unit = match per {
        RatePeriod::Minute => "per minute",
        RatePeriod::Second => "per second",
    };
    let (higher, lower) = (Some(Better::Higher), Some(Better::Lower));
    let mut figures = Vec::new();
    let mut add = |name: &str, unit: &str, better, value: &dyn Fn(&PointReport) -> Option<Bounded>| {
        figures.push(figure((&name.to_lowercase(), name, unit), better, points, confidence, |p| {
            value(p.figures)
        }));
    };
    // A completion time of a microsecond would be 0.001 ms.
    let time = if report.is_io() { "µs" } else { "us" };
    if open_loop {
        add(RESPONSE, time, lower, &|p| p.response_all.as_ref()?.p99_us);
    }
    let exactly = |value: Option<f64>| value.map(Bounded::exactly);
    add(&report.headline, unit, higher, &|p| exactly(p.headline(per)));
    if report.has_total() {
        add(report.total_name(), unit, higher, &|p| exactly(p.transactions(per)));
    }
    let first = points.a.first().map(|p| p.figures);
    let kinds: &[LatencyRow] = first.map_or(&[], |p| if open_loop { &p.response } else { &p.latency });
    // A stream executes each query only once.
    let picks = if report.workload == labels::TPROC_H { &PICKS[..1] } else { &PICKS[..] };
    for row in kinds {
        for &(percentile, pick) in picks {
            let (name, rows): (_, Rows) = if open_loop {
                (format!("{} response {percentile}", row.kind), |p| &p.response)
            } else {
                (format!("{} {percentile}", row.kind), |p| &p.latency)
            };
            // By name: each phase of I/O jobs has rows only for its own directions and devices.
            add(&name, time, lower, &move |p| pick(rows(p).iter().find(|r| r.kind == row.kind)?));
        }
    }
    let mut key: Vec<ComparedFigure> = Vec::new();
    for known in points.a.first().map_or(&[][..], |p| p.key) {
        let value = |p: &Point<'_>| p.key.iter().find(|k| k.id == known.id)?.bounded();
        key.push(figure((&known.id, &known.name, &known.unit), known.better, points, confidence, value));
    }
    let resources = key.iter().filter(|f| RESOURCES.contains(&f.id.as_str()) && f.ratio.is_some());
    figures.extend(resources.cloned());
    adjust(&mut figures);
    (figures, key)
}

fn figure(
    (id, name, unit): (&str, &str, &str),
    better: Option<Better>,
    points: &Matched<'_>,
    confidence: f64,
    value: impl Fn(&Point<'_>) -> Option<Bounded>,
) -> ComparedFigure {
    // A side has values only if each of its runs has the metric.
    let all = |side: &[Point<'_>]| -> (Vec<f64>, Vec<bool>) {
        let values: Vec<Bounded> = side.iter().map(&value).collect::<Option<_>>().unwrap_or_default();
        values.iter().map(|value| (value.value, value.at_least)).unzip()
    };
    let ((a_values, a_at_least), (b_values, b_at_least)) = (all(&points.a), all(&points.b));
    let mean = |values: &[f64]| {
        (!values.is_empty() && values.iter().all(|v| *v > 0.0))
            .then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
    };
    let (a, b) = (mean(&a_values), mean(&b_values));
    let mut figure = ComparedFigure {
        id: id.into(),
        name: name.into(),
        unit: unit.into(),
        better,
        a,
        b,
        ratio: a.zip(b).map(|(a, b)| b / a),
        interval: None,
        p: None,
        exploratory: false,
        paired: points.paired && a_values.len() == b_values.len(),
        consecutive: points.consecutive,
        a_values,
        b_values,
        a_at_least,
        b_at_least,
    };
    if figure.is_testable()
        && let Some(change) = figure.change(0.0, confidence)
    {
        figure.interval = Some((change.ratio.low, change.ratio.high));
        figure.p = Some(change.p);
    }
    figure
}

/// With many loads, one may differ by chance: the p of each load's judged metric is adjusted for their number
/// (Holm).
pub(super) fn over_loads<'a>(judged: impl Iterator<Item = &'a mut ComparedFigure>) {
    let mut judged: Vec<&mut ComparedFigure> = judged.filter(|figure| figure.p.is_some()).collect();
    let p: Vec<f64> = judged.iter().filter_map(|figure| figure.p).collect();
    for (figure, p) in judged.iter_mut().zip(holm::adjust(&p)) {
        figure.p = Some(p);
    }
}

/// With many metrics, some differ by chance: the p of the secondary ones is adjusted for their number.
fn adjust(figures: &mut [ComparedFigure]) {
    let Some((_, rest)) = figures.split_first_mut() else { return };
    let p: Vec<f64> = rest.iter().filter_map(|figure| figure.p).collect();
    let mut adjusted = holm::adjust(&p).into_iter();
    for figure in rest {
        figure.exploratory = true;
        if figure.p.is_some() {
            figure.p = adjusted.next();
        }
    }
}

/// The verdict on the judged metric, with an explanation. Its p allows for the number of loads.
pub(super) fn judge(
    figure: &ComparedFigure,
    noise: f64,
    confidence: f64,
    sides: (usize, usize),
) -> (ComparisonVerdict, String) {
    let (a, b) = sides;
    let name = &figure.name;
    if a.min(b) < FEWEST {
        return (ComparisonVerdict::NotTestable, too_few(a, b));
    }
    let Some(change) = figure.change(noise, confidence) else {
        return (
            ComparisonVerdict::NotTestable,
            format!("not testable: {name} is missing in a run, or not above 0"),
        );
    };
    let range = format!("{}: {}", share(confidence), ends(change.ratio.low, change.ratio.high, percent));
    let chance = chance(figure.p.unwrap_or(change.p));
    let ratio = percent(change.ratio.ratio);
    let verdict = ComparisonVerdict::from(change.verdict);
    let words = match verdict {
        ComparisonVerdict::NotTestable => too_few(a, b),
        ComparisonVerdict::NoChange => match figure.ruled_out(confidence).filter(|most| *most <= noise) {
            Some(_) => format!(
                "no change: a change of {} or more in {name} is ruled out ({range}; {chance})",
                share(noise)
            ),
            None => {
                format!(
                    "no change in {name} shown ({range}; {chance}){}",
                    describe_ruled_out(figure, noise, confidence)
                )
            }
        },
        ComparisonVerdict::Undetermined => format!(
            "undetermined: {name} of B differs by {ratio}, more than independent runs would by chance, but \
             not more than correlated successive runs would ({range}, with a lag-1 correlation of about \
             {:.1}): alternate the sides (kelvin ab)",
            change.phi.unwrap_or_default()
        ),
        ComparisonVerdict::WithinNoise => format!(
            "within noise: {name} of B differs by {ratio} ({range}; {chance}), which is less than the {} that matters",
            share(noise)
        ),
        ComparisonVerdict::Changed => {
            let higher = change.ratio.ratio > 1.0;
            let way = if higher { "higher" } else { "lower" };
            let good = match figure.better {
                Some(better) if (better == Better::Higher) == higher => ", for the better",
                Some(_) => ", for the worse",
                None => "",
            };
            let by = ratio.trim_start_matches(['+', '-']);
            let by =
                if figure.exact_ratio().is_some() { by.to_owned() } else { describe_bounds(&change, by) };
            format!("changed{good}: {name} of B is {by} {way} ({range}; {chance})")
        }
    };
    (verdict, words)
}

/// The size of the change, if percentiles fall among unanswered arrivals.
fn describe_bounds(change: &MeasuredChange, by: &str) -> String {
    match (change.ratio.low > 0.0, change.ratio.high.is_finite()) {
        (false, false) => "by an unknown amount".into(),
        _ => format!("{by} or more"),
    }
}

/// The conclusion from runs that show no change: which change is ruled out, and which would have been
/// detected.
fn describe_ruled_out(figure: &ComparedFigure, noise: f64, confidence: f64) -> String {
    let ruled_out = figure
        .ruled_out(confidence)
        .map_or_else(String::new, |most| format!("; a change of more than {} is ruled out", share(most)));
    let detectable = figure.detectable(noise, confidence).map_or_else(String::new, |least| {
        format!("; a change of {} would be detected with a probability of 90 %", share(least))
    });
    format!("{ruled_out}{detectable}")
}

fn too_few(a: usize, b: usize) -> String {
    let have = if a == 1 && b == 1 { "one run each".into() } else { format!("{a} and {b} runs") };
    format!(
        "not testable with {have}: they do not show how much identical runs differ; {} more runs of A and {} \
         more of B are needed, in alternating order",
        ADVISED.saturating_sub(a),
        ADVISED.saturating_sub(b)
    )
}

/// A probability with a suitable number of digits: "p = 0.0286".
pub(crate) fn chance(p: f64) -> String {
    if p < 0.0001 {
        "p < 0.0001".into()
    } else if p < 0.1 {
        format!("p = {p:.4}")
    } else {
        format!("p = {p:.2}")
    }
}
