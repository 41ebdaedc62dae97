//! Runs against each other: the ratio B/A, what differs beside the figures, and what may be concluded.
//!
//! One run on each side gives a ratio and no conclusion: how much runs of the same thing differ from each other
//! is then unknown, and the precision within a run does not tell it. From four runs a side the ratio gets its
//! 95 % interval (Welch's t on logarithms), and the verdict is one of three: higher, lower, no difference shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kelvin_stats::student::{self, Ratio};
use serde::Serialize;

use crate::figure::{NONE, ms, rate};
use crate::text::{broken, printable};
use crate::{Error, PointReport, Report, Result};

/// Runs a side below which no test is made: with three and three, no rank test can reach 5 %.
const FLOOR: usize = 4;

/// Runs a side that are advised.
const ADVISED: usize = 6;

/// A against B.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// Numbers of the runs of A.
    pub a: Vec<i64>,
    /// Numbers of the runs of B.
    pub b: Vec<i64>,
    /// Name of the headline figure.
    pub headline: String,
    /// One entry per number of users that both sides have.
    pub points: Vec<ComparedPoint>,
    /// What differs: name, A, B.
    pub differences: Vec<(String, String, String)>,
    /// Runs that must not be believed, with the reason.
    pub warnings: Vec<String>,
}

/// One number of users.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedPoint {
    /// Virtual users of A and of B.
    pub users: (u32, u32),
    /// The figures, the headline first.
    pub figures: Vec<ComparedFigure>,
    /// Half the 95 % interval within one run in per cent, of A and of B; only when each side has one run.
    pub within_run_percent: Option<(f64, f64)>,
    /// What may be said about the headline figure.
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: String,
}

/// One figure of both sides; a mean over the runs of a side.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedFigure {
    /// Such as "NOPM" or "New-Order p95".
    pub name: String,
    /// "per minute" or "us".
    pub unit: &'static str,
    /// Of A; geometric mean of its runs.
    pub a: Option<f64>,
    /// Of B.
    pub b: Option<f64>,
    /// B/A; none where one of them is not known.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio; none with fewer than four runs on a side.
    pub interval: Option<(f64, f64)>,
}

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Too few runs to say anything.
    NotTestable,
    /// B is higher.
    Higher,
    /// B is lower.
    Lower,
    /// The interval holds 1.
    NoDifferenceShown,
}

/// Sets the runs of `a` against those of `b`.
///
/// # Errors
/// Runs of different workloads, sides without a run, and sides without a common number of users cannot be
/// compared.
pub fn compare(a: &[&Report], b: &[&Report]) -> Result<Comparison> {
    let (a, b) = (&once(a)[..], &once(b)[..]);
    if let Some(both) = a.iter().find(|x| b.iter().any(|y| x.run == y.run)) {
        return Err(Error::Compare(format!("run {} is on both sides; name it on one", both.run)));
    }
    let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else {
        return Err(Error::Compare("each side needs a run".into()));
    };
    if let Some(other) = a.iter().chain(b).find(|r| r.workload != first_a.workload) {
        return Err(Error::Compare(format!(
            "run {} is of {} and run {} of {}",
            first_a.run, first_a.workload, other.run, other.workload
        )));
    }
    let mut points: Vec<ComparedPoint> =
        pairs(a, b).into_iter().map(|users| compare_point(a, b, users)).collect();
    points.retain(|p| p.figures.first().is_some_and(|f| f.ratio.is_some()));
    if points.is_empty() {
        return Err(Error::Compare("no number of users was measured on both sides".into()));
    }
    let number = |side: &[&Report]| side.iter().map(|r| r.run).collect();
    Ok(Comparison {
        a: number(a),
        b: number(b),
        headline: first_a.headline.clone(),
        points,
        differences: differences(first_a, first_b),
        warnings: a.iter().chain(b).flat_map(|r| warnings(r)).collect(),
    })
}

/// Each run once: a run named twice is no second observation.
fn once<'a>(side: &[&'a Report]) -> Vec<&'a Report> {
    let mut seen = BTreeSet::new();
    side.iter().copied().filter(|r| seen.insert(r.run)).collect()
}

