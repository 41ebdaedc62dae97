//! The comparison for a terminal, 80 columns wide.

use std::fmt::Write;

use super::caveats::join_runs;
use super::{ComparedFigure, ComparedPoint, Comparison, ComparisonVerdict, Difference, share};
use crate::text::{AMBER, BOLD, Options, RED, finding_lines, painted, wrap_lines};
use crate::{Finding, Severity};
use kelvin_measure::text::{NONE, bounded, ends, ms, plural, printable, rate, significant};

/// The comparison without colours.
pub fn text(comparison: &Comparison) -> String {
    render(comparison, Options::default())
}

/// The comparison for a terminal. Red marks anything that may make the sides differ other than the factor
/// under study.
pub fn render(comparison: &Comparison, options: Options) -> String {
    let mut page = Page { out: String::new(), colour: options.colour };
    page.sides(comparison);
    for warning in &comparison.warnings {
        page.lines(AMBER, wrap_lines("warning: ", warning));
    }
    // Red findings precede the results.
    let (top, rest): (Vec<&Finding>, Vec<&Finding>) =
        comparison.findings.iter().partition(|finding| finding.severity == Severity::Red);
    for finding in top {
        page.finding(finding);
    }
    for own in &comparison.own {
        page.lines(RED, wrap_lines("red    ", &own.describe()));
    }
    for point in &comparison.points {
        page.point(point, comparison.confidence);
    }
    page.line("");
    for finding in rest.iter().filter(|finding| finding.severity != Severity::Note) {
        page.finding(finding);
    }
    page.differences(&comparison.differences);
    page.out
}

struct Page {
    out: String,
    colour: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn lines(&mut self, colour: &str, lines: Vec<String>) {
        for line in lines {
            let line = painted(self.colour, colour, &line);
            self.line(&line);
        }
    }

