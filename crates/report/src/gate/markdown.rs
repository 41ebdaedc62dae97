//! The gate as Markdown, for a pull request.

use std::fmt::Write;

use super::{Gate, GateResult};
use crate::compare::{join_runs, percent, share};
use crate::table::escaped;
use kelvin_measure::text::{ends, significant};

/// A heading, a table with one row per measure, and the differences.
pub fn render(gate: &Gate) -> String {
    let mut out = String::new();
    let mark = if gate.fails() {
        "❌"
    } else if gate.lacks_runs() || gate.is_blind() {
        "⚠️"
    } else {
        "✅"
    };
    let _ = writeln!(out, "### {mark} Kelvin gate {}\n", escaped(&gate.verdict()));
    let _ = writeln!(
        out,
        "Base: {} (runs {}). Candidate: {} (runs {}).\n",
        escaped(&gate.base),
        join_runs(&gate.base_runs),
        escaped(&gate.candidate),
        join_runs(&gate.candidate_runs)
    );
    out.push_str("| measure | load | base | candidate | change | interval | allowed | outcome |\n");
    out.push_str("|---|---|--:|--:|--:|---|--:|---|\n");
    for row in &gate.rows {
        let (change, interval) = row.ratio.map_or(("–".into(), "–".into()), |(ratio, low, high)| {
            (percent(ratio), ends(low, high, percent))
        });
        let mark = match row.outcome {
            GateResult::Passed => "✅",
            GateResult::Regressed => "❌",
            GateResult::Undecided | GateResult::Blind if gate.strict => "❌",
            GateResult::Undecided | GateResult::Blind | GateResult::NotTestable | GateResult::Void => "⚠️",
        };
        let _ = writeln!(
            out,
            "| {} ({}) | {} | {} | {} | {change} | {interval} | {} | {mark} {} |",
            escaped(&row.name),
            escaped(&row.unit),
            escaped(&row.load),
            mean(&row.base),
            mean(&row.candidate),
            share(row.most),
            row.outcome.word()
        );
    }
    let explained =
        |outcome| matches!(outcome, GateResult::NotTestable | GateResult::Void | GateResult::Blind);
    for row in gate.rows.iter().filter(|row| explained(row.outcome)) {
        let _ = writeln!(out, "\n{}: {}.", escaped(&row.name), escaped(&row.words));
    }
    let list = |out: &mut String, title: &str, items: &[String]| {
        if !items.is_empty() {
            let _ = writeln!(out, "\n<details><summary>{title} ({})</summary>\n", items.len());
            for item in items {
                let _ = writeln!(out, "- {}", escaped(item));
            }
            out.push_str("\n</details>\n");
        }
    };
    list(&mut out, "What differs between base and candidate", &gate.differences);
    list(&mut out, "Warnings", &gate.warnings);
    out
}

/// Geometric mean, to match the ratio.
fn mean(values: &[f64]) -> String {
    if values.is_empty() || values.iter().any(|v| *v <= 0.0) {
        return "–".into();
    }
    significant((values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}
