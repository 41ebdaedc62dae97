//! Block requests as a table.

use std::fmt::Write;

use kelvin_measure::text::{NONE, binary, latency, percent, rate, seconds, three_figures, whole};
use kelvin_trace::summary::{StreamSummary, TraceSummary};

use super::Page;
use crate::RunReport;

impl Page {
    /// The requests recorded with `--trace`.
    pub(super) fn trace(&mut self, report: &RunReport) {
        let Some(found) = &report.details.trace else { return };
        let (sentence, rows) = trace_rows(found);
        self.line("");
        self.wrapped("storage: ", &sentence);
        for note in &found.notes {
            self.wrapped("  ", note);
        }
        if rows.is_empty() {
            return;
        }
        self.line(&format!(
            "  {:<38}{:>10}{:>10}{:>10}{:>9}{:>7}{:>7}{:>7}{:>7}  category",
            "stream", "requests", "read", "written", "req/s", "peak ×", "seq.", "depth", "zeros"
        ));
        for [name, requests, read, written, rate, peak, sequential, depth, _, category, zeros] in &rows {
            let name = kelvin_measure::text::cut(name, 37);
            self.line(&format!(
                "  {name:<38}{requests:>10}{read:>10}{written:>10}{rate:>9}{peak:>7}{sequential:>7}{depth:>7}{zeros:>7}  {category}"
            ));
        }
    }
}

/// The summary of the trace and a row for each stream, as text.
pub(crate) fn trace_rows(found: &TraceSummary) -> (String, Vec<[String; 11]>) {
    (sentence(found), found.streams.iter().map(row).collect())
}

/// What was recorded, and how complete it is.
fn sentence(found: &TraceSummary) -> String {
    let mut text = format!(
        "{} requests in {} of the window, {} events lost",
        whole(found.requests),
        seconds(found.seconds),
        whole(found.lost)
    );
    if let Some(difference) = found.difference {
        let _ =
            write!(text, "; bytes by trace and by /proc/diskstats differ by {:+.3} %", difference * 100.0);
    }
    if let Some(share) = found.attributed {
        let _ = write!(text, "; {} of the bytes belong to a known file or filesystem", percent(share));
    }
    if let Some(zeros) = found.streams.iter().find(|one| one.of == "all").and_then(|one| one.zeros) {
        let _ = write!(text, "; {}", zeros.describe());
    }
    text
}

/// A row for a stream: name, requests, read, written, rate, peak, sequential, depth, p99 of reads and writes,
/// category, zeros among the reads.
fn row(one: &StreamSummary) -> [String; 11] {
    let name = if one.of == "all" { "all".into() } else { format!("{} ({})", one.name, one.of) };
    let time = |time: Option<u64>| time.map_or_else(|| NONE.into(), |time| latency(time as f64));
    let figure = |value: Option<f64>| value.map_or_else(|| NONE.into(), three_figures);
    [
        name,
        whole(one.requests),
        binary(one.read),
        binary(one.written),
        rate(Some(one.rate)),
        figure(one.peak_to_mean),
        percent(one.sequential),
        figure(one.depth),
        format!("{} / {}", time(one.p99.0), time(one.p99.1)),
        one.category.clone(),
        one.zeros.and_then(|zeros| zeros.zeros).map_or_else(|| NONE.into(), |zeros| percent(zeros.share)),
    ]
}
