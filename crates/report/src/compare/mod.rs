//! Comparison of runs: the ratio B/A, the differences other than the results, and the conclusions.
//!
//! One run per side gives a ratio but no conclusion: the variation between runs of the same specification is
//! unknown, and the precision within a run does not show it. From four runs per side the ratio has a 95 %
//! interval and a p, from a t test of logarithms: of pairs if both sides are in the blocks of one group,
//! otherwise Welch's. If the sides were each measured consecutively, the interval allows for dependence
//! between successive runs. The conclusion is a [`ComparisonVerdict`]. One metric is judged; the others are
//! exploratory, and their p is adjusted for their number (Holm). With several loads, all intervals hold
//! jointly at 95 % (Bonferroni), and the judged metrics' p are adjusted (Holm).

mod caveats;
mod dependence;
mod differences;
mod figures;
mod html;
mod loads;
mod side;
mod table;
mod tenants;
mod text;

use kelvin_diagnose::Evidence;
use kelvin_measure::labels::WorkloadLabels;
use kelvin_stats::compare::ChangeVerdict as Answer;
use serde::Serialize;

pub(crate) use caveats::join_runs;
pub(crate) use differences::{FactMap, differences as between, facts};
pub(crate) use figures::{ADVISED, chance};
pub(crate) use kelvin_measure::text::{change as percent, plain_percent as share};

use crate::{Error, Finding, PointReport, Result, RunReport};
pub use caveats::SideFinding;
pub use dependence::Dependence;
pub use differences::Difference;
pub use figures::ComparedFigure;
use figures::{Matched, Point};
pub use html::{page, render as html};
use loads::{Load, Pairs, loads};
pub use side::{Run, Side};
pub use table::table;
pub use tenants::UncomparedTenant;
pub use text::{render, text};

/// The default for the smallest relative change that matters.
pub const NOISE: f64 = 0.01;

/// A against B.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The name of A.
    pub name_a: String,
    /// The name of B.
    pub name_b: String,
    /// Numbers of the runs of A.
    pub a: Vec<i64>,
    /// Numbers of the runs of B.
    pub b: Vec<i64>,
    /// Name of the headline metric.
    pub headline: String,
    /// The smallest relative change that matters.
    pub noise: f64,
    /// The confidence of each load's intervals. With several loads, all hold jointly at 95 %.
    pub confidence: f64,
    /// One entry per number of users and rate that both sides have; for scenarios, one per tenant.
    pub points: Vec<ComparedPoint>,
    /// Tenants of scenarios that are not compared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub uncompared: Vec<UncomparedTenant>,
    /// Differences between the sides, over all their runs, the most important first.
    pub differences: Vec<Difference>,
    /// Findings from these differences, and from the tables and indexes, that contradict the assumption that
    /// A and B differ only in the factor under study; the most severe first. Empty if a side was not
    /// observed.
    pub findings: Vec<Finding>,
    /// The red findings of each side's own runs.
    pub own: Vec<SideFinding>,
    /// Runs that are not reliable, and those that were left out, with the reason.
    pub warnings: Vec<String>,
}

/// The comparison at one load.
#[derive(Debug, Clone, Serialize)]
pub struct ComparedPoint {
    /// The tenant of a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Virtual users of A and of B.
    pub users: (u32, u32),
    /// The phase of the I/O jobs, from 1; `None` if the runs have only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// Names of users and transactions.
    #[serde(skip)]
    pub(crate) called: &'static WorkloadLabels,
    /// Requested transactions per second of an open loop, of A and of B.
    pub asked_per_second: (Option<f64>, Option<f64>),
    /// The number of the point among those of a run with these users and this rate, from 1; `None` if there
    /// is only one.
    pub occurrence: Option<u32>,
    /// Numbers of compared runs of A and of B with this load.
    pub runs: (usize, usize),
    /// Whether runs of the same block are paired.
    pub paired: bool,
    /// Whether the runs of each side were made consecutively, so that the intervals allow for their
    /// dependence. They are narrower if the sides are measured alternately.
    pub consecutive: bool,
    /// Whether the judged metric depends on the preceding run, and the effective number of runs. `None` if
    /// the sides were measured alternately, or with fewer than four runs per side.
    pub dependence: Option<Dependence>,
    /// The smallest relative change of the judged metric that is ruled out in both directions; `None` with
    /// fewer than four runs per side.
    pub ruled_out: Option<f64>,
    /// The smallest relative change of the judged metric that such a comparison detects with a probability of 90 %.
    pub detectable: Option<f64>,
    /// The metrics. The first one is judged: the headline, or, if both sides are open loops with a fixed
    /// throughput, p99 of the response time. The others are exploratory.
    pub figures: Vec<ComparedFigure>,
    /// Every key metric, by its id; p is not adjusted.
    pub key: Vec<ComparedFigure>,
    /// Half the 95 % interval within one run, in per cent, of A and of B; only if each side has one run.
    pub within_run_percent: Option<(f64, f64)>,
    /// The verdict on the first metric.
    pub verdict: ComparisonVerdict,
    /// The verdict as text.
    pub words: String,
}