/// Users that both sides measured; where each side has one point only, these two whatever their users.
fn pairs(a: &[&Report], b: &[&Report]) -> Vec<(u32, u32)> {
    let users = |side: &[&Report]| -> BTreeSet<u32> {
        side.iter().flat_map(|r| r.points.iter().map(|p| p.users)).collect()
    };
    let (users_a, users_b) = (users(a), users(b));
    if let (1, 1, Some(x), Some(y)) = (users_a.len(), users_b.len(), users_a.first(), users_b.first()) {
        return vec![(*x, *y)];
    }
    users_a.intersection(&users_b).map(|u| (*u, *u)).collect()
}

fn compare_point(a: &[&Report], b: &[&Report], users: (u32, u32)) -> ComparedPoint {
    let of = |side: &[&Report], users: u32| -> Vec<Vec<PointReport>> {
        let points = |r: &&Report| r.points.iter().filter(|p| p.users == users).cloned().collect();
        side.iter().map(points).filter(|points: &Vec<_>| !points.is_empty()).collect()
    };
    let (left, right) = (of(a, users.0), of(b, users.1));
    let headline = a.first().map_or("", |r| r.headline.as_str());
    let mut figures = vec![
        figure(headline, "per minute", &left, &right, |p| p.headline_per_minute),
        figure("TPM", "per minute", &left, &right, |p| p.transactions_per_minute),
    ];
    let first = left.first().and_then(|points| points.first());
    let kinds: &[crate::LatencyRow] = first.map_or(&[], |p| &p.latency);
    for (kind, row) in kinds.iter().enumerate() {
        let name = &row.kind;
        for (percentile, pick) in PICKS {
            let value = move |p: &PointReport| p.latency.get(kind).and_then(pick);
            figures.push(figure(&format!("{name} {percentile}"), "us", &left, &right, value));
        }
    }
    let (verdict, words) = judge(headline, &figures[0], left.len(), right.len());
    let within = match (&left[..], &right[..]) {
        ([x], [y]) if x.len() == 1 && y.len() == 1 => {
            let (x, y) = (&x[0], &y[0]);
            x.within_run.zip(y.within_run).map(|(x, y)| (x.half_width_percent, y.half_width_percent))
        }
        _ => None,
    };
    ComparedPoint { users, figures, within_run_percent: within, verdict, words }
}

type Pick = fn(&crate::LatencyRow) -> Option<f64>;
const PICKS: [(&str, Pick); 4] =
    [("mean", |r| r.mean_us), ("p50", |r| r.p50_us), ("p95", |r| r.p95_us), ("p99", |r| r.p99_us)];

fn figure(
    name: &str,
    unit: &'static str,
    a: &[Vec<PointReport>],
    b: &[Vec<PointReport>],
    value: impl Fn(&PointReport) -> Option<f64>,
) -> ComparedFigure {
    // A side counts only when every run of it has the figure.
    // Points of one run with the same users are one observation, their mean: they share what differs between
    // runs.
    let of_run = |points: &Vec<PointReport>| {
        let values = points.iter().map(&value).collect::<Option<Vec<f64>>>()?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    };
    let all = |side: &[Vec<PointReport>]| side.iter().map(of_run).collect::<Option<Vec<f64>>>();
    let (a, b) = (all(a).unwrap_or_default(), all(b).unwrap_or_default());
    let mean = |values: &[f64]| {
        (!values.is_empty() && values.iter().all(|v| *v > 0.0))
            .then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
    };
    let (x, y) = (mean(&a), mean(&b));
    let interval = (a.len() >= FLOOR && b.len() >= FLOOR)
        .then(|| student::welch_ratio(&a, &b, 0.95))
        .flatten()
        .map(|Ratio { low, high, .. }| (low, high));
    ComparedFigure { name: name.into(), unit, a: x, b: y, ratio: x.zip(y).map(|(x, y)| y / x), interval }
}

fn judge(headline: &str, figure: &ComparedFigure, a: usize, b: usize) -> (Verdict, String) {
    let fewest = a.min(b);
    if fewest < FLOOR {
        let have = if a == 1 && b == 1 { "one run each".into() } else { format!("{a} and {b} runs") };
        let words = format!(
            "not testable with {have}: how much two runs of the same thing differ is not known from that; \
             {} more runs of A and {} more of B, in alternating order, would tell",
            ADVISED.saturating_sub(a),
            ADVISED.saturating_sub(b)
        );
        return (Verdict::NotTestable, words);
    }
    let Some((low, high)) = figure.interval else {
        return (
            Verdict::NotTestable,
            "not testable: the runs do not vary at all or a figure is missing".into(),
        );
    };
    let range = format!("{:+.1} % to {:+.1} %", 100.0 * (low - 1.0), 100.0 * (high - 1.0));
    if low > 1.0 {
        (Verdict::Higher, format!("B has the higher {headline}: {range} (95 %)"))
    } else if high < 1.0 {
        (Verdict::Lower, format!("B has the lower {headline}: {range} (95 %)"))
    } else {
        (Verdict::NoDifferenceShown, format!("no difference in {headline} shown: {range} (95 %)"))
    }
}

