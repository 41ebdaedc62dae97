//! The goal of a study, and the hypothesis of its author.

use kelvin_diagnose::Better;
use serde::{Deserialize, Serialize};

use super::Share;

/// The metric that decides the study; all others are exploratory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Goal {
    /// Id of a key figure ("nopm", "p99", "server-cpu") or the name of an observed metric.
    pub metric: String,
    /// Whether higher or lower is better.
    pub direction: Better,
    /// The smallest effect that matters: an effect that is certainly smaller counts as no difference.
    pub smallest_effect: Share,
}

/// The hypothesis, stated before the runs in a form that they can refute.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hypothesis {
    /// The hypothesis in a sentence.
    pub statement: String,
    /// The supposed mechanism.
    pub mechanism: String,
    /// The factor that is changed.
    pub factor: String,
    /// The level from which it changes.
    pub from: String,
    /// The level to which it changes.
    pub to: String,
    /// Other explanations of the same effect. They are not tested separately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<String>,
    /// The predictions: the goal's metric, and the signature that distinguishes this mechanism from others.
    pub predicts: Vec<Prediction>,
}

/// The predicted change of a metric when the factor changes from one level to the other, over all levels of the
/// others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Prediction {
    /// Id of a key figure, or the name of an observed metric.
    pub metric: String,
    /// The direction of the change.
    pub direction: Direction,
    /// The minimum size of the change; for "same" the maximum. The default is any size, and for "same" the smallest
    /// effect that matters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Share>,
}

/// The direction of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Up.
    Higher,
    /// Down.
    Lower,
    /// No change.
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
