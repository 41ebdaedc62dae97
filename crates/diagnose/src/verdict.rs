//! What limits the throughput.

use serde::Serialize;

use crate::Evidence;

/// One class of the time model with its share.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The class in words: "CPU", "log", "data reads", "row locks", …
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

/// What the operating system says about a class, independently of the database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// What was looked at.
    pub what: String,
    /// What was found, with its unit and the bound.
    pub found: String,
    /// Whether it agrees with the class.
    pub agrees: bool,
}

/// What the verdict came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
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
pub struct Verdict {
    /// Which point of the run.
    pub point: u32,
    /// What it came to.
    pub outcome: Outcome,
    /// The time model, the largest share first.
    pub shares: Vec<Share>,
    /// What the operating system says.
    pub witnesses: Vec<Witness>,
    /// In one sentence.
    pub sentence: String,
    /// The experiment that would decide or confirm it.
    pub next: String,
}

/// The verdict on a point; none for one whose window never opened.
pub fn verdict(_evidence: &Evidence, _point: u32) -> Option<Verdict> {
    None
}
