//! The summary at the end of a run, for a screen of 80 columns and 24 rows: what was measured, whether it
//! counts, what limited it, what to do. [`super::render`] has everything else.

use super::{
    AMBER, BOLD, Page, RED, RankedFindings, SERIES, WIDTH, describe_maximum_rate, elasticities, loop_words,
    painted, peak, wrap_lines,
};
use crate::text::Options;
use crate::{BottleneckOutcome, PointReport, RunReport, Severity};
use kelvin_measure::text::{
    bounded, cut, ms, plural, rate, seconds, significant, significant_or_none, whole,
};

/// Rows for the summary: the screen without the prompt and the three lines that the caller prints after it.
const ROWS: usize = 20;
/// Width of the line names.
const LEAD: usize = 9;

/// A level of detail. The first level that fits the screen is used.
#[derive(Clone, Copy)]
struct Level {
    /// Whether the table of latencies, or of points, is included.
    table: bool,
    /// Whether there are blank lines between the parts.
    blank: bool,
    /// Largest number of lines of a finding's title.
    title: usize,
    /// Largest number of lines of a remedy.
    next: usize,
    /// Largest number of lines of a sentence: verdict, reasons, error.
    sentence: usize,
}

const LEVELS: [Level; 6] = [
    Level { table: true, blank: true, title: 3, next: 3, sentence: 4 },
    Level { table: true, blank: true, title: 2, next: 1, sentence: 3 },
    Level { table: false, blank: true, title: 2, next: 3, sentence: 3 },
    Level { table: false, blank: true, title: 2, next: 2, sentence: 3 },
    Level { table: false, blank: false, title: 2, next: 1, sentence: 2 },
    Level { table: false, blank: false, title: 1, next: 1, sentence: 2 },
];

/// The result of a run in at most 20 lines of 80 columns. Truncated text ends with "…"; [`super::render`] has
/// it in full.
pub fn brief(report: &RunReport, options: Options) -> String {
    let mut shown = String::new();
    for level in LEVELS {
        shown = at_level(report, options, level);
        if shown.lines().count() <= ROWS {
            break;
        }
    }
    shown
}

fn at_level(report: &RunReport, options: Options, level: Level) -> String {
    let mut page = Page { out: String::new(), colour: options.colour, all: false };
    let label = report.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
    let title = format!("run {}{label}: {}", report.run, report.subject());
    page.line(&cut(&title, WIDTH));
    let best = report.best();
    page.answer(report, level);
    page.gap(level);
    page.state(report, level);
    if let Some(verdict) = best.and_then(|point| point.verdict.as_ref())
        // The verdict on a void run repeats why it is void.
        && !matches!(verdict.outcome, BottleneckOutcome::Void { .. })
    {
        page.sentence(BOLD, "verdict", &verdict.sentence, level.sentence);
    }
    page.interference(report);
    page.failures(report, level);
    page.top_findings(report, level);
    if level.table
        && !report.is_scenario()
        && let Some(point) = best
    {
        if report.points.len() > 1 {
            page.each_point(report);
        } else {
            page.times_of_point(report, point);
        }
    }
    page.out
}

impl Page {
    /// The result of a sweep, a search or a squeeze, which precedes the results of its points.
    pub(super) fn first_answer(&mut self, report: &RunReport) {
        if report.points.len() > 1 || report.squeeze.is_some() || report.details.queries.is_some() {
            self.line("");
            self.answer(report, LEVELS[0]);
        }
    }

    fn answer(&mut self, report: &RunReport, level: Level) {
        if let Some(queries) = &report.details.queries {
            self.sentence(BOLD, "", &queries.describe(), level.sentence);
            for why in queries.figures.void.iter().take(2) {
                self.sentence(RED, "void", why, 2);
            }
        }
        for words in report.squeeze.iter().flat_map(elasticities).take(5) {
            self.sentence(BOLD, "", &words, level.sentence.min(2));
        }
        match report.best() {
            // The transactions of different tenants have no common sum.
            Some(point) if report.is_scenario() => self.sources(report, point),
            Some(point) => self.figures(report, point, level),
            None => self.line("nothing was measured"),
        }
    }

