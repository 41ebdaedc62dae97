//! What holds for executions of the load's statements for their plans on every engine.

use std::time::{Duration, Instant};

use kelvin_database::Error;
use kelvin_measure::sampled_execution::SampledExecution;

/// What one execution may take: less than the connection's own patience.
const LIMIT: Duration = Duration::from_secs(2);
/// So long after the window's end no further statement is executed, and none is waited for: the whole must be there in the time that a
/// watcher has for its last words.
const ALL: Duration = Duration::from_secs(9);
/// Statements whose text is kept.
pub(crate) const MOST_TEXTS: usize = 1000;
/// Nodes of a plan that are reported.
pub(crate) const MOST_NODES: usize = 5;
/// From so many times as many or as few rows a node is reported.
pub(crate) const TIMES: f64 = 10.0;

/// What the next execution may take, at least a millisecond, or why there is none; the window ended at `ended`.
pub(crate) fn limit(ended: Instant) -> Result<Duration, String> {
    let left = ALL.saturating_sub(ended.elapsed());
    if left.as_millis() == 0 {
        return Err(format!("the previous statements took {} s", ALL.as_secs()));
    }
    Ok(LIMIT.min(left))
}

/// An execution that failed. The server's own message may repeat values: "Key (name)=(Smith) already exists".
pub(crate) fn refused(error: &Error) -> SampledExecution {
    SampledExecution::Refused(format!("the server ended it with the error {}", error.code()))
}
