//! What limits the throughput, and what the reader of the figures has to know.

use super::{AMBER, BOLD, Page, RED, broken};
use crate::{Finding, Outcome, PointReport, Report, Severity, Verdict};

/// Lines of evidence that a red finding and an amber one have in the terminal: the page has all.
const SHOWN: [usize; 2] = [5, 2];

fn most(finding: &Finding) -> usize {
    if finding.severity == Severity::Red { SHOWN[0] } else { SHOWN[1] }
}

impl Page {
    /// The verdict on the points that are `shown`, and the findings: they stand before the figures, since they say
    /// whether those can be believed.
    pub(super) fn findings(&mut self, report: &Report, shown: &[&PointReport]) {
        if report.evidence.is_none() && report.findings.is_empty() {
            return;
        }
        let several = report.points.len() > 1;
        for point in shown {
            let Some(verdict) = &point.verdict else { continue };
            self.line("");
            let lead = match verdict.outcome {
                _ if several => format!("{}: ", point.name()),
                // Its sentence says that there is none.
                Outcome::Void { .. } => String::new(),
                _ => "verdict: ".into(),
            };
            self.wrapped_in(colour(verdict), &lead, &verdict.sentence);
            if !verdict.next.is_empty() {
                self.wrapped("  next: ", &verdict.next);
            }
        }
        self.line("");
        let shown = report.findings.iter().filter(|f| f.severity != Severity::Note);
        let notes = report.findings.iter().filter(|f| f.severity == Severity::Note).count();
        let mut none = true;
        for finding in shown {
            none = false;
            self.finding(finding, &about(report, finding));
        }
        let counted = match notes {
            0 => String::new(),
            1 => "; 1 note, in the HTML and JSON reports".into(),
            n => format!("; {n} notes, in the HTML and JSON reports"),
        };
        if none {
            self.wrapped("findings: ", &format!("none that puts these figures in doubt{counted}"));
        } else if let Some(counted) = counted.strip_prefix("; ") {
            self.wrapped("", &format!("and {counted}"));
        }
        let serious = report.findings.iter().filter(|f| f.severity != Severity::Note);
        let left_out: usize = serious.map(|f| f.evidence.len().saturating_sub(most(f))).sum();
        if left_out > 0 {
            self.wrapped("", &format!("{left_out} more lines of evidence in the HTML and JSON reports"));
        }
    }

    fn finding(&mut self, finding: &Finding, about: &str) {
        let colour = if finding.severity == Severity::Red { RED } else { AMBER };
        let title = broken(&lead(finding), &format!("{}{about}", finding.title)).len();
        for (index, line) in of_finding(finding, about, most(finding)).into_iter().enumerate() {
            let line = if index < title { self.painted(colour, &line) } else { line };
            self.line(&line);
        }
    }
}

fn lead(finding: &Finding) -> String {
    format!("{:<7}", finding.severity.word())
}

/// A finding in lines: its title, with which of several points it is `about`, at `most` so many lines of what shows it,
/// and what to do.
pub(crate) fn of_finding(finding: &Finding, about: &str, most: usize) -> Vec<String> {
    let mut lines = broken(&lead(finding), &format!("{}{about}", finding.title));
    for fact in finding.evidence.iter().take(most) {
        lines.extend(broken("         ", &format!("{}: {}", fact.what, fact.found)));
    }
    if !finding.next.is_empty() {
        lines.extend(broken("       → ", &finding.next));
    }
    lines
}

/// A run that must not be judged is as bad as a red finding; what is known is good to know.
fn colour(verdict: &Verdict) -> &'static str {
    match verdict.outcome {
        Outcome::Void { .. } => RED,
        _ => BOLD,
    }
}

/// Which of several points a finding is about.
pub(crate) fn about(report: &Report, finding: &Finding) -> String {
    let point = finding.point.filter(|_| report.points.len() > 1);
    let point = point.and_then(|point| report.points.iter().find(|p| p.point == point));
    point.map_or_else(String::new, |point| format!(" ({})", point.name()))
}
