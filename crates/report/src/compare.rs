//! Runs against each other: the ratio B/A, what differs beside the figures, and what may be concluded.
//!
//! One run on each side gives a ratio and no conclusion: how much runs of the same thing differ from each other
//! is then unknown, and the precision within a run does not tell it. From four runs a side the ratio gets its
//! 95 % interval (Welch's t on logarithms), and the verdict is one of three: higher, lower, no difference shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use kelvin_measure::event::Per;
use kelvin_stats::student::{self, Ratio};
use serde::Serialize;

use crate::figure::{NONE, ms, rate};
use crate::text::{broken, of_finding, printable};
use crate::{Error, Finding, LatencyRow, PointReport, Report, Result, Severity};

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
    /// One entry per number of users and rate that both sides have.
    pub points: Vec<ComparedPoint>,
    /// What differs: name, A, B.
    pub differences: Vec<(String, String, String)>,
    /// What of these differences keeps the first runs of A and B from being compared as if they differed in nothing but
    /// the factor under study, the most severe first; empty where one of them was not observed.
    pub findings: Vec<Finding>,
    /// Runs that must not be believed, with the reason.
    pub warnings: Vec<String>,
}

/// One number of users.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedPoint {
    /// Virtual users of A and of B.
    pub users: (u32, u32),
    /// Transactions per second that an open loop asked for, of A and of B.
    pub asked_per_second: (Option<f64>, Option<f64>),
    /// Which of the points of a run with these users and this rate it is, from 1; none where there is only one.
    pub occurrence: Option<u32>,
    /// The figures; the first is the one that is judged: the headline, or, where both sides are open loops whose
    /// throughput was asked for, p99 of the response time.
    pub figures: Vec<ComparedFigure>,
    /// Half the 95 % interval within one run in per cent, of A and of B; only when each side has one run.
    pub within_run_percent: Option<(f64, f64)>,
    /// What may be said about the first figure.
    pub verdict: Verdict,
    /// The verdict in words.
    pub words: String,
}

/// One figure of both sides; a mean over the runs of a side.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedFigure {
    /// Such as "NOPM" or "New-Order p95".
    pub name: String,
    /// "per minute", "per second" or "us".
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
/// Runs of different workloads, open loops with closed ones, sides without a run, and sides without a common
/// number of users or rate cannot be compared.
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
    if let Some(other) = a.iter().chain(b).find(|r| r.open_loop != first_a.open_loop) {
        return Err(Error::Compare(format!(
            "one of the runs {} and {} is an open loop and the other a closed one: the throughput of the one was \
             asked for, that of the other found out",
            first_a.run, other.run
        )));
    }
    let pairs = pairs(a, b);
    let mut points: Vec<ComparedPoint> =
        pairs.of.iter().map(|pair| compare_point(a, b, &pairs, *pair)).collect();
    let common = !points.is_empty();
    points.retain(|p| p.figures.iter().any(|f| f.name == first_a.headline && f.ratio.is_some()));
    if points.is_empty() && common {
        let name = &first_a.headline;
        return Err(Error::Compare(format!("{name} has no ratio: on one side no transaction committed")));
    }
    if points.is_empty() {
        let what = if first_a.open_loop { "rate" } else { "number of users" };
        return Err(Error::Compare(format!("no {what} was measured on both sides")));
    }
    let number = |side: &[&Report]| side.iter().map(|r| r.run).collect();
    Ok(Comparison {
        a: number(a),
        b: number(b),
        headline: first_a.headline.clone(),
        points,
        differences: differences(first_a, first_b),
        findings: match (first_a.evidence.as_deref(), first_b.evidence.as_deref()) {
            (Some(a), Some(b)) => kelvin_diagnose::compared(a, b),
            _ => Vec::new(),
        },
        warnings: a.iter().chain(b).flat_map(|r| warnings(r)).collect(),
    })
}

/// Each run once: a run named twice is no second observation.
fn once<'a>(side: &[&'a Report]) -> Vec<&'a Report> {
    let mut seen = BTreeSet::new();
    side.iter().copied().filter(|r| seen.insert(r.run)).collect()
}