    fn gap(&mut self, level: Level) {
        if level.blank {
            self.line("");
        }
    }

    /// A named sentence of at most `most` lines; truncated text ends with "…".
    fn sentence(&mut self, colour: &str, name: &str, text: &str, most: usize) {
        let lead = if name.is_empty() { String::new() } else { format!("{name:<LEAD$}") };
        for line in limited(wrap_lines(&lead, text), most) {
            let line = painted(self.colour, colour, &line);
            self.line(&line);
        }
    }

    /// The headline with its interval, the load, and the latency.
    fn figures(&mut self, report: &RunReport, p: &PointReport, level: Level) {
        if let Some(found) = &report.maximum_rate {
            self.sentence(BOLD, "", &describe_maximum_rate(found), 2);
        }
        let per = report.headline_per;
        let mut headline = format!("{} {}", rate(p.headline(per)), report.headline);
        if let Some(precision) = p.within_run {
            headline.push_str(&format!(" ± {:.1} % (95 %, within this run)", precision.half_width_percent));
        }
        if report.has_total() && !report.is_io() {
            headline.push_str(&format!(" · {} {}", rate(p.transactions(per)), report.total_name()));
        }
        if let Some(reads) = &p.throughput.reads {
            headline.push_str(&format!(" · {}", reads.describe()));
        }
        if let Some(moved) = report.mebibytes_of(p) {
            headline.push_str(&format!(" · {} MiB/s", significant(moved)));
        }
        self.sentence(BOLD, "", &headline, 2);
        if p.too_short() {
            self.line("no interval: too few independent seconds in the measured window");
        }
        let points = match report.points.len() {
            0 | 1 => String::new(),
            n if report.is_io() => format!("phase {} of {n}: ", p.point + 1),
            n if report.maximum_rate.as_ref().is_some_and(|found| found.highest_held() == Some(p.point)) => {
                format!("highest sustained rate, of {n}: ")
            }
            n => format!("best of {n} points: "),
        };
        let ramp_up = if p.ramp_up_s > 0.0 {
            format!("after a ramp-up of {}", seconds(p.ramp_up_s))
        } else if p.never_opened() {
            "ended before the measured window".into()
        } else {
            "no ramp-up".into()
        };
        let model = if report.is_io() {
            loop_words(p)
        } else if report.open_loop {
            "open loop"
        } else {
            "closed loop"
        };
        let load = format!("{points}{}, {model}, {} measured, {ramp_up}", p.users(), seconds(p.window_s));
        self.sentence("", "", &load, 2);
        if let Some(schedule) = &p.schedule {
            self.sentence("", "", &format!("rate: {}", schedule.describe()), level.sentence);
            if let Some(shortfall) = &schedule.shortfall {
                self.sentence(if schedule.overloaded { RED } else { "" }, "", shortfall, level.sentence);
            }
        }
        let all = p.client_latency();
        let (name, unit, show): (_, _, fn(Option<f64>) -> String) = match (p.open_loop, report.is_io()) {
            (true, true) => ("response time", "µs", significant_or_none),
            (true, false) => ("response time", "ms", ms),
            (false, true) => (p.words.time, "µs", significant_or_none),
            (false, false) => (p.words.time, "ms", ms),
        };
        let times = [("mean", all.mean_us), ("p50", all.p50_us), ("p95", all.p95_us), ("p99", all.p99_us)];
        let times = times.map(|(name, value)| format!("{name} {}", bounded(value, show)));
        self.sentence("", "", &format!("{name}, {unit}: {}", times.join(", ")), 1);
        if let Some(fit) = &report.scalability {
            self.sentence("", "", &format!("Universal Scalability Law: {}", peak(fit)), 2);
        }
    }