/// The possible verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonVerdict {
    /// Too few runs for a conclusion.
    NotTestable,
    /// The interval contains 1.
    NoChange,
    /// The interval contains 1, but would not if successive runs were independent.
    Undetermined,
    /// There is a change, but below the smallest one that matters.
    WithinNoise,
    /// There is a change that matters.
    Changed,
}

impl From<Answer> for ComparisonVerdict {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::NotTestable => Self::NotTestable,
            Answer::NoChange => Self::NoChange,
            Answer::Undetermined => Self::Undetermined,
            Answer::WithinNoise => Self::WithinNoise,
            Answer::Changed => Self::Changed,
        }
    }
}

/// Compares the runs of `a` with those of `b` by their reports only: without blocks and key metrics, and with
/// the default noise.
///
/// # Errors
/// As [`compare_sides`].
pub fn compare(a: &[&RunReport], b: &[&RunReport]) -> Result<Comparison> {
    let run = |report: &&RunReport| Run {
        report: (*report).clone(),
        key: std::collections::BTreeMap::new(),
        block: None,
        origin: None,
    };
    let (a, b): (Vec<Run>, Vec<Run>) = (a.iter().map(run).collect(), b.iter().map(run).collect());
    compare_sides(&Side::new("", &a, Vec::new()), &Side::new("", &b, Vec::new()), NOISE)
}

