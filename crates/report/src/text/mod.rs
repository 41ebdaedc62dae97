//! The report for a terminal, 80 columns wide.

mod brief;
mod findings;
mod io;
mod latency;
mod observed;
mod point;
mod points;
mod queries;
mod scenario;
mod squeeze;
mod trace;

pub use brief::brief;
pub use findings::findings;
pub(crate) use findings::{FindingGroup, RankedFindings, effect, finding_lines};
pub(crate) use io::{loop_words, times_of};
pub(crate) use latency::{footnotes, unanswered};
pub(crate) use observed::{client_waits, when};
pub(crate) use point::{SERVER_STATISTICS, TOO_SHORT, generator, of_p99, two_times};
pub use points::sweep;
pub(crate) use points::{describe_maximum_rate, explained, interval, peak};
pub(crate) use queries::{others, plan_cells, waits};
pub(crate) use scenario::{
    details as interference_details, interval as change_interval, percent as change_percent,
    sentence as interference_sentence,
};
pub(crate) use squeeze::{change, elasticities, elasticity_interval, headline as squeezed, how};
pub(crate) use trace::trace_rows;

use kelvin_measure::event::Phase;

use crate::{PointReport, RunReport};
use kelvin_measure::text::{cut, plain, plural, printable, whole, wrap};

const WIDTH: usize = 80;
/// Largest number of printed notes per point.
const NOTES: usize = 10;
/// Number of points above which they are printed as a series, because a screen per point would be too long.
const SERIES: usize = 3;
pub(crate) const RED: &str = "\x1b[1;31m";
pub(crate) const AMBER: &str = "\x1b[33m";
pub(crate) const GREEN: &str = "\x1b[32m";
pub(crate) const BOLD: &str = "\x1b[1m";

/// How to print.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether to use ANSI colours. The text is complete without them.
    pub colour: bool,
    /// Whether to print lists of unlimited length in full: notes on the timeline, findings including minor
    /// ones, and lines of evidence.
    pub all: bool,
}

/// The whole report.
pub fn render(report: &RunReport, options: Options) -> String {
    let mut page = Page { out: String::new(), colour: options.colour, all: options.all };
    page.title(report);
    page.first_answer(report);
    page.findings(report, &detailed_points(report));
    page.maximum_rate(report);
    page.scalability(report);
    page.linearity(report);
    page.squeeze(report);
    page.scenario(report);
    page.queries(report);
    page.trace(report);
    if report.points.len() > 1 && report.is_io() {
        page.io_points(report);
    } else if report.points.len() > 1 {
        page.points(report);
        // For a search, the results of its trials are printed above, and a curve in the order of the trials
        // is meaningless.
        if report.maximum_rate.is_none() {
            page.curve(report);
        }
    }
    let points = if options.all { report.points.iter().collect() } else { detailed_points(report) };
    for (index, point) in points.into_iter().enumerate() {
        page.point(report, point, index == 0);
    }
    page.checks(report);
    page.verdict(report);
    for note in &report.notes {
        page.wrapped("note: ", note);
    }
    // Not wrapped, so that it can be copied.
    page.line(&format!("repeat: {}", printable(&report.recipe.command)));
    page.out
}

/// The points that are printed in full: only the best of a series.
fn detailed_points(report: &RunReport) -> Vec<&PointReport> {
    // Phases of I/O jobs are different jobs and not a series.
    if report.points.len() > SERIES && !report.is_io() {
        report.best().into_iter().collect()
    } else {
        report.points.iter().collect()
    }
}

struct Page {
    out: String,
    colour: bool,
    all: bool,
}

impl Page {
    /// Appends a line; `text` may only contain our own escape sequences.
    fn line(&mut self, text: &str) {
        self.out.push_str(text.trim_end());
        self.out.push('\n');
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        painted(self.colour, colour, text)
    }

    /// Text without backticks, wrapped at the page's width with a hanging indent.
    fn wrapped(&mut self, lead: &str, text: &str) {
        self.wrapped_in("", lead, text);
    }

    fn wrapped_in(&mut self, colour: &str, lead: &str, text: &str) {
        let lines = wrap_lines(lead, text);
        for line in lines {
            let painted = if colour.is_empty() { line } else { self.painted(colour, &line) };
            self.line(&painted);
        }
    }

    fn title(&mut self, report: &RunReport) {
        let label = report.label.as_ref().map_or_else(String::new, |l| format!(" ({l})"));
        let title = format!("run {}{label}: {}", report.run, report.subject());
        self.wrapped_in(BOLD, "", &title);
        let started = report.started.strftime("%Y-%m-%d %H:%M:%S UTC");
        let words = format!("{started}, {}", report.judgement.state.word());
        self.wrapped_in(if report.valid { "" } else { RED }, "", &words);
        if let Some(error) = &report.error {
            self.wrapped_in(RED, "error: ", error);
        }
        if let Some(caution) =
            report.evidence.as_deref().and_then(kelvin_diagnose::Evidence::durability_given_up)
        {
            self.wrapped_in(RED, "caution: ", &caution);
        }
        for lost in &report.not_seen.lost {
            self.wrapped_in(AMBER, "lost: ", &format!("{}: {}", lost.what, lost.why));
        }
    }

