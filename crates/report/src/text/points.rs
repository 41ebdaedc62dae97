//! The results of all points of a run: their table, their curve, and conclusions.

use kelvin_measure::event::{Estimate, MaximumRate, Scalability};

use super::{Options, Page, RED, unanswered};
use crate::{PointReport, RunReport, ScheduleReport};
use kelvin_measure::text::{NONE, bounded, coefficient, decimal, ms, rate, series, whole};

/// The points of runs that differ in their number of users, with the model fitted to them, or the reason why
/// none was.
pub fn sweep(runs: Vec<RunReport>, law: Result<Scalability, String>, options: Options) -> String {
    let mut page = Page { out: String::new(), colour: options.colour, all: options.all };
    let numbers: Vec<String> = runs.iter().map(|run| run.run.to_string()).collect();
    let mut runs = runs.into_iter();
    let Some(mut whole) = runs.next() else { return page.out };
    whole.points.extend(runs.flat_map(|run| run.points));
    page.line("");
    page.wrapped("", &format!("sweep over users: runs {}", series(&numbers)));
    let why_none = law.as_ref().err().cloned();
    whole.scalability = law.ok();
    page.points(&whole);
    page.curve(&whole);
    page.scalability(&whole);
    if let Some(why) = why_none {
        page.wrapped("", &why);
    }
    page.out
}

impl Page {
    /// Users or rates with their results, in the order in which they were run.
    pub(super) fn points(&mut self, report: &RunReport) {
        self.line("");
        if report.open_loop {
            self.line(&format!(
                "{:>6}{:>9}{:>11}{:>8}{:>8}{:>8}{:>7}{:>9}{:>8}{:>6}",
                "users",
                "asked/s",
                "achieved/s",
                "p50 ms",
                "p95 ms",
                "p99 ms",
                "errors",
                "refused",
                "waiting",
                "cores"
            ));
        } else {
            let total =
                if report.has_total() { format!("{:>12}", report.total_name()) } else { String::new() };
            self.line(&format!(
                "{:>7}{:>12}{total}{:>9}{:>9}{:>9}{:>9}{:>9}",
                "users", report.headline, "p50 ms", "p95 ms", "p99 ms", "errors", "cores"
            ));
        }
        for p in &report.points {
            let line = if report.open_loop { open_line(p) } else { closed_line(report, p) };
            self.line(&line);
        }
        let time = if report.open_loop { "response times" } else { "service times" };
        self.wrapped("", &format!("{time} of all transactions; cores: CPUs used by the client process"));
        if report.points.iter().any(|p| !p.client_latency().at_least.is_empty()) {
            self.wrapped("", &unanswered(report.vocabulary()));
        }
    }

    /// The throughput as a bar chart.
    pub(super) fn curve(&mut self, report: &RunReport) {
        let value = |p: &PointReport| {
            if report.open_loop {
                p.throughput.transactions_per_second
            } else {
                p.headline(report.headline_per)
            }
        };
        let most = report.points.iter().filter_map(value).fold(0.0, f64::max);
        if most <= 0.0 {
            return;
        }
        self.line("");
        if report.open_loop {
            self.line("achieved over requested transactions per second");
        } else {
            self.line(&format!("{} over users", report.headline));
        }
        for p in &report.points {
            let bar = "#".repeat((value(p).unwrap_or(0.0) / most * 54.0).round() as usize);
            let place = p.asked_per_second().map_or_else(|| p.users.to_string(), |asked| rate(Some(asked)));
            self.line(&format!("{place:>8} |{bar} {}", rate(value(p))));
        }
    }

    /// The Universal Scalability Law of a sweep.
    pub(super) fn scalability(&mut self, report: &RunReport) {
        let Some(fit) = &report.scalability else { return };
        self.line("");
        self.line("Universal Scalability Law: X(n) = λ·n / (1 + σ·(n − 1) + κ·n·(n − 1))");
        let rows = [
            ("λ", &fit.lambda, "per second of a single user"),
            ("σ", &fit.sigma, "contention: serialized share"),
            ("κ", &fit.kappa, "coherency: cost of each pair"),
        ];
        for (name, estimate, words) in rows {
            self.line(&format!(
                "  {name} {:>11}  {:<28}{words}",
                coefficient(estimate.value),
                interval(estimate)
            ));
        }
        self.wrapped("  ", &explained(fit));
        self.wrapped("  ", &peak(fit));
    }

