//! The one stream of typed events that a run emits. The live view, the store, `--json` and the report are
//! consumers of it; a stored run replayed gives the same events.

mod arrivals;
mod fleet;
mod series;
mod sweep;
mod timeline;

use serde::{Deserialize, Serialize};

use crate::invariant::Invariant;
use crate::json::{lower, number, upper};
use crate::observation::Observation;
use crate::query::QueryExecution;
use crate::query_analysis::QueryAnalysis;
pub use crate::squeeze::{Elasticity, Squeeze, SqueezeSlice};
use crate::text::NONE;
use crate::{Histogram, Nanos, Source, SourceId};
pub use arrivals::{ArrivalSchedule, Arrivals};
pub use fleet::{ClockEnd, HostClock, HostLoad, HostSkew, HostTimes};
pub use series::{Series, SeriesRole, direction_of};
pub use sweep::{Estimate, MaximumRate, RateTrial, Scalability, ScalabilityPoint};
pub use timeline::{Step, StepKind, Stretch};

/// The parts of a run, in their order. A run of several points repeats `Connect` to `Stop` for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Tables are made and loaded.
    Build,
    /// The consistency conditions are checked before the load starts.
    CheckBefore,
    /// Users connect, one after another, before the clock starts.
    Connect,
    /// Load runs and is not counted.
    RampUp,
    /// Load runs and is counted.
    Measure,
    /// Users end the transaction they are in.
    Stop,
    /// The consistency conditions are checked after the load.
    CheckAfter,
}

impl Phase {
    /// The phase as a word for people.
    pub fn label(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::CheckBefore => "check before the run",
            Self::Connect => "connect",
            Self::RampUp => "ramp-up",
            Self::Measure => "measure",
            Self::Stop => "stop",
            Self::CheckAfter => "check after the run",
        }
    }
}

/// To which part of the load a second belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoadPart {
    /// Before the window; in no figure.
    RampUp,
    /// In the measured window.
    Measured,
    /// After the window closed, while users ended what they were in; in no figure.
    Tail,
}

/// The time that a headline figure counts over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RatePeriod {
    /// As NOPM does.
    #[default]
    Minute,
    /// As tps does.
    Second,
}

impl RatePeriod {
    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        match self {
            Self::Minute => 60.0,
            Self::Second => 1.0,
        }
    }

    /// The unit as a word, as in "transactions per minute".
    pub fn word(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Second => "second",
        }
    }
}

/// One transaction type, or another series, in one second.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct KindCounts {
    /// Transactions committed.
    pub committed: u64,
    /// Transactions rolled back by the workload's rules.
    pub rolled_back: u64,
    /// Transactions given up after an error; not in the histogram.
    pub failed: u64,
    /// Repetitions after serialization failures, deadlocks and busy locks.
    pub retries: u64,
    /// Service times of the committed and rolled-back, from the transaction's first statement to its end
    /// with all repetitions.
    #[serde(with = "crate::json::histogram", rename = "latency_ns")]
    pub latency: Histogram,
}

impl KindCounts {
    /// Committed and rolled back: the transactions that did what the workload asked.
    pub fn good(&self) -> u64 {
        self.committed.saturating_add(self.rolled_back)
    }

    /// Adds what `other` counted.
    pub fn add(&mut self, other: &Self) {
        // A damaged store may hold any number.
        self.committed = self.committed.saturating_add(other.committed);
        self.rolled_back = self.rolled_back.saturating_add(other.rolled_back);
        self.failed = self.failed.saturating_add(other.failed);
        self.retries = self.retries.saturating_add(other.retries);
        self.latency.add(&other.latency);
    }
}

/// What ended within one second. A transaction belongs to the second in which it ended. Events for the same
/// point, second and part add up: a sample that arrived late comes in a second event of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Second {
    /// Which point of the run, from 0 (`--users 1,2,4` has three).
    pub point: u32,
    /// Seconds since the measured window opened; negative in the ramp-up.
    pub second: i64,
    /// Ramp-up, measured or after.
    pub part: LoadPart,
    /// By series, in the run's order.
    pub kinds: Vec<KindCounts>,
}

