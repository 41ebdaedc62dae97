//! The figures of one load on both sides, and what may be concluded from them.

use std::collections::{BTreeMap, BTreeSet};

use kelvin_diagnose::{Better, KeyFigure};
use kelvin_measure::event::Per;
use kelvin_stats::compare::{Change, FEWEST, Sides, compare};
use kelvin_stats::holm;
use serde::Serialize;

use super::{Verdict, share};
use crate::{LatencyRow, PointReport, Report};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// Runs a side that are advised.
pub(crate) const ADVISED: usize = 6;

/// Key figures that the table has beside throughput and times, where they are known.
pub(super) const RESOURCES: [&str; 6] =
    ["bandwidth", "client-cpu", "server-cpu", "cpu", "server-instructions", "wal"];

/// One figure of both sides.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedFigure {
    /// By which it is asked for, such as "nopm" or "p99"; of a transaction type its name before it.
    pub id: String,
    /// Such as "NOPM" or "New-Order p95".
    pub name: String,
    /// "per minute", "per second", "us", "ms", "bytes" …
    pub unit: String,
    /// Which way it is better, where that is known.
    pub better: Option<Better>,
    /// Of A, geometric mean of its runs.
    pub a: Option<f64>,
    /// Of B.
    pub b: Option<f64>,
    /// B/A; none where one of them is not known.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio; none with fewer than four runs on a side.
    pub interval: Option<(f64, f64)>,
    /// How likely a difference as large is by chance; of a secondary figure adjusted by Holm for how many there are.
    /// None with fewer than four runs on a side.
    pub p: Option<f64>,
    /// Whether it is one of many that were looked at beside the one that is judged: what it shows is a hint.
    pub exploratory: bool,
    /// The values of the runs of A, in the order of the runs that have this load.
    pub a_values: Vec<f64>,
    /// Of B.
    pub b_values: Vec<f64>,
    /// Whether the values of A and B at one place are of one block.
    pub paired: bool,
}

impl ComparedFigure {
    /// What the statistics say of it; none with a single run on a side, or where a run lacks the figure.
    pub fn change(&self, noise: f64, confidence: f64) -> Option<Change> {
        let (a, b) = (&self.a_values[..], &self.b_values[..]);
        let sides = if self.paired { Sides::Paired { a, b } } else { Sides::Independent { a, b } };
        compare(sides, noise, confidence)
    }

    /// Runs of the side that has fewer.
    pub fn fewest(&self) -> usize {
        self.a_values.len().min(self.b_values.len())
    }
}

/// The points of both sides that are set against each other, A's and B's of one block at the same place when paired.
pub(super) struct Matched<'a> {
    pub(super) a: Vec<Point<'a>>,
    pub(super) b: Vec<Point<'a>>,
    pub(super) paired: bool,
    /// What was left out for it.
    pub(super) told: Option<String>,
}

/// A point with its run's key figures and block.
#[derive(Clone, Copy)]
pub(super) struct Point<'a> {
    pub(super) run: i64,
    pub(super) figures: &'a PointReport,
    pub(super) key: &'a [KeyFigure],
    pub(super) block: Option<(i64, u32)>,
}

