//! A finding: one thing that the reader of a figure has to know, with what shows it.

use serde::Serialize;

use crate::Effect;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The figure is not what it seems, or is limited by something that can be mended: act before believing it.
    Red,
    /// The figure stands, but whoever quotes it should know this.
    Amber,
    /// For completeness.
    Note,
}

impl Severity {
    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Amber => "amber",
            Self::Note => "note",
        }
    }
}

/// One line of evidence: what was examined and what was found, with its unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceLine {
    /// What, such as "device reads".
    pub what: String,
    /// The figure with its unit, such as "3.1 MB/s of 240 MB/s".
    pub found: String,
}

impl EvidenceLine {
    /// A line of evidence.
    pub fn new(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), found: found.into() }
    }
}

/// One thing that the reader of a figure has to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Stable, such as "checkpoint-in-window": also the name of its page in `docs/findings/`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The point of the run that it is about; none when it is about the whole run.
    pub point: Option<u32>,
    /// In one sentence, with the figure.
    pub title: String,
    /// What shows it.
    pub evidence: Vec<EvidenceLine>,
    /// How much of the figure it explains, or why that is not known.
    pub effect: Effect,
    /// Whether the most that it explains is less than the run knows its own figure to: it is then shown only when everything is.
    pub below_precision: bool,
    /// The bound that was crossed and where it comes from.
    pub threshold: String,
    /// What to do next.
    pub next: String,
}

impl Finding {
    /// Whether it is shown where nobody asked for everything.
    pub fn is_shown(&self) -> bool {
        !self.below_precision
    }

    /// Its page in the user guide.
    pub fn page(&self) -> String {
        format!("docs/findings/{}.md", self.id)
    }
}
