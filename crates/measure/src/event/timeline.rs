//! The timeline of a scenario: its steps, and the stretches in which its tenants had their load on.

use serde::{Deserialize, Serialize};

use super::ArrivalSchedule;
use crate::Nanos;

/// A step of a scenario: what its timeline did, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Which point of the run.
    pub point: u32,
    /// Its number in the timeline, from 1.
    pub number: u32,
    /// Since the window opened, in nanoseconds.
    pub at: Nanos,
    /// What it did.
    pub kind: StepKind,
    /// The tenants that it did it to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<String>,
    /// The same as text: the annotation of charts.
    pub text: String,
    /// Whether charts show it.
    pub annotated: bool,
}

impl Step {
    /// "60.0 s: start dss".
    pub fn line(&self) -> String {
        format!("{:.1} s: {}", self.at as f64 / 1e9, self.text)
    }
}

/// What a step of a scenario did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Tenants began their load.
    Start,
    /// Tenants ended it, because a step said so or by themselves.
    Stop,
    /// Their rate or number of users changed.
    Change,
    /// A command was run.
    Run,
    /// Nothing but a note.
    Mark,
}

impl StepKind {
    /// Whether the load was another one before it.
    pub fn changes_load(self) -> bool {
        matches!(self, Self::Start | Self::Stop | Self::Change)
    }
}

/// A stretch of time in which a tenant had its load on, as its source reports at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Which point of the run.
    pub point: u32,
    /// From when to when, since the window opened, in nanoseconds.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// Virtual users, or workers.
    pub users: u32,
    /// Headline transactions by the client's count.
    pub client_headline: u64,
    /// The same by the server's own count, where it could be read.
    pub server_headline: Option<u64>,
    /// The arrivals of an open loop.
    pub schedule: Option<ArrivalSchedule>,
    /// Whether they are a Poisson process whose rate no step changes.
    #[serde(default)]
    pub poisson: bool,
}
