//! Waits as text: tables that fit the terminal.

use std::fmt::Write as _;

use kelvin_measure::text::{cut, fixed_percent};
use kelvin_observe::activity::{BlockedSession, EventRow, FileRow, LatchKind, LatchRow, Latency};

use super::Waits;
use crate::out::wrapped;

/// Maximum number of events per class, statements per class, and rows of the other tables.
const EVENTS: usize = 3;
const STATEMENTS: usize = 3;
const ROWS: usize = 10;

/// Widths of the sampled part, the counted part and the part since the counters began, in columns.
const SAMPLED: usize = 17;
const COUNTED: usize = 18;
const SIGNAL: usize = 8;
const SINCE_START: usize = 13;

/// The heading of the lines of [`line`].
pub(super) const HEADING: &str = "      s   active  idle-tx  sessions by class (main event)";

/// An interval in one line.
pub(super) fn line(waits: &Waits<'_>, now: f64) -> String {
    let report = &waits.report;
    let of = |class: &kelvin_observe::activity::ClassRow| {
        let sessions = class.sums.sessions?;
        let event = class.events.first().map_or("", |event| event.event.as_str());
        let event =
            if event.is_empty() || event == class.label { String::new() } else { format!(" ({event})") };
        Some(format!("{} {sessions:.2}{event}", class.label))
    };
    let classes: Vec<String> = report.classes.iter().filter_map(of).collect();
    let blocked = match report.blocked.len() {
        0 => String::new(),
        many => format!("; {many} blocked"),
    };
    let (active, idle) = (report.active_sessions, report.idle_in_transaction);
    format!("{now:>7.1} {active:>8.2} {idle:>8.2}  {}{blocked}", classes.join(", "))
}

/// Renders the result in at most `most` lines.
pub(super) fn render(waits: &Waits<'_>, most: usize) -> String {
    let mut text = String::new();
    heading(&mut text, waits);
    poison(&mut text, waits);
    classes(&mut text, waits);
    blocked(&mut text, waits);
    statements(&mut text, waits);
    background(&mut text, waits);
    files(&mut text, waits);
    latches(&mut text, waits);
    not_seen(&mut text, waits);
    if text.lines().count() <= most {
        return text;
    }
    text.lines().take(most).flat_map(|line| [line, "\n"]).collect()
}

fn heading(text: &mut String, waits: &Waits<'_>) {
    let report = &waits.report;
    let _ = writeln!(text, "{}", cut(&format!("{}, {}", waits.target, waits.product), waits.width));
    let samples = match report.samples {
        0 => "no samples".to_owned(),
        many => format!("{many} samples"),
    };
    let words = format!(
        "Over {:.1} s, {samples}: {:.2} active sessions on average, {:.2} idle in transaction",
        report.seconds, report.active_sessions, report.idle_in_transaction
    );
    wrapped(text, &words, 0, 2, waits.width);
}

fn poison(text: &mut String, waits: &Waits<'_>) {
    if waits.report.poison.is_empty() {
        return;
    }
    text.push_str("\nWaits that a healthy server does not have\n");
    for row in &waits.report.poison {
        let mut figures = Vec::new();
        figures.extend(row.sessions.map(|sessions| format!("{sessions:.2} sessions")));
        figures.extend(row.waits.map(|waits| format!("{waits:.0} in the interval")));
        figures.extend(row.waits_since_start.map(|waits| format!("{waits:.0} since the start")));
        wrapped(text, &format!("{}: {}; {}", row.event, figures.join(", "), row.sign), 2, 4, waits.width);
    }
}

/// Columns of the table of classes.
struct Columns {
    name: usize,
    counted: bool,
    signal: bool,
    seconds: f64,
}

fn classes(text: &mut String, waits: &Waits<'_>) {
    let report = &waits.report;
    let signal = report.classes.iter().any(|class| class.sums.signal_share.is_some());
    let mut width = SAMPLED;
    if report.counted {
        width += COUNTED + SINCE_START + if signal { SIGNAL } else { 0 };
    }
    let columns = Columns {
        name: waits.width.saturating_sub(width).min(60),
        counted: report.counted,
        signal,
        seconds: report.seconds,
    };
    text.push('\n');
    let mut heading =
        format!("{:<name$}{:>9}{:>8}", "Waits by class", "sessions", "share", name = columns.name);
    if columns.counted {
        heading.push_str(&format!("{:>9}{:>9}", "waits/s", "mean ms"));
        if signal {
            heading.push_str(&format!("{:>8}", "signal"));
        }
        heading.push_str(&format!("{:>13}", "since start"));
    }
    let _ = writeln!(text, "{heading}");
    if report.classes.is_empty() && report.samples > 0 {
        text.push_str("  no session was active\n");
    }
    let happened = |sums: &EventRow| {
        sums.sessions.is_some()
            || sums.waits.is_some()
            || sums.since_start.is_some_and(|since| since.waits > 0.0)
    };
    for class in report.classes.iter().filter(|class| happened(&class.sums)) {
        row(text, &columns, class.label, &class.sums);
        // The only event of a class is left out if it has the name of the class.
        let in_interval = |event: &&EventRow| event.sessions.is_some() || event.waits.is_some();
        let more = class.events.iter().filter(in_interval).filter(|event| event.event != class.label);
        for event in more.take(EVENTS) {
            row(text, &columns, &format!("  {}", event.event), event);
        }
    }
}

