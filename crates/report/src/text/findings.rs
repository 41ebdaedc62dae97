//! The bottleneck, and the findings that affect the results.

use super::{AMBER, BOLD, Page, RED, wrap_lines};
use crate::{BottleneckOutcome, BottleneckVerdict, Finding, PointReport, RunReport, Severity};

/// Findings that are printed before the others are only counted.
const FIRST: usize = 3;
/// Lines of evidence for a red and for an amber finding on the terminal; the page has all.
const SHOWN: [usize; 2] = [5, 2];
/// Largest number of other points with the same finding that are named; if there are more, they are counted.
const NAMED: usize = 3;

/// One finding, and its points.
pub(crate) struct FindingGroup<'a> {
    /// The finding of the best point, or else of the last that has it.
    pub(crate) finding: &'a Finding,
    /// The points, printed after the title; empty if there is only one point, or if the finding is about the
    /// whole run.
    pub(crate) about: String,
}

/// The findings. A finding that several points have in common is listed once; a sweep would repeat it for
/// each point.
fn grouped(report: &RunReport) -> Vec<FindingGroup<'_>> {
    let mut groups: Vec<Vec<&Finding>> = Vec::new();
    for finding in &report.findings {
        let same = |group: &&mut Vec<&Finding>| {
            let first = group[0];
            (first.id, first.severity, first.is_shown()) == (finding.id, finding.severity, finding.is_shown())
                && first.point.is_some()
                && finding.point.is_some_and(|point| group.iter().all(|one| one.point != Some(point)))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    let best = report.best().map(|point| point.point);
    groups.into_iter().filter_map(|group| one_of(report, best, &group)).collect()
}

fn one_of<'a>(report: &RunReport, best: Option<u32>, group: &[&'a Finding]) -> Option<FindingGroup<'a>> {
    let of_best = group.iter().find(|finding| finding.point == best);
    let finding = *of_best.or(group.last())?;
    let name = |finding: &Finding| {
        let point = finding.point.filter(|_| report.points.len() > 1)?;
        report.points.iter().find(|p| p.point == point).map(PointReport::name)
    };
    let others: Vec<String> =
        group.iter().filter(|one| one.point != finding.point).filter_map(|one| name(one)).collect();
    let about = match (name(finding), &others[..]) {
        (None, _) => String::new(),
        (Some(own), []) => format!(" ({own})"),
        (Some(own), others) if others.len() > NAMED => {
            format!(" ({own}; likewise {} other {})", others.len(), report.vocabulary().point.many)
        }
        (Some(own), others) => format!(" ({own}; likewise {})", others.join(", ")),
    };
    Some(FindingGroup { finding, about })
}

/// A report's findings, ranked by severity and then by effect.
pub(crate) struct RankedFindings<'a> {
    /// The most important ones that affect the results.
    pub(crate) first: Vec<FindingGroup<'a>>,
    /// The others that affect the results.
    pub(crate) more: Vec<FindingGroup<'a>>,
    /// Notes, and those with an effect below the run's precision.
    pub(crate) minor: Vec<FindingGroup<'a>>,
}

impl<'a> RankedFindings<'a> {
    pub(crate) fn of(report: &'a RunReport) -> Self {
        let (minor, mut first): (Vec<_>, Vec<_>) =
            grouped(report).into_iter().partition(|one| is_minor(one.finding));
        let more = first.split_off(first.len().min(FIRST));
        Self { first, more, minor }
    }

    /// Moves all findings that affect the results to `first`.
    pub(crate) fn all(mut self) -> Self {
        self.first.append(&mut self.more);
        self
    }

    /// A count of the findings that are not in `first`: "1 amber finding, 2 notes"; `None` if there are none.
    pub(crate) fn counted(&self) -> Option<String> {
        counted(self.more.iter().chain(&self.minor).map(|one| one.finding))
    }
}

impl Page {
    fn most(&self, finding: &Finding) -> usize {
        match finding.severity {
            _ if self.all => usize::MAX,
            Severity::Red => SHOWN[0],
            _ => SHOWN[1],
        }
    }