/// Compares side `a` with side `b`. `noise` is the smallest relative change that matters (0.01 = 1 %).
///
/// # Errors
/// Fails for runs of different workloads, for open loops against closed ones, if a side has no run, and if
/// the sides have no number of users or rate in common.
pub fn compare_sides(a: &Side<'_>, b: &Side<'_>, noise: f64) -> Result<Comparison> {
    let (reports_a, reports_b) = (a.reports(), b.reports());
    let first = comparable(&reports_a, &reports_b)?;
    let tenants = first.is_scenario().then(|| [a, b].map(tenants::runs_by_tenant));
    let sides = tenants.as_ref().map(|runs| runs.each_ref().map(|runs| Side::new("", runs, Vec::new())));
    let [of_a, of_b] = sides.as_ref().map_or([a, b], <[_; 2]>::each_ref);
    let first = of_a.runs.first().map_or(first, |run| &run.report);
    let mut uncompared = tenants::on_one_side(of_a, of_b);
    let pairs = loads::pairs(&of_a.reports(), &of_b.reports());
    let mut warnings: Vec<String> = a.notes.iter().chain(&b.notes).cloned().collect();
    warnings.extend(caveats::machines_note(&reports_a, &reports_b));
    warnings.extend(caveats::answers_note(&reports_a, &reports_b));
    warnings
        .extend(caveats::imports_note("A", &a.runs).into_iter().chain(caveats::imports_note("B", &b.runs)));
    warnings.extend(reports_a.iter().chain(&reports_b).flat_map(|report| caveats::warnings(report)));
    warnings
        .extend(caveats::noise_note("A", &reports_a).into_iter().chain(caveats::noise_note("B", &reports_b)));
    let mut points: Vec<ComparedPoint> = Vec::new();
    let confidence = 1.0 - figures::ERROR / pairs.of.len().max(1) as f64;
    for pair in &pairs.of {
        let (at_a, at_b) = (
            points_with_load(of_a, pairs.by_users, &pair.0),
            points_with_load(of_b, pairs.by_users, &pair.1),
        );
        if let Some(unlike) = loop_conflict(&at_a, &at_b) {
            if let Some(tenant) = pair.0.tenant.clone() {
                uncompared.push(UncomparedTenant { tenant, why: unlike });
                continue;
            }
            // Only some of several phases may have a rate on one side.
            if pairs.of.len() == 1 {
                return Err(Error::Compare(unlike));
            }
            warnings.push(format!("{} {} is left out: {unlike}", first.vocabulary().point.one, pair.0.nth));
            continue;
        }
        let matched = figures::matched(at_a, at_b);
        let (point, note) = compared(first, (of_a, of_b), &pairs, pair, matched, confidence);
        points.push(point);
        warnings.extend(note.filter(|note| !warnings.contains(note)));
    }
    let common = !points.is_empty();
    // A tenant without any transaction is a result.
    let has_ratio =
        |p: &ComparedPoint| p.figures.iter().any(|f| f.name == first.headline && f.ratio.is_some());
    points.retain(|point| point.tenant.is_some() || has_ratio(point));
    warnings.extend(uncompared.iter().map(UncomparedTenant::describe));
    if points.is_empty() && common {
        let name = &first.headline;
        let none = if first.is_io() { "no I/O was done" } else { "no transaction committed" };
        return Err(Error::Compare(format!("{name} has no ratio: on one side {none}")));
    }
    if points.is_empty() {
        let what = if first.is_scenario() {
            "tenant"
        } else if first.is_io() {
            "phase with a metric of the same kind"
        } else if first.open_loop {
            "rate"
        } else {
            "number of users"
        };
        return Err(Error::Compare(format!("no {what} was measured on both sides")));
    }
    figures::over_loads(points.iter_mut().filter_map(|point| point.figures.first_mut()));
    for point in &mut points {
        point.judge(noise, confidence);
    }
    let (seen_a, seen_b) = (seen(&reports_a), seen(&reports_b));
    let findings = if seen_a.is_empty() || seen_b.is_empty() {
        Vec::new()
    } else {
        kelvin_diagnose::compared(&seen_a, &seen_b)
    };
    let numbers = |side: &[&RunReport]| side.iter().map(|r| r.run).collect();
    let mut own = caveats::red_findings("A", &reports_a);
    own.extend(caveats::red_findings("B", &reports_b));
    Ok(Comparison {
        name_a: a.name.clone(),
        name_b: b.name.clone(),
        a: numbers(&reports_a),
        b: numbers(&reports_b),
        headline: first.headline.clone(),
        noise,
        confidence,
        points,
        uncompared,
        differences: differing(&reports_a, &reports_b),
        findings,
        own,
        warnings,
    })
}

/// The differences between the runs of two sides other than their results; empty if a side has no run.
pub fn differing(a: &[&RunReport], b: &[&RunReport]) -> Vec<Difference> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    let facts =
        |side: &[&RunReport]| side.iter().map(|r| differences::facts_of_report(r)).collect::<Vec<_>>();
    between(&facts(a), &facts(b))
}

fn seen<'a>(side: &[&'a RunReport]) -> Vec<&'a Evidence> {
    side.iter().filter_map(|report| report.evidence.as_deref()).collect()
}

/// Refuses runs without a common metric; returns the first run of A.
fn comparable<'a>(a: &[&'a RunReport], b: &[&RunReport]) -> Result<&'a RunReport> {
    // Runs from two stores may have the same number, but not the same start time.
    if let Some(both) = a.iter().find(|x| b.iter().any(|y| x.run == y.run && x.started == y.started)) {
        return Err(Error::Compare(format!("run {} is on both sides; give it on one side only", both.run)));
    }
    let (Some(first_a), Some(_)) = (a.first().copied(), b.first()) else {
        return Err(Error::Compare("each side needs at least one run".into()));
    };
    if let Some(other) = a.iter().chain(b).find(|r| r.workload != first_a.workload) {
        return Err(Error::Compare(format!(
            "run {} is a {} run and run {} is a {} run",
            first_a.run, first_a.workload, other.run, other.workload
        )));
    }
    // Each phase of I/O jobs and each tenant is an open or a closed loop.
    let one_loop = !first_a.is_io() && !first_a.is_scenario();
    if let Some(other) = a.iter().chain(b).find(|r| one_loop && r.open_loop != first_a.open_loop) {
        return Err(Error::Compare(loops(first_a.run, other.run)));
    }
    Ok(first_a)
}

