//! vioperf's table.

use kelvin_measure::text::{binary, plural};
use std::fmt::Write as _;

use super::report::{Report, Row, Split};
use super::{MINIMUM, RECOMMENDED, VioperfPlan};

/// Maximum width of a directory's name; of a longer one the end is shown.
const DIRECTORY: usize = 24;

/// The plan as text.
pub fn plan(plan: &VioperfPlan) -> String {
    let mut text = String::new();
    let way = if plan.direct {
        "Direct I/O"
    } else {
        "Buffered I/O, files dropped from the page cache before reads"
    };
    let crc = if plan.crc { "CRC-32C of every block" } else { "no checksums" };
    let _ = writeln!(text, "{way}, buffers of {}, {crc}", binary(plan.buffer as u64));
    let _ = writeln!(
        text,
        "Rates are divided by {} {}: {}",
        plan.cores.counted,
        if plan.cores.counted == 1.0 { "core" } else { "cores" },
        plan.cores.why()
    );
    for directory in &plan.directories {
        let _ = writeln!(
            text,
            "{}: {} free, {} thread{} with a file of at most {} each",
            directory.path.display(),
            binary(directory.free),
            directory.threads,
            plural(directory.threads, "", "s"),
            binary(directory.file)
        );
    }
    let _ = writeln!(text, "Four tests of {} s each: Write, ReWrite, Read, SkipRead", plan.seconds);
    text
}

/// The column headers, and a line below them.
pub fn header(plan: &VioperfPlan) -> String {
    let recent = format!("({} s avg)", plan.interval);
    let one = line([
        "test",
        "directory",
        "counter",
        "counter",
        "counter value",
        "counter",
        "counter value/",
        "thread",
        "%CPU",
        "%IO",
        "elapsed",
        "remaining",
    ]);
    let two = line([
        "",
        "",
        "name",
        "value",
        &recent,
        "value/core",
        &format!("core {recent}"),
        "count",
        "",
        "Wait",
        "time (s)",
        "time (s)",
    ]);
    let below: Vec<String> = WIDTHS.iter().map(|width| "-".repeat(*width)).collect();
    format!("{one}{two}{}\n", below.join("-+-"))
}

const WIDTHS: [usize; 12] = [8, DIRECTORY, 20, 11, 14, 11, 16, 6, 5, 5, 8, 9];

fn line(cells: [&str; 12]) -> String {
    let mut text = String::new();
    for (index, (cell, width)) in cells.iter().zip(WIDTHS).enumerate() {
        if index > 0 {
            text.push_str(" | ");
        }
        // Text is left-aligned, numbers right-aligned.
        let _ = if index < 3 { write!(text, "{cell:<width$}") } else { write!(text, "{cell:>width$}") };
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

/// One row.
pub fn row(row: &Row) -> String {
    let letters: Vec<char> = row.directory.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let directory: String = match letters.len().checked_sub(DIRECTORY) {
        Some(more) if more > 0 => std::iter::once('…').chain(letters[more + 1..].iter().copied()).collect(),
        _ => letters.iter().collect(),
    };
    let percent = |value: Option<f64>| value.map_or_else(|| "–".into(), |value| format!("{value:.0}"));
    line([
        row.test.word(),
        &directory,
        row.counter_name,
        &row.counter_value.to_string(),
        &row.counter_value_recent.to_string(),
        &row.counter_value_per_core.to_string(),
        &row.counter_value_per_core_recent.to_string(),
        &row.thread_count.to_string(),
        &percent(row.cpu_percent),
        &percent(row.io_wait_percent),
        &seconds(row.elapsed_s),
        &seconds(row.remaining_s),
    ])
}

fn seconds(value: f64) -> String {
    if value < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// The result as text.
pub fn summary(report: &Report) -> String {
    let mut text = String::new();
    let costs = &report.costs;
    if !report.tests.is_empty() {
        let _ = writeln!(
            text,
            "{:<8} | {:<20} | {:>11} | {:>11} | {:>13} | {:>13} | {:>11}",
            "test", "counter", "value", "value/core", "CRC µs/MB", "rest µs/MB", "CPU/thread"
        );
        let _ = writeln!(
            text,
            "{}",
            [
                "-".repeat(8),
                "-".repeat(20),
                "-".repeat(11),
                "-".repeat(11),
                "-".repeat(13),
                "-".repeat(13),
                "-".repeat(11)
            ]
            .join("-+-")
        );
    }
    let unit = |rate: f64| if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") };
    for test in &report.tests {
        let cost = costs.iter().find(|cost| cost.test == test.test);
        let crc = cost.and_then(|cost| cost.crc_us_per_mb).map_or_else(|| "–".into(), unit);
        let rest = cost.map_or_else(|| "–".into(), |cost| unit(cost.rest_us_per_mb));
        let cpu = cost.map_or_else(|| "–".into(), |cost| format!("{:.0} %", cost.thread_cpu_percent));
        let _ = writeln!(
            text,
            "{:<8} | {:<20} | {:>11} | {:>11} | {crc:>13} | {rest:>13} | {cpu:>11}",
            test.test.word(),
            test.counter_name,
            test.counter_value.to_string(),
            test.counter_value_per_core.to_string()
        );
        if test.test == super::Test::Write {
            for (name, split) in [("extending", report.extend), ("overwriting", report.overwrite)] {
                if let Some(Split { bytes, mb_s, mb_s_per_core }) = split {
                    let name = format!("  {name}");
                    let value = super::Rate { write: Some(mb_s), ..super::Rate::default() }.to_string();
                    let each =
                        super::Rate { write: Some(mb_s_per_core), ..super::Rate::default() }.to_string();
                    let _ = writeln!(
                        text,
                        "{:<8} | {name:<20} | {value:>11} | {each:>11} | {} written",
                        "",
                        binary(bytes)
                    );
                }
            }
        }
    }
    if !report.tests.is_empty() {
        text.push('\n');
    }
    for note in &report.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    for path in &report.kept {
        let _ = writeln!(text, "Kept as requested: {}", path.display());
    }
    match (&report.failure, report.verdict, report.deciding) {
        (Some(problem), _, _) => {
            let _ = writeln!(text, "Ended with an error: {problem}");
        }
        (None, Some(verdict), Some((test, rate))) => {
            let _ = writeln!(
                text,
                "{verdict}: {rate:.1} MB/s per core in {}, the slowest of Write, ReWrite (each way) and \
                 Read; minimum {MINIMUM}, recommended {RECOMMENDED}",
                test.word()
            );
        }
        _ => text.push_str("Interrupted: not all tests completed, so there is no verdict\n"),
    }
    text
}
