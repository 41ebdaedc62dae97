//! The content of a study's page.

use serde::Serialize;

use crate::Analysis;

/// A study with its analysis.
#[derive(Debug, Clone, Serialize)]
pub struct StudyPageContent {
    /// The results.
    pub analysis: Analysis,
    /// The question of the study.
    pub question: String,
    /// The study that it continues.
    pub parent: Option<String>,
    /// The scope of the answer, in the author's words.
    pub universe: Vec<(String, String)>,
    /// The machine and the versions of the last session.
    pub facts: Vec<(String, String)>,
    /// The hypothesis in a sentence.
    pub statement: String,
    /// The supposed mechanism.
    pub mechanism: String,
    /// Other explanations of the same effect.
    pub rivals: Vec<String>,
    /// When the hypothesis was locked, with its hash and the number of runs begun before; none if it was not locked.
    pub lock: Option<(String, String, usize)>,
    /// Deviations from the lock, or from earlier sessions.
    pub deviations: Vec<String>,
    /// How each factor is applied: name, levels, method.
    pub method: Vec<(String, String, String)>,
    /// Blocks, seed, controls, reset, as text.
    pub design: Vec<(String, String)>,
    /// The specification that every run is a variation of, as TOML; no password.
    pub run_toml: String,
    /// Measured runs in time order.
    pub runs: Vec<Member>,
    /// Runs that failed to execute.
    pub failed: Vec<FailedRun>,
    /// Planned runs without a result.
    pub missing: usize,
    /// The user's notes, by phase.
    pub notes: [Vec<String>; 8],
    /// The version of Kelvin that wrote the page.
    pub kelvin: String,
}

/// A measured run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Member {
    /// Its number in the store.
    pub run: i64,
    /// Its position in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// The value of the goal's metric.
    pub value: Option<f64>,
    /// Why it is void; none if it counts.
    pub void: Option<String>,
    /// The run's own page next to the study's.
    pub page: Option<String>,
}

/// A run that failed to execute.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedRun {
    /// Its position in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// The reason.
    pub why: String,
}
