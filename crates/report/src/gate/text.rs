//! The gate for a terminal, 80 columns wide.

use super::{Gate, Outcome};
use crate::compare::{list, share};
use crate::text::{AMBER, BOLD, GREEN, Options, RED, broken, painted};

/// Differences that are told; the comparison has all.
const DIFFERENCES: usize = 5;

/// What was judged, and the verdict.
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
            format!("{name}: no run that counts")
        } else {
            format!("{name}: runs {}", list(runs))
        }
    };
    lines("", broken("base:      ", &side(&gate.base, &gate.base_runs)));
    lines("", broken("candidate: ", &side(&gate.candidate, &gate.candidate_runs)));
    for warning in &gate.warnings {
        lines(AMBER, broken("warning: ", warning));
    }
    lines("", vec![String::new()]);
    for row in &gate.rows {
        let colour = match row.outcome {
            Outcome::Passed => GREEN,
            Outcome::Regressed => RED,
            Outcome::Undecided | Outcome::Blind | Outcome::NotTestable | Outcome::Void => AMBER,
        };
        let lead = format!("{:<13}", row.outcome.word());
        lines(colour, broken(&lead, &format!("{} ({}), {}: {}", row.name, row.measure, row.load, row.words)));
    }
    if let Some(row) = gate.rows.iter().find(|row| row.ratio.is_some()) {
        let confidence = share(row.confidence);
        lines("", broken("", &format!("in brackets: the {confidence} interval of candidate over base")));
    }
    if !gate.differences.is_empty() {
        lines("", vec![String::new(), "what differs between base and candidate".into()]);
        for difference in gate.differences.iter().take(DIFFERENCES) {
            lines("", broken("  ", difference));
        }
        if let Some(more) = gate.differences.len().checked_sub(DIFFERENCES).filter(|more| *more > 0) {
            lines("", broken("  ", &format!("and {more} more; `kelvin compare` has all")));
        }
    }
    lines("", vec![String::new()]);
    lines(if gate.fails() { RED } else { BOLD }, broken("gate ", &gate.verdict()));
    out
}
