//! A run as Markdown.

use std::fmt::Write as _;

use crate::table::{Table, escaped};
use crate::text::{RankedFindings, interference_sentence};
use crate::{LatencyRow, PointReport, RunReport};
use kelvin_measure::text::{bounded, ms, rate, seconds, significant_or_none};

/// The run for a pull request or a wiki: headline, state, verdict, findings with their remedies, and the
/// latencies of each point. With `all`, every finding is listed instead of some being only counted.
pub fn render(report: &RunReport, all: bool) -> String {
    let mut out = String::new();
    let label = report.label.as_ref().map_or_else(String::new, |label| format!(" ({})", escaped(label)));
    let _ = writeln!(out, "## Kelvin run {}{label}: {}\n", report.run, escaped(&report.subject()));
    if let Some(best) = report.best().filter(|_| !report.is_scenario()) {
        let interval = best.within_run.map_or_else(String::new, |p| {
            format!(" ± {:.1} % (95 %, within this run)", p.half_width_percent)
        });
        let value = rate(best.headline(report.headline_per));
        let _ = writeln!(out, "**{value} {}**{interval}", report.headline);
        let _ = writeln!(
            out,
            "with {}, {} measured after a ramp-up of {}.\n",
            best.users(),
            seconds(best.window_s),
            seconds(best.ramp_up_s)
        );
    }
    for one in report.scenario.iter().flat_map(|scenario| &scenario.interference) {
        let _ = writeln!(out, "- {}", escaped(&interference_sentence(one)));
    }
    if report.scenario.as_ref().is_some_and(|scenario| !scenario.interference.is_empty()) {
        out.push('\n');
    }
    let _ = writeln!(out, "State: {}\n", escaped(&report.judgement.describe()));
    for verdict in report.points.iter().filter_map(|point| point.verdict.as_ref()) {
        let _ = writeln!(out, "Verdict: {}\n", escaped(&verdict.sentence));
    }
    out.push_str(&findings(report, all));
    for point in &report.points {
        if report.points.len() > 1 {
            let value = rate(point.headline(report.headline_per));
            let _ = writeln!(out, "### {}: {value} {}\n", escaped(&point.name()), report.headline);
        }
        out.push_str(&times(report, point).markdown());
        out.push('\n');
    }
    out
}

fn findings(report: &RunReport, all: bool) -> String {
    let mut ranked = RankedFindings::of(report);
    if all {
        ranked = ranked.all();
        ranked.first.append(&mut ranked.minor);
    }
    let mut out = String::new();
    for one in &ranked.first {
        let (severity, title) = (one.finding.severity.word(), escaped(&one.finding.title));
        let _ =
            writeln!(out, "- **{severity}**: {title}{}. {}", escaped(&one.about), escaped(&one.finding.next));
    }
    if let Some(counted) = ranked.counted() {
        let _ = writeln!(
            out,
            "- {}{counted}: `kelvin show {} --all --format markdown`",
            if ranked.first.is_empty() { "" } else { "and " },
            report.run
        );
    }
    if !out.is_empty() {
        out.push('\n');
    }
    out
}

/// The latencies of a point as a table.
fn times(report: &RunReport, p: &PointReport) -> Table {
    let unit = if report.is_io() { "µs" } else { "ms" };
    let mut table = Table::new("time,count,mean,p50,p95,p99,p99.9,max");
    table.columns[0] = format!("time ({unit})");
    let mut rows = |name: &str, rows: &[LatencyRow], all: &LatencyRow| {
        // The transactions of different tenants have no common sum.
        let all = (rows.len() > 1 && !report.is_scenario()).then_some(all);
        for row in rows.iter().chain(all) {
            let mut fields = vec![format!("{name}: {}", row.kind), row.count().to_string()];
            let shown = |value| if report.is_io() { significant_or_none(value) } else { ms(value) };
            fields.extend(row.times().map(|time| bounded(time, shown)));
            table.rows.push(fields);
        }
    };
    if let Some(all) = &p.response_all {
        rows("response", &p.response, all);
    }
    rows(p.words.time_short, &p.latency, &p.latency_all);
    for source in &p.sources {
        rows(&source.name, std::slice::from_ref(&source.latency), &source.latency);
    }
    table
}
