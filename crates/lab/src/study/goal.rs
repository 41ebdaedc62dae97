//! What a study is to decide, and what its author expects.

use kelvin_diagnose::Better;
use serde::{Deserialize, Serialize};

use super::Share;

/// The one metric by which the study decides; every other is exploratory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Goal {
    /// Id of a key figure ("nopm", "p99", "server-cpu") or the name of an observed metric.
    pub metric: String,
    /// Which way it is better.
    pub direction: Better,
    /// The smallest effect that matters: what is surely smaller counts as no difference.
    pub smallest_effect: Share,
}

/// What the author believes before the runs, in a form that can turn out wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hypothesis {
    /// In a sentence.
    pub statement: String,
    /// Why it should be so.
    pub mechanism: String,
    /// The factor that it is about.
    pub factor: String,
    /// The level from which it changes.
    pub from: String,
    /// The level to which it changes.
    pub to: String,
    /// What else could explain the same; nothing of it is tested by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,
    /// What must be seen when it holds: the goal's metric, and the signature that distinguishes this mechanism from others.
    pub predicts: Vec<Prediction>,
}

/// What one metric does when the factor changes from one level to the other, over all levels of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prediction {
    /// Id of a key figure, or the name of an observed metric.
    pub metric: String,
    /// Where it goes.
    pub direction: Direction,
    /// By how much at least; of "same", within how much. Left out: by anything, and within the smallest effect that
    /// matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Share>,
}

/// Where a metric goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Up.
    Higher,
    /// Down.
    Lower,
    /// Nowhere.
    Same,
}

impl Direction {
    /// Its name in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
            Self::Same => "same",
        }
    }
}
