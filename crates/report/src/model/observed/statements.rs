//! Statements from the server's own statistics.

use kelvin_diagnose::Evidence;
use serde::Serialize;

/// One statement in a point's window, as counted by the server.
#[derive(Debug, Clone, Serialize)]
pub struct ServerStatement {
    /// Its identifier; as text, since JavaScript cannot hold 64 bits.
    pub query: String,
    /// Its text without constants.
    pub text: String,
    /// Executions.
    pub calls: u64,
    /// Execution time in milliseconds.
    pub total_ms: f64,
    /// Mean time per execution in milliseconds.
    pub mean_ms: Option<f64>,
    /// Share of the execution time of all statements, in per cent.
    pub share_percent: Option<f64>,
    /// Rows returned or affected.
    pub rows: u64,
    /// Pages found in the database's buffer cache.
    pub blocks_hit: Option<u64>,
    /// Pages not found there.
    pub blocks_read: Option<u64>,
    /// Bytes of log that it wrote; none if not counted.
    pub wal_bytes: Option<u64>,
    /// A hash of the plan, which changes with the access path; `None` without a plan.
    pub plan_hash: Option<String>,
    /// The plan as the database prints it.
    pub plan: Option<String>,
}

/// The statements with the most execution time, and the execution time of all statements in milliseconds.
pub(super) fn server_statements(evidence: &Evidence, point: u32) -> (Vec<ServerStatement>, Option<f64>) {
    let Some((statements, total_ms)) = evidence.statements(point) else { return (Vec::new(), None) };
    let row = |s: &kelvin_measure::observation::StatementTotals| ServerStatement {
        query: s.query.to_string(),
        text: s.text.clone(),
        calls: s.calls,
        total_ms: s.total_ms,
        mean_ms: (s.calls > 0).then(|| s.total_ms / s.calls as f64),
        share_percent: (total_ms > 0.0).then(|| 100.0 * s.total_ms / total_ms),
        rows: s.rows,
        blocks_hit: s.blocks_hit,
        blocks_read: s.blocks_read,
        wal_bytes: s.wal_bytes,
        plan_hash: s.plan.as_ref().map(|plan| plan.hash.clone()),
        plan: s.plan.as_ref().map(|plan| plan.text.clone()),
    };
    (statements.iter().map(row).collect(), Some(total_ms))
}
