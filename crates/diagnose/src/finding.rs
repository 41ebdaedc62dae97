//! A finding: a fact that the reader of a result has to know, with its evidence.

use kelvin_measure::text;
use serde::Serialize;

use crate::Effect;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The result is misleading, or limited by something that can be fixed: act before relying on it.
    Red,
    /// The result is valid, but should not be quoted without this.
    Amber,
    /// For completeness.
    Note,
}

impl Severity {
    /// Its label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Red => "red",
            Self::Amber => "amber",
            Self::Note => "note",
        }
    }
}

/// One line of evidence: the examined quantity and its value, with the unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EvidenceLine {
    /// The quantity, such as "device reads".
    pub what: String,
    /// The value with its unit, such as "3.1 MB/s of 240 MB/s".
    pub found: String,
}

impl EvidenceLine {
    /// A line of evidence.
    pub fn new(what: impl Into<String>, found: impl Into<String>) -> Self {
        Self { what: what.into(), found: found.into() }
    }

    /// How many of the active sessions, on average: "1.2 of 8 active (15 %)".
    pub(crate) fn of_active(what: impl Into<String>, sessions: f64, active: f64) -> Self {
        let share = if active > 0.0 { sessions / active } else { 0.0 };
        let share = text::percent(share);
        Self::new(what, format!("{} of {} active ({share})", text::number(sessions), text::number(active)))
    }
}

/// A fact that the reader of a result has to know.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A stable identifier, such as "checkpoint-in-window": also the name of its page in `docs/findings/`.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// The point of the run that it is about; `None` when it is about the whole run.
    pub point: Option<u32>,
    /// One sentence, with the value.
    pub title: String,
    /// The evidence.
    pub evidence: Vec<EvidenceLine>,
    /// How much of the result it explains, or why that is unknown.
    pub effect: Effect,
    /// Whether its maximum effect is below the run's own precision: it is then shown only with all findings.
    pub below_precision: bool,
    /// The bound that was crossed and where it comes from.
    pub threshold: String,
    /// The recommended action.
    pub next: String,
}

impl Finding {
    /// Whether it is shown by default.
    pub fn is_shown(&self) -> bool {
        !self.below_precision
    }

    /// Its page in the user guide.
    pub fn page(&self) -> String {
        format!("docs/findings/{}.md", self.id)
    }
}
