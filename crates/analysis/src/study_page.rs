//! The content of a study's page.

use serde::Serialize;

use crate::Analysis;

/// A study with its analysis.
#[derive(Debug, Clone, Serialize)]
pub struct StudyPageContent {
    /// What was found.
    pub analysis: Analysis,
    /// What was asked.
    pub question: String,
    /// The study that it continues.
    pub parent: Option<String>,
    /// What the answer holds for, in the author's words.
    pub universe: Vec<(String, String)>,
    /// The machine and the versions of the last session.
    pub facts: Vec<(String, String)>,
    /// The hypothesis in a sentence.
    pub statement: String,
    /// Why it should be so.
    pub mechanism: String,
    /// What else could explain the same.
    pub rivals: Vec<String>,
    /// When it was fixed, with its hash and the runs that had been begun before; none when it was not.
    pub lock: Option<(String, String, usize)>,
    /// What is not as it was fixed, or as it was before.
    pub deviations: Vec<String>,
    /// How each factor is applied: name, levels, how.
    pub method: Vec<(String, String, String)>,
    /// Blocks, seed, controls, reset, as text.
    pub design: Vec<(String, String)>,
    /// The run of which every run is a variation, as TOML; no password.
    pub run_toml: String,
    /// Measured runs in the order of time.
    pub runs: Vec<Member>,
    /// Runs that could not be made.
    pub failed: Vec<FailedRun>,
    /// Planned runs that have no result.
    pub missing: usize,
    /// What a person wrote, by phase.
    pub notes: [Vec<String>; 8],
    /// The version that made the page.
    pub kelvin: String,
}

/// A measured run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Member {
    /// Its number in the store.
    pub run: i64,
    /// Its place in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// The goal's figure.
    pub value: Option<f64>,
    /// Why it does not count.
    pub void: Option<String>,
    /// A separate page, beside the study's.
    pub page: Option<String>,
}

/// A run that could not be made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailedRun {
    /// Its place in time, from 1.
    pub place: u32,
    /// Its block, from 1.
    pub block: u32,
    /// Its treatment.
    pub treatment: String,
    /// Why not.
    pub why: String,
}