/// Sets points of one block against each other where both sides come from one group that has blocks: what changed from
/// one block to the next then cancels out.
pub(super) fn matched<'a>(a: Vec<Point<'a>>, b: Vec<Point<'a>>) -> Matched<'a> {
    let blocks = |side: &[Point<'a>]| -> Option<BTreeMap<(i64, u32), Point<'a>>> {
        let all: BTreeMap<_, _> = side.iter().filter_map(|p| Some((p.block?, *p))).collect();
        // A block that has several runs of a side pairs none of them with one of the other.
        (all.len() == side.len()).then_some(all)
    };
    let independent = |a, b| Matched { a, b, paired: false, told: None };
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
    let told = match alone.as_slice() {
        [] => None,
        [one] => Some(format!("run {one} is left out: its block has no run of the other side")),
        several => Some(format!(
            "runs {} are left out: their blocks have no run of the other side",
            super::own::list(several)
        )),
    };
    let pick = |side: &BTreeMap<_, Point<'a>>| common.iter().filter_map(|b| side.get(b).copied()).collect();
    Matched { a: pick(&of_a), b: pick(&of_b), paired: true, told }
}

/// The figure that is judged where the throughput was asked for.
pub(super) const RESPONSE: &str = "response p99";

type Rows = fn(&PointReport) -> &Vec<LatencyRow>;
type Pick = fn(&LatencyRow) -> Option<f64>;
const PICKS: [(&str, Pick); 4] =
    [("mean", |r| r.mean_us), ("p50", |r| r.p50_us), ("p95", |r| r.p95_us), ("p99", |r| r.p99_us)];

/// The figures of the table, the judged one first, and every key figure.
pub(super) fn figures(
    report: &Report,
    open_loop: bool,
    points: &Matched<'_>,
) -> (Vec<ComparedFigure>, Vec<ComparedFigure>) {
    let per = report.headline_per;
    let unit = match per {
        Per::Minute => "per minute",
        Per::Second => "per second",
    };
    let (higher, lower) = (Some(Better::Higher), Some(Better::Lower));
    let mut figures = Vec::new();
    let mut add = |name: &str, unit: &str, better, value: &dyn Fn(&PointReport) -> Option<f64>| {
        figures.push(figure(&name.to_lowercase(), name, unit, better, points, |p| value(p.figures)));
    };
    // A completion of a microsecond would be 0.001 ms.
    let time = if report.is_io() { "µs" } else { "us" };
    if open_loop {
        add(RESPONSE, time, lower, &|p| p.response_all.as_ref()?.p99_us);
    }
    add(&report.headline, unit, higher, &|p| p.headline(per));
    if report.has_total() {
        add(report.total_name(), unit, higher, &|p| p.transactions(per));
    }
    let first = points.a.first().map(|p| p.figures);
    let kinds: &[LatencyRow] = first.map_or(&[], |p| if open_loop { &p.response } else { &p.latency });
    for row in kinds {
        for (percentile, pick) in PICKS {
            let (name, rows): (_, Rows) = if open_loop {
                (format!("{} response {percentile}", row.kind), |p| &p.response)
            } else {
                (format!("{} {percentile}", row.kind), |p| &p.latency)
            };
            // By name: a phase of I/O jobs has the rows of its own directions and devices.
            add(&name, time, lower, &move |p| pick(rows(p).iter().find(|r| r.kind == row.kind)?));
        }
    }
    let mut key: Vec<ComparedFigure> = Vec::new();
    for known in points.a.first().map_or(&[][..], |p| p.key) {
        let value = |p: &Point<'_>| p.key.iter().find(|k| k.id == known.id)?.value;
        key.push(figure(&known.id, &known.name, &known.unit, known.better, points, value));
    }
    let resources = key.iter().filter(|f| RESOURCES.contains(&f.id.as_str()) && f.ratio.is_some());
    figures.extend(resources.cloned());
    adjust(&mut figures);
    (figures, key)
}

fn figure(
    id: &str,
    name: &str,
    unit: &str,
    better: Option<Better>,
    points: &Matched<'_>,
    value: impl Fn(&Point<'_>) -> Option<f64>,
) -> ComparedFigure {
    // A side counts only when every run of it has the figure.
    let all = |side: &[Point<'_>]| side.iter().map(&value).collect::<Option<Vec<f64>>>().unwrap_or_default();
    let (a_values, b_values) = (all(&points.a), all(&points.b));
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
        a_values,
        b_values,
    };
    if figure.fewest() >= FEWEST
        && let Some(change) = figure.change(0.0, CONFIDENCE)
    {
        figure.interval = Some((change.ratio.low, change.ratio.high));
        figure.p = Some(change.p);
    }
    figure
}

/// Of many figures some differ by chance: those beside the judged one get the p that allows for how many there are.
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

/// What may be said of the judged figure, in a word and in words.
pub(super) fn judge(figure: &ComparedFigure, noise: f64, sides: (usize, usize)) -> (Verdict, String) {
    let (a, b) = sides;
    let name = &figure.name;
    if a.min(b) < FEWEST {
        return (Verdict::NotTestable, too_few(a, b));
    }
    let Some(change) = figure.change(noise, CONFIDENCE) else {
        return (Verdict::NotTestable, format!("not testable: {name} is missing in a run, or not above 0"));
    };
    let range = format!("95 %: {} to {}", percent(change.ratio.low), percent(change.ratio.high));
    let chance = chance(change.p);
    let verdict = Verdict::from(change.verdict);
    let words = match verdict {
        Verdict::NotTestable => too_few(a, b),
        Verdict::NoChange => format!("no change in {name} shown ({range}; {chance})"),
        Verdict::WithinNoise => format!(
            "within noise: {name} of B differs by {} ({range}; {chance}), which is less than the {} that matters",
            percent(change.ratio.ratio),
            share(noise)
        ),
        Verdict::Changed => {
            let higher = change.ratio.ratio > 1.0;
            let way = if higher { "higher" } else { "lower" };
            let good = match figure.better {
                Some(better) if (better == Better::Higher) == higher => ", for the better",
                Some(_) => ", for the worse",
                None => "",
            };
            let by = percent(change.ratio.ratio);
            let by = by.trim_start_matches(['+', '-']);
            format!("changed{good}: {name} of B is {by} {way} ({range}; {chance})")
        }
    };
    (verdict, words)
}

fn too_few(a: usize, b: usize) -> String {
    let have = if a == 1 && b == 1 { "one run each".into() } else { format!("{a} and {b} runs") };
    format!(
        "not testable with {have}: how much two runs of the same thing differ is not known from that; {} more runs \
         of A and {} more of B, in alternating order, would tell",
        ADVISED.saturating_sub(a),
        ADVISED.saturating_sub(b)
    )
}

/// A ratio as a change: "-3.2 %".
pub(crate) fn percent(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    if change.abs() < 0.95 { format!("{change:+.2} %") } else { format!("{change:+.1} %") }
}

/// A probability with as many digits as it deserves: "p = 0.0286".
pub(crate) fn chance(p: f64) -> String {
    if p < 0.0001 {
        "p < 0.0001".into()
    } else if p < 0.1 {
        format!("p = {p:.4}")
    } else {
        format!("p = {p:.2}")
    }
}
