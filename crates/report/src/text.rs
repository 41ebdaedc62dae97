//! The report for a terminal, 80 columns wide.

use std::fmt::Write;

use kelvin_measure::event::Phase;

use crate::figure::{NONE, bounds, ms, rate, seconds, users, whole};
use crate::{LatencyRow, PointReport, Report};

const WIDTH: usize = 80;
/// Notes of one point that are printed.
const NOTES: usize = 10;
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[32m";
const BOLD: &str = "\x1b[1m";

/// How to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to use ANSI colours; without them the words alone say what is wrong.
    pub colour: bool,
}

/// The whole report.
pub fn render(report: &Report, options: Options) -> String {
    let mut page = Page { out: String::new(), colour: options.colour };
    page.title(report);
    if report.points.len() > 1 {
        page.points(report);
        page.curve(report);
    }
    for point in &report.points {
        page.point(report, point);
    }
    page.checks(report);
    page.verdict(report);
    for note in &report.notes {
        page.wrapped("note: ", note);
    }
    // Never broken: it is there to be copied.
    page.line(&format!("repeat: {}", printable(&report.command)));
    page.out
}

struct Page {
    out: String,
    colour: bool,
}

impl Page {
    /// Adds a line; `text` has only escape sequences of our own.
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Words broken at the page's width, the following lines indented under the first.
    fn wrapped(&mut self, lead: &str, text: &str) {
        self.wrapped_in("", lead, text);
    }

    fn wrapped_in(&mut self, colour: &str, lead: &str, text: &str) {
        let lines = broken(lead, text);
        for line in lines {
            let painted = if colour.is_empty() { line } else { self.painted(colour, &line) };
            self.line(&painted);
        }
    }

    fn title(&mut self, report: &Report) {
        let label = report.label.as_ref().map_or_else(String::new, |l| format!(" ({l})"));
        let title = format!("run {}{label}: {} on {}", report.run, report.workload_name(), report.target);
        self.wrapped_in(BOLD, "", &title);
        self.wrapped("", &format!("{}, {}", report.started.strftime("%Y-%m-%d %H:%M:%S UTC"), report.state));
        if let Some(error) = &report.error {
            self.wrapped_in(RED, "error: ", error);
        }
    }

    fn points(&mut self, report: &Report) {
        self.line("");
        self.line(&format!(
            "{:>8}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}",
            "users", report.headline, "TPM", "p50 ms", "p95 ms", "p99 ms", "errors"
        ));
        for p in &report.points {
            let errors: u64 = p.errors.iter().map(|e| e.count).sum();
            self.line(&format!(
                "{:>8}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}",
                whole(u64::from(p.users)),
                rate(p.headline_per_minute),
                rate(p.transactions_per_minute),
                ms(p.latency_all.p50_us),
                ms(p.latency_all.p95_us),
                ms(p.latency_all.p99_us),
                whole(errors)
            ));
        }
    }

    fn curve(&mut self, report: &Report) {
        let most = report.points.iter().filter_map(|p| p.headline_per_minute).fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        self.line("");
        self.line(&format!("{} over users", report.headline));
        for p in &report.points {
            let value = p.headline_per_minute.unwrap_or(0.0);
            let bar = "#".repeat((value / most * 54.0).round() as usize);
            self.line(&format!("{:>8} |{bar} {}", p.users, rate(p.headline_per_minute)));
        }
    }

    fn point(&mut self, report: &Report, p: &PointReport) {
        self.line("");
        let figures = format!(
            "{} {}   {} TPM",
            rate(p.headline_per_minute),
            report.headline,
            rate(p.transactions_per_minute)
        );
        let figures = self.painted(BOLD, &figures);
        self.line(&figures);
        let ramp_up = if p.ramp_up_s > 0.0 {
            format!("ramp-up of {} excluded", seconds(p.ramp_up_s))
        } else if p.never_opened() {
            "ended before its window opened".into()
        } else {
            "no ramp-up".into()
        };
        let open = if p.closed { "" } else { "; the window did not close: figures of a part" };
        self.wrapped(
            "",
            &format!(
                "{}, closed loop, {} measured as elapsed, {ramp_up}{open}",
                users(p.users),
                seconds(p.window_s)
            ),
        );
        if let Some(server) = p.server_headline_count {
            let text = format!(
                "{} counted for {} by the client, {} by the server itself",
                whole(p.headline_count),
                report.headline,
                whole(server)
            );
            self.wrapped("", &text);
        }
        if let Some(tpm) = p.server_transactions_per_minute {
            self.wrapped(
                "",
                &format!("{} TPM by the server's own statistics, all its work included", rate(Some(tpm))),
            );
        }
        if let Some(precision) = p.within_run {
            self.wrapped(
                "",
                &format!(
                    "within this run: {} ± {:.1} % (95 %, {} s worth {:.0}); says nothing about the next run",
                    report.headline,
                    precision.half_width_percent,
                    precision.seconds,
                    precision.effective_seconds
                ),
            );
        }
        if let Some(cpu) = p.client_cpu_us_per_transaction {
            self.line(&format!("client CPU {} µs a transaction", rate(Some(cpu))));
        }
        self.latency(p);
        self.errors(p);
        self.timeline(p);
        self.judgements(p);
    }