fn warnings(report: &Report) -> Vec<String> {
    let mut found = Vec::new();
    if report.status != kelvin_measure::event::Status::Complete {
        found.push(format!("run {} is {}", report.run, report.state));
    }
    if report.valid == Some(false) {
        found.push(format!(
            "run {} is not a valid {} run: {}",
            report.run,
            report.workload_name(),
            report.violations.join("; ")
        ));
    }
    let errors: u64 = report.points.iter().flat_map(|p| &p.errors).map(|e| e.count).sum();
    if errors > 0 {
        found.push(format!("run {} had {errors} errors", report.run));
    }
    found
}

fn differences(a: &Report, b: &Report) -> Vec<(String, String, String)> {
    let facts = |r: &Report| {
        let mut facts = BTreeMap::new();
        crate::model::flatten("", &r.environment, &mut facts);
        facts.insert("target".into(), r.target.clone());
        facts.insert("seed".into(), r.seed.clone());
        facts.insert("kelvin version".into(), r.kelvin_version.clone());
        facts.insert("random algorithm".into(), r.random_algorithm.clone());
        facts.insert("notes".into(), r.notes.join("; "));
        let mut section = String::new();
        for line in r.spec_toml.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
            if line.starts_with('[') {
                section = line.trim_matches(['[', ']']).to_owned() + ".";
            } else if let Some((key, value)) = line.split_once('=') {
                facts.insert(format!("spec {section}{}", key.trim()), value.trim().to_owned());
            }
        }
        facts
    };
    let (a, b) = (facts(a), facts(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let value =
        |side: &BTreeMap<String, String>, name| side.get(name).cloned().unwrap_or_else(|| NONE.into());
    names
        .into_iter()
        .map(|name| (name.clone(), value(&a, name), value(&b, name)))
        .filter(|(_, x, y)| x != y)
        .collect()
}

/// The comparison for a terminal, 80 columns wide.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    let list = |runs: &[i64]| runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let _ = writeln!(out, "A: run {}\nB: run {}", list(&comparison.a), list(&comparison.b));
    for warning in &comparison.warnings {
        for line in broken("warning: ", warning) {
            let _ = writeln!(out, "{line}");
        }
    }
    for point in &comparison.points {
        let users = match point.users {
            (a, b) if a == b => format!("{a} users"),
            (a, b) => format!("{a} users in A, {b} in B"),
        };
        let _ = writeln!(out, "\n{users:<26}{:>14}{:>14}{:>10}   95 % interval", "A", "B", "B/A");
        for f in &point.figures {
            let shown = |v: Option<f64>| if f.unit == "us" { ms(v) } else { rate(v) };
            let unit = if f.unit == "us" { " ms" } else { "" };
            let ratio = f.ratio.map_or_else(|| NONE.into(), |r| format!("{r:.3}"));
            let interval = f.interval.map_or_else(String::new, |(l, h)| format!("{l:.3} to {h:.3}"));
            let name = format!("{}{unit}", f.name);
            let line = format!("{name:<26}{:>14}{:>14}{ratio:>10}   {interval}", shown(f.a), shown(f.b));
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if let Some((a, b)) = point.within_run_percent {
            let _ = writeln!(
                out,
                "precision within each run only (95 %): A ± {a:.1} %, B ± {b:.1} %; no statement\nabout A against B"
            );
        }
        for line in broken("verdict: ", &point.words) {
            let _ = writeln!(out, "{line}");
        }
    }
    let _ = writeln!(out);
    if comparison.differences.is_empty() {
        let _ = writeln!(out, "nothing recorded differs between the first runs of A and B");
    } else {
        let _ = writeln!(out, "what differs between the first runs of A and B");
        for (name, a, b) in &comparison.differences {
            let _ =
                writeln!(out, "  {}\n      A: {}\n      B: {}", printable(name), printable(a), printable(b));
        }
    }
    out
}