    fn state(&mut self, report: &RunReport, level: Level) {
        if report.valid {
            self.line(&format!("{:<LEAD$}{}", "state", report.judgement.state.word()));
        } else {
            self.sentence(RED, "state", &report.judgement.describe(), level.sentence);
        }
        let durability = report.evidence.as_deref().and_then(kelvin_diagnose::Evidence::durability_given_up);
        if let Some(durability) = durability {
            self.sentence(RED, "caution", &durability, 2);
        }
        if let Some(error) =
            report.error.as_ref().filter(|error| !report.judgement.describe().contains(*error))
        {
            self.sentence(RED, "error", error, level.sentence);
        }
        if let Some(lost) = report.not_seen.lost.first() {
            self.sentence(AMBER, "lost", &format!("{}: {}", lost.what, lost.why), 1);
        }
    }

    /// Errors by class and code; nothing if there are none.
    fn failures(&mut self, report: &RunReport, level: Level) {
        let mut classes: Vec<(String, u64)> = Vec::new();
        for error in report.points.iter().flat_map(|point| &point.errors) {
            let name = if error.code.is_empty() {
                error.class.clone()
            } else {
                format!("{} ({})", error.class, error.code)
            };
            match classes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += error.count,
                None => classes.push((name, error.count)),
            }
        }
        if classes.is_empty() {
            return;
        }
        classes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let each: Vec<String> =
            classes.iter().map(|(name, count)| format!("{} {name}", whole(*count))).collect();
        let words = format!("{}; {} failed permanently", each.join(", "), whole(report.failed));
        let colour = if report.failed > 0 { RED } else { "" };
        self.sentence(colour, "errors", &words, level.sentence.min(2));
    }

    fn top_findings(&mut self, report: &RunReport, level: Level) {
        let RankedFindings { first, more, minor } = RankedFindings::of(report);
        if !first.is_empty() {
            self.gap(level);
        }
        for one in &first {
            let colour = if one.finding.severity == Severity::Red { RED } else { AMBER };
            let title = format!("{}{}", one.finding.title, one.about);
            self.sentence(colour, one.finding.severity.word(), &title, level.title);
            if !one.finding.next.is_empty() {
                let lead = format!("{:>width$} ", "→", width = LEAD - 1);
                for line in limited(wrap_lines(&lead, &one.finding.next), level.next) {
                    self.line(&line);
                }
            }
        }
        let left = more.len() + minor.len();
        if left > 0 {
            let noun = plural(left, "finding", "findings");
            let (lead, more) = if first.is_empty() { ("findings", "minor") } else { ("", "more") };
            self.line(&format!("{lead:<LEAD$}{left} {more} {noun}"));
        }
    }

    /// The table of points; omitted for a long series, which would not fit.
    fn each_point(&mut self, report: &RunReport) {
        if report.is_io() {
            self.io_points(report);
        } else if report.points.len() <= 3 * SERIES {
            self.points(report);
        }
    }

    fn times_of_point(&mut self, report: &RunReport, p: &PointReport) {
        // With a single type, its row would repeat the row of all.
        let rows = if p.open_loop { &p.response } else { &p.latency };
        if rows.len() < 2 {
            return;
        }
        match (p.response_all.as_ref().filter(|_| p.open_loop), report.is_io()) {
            (Some(all), true) => self.io_times("response, µs", &p.response, all),
            (None, true) => self.io_times("completion, µs", &p.latency, &p.latency_all),
            (Some(all), false) => self.times("response, ms", &p.response, Some(all)),
            (None, false) => self.times("service, ms", &p.latency, Some(&p.latency_all)),
        }
    }
}

/// At most `most` lines; if lines are omitted, the last one ends with "…".
fn limited(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        if let Some(last) = lines.last_mut() {
            while last.chars().count() > WIDTH - 2 {
                let word = last.trim_end().rfind(' ').unwrap_or(0);
                last.truncate(word);
            }
            last.truncate(last.trim_end().trim_end_matches([',', ';']).len());
            last.push_str(" …");
        }
    }
    lines
}