    fn latency(&mut self, p: &PointReport) {
        self.line("");
        let mut head = format!("{:<13}{:>11}", "service, ms", "count");
        for name in ["mean", "p50", "p95", "p99", "p99.9", "max"] {
            let _ = write!(head, "{name:>9}");
        }
        self.line(&head);
        for row in p.latency.iter().chain([&p.latency_all]) {
            self.line(&latency_line(row));
        }
        if p.latency.iter().any(|r| r.p999_us.is_none()) {
            self.wrapped("", &format!("{NONE}: fewer than ten transactions lie beyond that percentile"));
        }
        let rows = || p.latency.iter();
        let (rolled, failed, retries) = (
            rows().map(|r| r.rolled_back).sum::<u64>(),
            rows().map(|r| r.failed).sum::<u64>(),
            rows().map(|r| r.retries).sum::<u64>(),
        );
        let clamped: u64 = rows().map(|r| r.clamped).sum();
        self.line(&format!(
            "{} rolled back by the rules, {} failed, {} retries",
            whole(rolled),
            whole(failed),
            whole(retries)
        ));
        if clamped > 0 {
            self.line(&format!("{} took longer than an hour and count as one hour", whole(clamped)));
        }
    }

    fn errors(&mut self, p: &PointReport) {
        self.line("");
        if p.errors.is_empty() {
            self.line("no errors (ramp-up and stop included)");
            return;
        }
        self.line("errors (ramp-up and stop included)");
        self.line(&format!(
            "{:<13}{:<22}{:<9}{:>8}{:>9}",
            "transaction", "class", "code", "count", "retried"
        ));
        for e in &p.errors {
            self.line(&format!(
                "{:<13}{:<22}{:<9}{:>8}{:>9}",
                cut(&e.kind, 12),
                cut(&e.class, 21),
                cut(&e.code, 8),
                whole(e.count),
                whole(e.retried)
            ));
            self.wrapped("    ", &e.message);
        }
    }

    fn timeline(&mut self, p: &PointReport) {
        if p.timeline.is_empty() {
            return;
        }
        self.line("");
        self.line("notes on the timeline");
        for (second, text) in p.timeline.iter().take(NOTES) {
            self.wrapped("  ", &format!("{second} s: {text}"));
        }
        if p.timeline.len() > NOTES {
            self.line(&format!("  and {} more, in the JSON report", p.timeline.len() - NOTES));
        }
    }

    fn judgements(&mut self, p: &PointReport) {
        if !p.audit.is_empty() {
            self.line("");
            self.line("self-audit");
        }
        for a in &p.audit {
            let text = format!("{}: {} ({} samples)", a.name, bounds(a), whole(a.samples));
            self.judged(a.valid, &text);
        }
        // Those that hold are a number here and stand in full on the page.
        let held = p.invariants.iter().filter(|i| i.holds).count();
        if !p.invariants.is_empty() {
            self.line("");
            self.line(&format!("counts that must agree: {held} of {} do", p.invariants.len()));
        }
        for i in p.invariants.iter().filter(|i| !i.holds) {
            self.judged(false, &format!("{}: {}", i.name, i.evidence));
        }
    }

    fn judged(&mut self, holds: bool, text: &str) {
        if holds {
            let mark = self.painted(GREEN, "ok");
            // The mark is painted, so its length for the eye is not that of the text.
            let start = self.out.len();
            self.wrapped("  ok   ", text);
            let tail = self.out.split_off(start);
            self.out.push_str(&tail.replacen("ok", &mark, 1));
        } else {
            self.wrapped_in(RED, "  FAIL ", text);
        }
    }

    fn checks(&mut self, report: &Report) {
        for (phase, title) in [(Phase::CheckBefore, "before the run"), (Phase::CheckAfter, "after the run")] {
            let checks: Vec<_> = report.checks.iter().filter(|c| c.phase == phase).collect();
            if checks.is_empty() {
                continue;
            }
            let holding = checks.iter().filter(|c| c.holds).count();
            self.line("");
            self.line(&format!("consistency {title}: {holding} of {} conditions hold", checks.len()));
            for c in checks.iter().filter(|c| !c.holds) {
                self.judged(false, &format!("{} {}: {}", c.number, c.name, c.detail));
            }
        }
    }

    fn verdict(&mut self, report: &Report) {
        self.line("");
        match report.valid {
            Some(true) => self.wrapped_in(GREEN, "", "every rule of the self-audit holds"),
            Some(false) => {
                self.wrapped_in(RED, "", &format!("not a valid {} run:", report.workload_name()));
                for violation in &report.violations {
                    self.wrapped_in(RED, "  ", violation);
                }
            }
            None => self.wrapped("", "not judged: not every point has its self-audit"),
        }
    }
}

fn latency_line(row: &LatencyRow) -> String {
    let mut line = format!("{:<13}{:>11}", cut(&row.kind, 13), whole(row.count()));
    for us in [row.mean_us, row.p50_us, row.p95_us, row.p99_us, row.p999_us, row.max_us] {
        let _ = write!(line, "{:>9}", ms(us));
    }
    line
}

/// Blanks for control characters: a label or a server's message must not steer the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn cut(text: &str, most: usize) -> String {
    let text = &printable(text);
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// Words broken at the page's width, the following lines indented under the first.
pub(crate) fn broken(lead: &str, text: &str) -> Vec<String> {
    let text = &printable(text);
    let indent = lead.chars().count();
    let mut line = lead.to_owned();
    let mut used = indent;
    let mut lines = Vec::new();
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > indent && used + 1 + length > WIDTH {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            used = indent;
        }
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines.push(line);
    lines
}
