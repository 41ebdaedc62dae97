//! Statements as text: a table that fits the terminal, with the text and plan of each statement below its
//! row.

use std::fmt::Write as _;

use kelvin_measure::text::{cut, fixed_percent};

use super::figures::Statement;
use super::{Changes, TopSql};
use crate::args::Measure;
use crate::out::wrapped;

/// Maximum number of lines of a statement's text.
const TEXT_LINES: usize = 3;

/// A column of the table.
struct Column {
    heading: &'static str,
    width: usize,
    measure: Option<Measure>,
    of: fn(&Statement) -> Option<f64>,
}

static COLUMNS: [Column; 6] = [
    Column { heading: "calls", width: 9, measure: Some(Measure::Calls), of: |one| one.calls },
    Column { heading: "mean ms", width: 9, measure: None, of: |one| one.mean_ms },
    Column { heading: "rows", width: 9, measure: None, of: |one| one.rows },
    Column {
        heading: "CPU s",
        width: 8,
        measure: Some(Measure::Cpu),
        of: |one| one.cpu_ms.map(|ms| ms / 1000.0),
    },
    Column { heading: "reads", width: 9, measure: Some(Measure::Reads), of: |one| one.reads },
    Column { heading: "writes", width: 9, measure: Some(Measure::Writes), of: |one| one.writes },
];

/// Renders the whole result.
pub(super) fn render(top: &TopSql) -> String {
    let mut text = String::new();
    heading(&mut text, top);
    statements(&mut text, top);
    if !top.not_ended.is_empty() {
        text.push_str("\nSampled but not counted: still running, or of another database\n");
        for one in &top.not_ended {
            let line = format!(
                "  {:<20}  {:>6.2} s sampled  {}",
                one.query,
                one.elapsed_ms / 1000.0,
                one.text.trim()
            );
            let _ = writeln!(text, "{}", cut(&line, top.width).trim_end());
        }
    }
    if let Some(since) = &top.since {
        changes(&mut text, since, top);
    }
    if !top.not_seen.is_empty() {
        text.push_str("\nNot seen\n");
    }
    for absent in &top.not_seen {
        wrapped(&mut text, &format!("{}: {}", absent.what, absent.why), 2, 4, top.width);
    }
    text
}

fn heading(text: &mut String, top: &TopSql) {
    let _ = writeln!(text, "{}", cut(&format!("{}, {}", top.target, top.product), top.width));
    let by = match top.by {
        Measure::Cpu => "CPU time",
        Measure::Elapsed => "execution time",
        Measure::Reads => top.reads,
        Measure::Writes => top.writes,
        Measure::Calls => "executions",
    };
    let when = match (top.seconds, &top.counters_began) {
        (Some(seconds), _) => format!("over {seconds:.1} s"),
        (None, Some(began)) => format!("since the counters began at {began}"),
        (None, None) => "since the counters began, at a time that the server does not report".to_owned(),
    };
    let total = format!("{:.2} s of execution in all", top.total_ms / 1000.0);
    let words = match &top.not_counted {
        None => format!("Statements of this database {when} by {by}, counted by the server; {total}"),
        Some(_) => format!(
            "Statements of all sessions {when} by {by}, from {} samples of what the sessions ran; about {total}",
            top.samples
        ),
    };
    wrapped(text, &words, 0, 2, top.width);
    if let Some(why) = &top.not_counted {
        wrapped(text, &format!("Not counted: {why}"), 0, 2, top.width);
    }
    if top.by == Measure::Cpu && top.cpu_is_sampled {
        let words = format!("CPU time is sampled ({} samples): on a CPU, or waiting for one", top.samples);
        wrapped(text, &words, 0, 2, top.width);
    }
}

/// The columns that fit. The measure's column is always kept; columns without any value are left out.
fn columns(top: &TopSql) -> Vec<&'static Column> {
    let known = |column: &&Column| top.statements.iter().any(|one| (column.of)(one).is_some());
    let mut found: Vec<&Column> = COLUMNS.iter().filter(known).collect();
    let mut width = 3 + 22 + 10 + 9 + found.iter().map(|column| column.width).sum::<usize>();
    while width > top.width {
        let Some(last) = found.iter().rposition(|column| column.measure != Some(top.by)) else { break };
        width -= found.remove(last).width;
    }
    found
}

