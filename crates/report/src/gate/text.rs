//! The gate for a terminal, 80 columns wide.

use super::{Gate, GateResult};
use crate::compare::{join_runs, share};
use crate::text::{AMBER, BOLD, GREEN, Options, RED, painted, wrap_lines};

/// Number of printed differences; the comparison lists all.
const DIFFERENCES: usize = 5;

/// The measures, and the verdict.
pub fn render(gate: &Gate, options: Options) -> String {
    let mut out = String::new();
    let mut lines = |colour: &str, lines: Vec<String>| {
        for line in lines {
            out.push_str(painted(options.colour, colour, &line).trim_end());
            out.push('\n');
        }
    };
    let side = |name: &str, runs: &[i64]| {
        if runs.is_empty() {
            format!("{name}: no counted run")
        } else {
            format!("{name}: runs {}", join_runs(runs))
        }
    };
    lines("", wrap_lines("base:      ", &side(&gate.base, &gate.base_runs)));
    lines("", wrap_lines("candidate: ", &side(&gate.candidate, &gate.candidate_runs)));
    for warning in &gate.warnings {
        lines(AMBER, wrap_lines("warning: ", warning));
    }
    lines("", vec![String::new()]);
    for row in &gate.rows {
        let colour = match row.outcome {
            GateResult::Passed => GREEN,
            GateResult::Regressed => RED,
            GateResult::Undecided | GateResult::Blind | GateResult::NotTestable | GateResult::Void => AMBER,
        };
        let lead = format!("{:<13}", row.outcome.word());
        lines(
            colour,
            wrap_lines(&lead, &format!("{} ({}), {}: {}", row.name, row.measure, row.load, row.words)),
        );
    }
    if let Some(row) = gate.rows.iter().find(|row| row.ratio.is_some()) {
        let confidence = share(row.confidence);
        lines("", wrap_lines("", &format!("in brackets: the {confidence} interval of candidate over base")));
    }
    if !gate.differences.is_empty() {
        lines("", vec![String::new(), "what differs between base and candidate".into()]);
        for difference in gate.differences.iter().take(DIFFERENCES) {
            lines("", wrap_lines("  ", difference));
        }
        if let Some(more) = gate.differences.len().checked_sub(DIFFERENCES).filter(|more| *more > 0) {
            lines("", wrap_lines("  ", &format!("and {more} more; `kelvin compare` lists all")));
        }
    }
    lines("", vec![String::new()]);
    lines(if gate.fails() { RED } else { BOLD }, wrap_lines("gate ", &gate.verdict()));
    out
}