fn loops(one: i64, other: i64) -> String {
    format!(
        "one of the runs {one} and {other} is an open loop and the other a closed loop: one fixes the \
         throughput, the other measures it"
    )
}

/// Why points with the same load cannot be compared: an open and a closed loop.
fn loop_conflict(a: &[Point<'_>], b: &[Point<'_>]) -> Option<String> {
    let first = a.first()?;
    let other = a.iter().chain(b).find(|p| p.figures.open_loop != first.figures.open_loop)?;
    Some(loops(first.run, other.run))
}

fn compared(
    first: &RunReport,
    (a, b): (&Side<'_>, &Side<'_>),
    pairs: &Pairs,
    pair: &(Load, Load),
    points: Matched<'_>,
    confidence: f64,
) -> (ComparedPoint, Option<String>) {
    let all = || a.runs.iter().chain(&b.runs).map(|run| &run.report);
    let repeated = all().flat_map(|r| loads(r, pairs.by_users)).any(|load| load.repeats(&pair.0));
    let open_loop = points.a.first().is_some_and(|p| p.figures.open_loop);
    let (figures, key) = figures::figures(first, open_loop, &points, confidence);
    let runs = (points.a.len(), points.b.len());
    let within = match (&points.a[..], &points.b[..]) {
        ([x], [y]) => {
            let half = |p: &Point<'_>| Some(p.figures.within_run?.half_width_percent);
            half(x).zip(half(y))
        }
        _ => None,
    };
    let of_first = |side: &[Point<'_>]| {
        side.first().map_or((0, None), |p: &Point<'_>| (p.figures.users, p.figures.asked_per_second()))
    };
    let ((users_a, asked_a), (users_b, asked_b)) = (of_first(&points.a), of_first(&points.b));
    let several = all().any(|report| report.points.len() > 1);
    let phase = points.a.first().and_then(|p| p.figures.phase()).filter(|_| several);
    let compared = ComparedPoint {
        tenant: pair.0.tenant.clone(),
        users: (users_a, users_b),
        phase,
        called: first.vocabulary(),
        asked_per_second: (asked_a, asked_b),
        occurrence: (repeated && !first.is_io()).then_some(pair.0.nth),
        runs,
        paired: points.paired,
        consecutive: points.consecutive,
        dependence: None,
        ruled_out: None,
        detectable: None,
        figures,
        key,
        within_run_percent: within.filter(|_| !open_loop),
        verdict: ComparisonVerdict::NotTestable,
        words: String::new(),
    };
    (compared, points.note)
}

/// The points of a side with this load.
fn points_with_load<'a>(side: &Side<'a>, by_users: bool, wanted: &Load) -> Vec<Point<'a>> {
    let mut found = Vec::new();
    for run in &side.runs {
        let place = loads(&run.report, by_users).iter().position(|load| load == wanted);
        let point: Option<&'a PointReport> = place.and_then(|place| run.report.points.get(place));
        if let Some(point) = point {
            let key = run.key.get(&point.point).map_or(&[][..], Vec::as_slice);
            found.push(Point { run: run.report.run, figures: point, key, block: run.block });
        }
    }
    found
}

impl ComparedPoint {
    /// Sets the verdict on the first metric.
    fn judge(&mut self, noise: f64, confidence: f64) {
        let Some(judged) = self.figures.first() else { return };
        (self.verdict, self.words) = figures::judge(judged, noise, confidence, self.runs);
        self.dependence = judged.dependence(confidence);
        self.ruled_out = judged.ruled_out(confidence);
        self.detectable = judged.detectable(noise, confidence);
    }

    /// The judged metric as a key metric: p99 of the response time for a fixed rate, otherwise the headline.
    pub(crate) fn judged_key(&self) -> Option<&ComparedFigure> {
        match self.figures.first() {
            Some(judged) if judged.name == figures::RESPONSE => {
                self.key.iter().find(|figure| figure.id == "p99").or(Some(judged))
            }
            _ => self.key.first(),
        }
    }

    /// "8 users", "1,500/s requested, 2nd".
    pub(crate) fn name(&self) -> String {
        text::load(self)
    }
}