fn statements(text: &mut String, top: &TopSql) {
    if top.statements.is_empty() {
        text.push_str("\nNo statement was seen\n");
        return;
    }
    let columns = columns(top);
    let mut heading = format!("\n{:>3} {:<21}{:>9}{:>8} ", "#", "query", "elapsed s", "share");
    for column in &columns {
        heading.push_str(&format!("{:>width$}", column.heading, width = column.width));
    }
    let _ = writeln!(text, "{heading}");
    for (index, one) in top.statements.iter().enumerate() {
        let share = fixed_percent(one.share, 1);
        let mut row = format!(
            "{:>3} {:<21}{:>9}{share:>8} ",
            index + 1,
            one.query,
            figure(Some(one.elapsed_ms / 1000.0))
        );
        for column in &columns {
            row.push_str(&format!("{:>width$}", figure((column.of)(one)), width = column.width));
        }
        let _ = writeln!(text, "{}", row.trim_end());
        statement(text, one, top.width);
    }
    if columns.iter().any(|column| matches!(column.measure, Some(Measure::Reads | Measure::Writes))) {
        let _ = writeln!(text, "reads: {}; writes: {}", top.reads, top.writes);
    }
}

fn statement(text: &mut String, one: &Statement, width: usize) {
    let flat = one.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut body = String::new();
    wrapped(&mut body, &cut(&flat, TEXT_LINES * (width - 4)), 4, 4, width);
    if !flat.is_empty() {
        text.push_str(&body);
    }
    let waits: Vec<String> = one
        .waits
        .iter()
        .filter(|(_, share)| *share >= 0.01)
        .take(4)
        .map(|(label, share)| format!("{label} {}", fixed_percent(Some(*share), 0)))
        .collect();
    if !waits.is_empty() {
        let _ = writeln!(text, "    sampled: {}", waits.join(", "));
    }
    if let (Some(hash), Some(plan)) = (&one.plan, &one.plan_text) {
        let _ = writeln!(text, "    plan {hash}");
        for line in plan.lines() {
            let _ = writeln!(text, "      {}", cut(line, width - 6));
        }
    }
    if let Some(why) = &one.no_plan {
        wrapped(text, &format!("no plan: {why}"), 4, 6, width);
    }
}

fn changes(text: &mut String, since: &Changes, top: &TopSql) {
    let taken = since.taken.strftime("%Y-%m-%d %H:%M UTC");
    let of = since.seconds.map_or_else(|| "totals".into(), |seconds| format!("over {seconds:.1} s"));
    let elsewhere = if since.target == top.target { String::new() } else { format!(" on {}", since.target) };
    let product = if since.product == top.product { String::new() } else { format!(", {}", since.product) };
    text.push('\n');
    wrapped(text, &format!("Changed since {taken}{elsewhere}{product} ({of})"), 0, 2, top.width);
    if since.changes.is_empty() {
        text.push_str("  none of these statements\n");
    }
    for one in &since.changes {
        let mut words = Vec::new();
        if one.new {
            words.push("new".to_owned());
        }
        words.extend(one.mean.as_ref().map(|mean| {
            format!(
                "mean time × {} ({} ms, was {} ms)",
                figure(Some(mean.factor)),
                figure(Some(mean.now_ms)),
                figure(Some(mean.before_ms))
            )
        }));
        words.extend(
            one.plan.as_ref().map(|plan| format!("plan changed ({}, was {})", plan.now, plan.before)),
        );
        wrapped(text, &format!("{}: {}", one.query, words.join("; ")), 2, 4, top.width);
        for line in one.plan.iter().flat_map(|plan| plan.before_text.lines()) {
            let _ = writeln!(text, "      was: {}", cut(line, top.width - 11));
        }
    }
    if let Some(why) = since.plans_not_compared {
        let _ = writeln!(text, "  {why}");
    }
}

/// A value in at most eight columns; larger numbers in thousands, millions, billions.
fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".into() };
    let (value, unit) = match value.abs() {
        large if large >= 1e10 => (value / 1e9, "G"),
        large if large >= 1e7 => (value / 1e6, "M"),
        large if large >= 1e5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        whole if whole.fract() == 0.0 || whole >= 100.0 => 0,
        small if small >= 10.0 => 1,
        small if small >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_fit_their_columns() {
        for (value, expected) in [
            (0.0, "0"),
            (3.0, "3"),
            (0.1234, "0.123"),
            (1.005, "1.00"),
            (99_999.4, "99999"),
            (123_456.0, "123k"),
            (12_345_678.0, "12.3M"),
            (2e12, "2000G"),
        ] {
            assert_eq!(figure(Some(value)), expected);
        }
        assert_eq!(figure(None), "–");
    }
}
