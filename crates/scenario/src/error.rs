//! What is wrong with a scenario's file, and where.

use std::ops::Range;

/// Why a scenario cannot be used. As text "FILE:LINE:COLUMN: what is wrong".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ScenarioError {
    /// The file, and in it line and column, both from 1, where they are known.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

/// Something wrong at a place of the text, in bytes; the file adds the rest.
pub(crate) type Refusal = (Range<usize>, String);

impl ScenarioError {
    /// With the whole file.
    pub(crate) fn of_file(name: &str, message: impl Into<String>) -> Self {
        Self { place: name.into(), message: kelvin_measure::redact(&message.into()) }
    }

    /// At a place of the text.
    pub(crate) fn at_span(name: &str, text: &str, (span, message): Refusal) -> Self {
        let before = text.get(..span.start.min(text.len())).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
        // A message may repeat a value that it was refused for.
        Self { place: format!("{name}:{line}:{column}"), message: kelvin_measure::redact(&message) }
    }
}