/// Failures of one kind within one second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    /// Which point of the run.
    pub point: u32,
    /// Seconds since the measured window opened; negative in the ramp-up.
    pub second: i64,
    /// The transaction type; none when no transaction was under way (a new connection failed).
    pub kind: Option<u16>,
    /// The class, such as "deadlock".
    pub class: String,
    /// The engine's own code, such as 40P01.
    pub code: String,
    /// The message of the first of them.
    pub message: String,
    /// Whether the transaction was repeated afterwards (then it is not failed yet), or would have been if the run had not
    /// ended.
    pub retried: bool,
    /// How many.
    pub count: u64,
}

impl ErrorCount {
    /// Transactions that they ended for good.
    pub fn failed(&self) -> u64 {
        if self.kind.is_some() && !self.retried { self.count } else { 0 }
    }
}

/// One line of the self-audit: a figure the workload's rules bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditLine {
    /// What is bounded.
    pub name: String,
    /// The figure found, in `unit`.
    #[serde(deserialize_with = "number")]
    pub value: f64,
    /// Lower bound, already widened by the sampling error.
    #[serde(deserialize_with = "lower")]
    pub low: f64,
    /// Upper bound, already widened by the sampling error.
    #[serde(deserialize_with = "upper")]
    pub high: f64,
    /// "%" or "" for a plain mean.
    pub unit: String,
    /// How many observations the figure rests on.
    pub samples: u64,
    /// Whether the figure lies within the bounds.
    pub valid: bool,
}

impl AuditLine {
    /// The figure with its bounds: "0.42 %, allowed 0.90 to 1.10 %".
    pub fn bounds(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let number = |v: f64| if v.is_finite() { format!("{v:.2}") } else { NONE.into() };
        let value = format!("{}{unit}", number(self.value));
        match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => format!("{value}, allowed {} to {}{unit}", number(self.low), number(self.high)),
            (true, false) => format!("{value}, at least {}{unit}", number(self.low)),
            (false, true) => format!("{value}, at most {}{unit}", number(self.high)),
            (false, false) => value,
        }
    }
}

/// The outcome of one consistency condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckLine {
    /// Its number in the workload's rules.
    pub number: u32,
    /// What must hold.
    pub name: String,
    /// Whether it holds. A query that failed is a condition that does not hold.
    pub holds: bool,
    /// What was found, with an example of a violation.
    pub detail: String,
    /// Why a violation is nothing that went wrong: who made the data does not keep this condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exempt: Option<String>,
}

impl CheckLine {
    /// Whether it counts against the data: it does not hold, and nothing exempts it.
    pub fn fails(&self) -> bool {
        !self.holds && self.exempt.is_none()
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Not ended: it is running, or was killed.
    Partial,
    /// Ran to its planned end.
    Complete,
    /// Stopped by the user; its figures cover the shorter window.
    Interrupted,
    /// Ended by an error.
    Failed,
}

/// The measured window of one point and the counts over it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Which point of the run.
    pub point: u32,
    /// Virtual users.
    pub users: u32,
    /// From the window's opening to its closing, in nanoseconds as elapsed, not as planned.
    pub elapsed: Nanos,
    /// Time that users spent keying, thinking or reconnecting within the window, summed over users.
    pub idle: Nanos,
    /// Headline transactions (New-Order for TPROC-C) by the client's count.
    pub client_headline: u64,
    /// The same by the server's own count between the window's edges; none when it could not be read.
    pub server_headline: Option<u64>,
    /// Commits and rollbacks in the database between the edges by the server's own statistics; includes
    /// whatever else ran there.
    pub server_transactions: Option<u64>,
    /// CPU time of this process within the window, in nanoseconds, user and system.
    pub client_cpu: Nanos,
    /// Time that this process's threads were ready to run and had no CPU, within the window; none where the
    /// kernel does not say.
    #[serde(default)]
    pub client_run_delay: Option<Nanos>,
    /// The arrivals of an open loop; none for a closed one.
    #[serde(default)]
    pub schedule: Option<ArrivalSchedule>,
}

