//! What limits the throughput.
//!
//! Four steps, each with its evidence: a run that must not be judged has no verdict; the time model shows what the transactions
//! under way were doing; counters of the operating system confirm or contradict its largest class; a class is named only if it
//! is large, stands out from the next, and a counter confirms it. Otherwise the verdict names the experiment that would decide.

mod embedded;
mod independent_counters;
pub(crate) mod time;

use std::fmt::Write as _;

use kelvin_observe::metric;
use kelvin_store::{broken_invariant, failed_audit};
use serde::Serialize;

use crate::engine::{EngineAdvice, engine_advice};
use crate::load::{busy_user_share, is_embedded, mean_of_server};
use crate::{Class, Evidence, Finding, PointEvidence, Severity, noise};
use kelvin_measure::text::percent;
use time::Model;

/// A class is named when it has at least this share …
const SHARE: f64 = 0.40;
/// … and so many times the next one's …
const MARGIN: f64 = 2.0;
/// … and two together when they have at least this share, as half of what one needs each.
const TOGETHER: f64 = 0.60;
const EACH: f64 = SHARE / 2.0;

/// With users in a transaction for less of their time than this, the load's own pace decides.
const PACED: f64 = 0.25;

/// Findings that make the figure one of something else than the database.
const VOIDING: [&str; 9] = [
    "foreign-sessions",
    "io-not-steady",
    "client-saturated",
    "steal",
    "noisy-neighbour",
    "not-steady",
    "ramp-up-too-short",
    "swapping",
    "outage",
];

/// With many failures or repetitions the figures are the database's all the same, and counted; but what limits the
/// throughput of what is left would be the answer to another question.
const UNDECIDED: &str = "errors-and-retries";

/// One class of the time model with its share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The class as text: "CPU", "log", "data reads", "row locks", …
    pub class: String,
    /// Average active sessions in it.
    pub sessions: f64,
    /// Share of all active sessions, of 1, with its 95 % interval.
    pub share: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// A counter of the operating system that confirms or contradicts a class, independently of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndependentCounter {
    /// The counter.
    pub what: String,
    /// What was found, with its unit and the bound.
    pub found: String,
    /// Whether it agrees with the class.
    pub agrees: bool,
}

/// The result of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum BottleneckOutcome {
    /// The run must not be judged.
    Void {
        /// Why.
        reasons: Vec<String>,
    },
    /// One class limits it.
    Bound {
        /// Which.
        class: String,
    },
    /// Two classes together.
    Compound {
        /// Which.
        classes: Vec<String>,
    },
    /// The evidence does not decide.
    Undetermined {
        /// Why.
        why: String,
    },
}

/// What limits a point's throughput, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BottleneckVerdict {
    /// Which point of the run.
    pub point: u32,
    /// The result.
    pub outcome: BottleneckOutcome,
    /// The time model, the largest share first.
    pub shares: Vec<Share>,
    /// Counters that confirm or contradict the largest class.
    pub independent_counters: Vec<IndependentCounter>,
    /// In one sentence.
    pub sentence: String,
    /// The experiment that would decide or confirm it.
    pub next: String,
}

/// The verdict on a point, with what was found in the run ([`crate::find`]); none for one whose window never opened.
pub fn verdict(evidence: &Evidence, point: u32, found: &[Finding]) -> Option<BottleneckVerdict> {
    evidence.window(point)?;
    let of = evidence.point(point)?;
    if evidence.is_io() {
        // I/O jobs have findings for their limits, and no sessions whose waits could be sampled.
        return None;
    }
    let model = if is_embedded(evidence) { embedded::model(evidence, of) } else { time::model(evidence, of) };
    let counters = model.as_ref().map(|model| {
        let leading = model.shares.first().map_or(Class::Other, |(class, _)| *class);
        independent_counters::counters_for(evidence, point, leading, model)
    });
    let counters = counters.unwrap_or_else(|| host(evidence, point));
    let reasons = void_reasons(of, found);
    let failing = about(of, found).find(|finding| finding.id == UNDECIDED);
    let (outcome, mut sentence, next) = if reasons.is_empty() {
        match (&model, paced(evidence, of), failing) {
            (_, _, Some(failing)) => undecided(failing),
            (Some(_), Some(share), None) => own_pace(share),
            (Some(model), None, None) => judge(model, &counters, engine_advice(evidence)),
            (None, _, None) => unseen(evidence, point),
        }
    } else {
        let sentence = format!("No verdict: {}.", reasons.join("; "));
        let next = "Remove the cause as the findings describe, and run again to identify the bottleneck.";
        (BottleneckOutcome::Void { reasons }, sentence, next.into())
    };
    if let Some(noise) = noise(evidence, point).filter(|noise| noise.accepted && noise.is_too_dear()) {
        let _ = write!(
            sentence,
            " Other processes contributed: foreign CPU explains {} of the result.",
            noise.share()
        );
    }
    let shares = model.map(|model| model.shares.into_iter().map(|(_, share)| share).collect());
    Some(BottleneckVerdict {
        point,
        outcome,
        shares: shares.unwrap_or_default(),
        independent_counters: counters,
        sentence,
        next,
    })
}

