//! Judges a point of a run by an objective.

use kelvin_measure::event::{RateTrial, SeriesRole};

use crate::driver::PointResult;
use crate::find_max::{MaxRateResult, SearchEnd, Trial};
use crate::spec::{Slo, SloFigures};

/// Judges a point by its response times in an open loop, or by its service times in a closed loop. A void
/// point meets no objective.
pub(crate) fn judge(slo: &Slo, point: &PointResult) -> RateTrial {
    let schedule = point.window.schedule;
    let ended = point.totals.measured_of(|role| match schedule {
        Some(_) => matches!(role, SeriesRole::Response { .. }),
        None => role == SeriesRole::Transaction,
    });
    let unserved = schedule.map_or(0, |schedule| schedule.never_begun());
    let errors = ended.failed + unserved;
    let arrivals = ended.latency.count() + errors;
    let found = slo.judge(&SloFigures { responses: &ended.latency, arrivals, errors });
    let mut verdicts: Vec<String> = found
        .iter()
        .map(|verdict| {
            let outcome = match verdict.holds {
                Some(true) => "",
                Some(false) => ", missed",
                None => ", not judged",
            };
            format!("{}: {}{outcome}", verdict.term, verdict.value)
        })
        .collect();
    let void: Vec<String> =
        point.invariants.iter().filter(|i| !i.holds).map(|invariant| invariant.name.clone()).collect();
    verdicts.extend(void.iter().map(|name| format!("void: check failed: {name}")));
    let overloaded = schedule.is_some_and(|schedule| schedule.overloaded());
    if overloaded {
        verdicts.push("the queue was growing".into());
    }
    RateTrial {
        point: point.window.point,
        rate: schedule.map_or(0.0, |schedule| schedule.rate),
        achieved: point.throughput(),
        holds: void.is_empty() && !overloaded && found.iter().all(|verdict| verdict.holds == Some(true)),
        void,
        verdicts,
    }
}

/// Describes a judged point in a sentence.
pub(crate) fn describe_trial(trial: &RateTrial) -> String {
    let verdict = if trial.holds { "met" } else { "missed" };
    format!("objective {verdict}: {}", trial.verdicts.join("; "))
}

/// What the reader of a search's result should know in addition to its metrics.
pub(crate) fn remarks(found: &MaxRateResult, trials: &[RateTrial]) -> Vec<String> {
    let mut remarks = Vec::new();
    let lowest = trials.iter().filter(|trial| Some(trial.rate) == found.lowest_failed && !trial.holds);
    if lowest.clone().any(|trial| !trial.void.is_empty()) {
        remarks.push("a void trial stopped the search: the limit may not be that of the database".into());
    }
    match found.ended {
        SearchEnd::Resolved => {}
        SearchEnd::Underway => remarks.push("the search was interrupted before it converged".into()),
        SearchEnd::Highest => {
            remarks.push("even the highest rate that the search tries met the objective".into());
        }
        SearchEnd::NothingHolds => remarks.push(format!(
            "no rate met the objective, not even {}/s, the lowest that the search tries",
            found.lowest_failed.unwrap_or_default()
        )),
        SearchEnd::OutOfTrials => {
            remarks.push("the search used up its trials before it converged".into());
        }
    }
    if found.highest.is_some() && !found.confirmed {
        remarks.push("no second trial confirmed the highest rate that met the objective".into());
    }
    if !found.unstable.is_empty() {
        let rates: Vec<String> = found.unstable.iter().map(|rate| format!("{rate:.0}/s")).collect();
        remarks.push(format!(
            "not steady: {} met the objective once, but a trial at or below it failed; use a longer duration",
            rates.join(", ")
        ));
    }
    remarks
}

/// The trial as the search needs it.
pub(crate) fn for_search(trial: &RateTrial) -> Trial {
    Trial { holds: trial.holds, achieved: trial.achieved, why: trial.verdicts.join("; ") }
}
