//! Events as JSON text and back. [`Event`] itself is written; it cannot be read back because a second's
//! histogram is only summed up there. Seconds have a table of their own.

use kelvin_measure::Nanos;
use kelvin_measure::event::{
    Arrivals, AuditLine, CheckLine, ErrorCount, Event, MaximumRate, Phase, Scalability, Squeeze, Status,
    Window,
};
use kelvin_measure::invariant::Invariant;
use kelvin_measure::observation::Observation;
use serde::Deserialize;

/// The event's tag, as its JSON has it.
pub(crate) fn name(event: &Event) -> &'static str {
    match event {
        Event::Phase { .. } => "phase",
        Event::Progress { .. } => "progress",
        Event::Second(_) => "second",
        Event::Arrivals(_) => "arrivals",
        Event::Errors(_) => "errors",
        Event::Note { .. } => "note",
        Event::Counters { .. } => "counters",
        Event::Window(_) => "window",
        Event::Audit { .. } => "audit",
        Event::Invariant { .. } => "invariant",
        Event::Check { .. } => "check",
        Event::Observed(_) => "observed",
        Event::Scalability(_) => "scalability",
        Event::MaximumRate(_) => "maximum-rate",
        Event::Squeeze(_) => "squeeze",
        Event::Storage { .. } => "storage",
        Event::Finished { .. } => "finished",
    }
}

/// Reads an event's JSON.
pub(crate) fn parse(json: &str) -> Result<Event, serde_json::Error> {
    serde_json::from_str::<Body>(json).map(Event::from)
}

/// The readable twin of [`Event`].
#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Body {
    Phase { point: u32, phase: Phase, at: Nanos, users: u32, planned: Option<Nanos> },
    Progress { what: String, done: u64, total: u64, rows: u64 },
    Arrivals(Arrivals),
    Errors(ErrorCount),
    Note { point: u32, second: i64, text: String },
    Counters { point: u32, values: Vec<u64> },
    Window(Window),
    Audit { point: u32, lines: Vec<Line> },
    Invariant { point: u32, invariant: Invariant },
    Check { phase: Phase, line: CheckLine },
    Observed(Observation),
    Scalability(Scalability),
    MaximumRate(MaximumRate),
    Squeeze(Squeeze),
    Storage { what: String, body: serde_json::Value },
    Finished { status: Status, error: Option<String> },
}

/// JSON has no infinity: a bound that is not there, and a figure that rests on nothing, are null.
#[derive(Deserialize)]
struct Line {
    name: String,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    unit: String,
    samples: u64,
    valid: bool,
}

impl From<Line> for AuditLine {
    fn from(line: Line) -> Self {
        Self {
            name: line.name,
            value: line.value.unwrap_or(f64::NAN),
            low: line.low.unwrap_or(f64::NEG_INFINITY),
            high: line.high.unwrap_or(f64::INFINITY),
            unit: line.unit,
            samples: line.samples,
            valid: line.valid,
        }
    }
}

impl From<Body> for Event {
    fn from(body: Body) -> Self {
        match body {
            Body::Phase { point, phase, at, users, planned } => {
                Self::Phase { point, phase, at, users, planned }
            }
            Body::Progress { what, done, total, rows } => Self::Progress { what, done, total, rows },
            Body::Arrivals(arrivals) => Self::Arrivals(arrivals),
            Body::Errors(count) => Self::Errors(count),
            Body::Note { point, second, text } => Self::Note { point, second, text },
            Body::Counters { point, values } => Self::Counters { point, values },
            Body::Window(window) => Self::Window(window),
            Body::Audit { point, lines } => {
                Self::Audit { point, lines: lines.into_iter().map(AuditLine::from).collect() }
            }
            Body::Invariant { point, invariant } => Self::Invariant { point, invariant },
            Body::Check { phase, line } => Self::Check { phase, line },
            Body::Observed(seen) => Self::Observed(seen),
            Body::Scalability(fit) => Self::Scalability(fit),
            Body::MaximumRate(found) => Self::MaximumRate(found),
            Body::Squeeze(found) => Self::Squeeze(found),
            Body::Storage { what, body } => Self::Storage { what, body },
            Body::Finished { status, error } => Self::Finished { status, error },
        }
    }
}