/// Why the point must not be judged; empty if it may be.
pub(crate) fn void_reasons(point: &PointEvidence, found: &[Finding]) -> Vec<String> {
    failed_invariants(point).chain(voiding_findings(point, found)).collect()
}

/// The invariants and self-audits of a point that failed.
pub(crate) fn failed_invariants(point: &PointEvidence) -> impl Iterator<Item = String> {
    let invariants = point.invariants.iter().filter_map(broken_invariant);
    invariants.chain(point.audit.iter().filter_map(failed_audit))
}

/// The findings that make a point's figure void.
pub(crate) fn voiding_findings<'a>(
    point: &PointEvidence,
    found: &'a [Finding],
) -> impl Iterator<Item = String> + use<'a> {
    let voiding = about(point, found).filter(|finding| VOIDING.contains(&finding.id));
    voiding.map(|finding| finding.title.clone())
}

/// The red findings about a point.
fn about<'a>(point: &PointEvidence, found: &'a [Finding]) -> impl Iterator<Item = &'a Finding> + use<'a> {
    let number = point.point;
    found.iter().filter(move |finding| {
        finding.severity == Severity::Red && finding.point.is_none_or(|of| of == number)
    })
}

fn undecided(failing: &Finding) -> (BottleneckOutcome, String, String) {
    let why = failing.title.clone();
    (
        BottleneckOutcome::Undetermined { why: why.clone() },
        format!("Undetermined: {why}."),
        failing.next.clone(),
    )
}

/// The share of their time that users spent in transactions, when their own pace decides: a schedule that was kept, or
/// little of their time asked of a database whose host has room.
fn paced(evidence: &Evidence, point: &PointEvidence) -> Option<f64> {
    let share = busy_user_share(evidence, point)?;
    if let Some(schedule) = point.window.as_ref().and_then(|window| window.schedule) {
        return (!schedule.overloaded()).then_some(share);
    }
    let busy = mean_of_server(evidence, point.point, metric::CPU_BUSY);
    (share < PACED && busy.is_none_or(|busy| busy < independent_counters::BUSY)).then_some(share)
}

fn own_pace(share: f64) -> (BottleneckOutcome, String, String) {
    let why = format!(
        "the users were in a transaction for {} of their time: think times or the arrival rate set the \
        throughput, and the database kept up",
        percent(share)
    );
    let next = "Increase the load (more users, less think time or a higher rate) until the database cannot \
        keep up.";
    (BottleneckOutcome::Undetermined { why: why.clone() }, format!("Undetermined: {why}."), next.into())
}

