//! The report as JSON, schema `kelvin-report/2`: the fields of [`RunReport`] under their names, which include the units
//! (`_s` seconds, `_us` microseconds, `_per_minute`, `_per_second`, `_percent`). `headline_per` states whether the
//! headline's name ("NOPM", "tps") refers to the value per minute or per second; both values are always present.
//! `latency`, `p50_us` and similar fields are service times; `response`, and `open` in the seconds, are response times,
//! which only an open loop has. In the rows of `response`, arrivals without an answer (`unanswered_percent`: failed,
//! refused, or not begun when the load ended) count as longer than all others, and `at_least` names the times that are
//! therefore lower bounds; the seconds' response times are those of answered arrivals. A value that the samples do not
//! support is null. `errors` and the errors of the seconds cover ramp-up, window and stop; all other values of a point
//! cover the window. `findings`, `verdict` and `observed` describe the activity of host and database and its meaning
//! for the results; they are empty or null if nothing was observed. `client_cpu_us_per_transaction` includes the
//! database's CPU time if the engine runs inside the client (SQLite). `state` of the run and of each point is
//! "counted", "void", "partial" or "failed", with its `reasons`; `valid` is whether the run counts. `status` is how the
//! run ended. Programs should accept unknown fields.

use crate::{Result, RunReport};

/// The report as indented JSON, one document, with a newline at its end.
pub fn render(report: &RunReport) -> Result<String> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}
