//! What holds for executions of the load's statements for their plans on every engine.

use std::time::Duration;

/// What one execution may take: less than the connection's own patience.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);
/// So long after the window's end no further statement is executed, and none is waited for: the whole must be there in the time that a
/// watcher has for its last words.
pub(crate) const ALL: Duration = Duration::from_secs(9);
/// Statements whose text is kept.
pub(crate) const MOST_TEXTS: usize = 1000;
/// Nodes of a plan that are reported.
pub(crate) const MOST_NODES: usize = 5;
/// From so many times as many or as few rows a node is reported.
pub(crate) const TIMES: f64 = 10.0;