/// Derives one class, two or none from the time model and the operating system's counters.
fn judge(
    model: &Model,
    counters: &[IndependentCounter],
    engine: &dyn EngineAdvice,
) -> (BottleneckOutcome, String, String) {
    let Some((class, first)) = model.shares.first() else {
        let why = "no transaction was in flight".to_owned();
        return (
            BottleneckOutcome::Undetermined { why: why.clone() },
            format!("Undetermined: {why}."),
            String::new(),
        );
    };
    let second = model.shares.get(1);
    let stands_out =
        second.is_none_or(|(_, next)| first.share >= MARGIN * next.share && first.low > next.high);
    let agreed = counters.iter().any(|counter| counter.agrees);
    let part = |share: &Share| {
        let (of, low, high) = (percent(share.share), percent(share.low), percent(share.high));
        format!(
            "{} accounts for {of} ({low} to {high}) of {:.1} transactions in flight",
            share.class, model.sessions
        )
    };
    if first.share >= SHARE && stands_out && agreed && *class != Class::Other {
        let agreeing = counters.iter().find(|counter| counter.agrees);
        let word = agreeing.map_or(String::new(), |c| format!("; {}: {}", c.what, c.found));
        let outcome = BottleneckOutcome::Bound { class: first.class.clone() };
        return (outcome, format!("{}{word}.", bound(first, &part(first))), squeeze(*class, engine));
    }
    let pair = second.filter(|(other, next)| {
        let named = *class != Class::Other && *other != Class::Other;
        named && agreed && next.share >= EACH && first.share + next.share >= TOGETHER
    });
    if let Some((other, next)) = pair {
        let sentence = format!(
            "Two classes limit the throughput together: {}, and {} {}.",
            part(first),
            next.class,
            percent(next.share)
        );
        let outcome = BottleneckOutcome::Compound { classes: vec![first.class.clone(), next.class.clone()] };
        let squeezed = "`kelvin squeeze` reduces one resource at a time and shows which of the two the throughput \
            follows. ";
        let experiment = format!(
            "{}{} {}",
            if engine.host().can_squeeze { squeezed } else { "" },
            try_this(*class, engine),
            try_this(*other, engine)
        );
        return (outcome, sentence, experiment);
    }
    let why = if !agreed && first.share >= SHARE {
        format!("{}, but the operating system's counters do not confirm it", part(first))
    } else if first.share < SHARE {
        format!("no class takes {} of the time: {}", percent(SHARE), part(first))
    } else if *class == Class::Other {
        format!("{}, which is not a resource", part(first))
    } else {
        format!("{}, which is not clearly more than the next", part(first))
    };
    (
        BottleneckOutcome::Undetermined { why: why.clone() },
        format!("Undetermined: {why}."),
        squeeze(*class, engine),
    )
}

fn bound(share: &Share, part: &str) -> String {
    format!("Limited by {}: {part}", share.class)
}

/// The experiment that can prove or disprove a class.
fn squeeze(class: Class, engine: &dyn EngineAdvice) -> String {
    // No resource of the host can be reduced in its place.
    if class == Class::Writer || !engine.host().can_squeeze {
        return try_this(class, engine).into();
    }
    format!(
        "`kelvin squeeze` can prove it: throughput must follow the reduced resource and no other. {}",
        try_this(class, engine)
    )
}

/// An experiment that shows it without squeezing, by the engine's own settings where it is known.
fn try_this(class: Class, engine: &dyn EngineAdvice) -> &'static str {
    engine.experiment(class).unwrap_or(match class {
        Class::Cpu => "With 20 % less CPU, throughput should fall by nearly 20 %.",
        Class::DataReads => "With memory that is large enough for the data, throughput should rise.",
        Class::DataWrites => "With a faster data device, throughput should rise.",
        Class::Log => "With a faster log device, throughput should rise.",
        Class::Writer => {
            "With one user, throughput should stay about the same: additional users only wait. With one \
            database file per user, it should rise."
        }
        Class::Locks => "With more warehouses (or rows) for the same users, throughput should rise.",
        Class::Latch => "With fewer users, throughput should stay or rise.",
        Class::Memory => "With fewer users, or more memory per statement, throughput should rise.",
        Class::Client => "With a second client host, or a larger one, throughput should rise.",
        Class::Network => "With stored procedures, or the client next to the server, throughput should rise.",
        Class::Replication => {
            "Without synchronous replication, for the experiment only, throughput should rise."
        }
        Class::Other => "The waits in the session list show where to look.",
    })
}

/// The outcome if sessions were not sampled.
fn unseen(evidence: &Evidence, point: u32) -> (BottleneckOutcome, String, String) {
    let mut why = if is_embedded(evidence) {
        "the database runs within the client, and its writer queue was not observed".to_owned()
    } else {
        "the database's sessions were not sampled".to_owned()
    };
    let host = [
        (metric::CPU_BUSY, "of the CPUs in use"),
        (metric::IO_PRESSURE, "of the time some task waited for a device"),
    ];
    for (name, words) in host {
        if let Some(share) = mean_of_server(evidence, point, name) {
            why.push_str(&format!("; {} {words}", percent(share)));
        }
    }
    let sentence = format!("Undetermined: {why}.");
    let next = "`kelvin squeeze` reduces one resource at a time and shows which one the throughput follows.";
    (BottleneckOutcome::Undetermined { why }, sentence, next.into())
}

/// What the host says where there is no time model.
fn host(evidence: &Evidence, point: u32) -> Vec<IndependentCounter> {
    let empty = Model { sessions: 0.0, shares: Vec::new() };
    let mut found = independent_counters::counters_for(evidence, point, Class::Cpu, &empty);
    found.extend(
        independent_counters::counters_for(evidence, point, Class::DataReads, &empty)
            .into_iter()
            .filter(|w| !w.what.contains("requests")),
    );
    found
}

#[cfg(test)]
mod tests;