fn row(text: &mut String, columns: &Columns, name: &str, row: &EventRow) {
    let mut line = format!(
        "{:<width$}{:>9}{:>8}",
        shortened(name, columns.name.saturating_sub(1)),
        decimals(row.sessions, 2),
        fixed_percent(row.share, 1),
        width = columns.name
    );
    if columns.counted {
        let rate = row.waits.map(|waits| waits / columns.seconds.max(1e-9));
        line.push_str(&format!("{:>9}{:>9}", figure(rate), figure(row.average_ms)));
        if columns.signal {
            line.push_str(&format!("{:>8}", fixed_percent(row.signal_share, 1)));
        }
        let since = row.since_start.map_or_else(
            || "–".to_owned(),
            |since| since.total_ms.map_or_else(|| format!("{:.0} ×", since.waits), |ms| span(ms / 1000.0)),
        );
        line.push_str(&format!("{since:>13}"));
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// Cuts the beginning of a long name, because the end is more specific:
/// "wait/io/file/innodb/innodb_data_file".
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.to_owned();
    }
    let blanks = name.len() - name.trim_start().len();
    let kept: String = name.chars().skip(length + 1 + blanks - width).collect();
    format!("{}…{kept}", " ".repeat(blanks))
}

fn blocked(text: &mut String, waits: &Waits<'_>) {
    let all = &waits.report.blocked;
    if all.is_empty() {
        return;
    }
    text.push_str("\nBlocked sessions\n");
    for one in all.iter().take(ROWS) {
        wrapped(text, &blocked_line(one), 2, 4, waits.width);
        for (what, statement) in [("waits", &one.statement), ("blocks", &one.blocker_statement)] {
            if !statement.is_empty() {
                let _ = writeln!(text, "    {what:<7} {}", cut(statement.trim(), waits.width - 12));
            }
        }
    }
    if all.len() > ROWS {
        let _ = writeln!(text, "  and {} more", all.len() - ROWS);
    }
}

fn blocked_line(one: &BlockedSession) -> String {
    let named = |number: i64, name: &str| match name {
        "" => number.to_string(),
        name => format!("{number} ({name})"),
    };
    let waited = one.waited_ms.map_or_else(String::new, |ms| format!("has waited {} ", span(ms / 1000.0)));
    let age = one.blocker_transaction_ms.map(|ms| format!("transaction {} old", span(ms / 1000.0)));
    let about: Vec<String> =
        Some(one.blocker_doing.clone()).filter(|doing| !doing.is_empty()).into_iter().chain(age).collect();
    let about = if about.is_empty() { String::new() } else { format!(", {}", about.join(", ")) };
    format!(
        "{} {}for {}{about}: {}",
        named(one.session, &one.application),
        if waited.is_empty() { "waits " } else { &waited },
        named(one.blocker, &one.blocker_application),
        one.waits_for
    )
}

fn statements(text: &mut String, waits: &Waits<'_>) {
    let classes = waits.report.classes.iter().filter(|class| !class.statements.is_empty());
    let classes: Vec<_> = classes.collect();
    if classes.is_empty() {
        return;
    }
    text.push_str("\nStatements behind each class (sessions, identifier, text)\n");
    for class in classes {
        let _ = writeln!(text, "{}", class.label);
        for one in class.statements.iter().take(STATEMENTS) {
            let line = format!("{:>7.2}  {:<20}  {}", one.sessions, one.query, one.text.trim());
            let _ = writeln!(text, "{}", cut(&line, waits.width).trim_end());
        }
    }
}

fn background(text: &mut String, waits: &Waits<'_>) {
    if waits.report.background.is_empty() {
        return;
    }
    text.push_str("\nThe server's own processes (processes in it, on average)\n");
    for one in waits.report.background.iter().take(ROWS) {
        let _ = writeln!(text, "{:>7}  {}", decimals(one.sessions, 2), cut(&one.event, waits.width - 9));
    }
}