    /// The verdicts on the points in `shown`, and the findings. They precede the results, because they state
    /// whether those are reliable.
    pub(super) fn findings(&mut self, report: &RunReport, shown: &[&PointReport]) {
        if report.evidence.is_none() && report.findings.is_empty() {
            return;
        }
        let several = report.points.len() > 1;
        for point in shown {
            let Some(verdict) = &point.verdict else { continue };
            self.line("");
            let lead = match verdict.outcome {
                _ if several => format!("{}: ", point.name()),
                // The verdict's sentence states the reason.
                BottleneckOutcome::Void { .. } => String::new(),
                _ => "verdict: ".into(),
            };
            self.wrapped_in(colour(verdict), &lead, &verdict.sentence);
            if !verdict.next.is_empty() {
                self.wrapped("  next: ", &verdict.next);
            }
        }
        self.line("");
        let ranked = RankedFindings::of(report);
        let ranked = if self.all { ranked.all() } else { ranked };
        for one in &ranked.first {
            self.finding(one.finding, &one.about);
        }
        let counted = match ranked.counted() {
            None => String::new(),
            Some(_) if self.all => ", but".into(),
            Some(counted) => format!("; {counted}: kelvin show --all"),
        };
        if ranked.first.is_empty() {
            self.wrapped("findings: ", &format!("none that puts these results in doubt{counted}"));
        } else if let Some(counted) = counted.strip_prefix("; ") {
            self.wrapped("", &format!("and {counted}"));
        }
        if self.all {
            for one in &ranked.minor {
                self.finding(one.finding, &one.about);
            }
        }
        for tried in &report.tried {
            let words =
                format!("{}: {} ({}; kelvin groups {})", tried.title, tried.answer, tried.cost, tried.group);
            self.wrapped("tried: ", &words);
        }
        let left_out =
            |one: &FindingGroup<'_>| one.finding.evidence.len().saturating_sub(self.most(one.finding));
        let left_out: usize = ranked.first.iter().map(left_out).sum();
        if left_out > 0 {
            self.wrapped("", &format!("more detail ({left_out} lines): kelvin show --all"));
        }
    }

    fn finding(&mut self, finding: &Finding, about: &str) {
        let colour = match finding.severity {
            Severity::Red => RED,
            Severity::Amber => AMBER,
            Severity::Note => "",
        };
        let title = wrap_lines(&lead(finding), &format!("{}{about}", finding.title)).len();
        for (index, line) in finding_lines(finding, about, self.most(finding)).into_iter().enumerate() {
            let line = if index < title && !colour.is_empty() { self.painted(colour, &line) } else { line };
            self.line(&line);
        }
    }
}

/// Whether a finding is shown only with all findings: a note, or one with an effect below the run's precision.
fn is_minor(finding: &Finding) -> bool {
    finding.severity == Severity::Note || !finding.is_shown()
}

/// "1 amber finding, 2 notes, 1 finding below the run's precision"; `None` if there are none.
fn counted<'a>(findings: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let (shown, small): (Vec<_>, Vec<_>) = findings.partition(|finding| finding.is_shown());
    let of = |severity| shown.iter().filter(|finding| finding.severity == severity).count();
    let each = [
        (of(Severity::Red), "red finding", ""),
        (of(Severity::Amber), "amber finding", ""),
        (of(Severity::Note), "note", ""),
        (small.len(), "finding", " below the run's precision"),
    ];
    let each = each.into_iter().filter(|(number, ..)| *number > 0);
    let each = each
        .map(|(number, what, rest)| format!("{number} {what}{}{rest}", if number == 1 { "" } else { "s" }));
    each.reduce(|first, second| format!("{first}, {second}"))
}

/// The effect of a finding on the result.
pub(crate) fn effect(finding: &Finding) -> String {
    let below = if finding.is_shown() { "" } else { ", below the precision of the run" };
    format!("{}{below}", finding.effect.describe())
}

/// Findings in order of severity, each with its evidence and remedy. Findings whose effect is below the run's
/// precision are omitted.
pub fn findings(findings: &[Finding]) -> String {
    let mut sorted: Vec<&Finding> = findings.iter().filter(|finding| finding.is_shown()).collect();
    sorted.sort_by_key(|finding| finding.severity);
    let lines = sorted.into_iter().flat_map(|finding| finding_lines(finding, "", SHOWN[0]));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

fn lead(finding: &Finding) -> String {
    format!("{:<7}", finding.severity.word())
}

/// The lines of a finding: its title with the points in `about`, at most `most` lines of evidence, and the
/// remedy.
pub(crate) fn finding_lines(finding: &Finding, about: &str, most: usize) -> Vec<String> {
    let mut lines = wrap_lines(&lead(finding), &format!("{}{about}", finding.title));
    lines.extend(wrap_lines("         ", &format!("effect: {}", effect(finding))));
    for fact in finding.evidence.iter().take(most) {
        lines.extend(wrap_lines("         ", &format!("{}: {}", fact.what, fact.found)));
    }
    if !finding.next.is_empty() {
        lines.extend(wrap_lines("       → ", &finding.next));
    }
    lines
}

/// A void run is as bad as a red finding; a known bottleneck is useful.
fn colour(verdict: &BottleneckVerdict) -> &'static str {
    match verdict.outcome {
        BottleneckOutcome::Void { .. } => RED,
        _ => BOLD,
    }
}
