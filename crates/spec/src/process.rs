//! How arrivals follow each other.

use serde::{Deserialize, Serialize};

/// How arrivals follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Process {
    /// Independent arrivals: exponential gaps, as of many people who do not know of each other.
    #[default]
    Poisson,
    /// Evenly spaced arrivals.
    Uniform,
}
