//! The report as JSON, schema `kelvin-report/2`: the fields of [`RunReport`] under their names, which carry the
//! units (`_s` seconds, `_us` microseconds, `_per_minute`, `_per_second`, `_percent`). `headline_per` says whether the
//! headline's name ("NOPM", "tps") goes with the figure per minute or per second; both figures are always there.
//! `latency`, `p50_us` and the like are service times; `response`, and `open` in the seconds, are response times, which
//! only an open loop has. In the rows of `response`, arrivals without an answer (`unanswered_percent`: failed, refused, or
//! not begun when the load ended) count as longer than all others, and `at_least` names the times that are therefore known
//! from below only; the seconds' response times are of what was served. A figure that the samples do not support is null. `errors` and the errors of the seconds cover ramp-up, window and stop; all other figures of
//! a point cover the window. `findings`, `verdict` and `observed` say what host and database did and what that means
//! for the figures; they are empty or null where nothing was observed. `client_cpu_us_per_transaction` contains the database's own CPU time where the
//! engine runs inside the client (SQLite). `state` of the run and of each point is "counted", "void", "partial" or "failed", with
//! its `reasons`; `valid` is whether the run counts. `status` says how the run ended. Programs should accept fields that they do not know.

use crate::{Result, RunReport};

/// The report as indented JSON, one document, with a newline at its end.
pub fn render(report: &RunReport) -> Result<String> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    Ok(text)
}
