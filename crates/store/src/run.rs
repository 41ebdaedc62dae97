//! Properties of a run, besides its events.

use std::fmt;

use kelvin_measure::event::{RatePeriod, Series, Status, Window};
use serde::{Deserialize, Serialize};

use crate::state::{Judgement, Liveness};

/// Number of a run in its store: 1, 2, 3… A number is never reused, not even after a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub i64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Properties of a run that are known at its beginning. No field may contain a password; text that looks like one in a
/// URL is removed before it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewRun {
    /// The workload's name, such as "tproc-c".
    pub workload: String,
    /// The target, such as "postgres://joe@host/db".
    pub target: String,
    /// The user's name for it.
    pub label: Option<String>,
    /// The complete spec, defaults written out.
    pub spec_toml: String,
    /// The command line that repeats the run.
    pub command: String,
    /// The seed of all random values.
    pub seed: u64,
    /// The generator that the seed feeds.
    pub random_algorithm: String,
    /// The version of Kelvin that ran it.
    pub kelvin_version: String,
    /// The transaction types and the other series; the index is the `kind` in every event.
    pub kinds: Vec<Series>,
    /// Name of the headline metric, such as "NOPM" or "tps".
    pub headline: String,
    /// The unit of time of the headline metric.
    #[serde(default)]
    pub headline_per: RatePeriod,
    /// Names of the workload's counters, in the order of `Event::Counters`.
    pub counter_names: Vec<String>,
    /// Sentences that are part of the result: notes on the load, on limits of reproducibility.
    pub notes: Vec<String>,
    /// Hardware, kernel, filesystem, database version and settings.
    pub environment: serde_json::Value,
    /// When it began.
    pub started: jiff::Timestamp,
}

/// One line of the list of runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its number.
    pub id: RunId,
    /// The user's name for it.
    pub label: Option<String>,
    /// The workload's name.
    pub workload: String,
    /// The target.
    pub target: String,
    /// When it began.
    pub started: jiff::Timestamp,
    /// How it ended; [`Status::Partial`] without an end.
    pub status: Status,
    /// Whether it is still being written.
    pub liveness: Liveness,
    /// Name of the headline metric.
    pub headline: String,
    /// The time that it counts over.
    pub headline_per: RatePeriod,
    /// The points whose window closed; none of a scenario, whose tenants' loads have no common sum.
    pub points: Vec<PointSummary>,
    /// The tenants of a scenario; none of another run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<TenantSummary>,
    /// The point of the highest rate that held, of a search for it.
    pub held: Option<u32>,
    /// Whether resources were cut while it ran: its result is that of a squeezed database.
    pub squeezed: bool,
    /// Errors counted, retried ones included.
    pub errors: u64,
    /// Transactions that failed for good, over everything the users did.
    pub failed: u64,
    /// Whether it counts, with the reasons; `None` while it has not been judged, which applies to runs stored by an
    /// older Kelvin.
    #[serde(flatten)]
    pub judgement: Option<Judgement>,
}

impl RunSummary {
    /// The point with the highest headline value; of the rates of an open loop the highest that was kept up with; for a
    /// search the highest rate that passed.
    pub fn best(&self) -> Option<&PointSummary> {
        best(&self.points, self.held)
    }
}

/// What a tenant did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TenantSummary {
    /// Its name.
    pub name: String,
    /// Transactions (committed and rolled back) or I/Os per second of the time in which its load was on; none of a load
    /// that never was.
    pub per_second: Option<f64>,
}

/// The headline value of one point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PointSummary {
    /// From 0.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// Requested transactions per second of an open loop.
    pub asked_per_second: Option<f64>,
    /// Whether an invariant of the point does not hold.
    pub void: bool,
    /// Whether the schedule of an open loop could not be kept.
    pub overloaded: bool,
    /// Headline transactions per elapsed minute.
    pub per_minute: f64,
    /// Headline transactions per elapsed second.
    pub per_second: f64,
    /// Length of the window in seconds, as elapsed.
    pub seconds: f64,
}

impl PointSummary {
    /// For a window that closed; `None` for one that never opened.
    pub(crate) fn from_window(window: &Window) -> Option<Self> {
        let seconds = window.elapsed as f64 / 1e9;
        (window.elapsed > 0).then(|| Self {
            point: window.point,
            users: window.users,
            asked_per_second: window.schedule.map(|schedule| schedule.rate),
            void: false,
            overloaded: window.schedule.is_some_and(|schedule| schedule.overloaded()),
            per_minute: window.client_headline as f64 * 60.0 / seconds,
            per_second: window.client_headline as f64 / seconds,
            seconds,
        })
    }

    /// Headline transactions per elapsed minute or second.
    pub fn rate(&self, per: RatePeriod) -> f64 {
        match per {
            RatePeriod::Minute => self.per_minute,
            RatePeriod::Second => self.per_second,
        }
    }
}

/// The best point of the run: for a search the highest rate that passed; else the highest headline value of those whose
/// invariants hold and whose schedule was kept.
pub(crate) fn best(points: &[PointSummary], held: Option<u32>) -> Option<&PointSummary> {
    let held = held.and_then(|held| points.iter().find(|p| p.point == held));
    held.or_else(|| {
        let by = |a: &&PointSummary, b: &&PointSummary| {
            let void = b.void.cmp(&a.void);
            void.then(b.overloaded.cmp(&a.overloaded)).then(a.per_minute.total_cmp(&b.per_minute))
        };
        points.iter().max_by(by)
    })
}
