//! Whether a run counts: the one place that decides. Every output, every selection of runs and the exit code ask here, or
//! read what was kept of it when the run ended.
//!
//! | state | when |
//! |---|---|
//! | failed | an error ended the run |
//! | partial | it was interrupted, killed, or still runs |
//! | void | it came to its end, and: an invariant, a line of the self-audit or a consistency condition does not hold, at any point; or a finding says that the figure by which it is known is one of something else; or nothing was measured; or its group says so |
//! | counted | none of these |

use std::collections::BTreeMap;

use kelvin_measure::event::Status;
use kelvin_store::{Judgement, Result, RunState, StoredRun, broken_condition, broken_invariant};

use crate::findings::findings_for;
use crate::verdict::{failed_invariants, voiding_findings};
use crate::{Evidence, Finding, PointEvidence};

/// What a run and each of its points are good for.
#[derive(Debug, Clone, PartialEq)]
pub struct RunJudgements {
    /// The run.
    pub run: Judgement,
    /// Each point that was begun, by its number.
    pub points: BTreeMap<u32, Judgement>,
    /// What was found, without a look at an earlier run.
    pub findings: Vec<Finding>,
}

/// Judges a stored run by its events and what its group says of it.
///
/// # Errors
/// When the stored run is damaged.
pub fn judge(run: &StoredRun, evidence: &Evidence) -> Result<RunJudgements> {
    let found = findings_for(evidence);
    let best = run.best_point();
    let end = Judgement::of_end(run.status, run.liveness, run.error.as_deref());
    let stored = run.points();
    let (several, last) = (stored.len() > 1, stored.last().map(|point| point.point));
    let mut points = BTreeMap::new();
    let mut reasons: Vec<String> =
        run.checks().iter().filter_map(|(_, condition)| broken_condition(condition)).collect();
    for point in &stored {
        let number = point.point;
        let Some(of) = evidence.point(number).filter(|_| point.window.is_some()) else {
            let of_run = end.clone().filter(|_| Some(number) == last);
            points.insert(number, of_run.unwrap_or_else(|| nothing(RunState::Partial)));
            continue;
        };
        let mut own: Vec<String> = failed_invariants(of).collect();
        own.extend(
            run.cross_checks(number, &run.point_statistics(number)?).iter().filter_map(broken_invariant),
        );
        let mut doubts: Vec<String> = voiding_findings(of, &found).collect();
        doubts.extend(nothing_done(evidence, of));
        let named = |reason: &String| {
            if several { format!("{}: {reason}", name(evidence, of)) } else { reason.clone() }
        };
        reasons.extend(own.iter().map(named));
        // Of a series another point speaks for the run; phases of I/O jobs are different jobs, and each speaks for itself.
        if best == Some(number) || evidence.is_io() {
            reasons.extend(doubts.iter().map(named));
        }
        own.extend(doubts);
        let cut_short = end.as_ref().filter(|_| Some(number) == last && run.status != Status::Partial);
        points.insert(number, judgement_with(cut_short, own));
    }
    if best.is_none() && end.is_none() {
        reasons.extend(nothing(RunState::Void).reasons);
    }
    Ok(RunJudgements {
        run: judgement_with(end.as_ref(), reasons).with_void(run.void.as_deref()),
        points,
        findings: found,
    })
}

/// As it ended, or by what there is against it.
fn judgement_with(end: Option<&Judgement>, reasons: Vec<String>) -> Judgement {
    match end {
        None => Judgement::from_reasons(reasons),
        Some(end) => {
            Judgement { state: end.state, reasons: end.reasons.iter().cloned().chain(reasons).collect() }
        }
    }
}

/// A window without a transaction, done or failed, has no figure. Jobs that move nothing are I/O jobs all the same.
fn nothing_done(evidence: &Evidence, point: &PointEvidence) -> Option<String> {
    let counts = point.transactions();
    let done = counts.good().saturating_add(counts.failed);
    (done == 0 && !evidence.is_io()).then(|| "no transaction ended within the window".into())
}

fn nothing(state: RunState) -> Judgement {
    Judgement { state, reasons: vec!["nothing was measured to completion".into()] }
}

/// What distinguishes a point from the others of its run.
fn name(evidence: &Evidence, point: &PointEvidence) -> String {
    let schedule = point.window.as_ref().and_then(|window| window.schedule);
    match schedule {
        _ if evidence.is_io() => format!("phase {}", point.point + 1),
        Some(schedule) => format!("at {}/s", (schedule.rate * 100.0).round() / 100.0),
        None => format!("with {} users", point.users),
    }
}
