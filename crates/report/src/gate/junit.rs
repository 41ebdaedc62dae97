//! The gate as JUnit XML, for CI servers: a test case for each measure and load.

use std::fmt::Write;

use kelvin_measure::text::printable;

use super::{Gate, GateResult};
use crate::chart;
use crate::compare::join_runs;

/// A `testsuites` document. Rows that cannot be tested are skipped, and without --strict undecided and blind
/// ones too: neither passed nor failed. If a side has no run that counts, each row is an error of the type
/// `void`.
pub fn render(gate: &Gate) -> String {
    let failures = gate.rows.iter().filter(|row| gate.row_fails(row)).count();
    let skipped =
        |outcome| matches!(outcome, GateResult::NotTestable | GateResult::Undecided | GateResult::Blind);
    let skips = gate.rows.iter().filter(|row| skipped(row.outcome) && !gate.row_fails(row)).count();
    let void = gate.rows.iter().filter(|row| row.outcome == GateResult::Void).count();
    let tests = gate.rows.len();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{void}\" skipped=\"{skips}\" time=\"0\"");
    let _ = writeln!(out, "<testsuites name=\"kelvin gate\" {counts}>");
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" {counts}>",
        escaped(&format!("kelvin gate against {}", gate.base))
    );
    out.push_str("    <properties>\n");
    for (name, value) in [
        ("base", gate.base.clone()),
        ("base runs", join_runs(&gate.base_runs)),
        ("candidate", gate.candidate.clone()),
        ("candidate runs", join_runs(&gate.candidate_runs)),
        ("verdict", gate.verdict()),
    ] {
        let _ = writeln!(out, "      <property name=\"{name}\" value=\"{}\"/>", escaped(&value));
    }
    out.push_str("    </properties>\n");
    for row in &gate.rows {
        let name = escaped(&format!("{} at {}", row.measure, row.load));
        let _ = write!(out, "    <testcase classname=\"kelvin.gate\" name=\"{name}\" time=\"0\">");
        let words = escaped(&format!("{}: {}", row.name, row.words));
        if gate.row_fails(row) {
            let _ = write!(out, "<failure type=\"{}\" message=\"{words}\"/>", row.outcome.word());
        } else if row.outcome == GateResult::Void {
            let _ = write!(out, "<error type=\"void\" message=\"{words}\"/>");
        } else if skipped(row.outcome) {
            let _ = write!(out, "<skipped message=\"{words}\"/>");
        } else {
            let _ = write!(out, "<system-out>{words}</system-out>");
        }
        out.push_str("</testcase>\n");
    }
    let lines: Vec<&String> = gate.warnings.iter().chain(&gate.differences).collect();
    if !lines.is_empty() {
        out.push_str("    <system-out>");
        for line in lines {
            let _ = writeln!(out, "{}", escaped(line));
        }
        out.push_str("</system-out>\n");
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

/// Escapes text for an element or an attribute. Characters that XML 1.0 forbids become blanks.
fn escaped(text: &str) -> String {
    chart::escaped(&printable(text)).replace(['\u{fffe}', '\u{ffff}'], " ").replace('\'', "&apos;")
}