/// Everything that happens in a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A source of later events: its number, and what it is.
    Source {
        /// Its number, which no other source of the run has.
        id: SourceId,
        /// What it is.
        source: Source,
    },
    /// A phase began.
    Phase {
        /// Which point of the run.
        point: u32,
        /// Which phase.
        phase: Phase,
        /// When, on the run's clock.
        at: Nanos,
        /// Virtual users of the point; 0 outside the load.
        users: u32,
        /// How long it should last; none when that is not known or ends by count.
        planned: Option<Nanos>,
    },
    /// A long phase went on.
    Progress {
        /// What is being done, such as "loading warehouses".
        what: String,
        /// Units done.
        done: u64,
        /// Units in all.
        total: u64,
        /// Rows so far, where rows are loaded.
        rows: u64,
    },
    /// A second of the load is complete.
    Second(Second),
    /// The arrivals of one second of an open loop. Events for the same point and second add up, but for those
    /// who wait, as the last event reports.
    Arrivals(Arrivals),
    /// Errors of one kind in one second.
    Errors(ErrorCount),
    /// Something the reader of the timeline should know: a connection lost, a connection made again.
    Note {
        /// Which point of the run.
        point: u32,
        /// Seconds since the measured window opened.
        second: i64,
        /// As text.
        text: String,
    },
    /// A query of TPROC-H, or one of its refresh functions, was executed.
    Query(QueryExecution),
    /// A query of TPROC-H was executed once more after the load, for its plan.
    QueryAnalysis(Box<QueryAnalysis>),
    /// Sums of the workload's own counters over the measured window so far.
    Counters {
        /// Which point of the run.
        point: u32,
        /// In the workload's order.
        values: Vec<u64>,
    },
    /// The window closed.
    Window(Window),
    /// The self-audit of a point.
    Audit {
        /// Which point of the run.
        point: u32,
        /// Its lines.
        lines: Vec<AuditLine>,
    },
    /// An invariant of a point was checked.
    Invariant {
        /// Which point of the run.
        point: u32,
        /// The outcome.
        invariant: Invariant,
    },
    /// A consistency condition was checked.
    Check {
        /// Before or after the load.
        phase: Phase,
        /// The outcome.
        line: CheckLine,
    },
    /// Something was seen of the host or the database.
    Observed(Observation),
    /// A step of a scenario was done.
    Step(Step),
    /// A tenant of a scenario ended its load.
    Stretch(Stretch),
    /// A host of a fleet ended its part of a point.
    HostLoad(Box<HostLoad>),
    /// A sweep over users was fitted.
    Scalability(Scalability),
    /// A search for the highest rate ended.
    MaximumRate(MaximumRate),
    /// Resources were cut in turn.
    Squeeze(Squeeze),
    /// What a run of I/O jobs knows beside its counts.
    Storage {
        /// What it is: "facts" is what was seen of files, devices and host around the run, "jobs" the list of
        /// [`crate::storage::JobLine`], "result" the whole result as fio's JSON+ has it.
        what: String,
        /// The same as JSON.
        body: serde_json::Value,
    },
    /// The run ended.
    Finished {
        /// How.
        status: Status,
        /// The error that ended it, if one did.
        error: Option<String>,
    },
}

impl Event {
    /// The event's tag, as its JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Source { .. } => "source",
            Self::Phase { .. } => "phase",
            Self::Progress { .. } => "progress",
            Self::Second(_) => "second",
            Self::Arrivals(_) => "arrivals",
            Self::Errors(_) => "errors",
            Self::Note { .. } => "note",
            Self::Query(_) => "query",
            Self::QueryAnalysis(_) => "query-analysis",
            Self::Counters { .. } => "counters",
            Self::Window(_) => "window",
            Self::Audit { .. } => "audit",
            Self::Invariant { .. } => "invariant",
            Self::Check { .. } => "check",
            Self::Observed(_) => "observed",
            Self::Step(_) => "step",
            Self::Stretch(_) => "stretch",
            Self::HostLoad(_) => "host-load",
            Self::Scalability(_) => "scalability",
            Self::MaximumRate(_) => "maximum-rate",
            Self::Squeeze(_) => "squeeze",
            Self::Storage { .. } => "storage",
            Self::Finished { .. } => "finished",
        }
    }
}

/// An event with its source: a line of the stream as it is written and sent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SourcedEvent {
    /// Its source.
    #[serde(default, skip_serializing_if = "SourceId::is_local")]
    pub source_id: SourceId,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

#[cfg(test)]
mod tests;