/// What a point was put under: users, the rate asked for in thousandths of a transaction per second so that it can
/// be a key, and which of the run's points with both it is. The two legs of a mirrored ramp ask for the same and
/// may get something else: the second time the system remembers what it went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Load {
    /// None where the rate alone is the load, however many users it took.
    users: Option<u32>,
    rate: Option<u64>,
    /// From 1.
    nth: u32,
}

/// The loads of a run's points, in their order.
fn loads(report: &Report, by_users: bool) -> Vec<Load> {
    let mut seen: BTreeMap<(Option<u32>, Option<u64>), u32> = BTreeMap::new();
    let load = |p: &PointReport| {
        let rate = p.asked_per_second().map(|asked| (asked * 1e3).round() as u64);
        let users = (by_users || rate.is_none()).then_some(p.users);
        let nth = seen.entry((users, rate)).or_default();
        *nth += 1;
        Load { users, rate, nth: *nth }
    };
    report.points.iter().map(load).collect()
}

/// Which points are set against each other.
struct Pairs {
    by_users: bool,
    of: Vec<(Load, Load)>,
}

/// Loads that both sides measured; rates without regard to the users when they agree in nothing else; where each
/// side has one only, these two whatever they are.
fn pairs(a: &[&Report], b: &[&Report]) -> Pairs {
    let all = |side: &[&Report], by_users| -> BTreeSet<Load> {
        side.iter().flat_map(|r| loads(r, by_users)).collect()
    };
    let (loads_a, loads_b) = (all(a, true), all(b, true));
    if let (1, 1, Some(x), Some(y)) = (loads_a.len(), loads_b.len(), loads_a.first(), loads_b.first()) {
        return Pairs { by_users: true, of: vec![(*x, *y)] };
    }
    let common = |by_users| -> Vec<_> {
        all(a, by_users).intersection(&all(b, by_users)).map(|load| (*load, *load)).collect()
    };
    match common(true) {
        none if none.is_empty() => Pairs { by_users: false, of: common(false) },
        of => Pairs { by_users: true, of },
    }
}

fn compare_point(a: &[&Report], b: &[&Report], pairs: &Pairs, pair: (Load, Load)) -> ComparedPoint {
    let of = |side: &[&Report], wanted: Load| -> Vec<PointReport> {
        let point = |r: &&Report| {
            let place = loads(r, pairs.by_users).iter().position(|load| *load == wanted)?;
            r.points.get(place).cloned()
        };
        side.iter().filter_map(point).collect()
    };
    let (left, right) = (of(a, pair.0), of(b, pair.1));
    let again = |load: Load| load.nth > 1 && (load.users, load.rate) == (pair.0.users, pair.0.rate);
    let repeated = a.iter().chain(b).flat_map(|r| loads(r, pairs.by_users)).any(again);
    let headline = a.first().map_or("", |r| r.headline.as_str());
    let per = a.first().map_or_else(Default::default, |r| r.headline_per);
    let unit = match per {
        Per::Minute => "per minute",
        Per::Second => "per second",
    };
    let open_loop = a.first().is_some_and(|r| r.open_loop);
    let mut figures = Vec::new();
    if open_loop {
        figures.push(figure(RESPONSE, "us", &left, &right, |p| p.response_all.as_ref()?.p99_us));
    }
    figures.push(figure(headline, unit, &left, &right, |p| p.headline(per)));
    if let Some(report) = a.first().filter(|r| r.has_total()) {
        figures.push(figure(report.total_name(), unit, &left, &right, |p| p.transactions(per)));
    }
    let kinds: &[LatencyRow] = left.first().map_or(&[], |p| if open_loop { &p.response } else { &p.latency });
    for (kind, row) in kinds.iter().enumerate() {
        for (percentile, pick) in PICKS {
            let (name, rows): (_, Rows) = if open_loop {
                (format!("{} response {percentile}", row.kind), |p| &p.response)
            } else {
                (format!("{} {percentile}", row.kind), |p| &p.latency)
            };
            figures.push(figure(&name, "us", &left, &right, move |p| rows(p).get(kind).and_then(pick)));
        }
    }
    let judged = if open_loop { RESPONSE } else { headline };
    let (verdict, words) = judge(judged, &figures[0], left.len(), right.len());
    let within = match (&left[..], &right[..]) {
        ([x], [y]) => {
            x.within_run.zip(y.within_run).map(|(x, y)| (x.half_width_percent, y.half_width_percent))
        }
        _ => None,
    };
    let of_first = |side: &[PointReport]| side.first().map_or((0, None), |p| (p.users, p.asked_per_second()));
    let ((users_a, asked_a), (users_b, asked_b)) = (of_first(&left), of_first(&right));
    ComparedPoint {
        users: (users_a, users_b),
        asked_per_second: (asked_a, asked_b),
        occurrence: repeated.then_some(pair.0.nth),
        figures,
        within_run_percent: within.filter(|_| !open_loop),
        verdict,
        words,
    }
}

