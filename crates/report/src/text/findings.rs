//! What limits the throughput, and what the reader of the figures has to know.

use super::{AMBER, BOLD, Page, RED};
use crate::{Finding, Outcome, PointReport, Report, Severity, Verdict};

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
            let lead = if several { format!("{}: ", point.name()) } else { "verdict: ".into() };
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
    }

    fn finding(&mut self, finding: &Finding, about: &str) {
        let colour = if finding.severity == Severity::Red { RED } else { AMBER };
        let lead = format!("{:<7}", finding.severity.word());
        self.wrapped_in(colour, &lead, &format!("{}{about}", finding.title));
        for fact in &finding.evidence {
            self.wrapped("         ", &format!("{}: {}", fact.what, fact.found));
        }
        if !finding.next.is_empty() {
            self.wrapped("       → ", &finding.next);
        }
    }
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