    /// How throughput scaled with the hosts of a fleet.
    pub(super) fn linearity(&mut self, report: &RunReport) {
        if report.details.linearity.is_empty() {
            return;
        }
        self.line("");
        self.line("throughput per host, relative to that of the fewest hosts");
        let (name, per) = (&report.headline, report.headline_per.seconds());
        self.line(&format!("{:>6}{:>9}{name:>14}{:>14}  95 % interval", "hosts", "users", "efficiency %"));
        let share = |share: f64| format!("{:.1}", share * 100.0);
        for one in &report.details.linearity {
            let ends = one.low.zip(one.high).map(|(low, high)| format!("{} to {}", share(low), share(high)));
            let (ends, pace) = (ends.unwrap_or_default(), rate(Some(one.headline_per_second * per)));
            let (hosts, users) = (one.hosts, whole(one.users.into()));
            let row = format!("{hosts:>6}{users:>9}{pace:>14}{:>14}  {ends}", share(one.efficiency));
            self.line(row.trim_end());
        }
    }

    /// The search for the highest rate.
    pub(super) fn maximum_rate(&mut self, report: &RunReport) {
        let Some(found) = &report.maximum_rate else { return };
        self.line("");
        self.line("rates that were tried");
        self.line(&format!("{:>10}{:>12}", "asked/s", "achieved/s"));
        for trial in &found.trials {
            let lead = format!("{:>10}{:>12}  ", rate(Some(trial.rate)), rate(Some(trial.achieved)));
            let verdict = if trial.holds { "held" } else { "failed" };
            let words = format!("{verdict}: {}", trial.verdicts.join("; "));
            self.wrapped_in(if trial.holds { "" } else { RED }, &lead, &words);
        }
    }
}

fn open_line(p: &PointReport) -> String {
    let times = p.client_latency();
    let of_schedule = |count: fn(&ScheduleReport) -> u64| {
        p.schedule.as_ref().map_or_else(|| NONE.into(), |schedule| whole(count(schedule)))
    };
    format!(
        "{:>6}{:>9}{:>11}{:>8}{:>8}{:>8}{:>7}{:>9}{:>8}{:>6}",
        whole(u64::from(p.users)),
        rate(p.asked_per_second()),
        rate(p.throughput.transactions_per_second),
        bounded(times.p50_us, ms),
        bounded(times.p95_us, ms),
        bounded(times.p99_us, ms),
        whole(p.error_count()),
        of_schedule(|s| s.refused),
        of_schedule(|s| s.waiting),
        decimal(p.generator.cpu_cores)
    )
}

fn closed_line(report: &RunReport, p: &PointReport) -> String {
    let all = || format!("{:>12}", rate(p.transactions(report.headline_per)));
    let total = if report.has_total() { all() } else { String::new() };
    format!(
        "{:>7}{:>12}{total}{:>9}{:>9}{:>9}{:>9}{:>9}",
        whole(u64::from(p.users)),
        rate(p.headline(report.headline_per)),
        bounded(p.latency_all.p50_us, ms),
        bounded(p.latency_all.p95_us, ms),
        bounded(p.latency_all.p99_us, ms),
        whole(p.error_count()),
        decimal(p.generator.cpu_cores)
    )
}

/// "(1.20 to 1.31)", the 95 % interval.
pub(crate) fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("({} to {})", coefficient(low), coefficient(high)),
        _ => format!("({NONE})"),
    }
}

/// How well the model explains the measured values.
pub(crate) fn explained(fit: &Scalability) -> String {
    let r = fit.r_squared.map_or_else(|| NONE.into(), |r| format!("{r:.4}"));
    format!("R² {r} over {} points; intervals 95 %, by bootstrap", fit.points.len())
}

/// The peak of the fitted throughput.
pub(crate) fn peak(fit: &Scalability) -> String {
    if let Some(users) = fit.peak_users {
        return format!(
            "highest at {} users according to the fit: {} transactions per second",
            rate(Some(users.round())),
            rate(Some(fit.fitted(users)))
        );
    }
    if fit.peak_below {
        let least = fit.points.iter().map(|p| p.users).min().unwrap_or(0);
        return format!(
            "the highest throughput lies below {} users, the fewest measured",
            whole(least.into())
        );
    }
    let most = fit.points.iter().map(|p| p.users).max().unwrap_or(0);
    format!(
        "the highest throughput lies beyond {} users, twice the measured range, where the fit is not valid",
        whole(2 * u64::from(most))
    )
}

/// The result of a search in one sentence.
pub(crate) fn describe_maximum_rate(found: &MaximumRate) -> String {
    let slo = &found.slo;
    match (found.held, found.failed) {
        (Some(held), Some(failed)) => {
            format!("highest rate that meets {slo}: {}/s; {}/s failed", rate(Some(held)), rate(Some(failed)))
        }
        (Some(held), None) => {
            format!("{}/s meets {slo}; no tried rate failed: the highest was not found", rate(Some(held)))
        }
        (None, Some(failed)) => {
            format!("no tried rate meets {slo}; {}/s already failed", rate(Some(failed)))
        }
        (None, None) => format!("no rate was tried for {slo}"),
    }
}