/// The figure that is judged where the throughput was asked for.
const RESPONSE: &str = "response p99";

type Rows = fn(&PointReport) -> &Vec<LatencyRow>;
type Pick = fn(&LatencyRow) -> Option<f64>;
const PICKS: [(&str, Pick); 4] =
    [("mean", |r| r.mean_us), ("p50", |r| r.p50_us), ("p95", |r| r.p95_us), ("p99", |r| r.p99_us)];

fn figure(
    name: &str,
    unit: &'static str,
    a: &[PointReport],
    b: &[PointReport],
    value: impl Fn(&PointReport) -> Option<f64>,
) -> ComparedFigure {
    // A side counts only when every run of it has the figure.
    let all = |side: &[PointReport]| side.iter().map(&value).collect::<Option<Vec<f64>>>();
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
    for point in report.points.iter().filter(|p| p.schedule.as_ref().is_some_and(|s| s.overloaded)) {
        if let Some(shortfall) = point.schedule.as_ref().and_then(|s| s.shortfall.as_ref()) {
            found.push(format!("run {}, {}: {shortfall}", report.run, point.name()));
        }
    }
    let errors: u64 = report.points.iter().flat_map(|p| &p.errors).map(|e| e.count).sum();
    if errors > 0 {
        found.push(format!("run {} had {errors} error{}", report.run, if errors == 1 { "" } else { "s" }));
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

/// "1st", "2nd", "3rd", "11th".
fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
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
        let load = match (point.asked_per_second, point.users) {
            ((Some(a), Some(b)), _) if a == b => format!("{}/s asked", rate(Some(a))),
            ((Some(a), Some(b)), _) => format!("{}/s in A, {}/s in B", rate(Some(a)), rate(Some(b))),
            (_, (a, b)) if a == b => format!("{a} users"),
            (_, (a, b)) => format!("{a} users in A, {b} in B"),
        };
        let load = point.occurrence.map_or(load.clone(), |n| format!("{load}, {}", ordinal(n)));
        let _ = writeln!(out, "\n{load:<29}{:>13}{:>13}{:>9}  95 % interval", "A", "B", "B/A");
        for f in &point.figures {
            let shown = |v: Option<f64>| if f.unit == "us" { ms(v) } else { rate(v) };
            let unit = if f.unit == "us" { " ms" } else { "" };
            let ratio = f.ratio.map_or_else(|| NONE.into(), |r| format!("{r:.3}"));
            let interval = f.interval.map_or_else(String::new, |(l, h)| format!("{l:.3} to {h:.3}"));
            let name = format!("{}{unit}", f.name);
            let line = format!("{name:<29}{:>13}{:>13}{ratio:>9}  {interval}", shown(f.a), shown(f.b));
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
    for finding in comparison.findings.iter().filter(|f| f.severity != Severity::Note) {
        for line in of_finding(finding, "", usize::MAX) {
            let _ = writeln!(out, "{line}");
        }
    }
    if !comparison.findings.is_empty() {
        let _ = writeln!(out);
    }
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

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_are_english() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 22, 111].map(ordinal);
        assert_eq!(all, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "111th"]);
    }
}