    pub(super) fn errors(&mut self, p: &PointReport) {
        self.line("");
        if p.errors.is_empty() {
            self.line("no errors (ramp-up and stop included)");
            return;
        }
        self.line("errors (ramp-up and stop included)");
        self.line(&format!("{:<13}{:<22}{:<9}{:>8}{:>9}", p.words.kind, "class", "code", "count", "retried"));
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

    pub(super) fn timeline(&mut self, p: &PointReport) {
        if p.timeline.is_empty() {
            return;
        }
        self.line("");
        self.line("timeline notes");
        let most = if self.all { usize::MAX } else { NOTES };
        for (second, text) in p.timeline.iter().take(most) {
            self.wrapped("  ", &format!("{second} s: {text}"));
        }
        if p.timeline.len() > most {
            self.line(&format!("  and {} more: kelvin show --all", p.timeline.len() - most));
        }
    }

    pub(super) fn judgements(&mut self, p: &PointReport) {
        if !p.checks.audit.is_empty() {
            self.line("");
            self.line("self-audit");
        }
        for a in &p.checks.audit {
            let samples = plural(a.samples, "sample", "samples");
            let text = format!("{}: {} ({} {samples})", a.name, a.bounds(), whole(a.samples));
            self.judged(a.valid, &text);
        }
        // Invariants that hold are only counted here; the page lists them.
        let judged: Vec<_> = p.checks.invariants.iter().filter(|i| i.not_judged.is_none()).collect();
        if !p.checks.invariants.is_empty() {
            self.line("");
            let held = judged.iter().filter(|i| i.holds).count();
            self.line(&format!("counts that must agree: {held} of {} do", judged.len()));
        }
        for i in judged.iter().filter(|i| !i.holds) {
            self.judged(false, &format!("{}: {}", i.name, i.evidence));
        }
        for i in &p.checks.invariants {
            if let Some(why) = &i.not_judged {
                self.wrapped("  not judged: ", &format!("{}: {why}", i.name));
            }
        }
    }

    fn judged(&mut self, holds: bool, text: &str) {
        if holds {
            let mark = self.painted(GREEN, "ok");
            // The escape sequences are added after wrapping, because they have no width.
            let start = self.out.len();
            self.wrapped("  ok   ", text);
            let tail = self.out.split_off(start);
            self.out.push_str(&tail.replacen("ok", &mark, 1));
        } else {
            self.wrapped_in(RED, "  FAIL ", text);
        }
    }

    fn checks(&mut self, report: &RunReport) {
        for (phase, title) in [(Phase::CheckBefore, "before the run"), (Phase::CheckAfter, "after the run")] {
            let checks: Vec<_> = report.checks.iter().filter(|c| c.phase == phase).collect();
            if checks.is_empty() {
                continue;
            }
            let holding = checks.iter().filter(|c| c.holds).count();
            self.line("");
            self.line(&format!("consistency {title}: {holding} of {} conditions hold", checks.len()));
            for c in checks.iter().filter(|c| c.fails()) {
                self.judged(false, &format!("{} {}: {}", c.number, c.name, c.detail));
            }
            for c in checks.iter().filter(|c| !c.holds) {
                if let Some(why) = &c.exempt {
                    self.wrapped("  ", &format!("{} {}: {why}; {}", c.number, c.name, c.detail));
                }
            }
        }
    }

    fn verdict(&mut self, report: &RunReport) {
        self.line("");
        if report.valid {
            let audited = report.points.iter().any(|point| !point.checks.audit.is_empty());
            let rules = if audited { "all rules of the self-audit hold, and " } else { "" };
            self.wrapped_in(GREEN, "", &format!("counted: {rules}all counts that must agree do"));
            return;
        }
        self.wrapped_in(RED, "", &format!("{}:", report.judgement.state.word()));
        for reason in &report.judgement.reasons {
            self.wrapped_in(RED, "  ", reason);
        }
    }
}

/// Text in a colour, if colours are wanted and one is given.
pub(crate) fn painted(wanted: bool, colour: &str, text: &str) -> String {
    if wanted && !colour.is_empty() { format!("{colour}{text}\x1b[0m") } else { text.to_owned() }
}

/// Text without backticks, wrapped at the page's width with a hanging indent.
pub(crate) fn wrap_lines(lead: &str, text: &str) -> Vec<String> {
    wrap(lead, &plain(&printable(text)), WIDTH)
}
