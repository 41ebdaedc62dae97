//! The tables of response times, service times and statements.

use std::fmt::Write;

use kelvin_measure::labels::WorkloadLabels;

use super::Page;
use super::point::two_times;
use kelvin_measure::text::{NONE, bounded, cut, ms, one_decimal, whole};

use crate::{LatencyRow, PointReport, RunReport};

impl Page {
    pub(super) fn latency(&mut self, report: &RunReport, p: &PointReport, first: bool) {
        if let Some(all) = &p.response_all {
            self.times("response, ms", &p.response, Some(all).filter(|_| !report.is_scenario()));
        }
        // The transaction types of different tenants have no common sum.
        self.times("service, ms", &p.latency, Some(&p.latency_all).filter(|_| !report.is_scenario()));
        for note in footnotes(p.latency.iter().chain(&p.response).chain(&p.response_all), p.words) {
            self.wrapped("", &note);
        }
        if first {
            if report.open_loop {
                self.wrapped("", &two_times(p.words));
            } else {
                self.wrapped("", p.words.closed_loop);
            }
        }
        let rows = || p.latency.iter();
        let (rolled, failed, retries) = (
            rows().map(|r| r.rolled_back).sum::<u64>(),
            rows().map(|r| r.failed).sum::<u64>(),
            rows().map(|r| r.retries).sum::<u64>(),
        );
        let clamped: u64 = rows().map(|r| r.clamped).sum();
        self.line(&format!(
            "{} rolled back as specified, {} failed, {} retries",
            whole(rolled),
            whole(failed),
            whole(retries)
        ));
        if clamped > 0 {
            self.line(&format!("{} took longer than an hour and count as one hour", whole(clamped)));
        }
    }

    pub(super) fn times(&mut self, title: &str, rows: &[LatencyRow], all: Option<&LatencyRow>) {
        self.line("");
        let mut head = format!("{title:<13}{:>11}", "count");
        for name in ["mean", "p50", "p95", "p99", "p99.9", "max"] {
            let _ = write!(head, "{name:>9}");
        }
        self.line(&head);
        // With a single type, the row of all would repeat it.
        for row in rows {
            self.line(&latency_line(row));
        }
        if let Some(all) = all.filter(|_| rows.len() > 1) {
            self.line(&latency_line(all));
        }
    }

    /// A statement's text is printed above its latencies, because readers look for it.
    pub(super) fn statements(&mut self, p: &PointReport) {
        for group in &p.statements {
            self.line("");
            self.wrapped("", &format!("statements of {}, ms", group.transaction));
            self.line(&format!(
                "{:>16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
                "count", "mean", "p50", "p95", "p99", "max", "share"
            ));
            for s in &group.statements {
                self.line(&cut(&s.statement, 79));
                self.line(&format!(
                    "{:>16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
                    whole(s.count),
                    ms(s.mean_us),
                    ms(s.p50_us),
                    ms(s.p95_us),
                    ms(s.p99_us),
                    ms(s.max_us),
                    one_decimal(s.share_percent)
                ));
            }
            let words = format!(
                "its statements take {} of {} ms per transaction ({}); the rest is client work, sleeps, and \
                 retried attempts",
                ms(group.sum_us),
                ms(group.transaction_mean_us),
                one_decimal(group.sum_percent)
            );
            self.wrapped("", &words);
        }
    }
}

/// The meaning of "≥".
pub(crate) fn unanswered(words: &WorkloadLabels) -> String {
    format!("≥: so many {} that only a lower bound is known", words.unanswered)
}

/// Explanations of missing values, in sentences.
pub(crate) fn footnotes<'a>(
    rows: impl Iterator<Item = &'a LatencyRow>,
    words: &WorkloadLabels,
) -> Vec<String> {
    let rows: Vec<&LatencyRow> = rows.collect();
    let mut notes = Vec::new();
    if rows.iter().any(|r| r.few) {
        notes.push(format!("{NONE}: fewer than ten {} exceed that percentile", words.unit.many));
    }
    if rows.iter().any(|r| !r.at_least.is_empty()) {
        notes.push(unanswered(words));
    }
    if rows.iter().any(|r| r.unanswered_percent > 0.0) {
        notes.push(format!(
            "{} count as longer than all others in the response times",
            words.those_unanswered
        ));
    }
    notes
}

fn latency_line(row: &LatencyRow) -> String {
    let mut line = format!("{:<13}{:>11}", cut(&row.kind, 13), whole(row.count()));
    for us in row.times() {
        let _ = write!(line, "{:>9}", bounded(us, ms));
    }
    line
}
