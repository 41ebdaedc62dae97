//! Errors by class and code.

use kelvin_measure::event::Series;
use kelvin_measure::labels::WorkloadLabels;
use kelvin_store::ErrorGroup;
use serde::Serialize;

/// The errors of one class and code.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorRow {
    /// Transaction type; "connection" if none was active, "sync" for syncs of I/O jobs.
    pub kind: String,
    /// The class.
    pub class: String,
    /// The engine's code.
    pub code: String,
    /// The first message.
    pub message: String,
    /// Number of errors.
    pub count: u64,
    /// Number of errors after which the transaction was retried.
    pub retried: u64,
    /// Second of the first one, since the window opened.
    pub first_s: i64,
    /// Second of the last one.
    pub last_s: i64,
}

pub(super) fn error_row(group: ErrorGroup, kinds: &[Series], words: &WorkloadLabels) -> ErrorRow {
    let name = |k: u16| kinds.get(usize::from(k)).map_or_else(|| format!("type {k}"), |n| n.name.clone());
    ErrorRow {
        kind: group.kind.map_or_else(|| words.no_kind.into(), name),
        class: group.class,
        code: group.code,
        message: group.message,
        count: group.count,
        retried: group.retried,
        first_s: group.seconds.0,
        last_s: group.seconds.1,
    }
}