    fn sides(&mut self, comparison: &Comparison) {
        for (letter, name, runs) in
            [("A", &comparison.name_a, &comparison.a), ("B", &comparison.name_b, &comparison.b)]
        {
            let numbers = join_runs(runs);
            let word = plural(runs.len(), "run", "runs");
            let named = if name.is_empty() || *name == numbers { String::new() } else { format!("{name}: ") };
            self.lines("", wrap_lines(&format!("{letter}: "), &format!("{named}{word} {numbers}")));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let colour = if finding.severity == Severity::Red { RED } else { AMBER };
        self.lines(colour, finding_lines(finding, "", usize::MAX));
    }

    fn point(&mut self, point: &ComparedPoint, confidence: f64) {
        let name = load(point);
        self.line("");
        // Rounded to 0.1 %, to fit the column.
        let interval = format!("{} interval", share((1e3 * confidence).round() / 1e3));
        self.line(&format!("{name:<29}{:>11}{:>11}{:>7}  {interval:<15}{:>5}", "A", "B", "B/A", "p"));
        for figure in &point.figures {
            self.figure(figure);
        }
        if point.figures.iter().any(|figure| figure.exploratory && figure.p.is_some()) {
            let name = point.figures.first().map_or("", |figure| figure.name.as_str());
            let note = format!(
                "only {name} is judged; the others are exploratory, and their p is adjusted for their number \
                 (Holm)"
            );
            self.lines("", wrap_lines("", &note));
        }
        if point.paired {
            let note = format!("{} pairs of runs, one per block", point.runs.0);
            self.lines("", wrap_lines("", &note));
        }
        if point.consecutive && point.verdict != ComparisonVerdict::NotTestable {
            let found = point.dependence.map_or_else(String::new, |found| {
                format!(" ({}): {}", found.describe(), found.worth_words(point.runs))
            });
            let note = format!(
                "the runs of a side are consecutive: intervals and p allow for correlation between \
                 successive runs{found}; running both sides in turn (kelvin ab) shows more"
            );
            self.lines("", wrap_lines("", &note));
        }
        if let Some((a, b)) = point.within_run_percent {
            self.line(&format!(
                "precision within each run only (95 %): A ± {a:.1} %, B ± {b:.1} %; this does not\ncompare A \
                 with B"
            ));
        }
        let colour = if point.verdict == ComparisonVerdict::NotTestable { AMBER } else { BOLD };
        self.lines(colour, wrap_lines("verdict: ", &point.words));
    }

    fn figure(&mut self, figure: &ComparedFigure) {
        let ratio = figure.exact_ratio().map_or_else(|| NONE.into(), factor);
        let interval = figure.interval.map_or_else(String::new, |(l, h)| ends(l, h, factor));
        let p =
            figure.p.map_or_else(String::new, |p| if p < 0.001 { "<.001".into() } else { format!("{p:.3}") });
        let mut line = String::new();
        let [a, b] = figure.bounded().map(|value| bounded(value, |value| format_value(figure, value)));
        let _ = write!(line, "{:<29}{a:>11}{b:>11}{ratio:>7}  {interval:<15}{p:>5}", titled(figure));
        self.line(&line);
    }

    /// A single difference is the factor; with several, the cause of a change is unknown.
    fn differences(&mut self, differences: &[Difference]) {
        let (matter, aside): (Vec<&Difference>, Vec<&Difference>) =
            differences.iter().partition(|d| d.matters);
        if differences.is_empty() {
            self.line("no recorded difference between A and B");
            return;
        }
        match matter.len() {
            0 => self.line("no relevant difference between A and B"),
            1 => self.line("what differs between A and B"),
            n => {
                let words = format!("{n} things; change one thing at a time");
                self.lines(RED, wrap_lines("what else differs between A and B: ", &words));
            }
        }
        let colour = if matter.len() > 1 { RED } else { BOLD };
        for difference in matter {
            self.difference(colour, difference);
        }
        let (single, several): (Vec<&Difference>, Vec<&Difference>) =
            aside.into_iter().partition(|d| d.a.len() == 1 && d.b.len() == 1);
        if !single.is_empty() {
            self.line("differences that are not a cause: names, places, momentary values, seeds");
        }
        for difference in single {
            self.difference("", difference);
        }
        if !several.is_empty() {
            let names: Vec<&str> = several.iter().map(|difference| difference.name.as_str()).collect();
            self.lines("", wrap_lines("varying from run to run: ", &names.join(", ")));
        }
    }

    fn difference(&mut self, colour: &str, difference: &Difference) {
        let name = painted(self.colour, colour, &format!("  {}", printable(&difference.name)));
        self.line(&name);
        for (side, values) in [("A", &difference.a), ("B", &difference.b)] {
            self.lines("", wrap_lines(&format!("      {side}: "), &Difference::describe_values(values)));
        }
    }
}

/// The metric's name, with its unit if it is not a rate.
pub(super) fn titled(figure: &ComparedFigure) -> String {
    match figure.unit.as_str() {
        "us" => format!("{} ms", figure.name),
        "µs" | "bytes" | "MiB/s" => format!("{}, {}", figure.name, figure.unit),
        _ => figure.name.clone(),
    }
}

/// A ratio in five columns.
pub(super) fn factor(ratio: f64) -> String {
    let digits = if ratio < 9.9995 {
        3
    } else if ratio < 99.995 {
        2
    } else {
        usize::from(ratio < 999.95)
    };
    format!("{ratio:.digits$}")
}

/// A value as printed in the table.
pub(super) fn format_value(figure: &ComparedFigure, value: Option<f64>) -> String {
    match (figure.unit.as_str(), value) {
        ("us", value) => ms(value),
        ("per minute" | "per second", value) => rate(value),
        (_, Some(value)) => significant(value),
        (_, None) => NONE.into(),
    }
}

/// The load of a point.
pub(super) fn load(point: &ComparedPoint) -> String {
    if let Some(tenant) = &point.tenant {
        return format!("tenant {tenant}");
    }
    let who = point.called.who;
    let load = match (point.asked_per_second, point.users) {
        ((Some(a), Some(b)), _) if a == b => format!("{}/s requested", rate(Some(a))),
        ((Some(a), Some(b)), _) => format!("{}/s in A, {}/s in B", rate(Some(a)), rate(Some(b))),
        (_, (a, b)) if a == b => format!("{a} {}", who.form_for(a.into())),
        (_, (a, b)) => format!("{a} {} in A, {b} in B", who.form_for(a.into())),
    };
    let load = match point.phase {
        Some(phase) => format!("{} {phase}: {load}", point.called.point.one),
        None => load,
    };
    point.occurrence.map_or(load.clone(), |n| format!("{load}, {}", ordinal(n)))
}

/// "1st", "2nd", "3rd", "11th".
fn ordinal(n: u32) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests {
    use super::super::chance;
    use super::*;

    #[test]
    fn ordinals_are_english() {
        let all = [1, 2, 3, 4, 11, 12, 13, 21, 22, 111].map(ordinal);
        assert_eq!(all, ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "111th"]);
    }

    #[test]
    fn ratios_have_five_columns() {
        let all = [0.9876, 9.9999, 10.278, 99.999, 123.44, 999.99, 0.0].map(factor);
        assert_eq!(all, ["0.988", "10.00", "10.28", "100.0", "123.4", "1000", "0.000"]);
    }

    #[test]
    fn chances_and_shares_read_well() {
        assert_eq!(
            [chance(0.000_01), chance(0.0286), chance(0.41)],
            ["p < 0.0001", "p = 0.0286", "p = 0.41"]
        );
        assert_eq!([share(0.01), share(0.005), share(0.12)], ["1 %", "0.5 %", "12 %"]);
    }
}
