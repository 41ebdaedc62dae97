//! Caveats on the runs of each side: why they are not reliable, and their red findings.

use kelvin_measure::text::count;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::Run;
use crate::{RunReport, Severity};

/// A red finding of runs of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SideFinding {
    /// "A" or "B".
    pub side: &'static str,
    /// Its stable id, which is also the name of its documentation page.
    pub id: &'static str,
    /// Its title in the first of these runs.
    pub title: String,
    /// The runs that have it.
    pub runs: Vec<i64>,
    /// Number of runs of the side.
    pub of: usize,
}

impl SideFinding {
    /// As one sentence.
    pub fn describe(&self) -> String {
        let of = match (self.runs.len(), self.of) {
            (1, 1) => format!("run {}", join_runs(&self.runs)),
            (2, 2) => "both runs".into(),
            (n, of) if n == of => format!("all {of} runs"),
            (n, of) => format!("{n} of {of} runs ({})", join_runs(&self.runs)),
        };
        format!("{}, {of}: {} ({})", self.side, self.title, self.id)
    }
}

/// Numbers of runs for a sentence.
pub(crate) fn join_runs(runs: &[i64]) -> String {
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The red findings of a side's runs, one entry per id.
pub(super) fn red_findings(side: &'static str, runs: &[&RunReport]) -> Vec<SideFinding> {
    let mut found: Vec<SideFinding> = Vec::new();
    for report in runs {
        for finding in report.findings.iter().filter(|f| f.severity == Severity::Red) {
            match found.iter_mut().find(|own| own.id == finding.id) {
                Some(own) if own.runs.last() != Some(&report.run) => own.runs.push(report.run),
                Some(_) => {}
                None => found.push(SideFinding {
                    side,
                    id: finding.id,
                    title: finding.title.clone(),
                    runs: vec![report.run],
                    of: runs.len(),
                }),
            }
        }
    }
    found.sort_by_key(|own| std::cmp::Reverse(own.runs.len()));
    found
}

/// The CPU time that a side's runs lost to other processes, if their specification accepts that.
pub(super) fn noise(side: &str, runs: &[&RunReport]) -> Option<String> {
    let points = runs.iter().filter_map(|report| Some((report, report.evidence.as_deref()?)));
    let each = points.flat_map(|(report, seen)| report.points.iter().map(move |point| (seen, point.point)));
    kelvin_diagnose::accepted_noise(each).map(|words| format!("{side}: {words}"))
}

/// A warning if the load of the sides came from different machines, according to the names in their runs.
pub(super) fn machines(a: &[&RunReport], b: &[&RunReport]) -> Option<String> {
    let names = |runs: &[&RunReport]| {
        let name = |report: &&RunReport| {
            report.recipe.environment.pointer("/client_host/name")?.as_str().map(str::to_owned)
        };
        runs.iter().filter_map(name).collect::<BTreeSet<String>>()
    };
    let (a, b) = (names(a), names(b));
    let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    let differ = a != b && !a.is_empty() && !b.is_empty();
    differ.then(|| format!("the load came from different machines: A from {}, B from {}", list(&a), list(&b)))
}

/// The queries whose answers differ between the sides, though stream, parameters and scale factor are the same.
pub(super) fn answers(a: &[&RunReport], b: &[&RunReport]) -> Option<String> {
    let of = |runs: &[&RunReport]| {
        let executions =
            runs.iter().flat_map(|report| &report.details.queries).flat_map(|found| &found.executions);
        executions
            .filter_map(|one| {
                let asked = (one.rank(), one.query.clone(), one.parameters.clone(), one.scale.to_bits());
                Some((asked, one.digest.clone()?))
            })
            .collect::<BTreeMap<_, _>>()
    };
    let of_b = of(b);
    let differ =
        of(a).into_iter().filter(|(asked, digest)| of_b.get(asked).is_some_and(|other| other != digest));
    let mut names: Vec<String> = differ.map(|((_, query, ..), _)| query).collect();
    names.dedup();
    (!names.is_empty()).then(|| {
        format!(
            "the answers to {} differ between A and B: the data are not the same (refresh functions change them), or a \
             server's answer is wrong",
            names.join(", ")
        )
    })
}

/// Lists the imported runs of a side and their origins.
pub(super) fn imported(side: &str, runs: &[&Run]) -> Vec<String> {
    let mut places: BTreeMap<String, (Vec<i64>, Vec<i64>)> = BTreeMap::new();
    for run in runs {
        if let Some(origin) = &run.origin {
            let (here, there) = places.entry(origin.describe()).or_default();
            here.push(run.report.run);
            there.push(origin.number.0);
        }
    }
    let sentence = |(place, (here, there)): (String, (Vec<i64>, Vec<i64>))| {
        let (noun, verb) = if here.len() == 1 { ("run", "is run") } else { ("runs", "are runs") };
        format!(
            "{side} was imported: {noun} {} {verb} {} in the store {place}",
            join_runs(&here),
            join_runs(&there)
        )
    };
    places.into_iter().map(sentence).collect()
}

/// Caveats on a run's results.
pub(super) fn warnings(report: &RunReport) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(why) = report.judgement.why_not() {
        found.push(format!("run {} is included in the figures although it is {why}", report.run));
    }
    for point in report.points.iter().filter(|p| p.schedule.as_ref().is_some_and(|s| s.overloaded)) {
        if let Some(shortfall) = point.schedule.as_ref().and_then(|s| s.shortfall.as_ref()) {
            found.push(format!("run {}, {}: {shortfall}", report.run, point.name()));
        }
    }
    let errors: u64 = report.points.iter().flat_map(|p| &p.errors).map(|e| e.count).sum();
    if errors > 0 {
        found.push(format!("run {} had {}", report.run, count(errors, "error")));
    }
    found
}