fn files(text: &mut String, waits: &Waits<'_>) {
    let files = &waits.report.files;
    if files.is_empty() {
        return;
    }
    // Bytes are shown if the width allows.
    let wide = waits.width >= 100;
    let name = waits.width - if wide { 64 } else { 46 };
    let mb = |text: &str| if wide { format!("{text:>9}") } else { String::new() };
    let _ = writeln!(
        text,
        "\n{:<name$}{:>8}{}{:>7}{:>9}{}{:>7}{:>8}{:>7}",
        "Files",
        "reads/s",
        mb("MB/s"),
        "ms",
        "writes/s",
        mb("MB/s"),
        "ms",
        "syncs/s",
        "ms"
    );
    for one in files.iter().take(ROWS) {
        let line = file(one, waits.report.seconds, name, wide);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if files.len() > ROWS {
        let _ = writeln!(text, "and {} more files", files.len() - ROWS);
    }
}

fn file(one: &FileRow, seconds: f64, name: usize, wide: bool) -> String {
    let rate = |io: &Latency| figure(io.count.map(|count| count / seconds.max(1e-9)));
    let mb = |io: &Latency| {
        let value = io.bytes.map(|bytes| bytes / 1e6 / seconds.max(1e-9));
        if wide { format!("{:>9}", figure(value)) } else { String::new() }
    };
    let mean = |io: &Latency| figure(io.average_ms);
    format!(
        "{:<name$}{:>8}{}{:>7}{:>9}{}{:>7}{:>8}{:>7}",
        shortened(&one.name, name - 1),
        rate(&one.reads),
        mb(&one.reads),
        mean(&one.reads),
        rate(&one.writes),
        mb(&one.writes),
        mean(&one.writes),
        rate(&one.syncs),
        mean(&one.syncs)
    )
}

/// Latches, then spinlocks. The spins of spinlocks are CPU time, with backoffs between them.
fn latches(text: &mut String, waits: &Waits<'_>) {
    let all = &waits.report.latches;
    if all.is_empty() {
        return;
    }
    let name = waits.width.saturating_sub(46).clamp(20, 60);
    let _ = writeln!(
        text,
        "\n{:<name$}{:>9}{:>9}{:>9}{:>10}{:>9}",
        "Latches and spinlocks", "waits/s", "mean ms", "ms/s", "spins/s", "backoffs"
    );
    let rate = |count: f64| count / waits.report.seconds.max(1e-9);
    for kind in [LatchKind::Latch, LatchKind::Spinlock] {
        let of_kind: Vec<&LatchRow> = all.iter().filter(|one| one.kind == kind).collect();
        for one in of_kind.iter().take(ROWS) {
            let line = format!(
                "{:<name$}{:>9}{:>9}{:>9}{:>10}{:>9}",
                shortened(&format!("{} {}", kind.word(), one.name), name - 1),
                figure(Some(rate(one.waits))),
                figure((one.waits > 0.0).then(|| one.wait_ms / one.waits)),
                figure(Some(rate(one.wait_ms))),
                figure(one.spins.map(rate)),
                figure(one.backoffs.map(rate))
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        if of_kind.len() > ROWS {
            let _ = writeln!(text, "and {} more {}", of_kind.len() - ROWS, kind.plural());
        }
    }
}

fn not_seen(text: &mut String, waits: &Waits<'_>) {
    if waits.not_seen.is_empty() {
        return;
    }
    text.push_str("\nNot seen\n");
    for absent in &waits.not_seen {
        wrapped(text, &format!("{}: {}", absent.what, absent.why), 2, 4, waits.width);
    }
}

fn decimals(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".into(), |value| format!("{value:.decimals$}"))
}

/// At least three significant digits, in at most seven columns.
fn figure(value: Option<f64>) -> String {
    let Some(value) = value else { return "–".into() };
    let digits = match value {
        value if value == 0.0 || value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// A duration, from milliseconds to days, in a few characters.
fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1000.0),
        seconds if seconds < 100.0 => format!("{seconds:.1} s"),
        seconds if seconds < 6000.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_figures_fit_their_columns() {
        assert_eq!(
            shortened("  Wait wait/io/file/innodb/innodb_data_file", 26),
            "  …innodb/innodb_data_file"
        );
        assert_eq!(shortened("  Wait a", 26), "  Wait a");
        for (value, expected) in
            [(0.0, "0"), (0.0125, "0.013"), (2.71456, "2.71"), (31.4, "31.4"), (12345.6, "12346")]
        {
            assert_eq!(figure(Some(value)), expected);
        }
        let spans: Vec<_> = [0.004, 3.0, 600.0, 90_000.0].into_iter().map(span).collect();
        assert_eq!(spans, ["4 ms", "3.0 s", "10 min", "25 h"]);
    }
}
