//! The section of one point: what was measured, how, and the resource use of the client.

use kelvin_measure::labels::WorkloadLabels;

use super::{BOLD, Page, RED, SERIES, cut};
use crate::{GeneratorReport, PercentileInterval, PointReport, RunReport};
use kelvin_measure::text::{
    bounded, decimal, ms, one_decimal, rate, seconds, significant, significant_or_none, whole,
};

/// Printed in place of the precision of a short window.
pub(crate) const TOO_SHORT: &str = "window too short to estimate the precision";

/// The meaning of the server's own statistics. PostgreSQL's processes publish theirs at most once a second
/// and when they become idle, so the window's edges differ from those of the client's count.
pub(crate) const SERVER_STATISTICS: &str = "according to the server's own statistics, which its processes publish \
     up to a second late and which include all its work";

/// The interval of the p99 in a sentence.
pub(crate) fn of_p99(interval: &PercentileInterval, words: &WorkloadLabels) -> String {
    let worth = format!(
        "95 %; the slowest 1 % of the {} are equivalent to {} independent ones",
        words.unit.many,
        significant((interval.effective_beyond * 10.0).round() / 10.0)
    );
    let low = ms(Some(interval.low_us));
    match interval.high_us {
        Some(high) => {
            format!("within this run: p99 of the response time {low} to {} ms ({worth})", ms(Some(high)))
        }
        None => format!(
            "within this run: p99 of the response time {low} ms or more ({worth}, too few for an upper \
             bound: run longer)"
        ),
    }
}

/// The definitions of the two times of an open loop.
pub(crate) fn two_times(words: &WorkloadLabels) -> String {
    format!("response time: {}; {}: {}", words.response_is, words.time, words.time_is)
}

impl Page {
    /// `first` is whether this is the first printed point; the times are defined only there.
    pub(super) fn point(&mut self, report: &RunReport, p: &PointReport, first: bool) {
        if report.is_io() {
            return self.io_point(report, p, first);
        }
        self.line("");
        if report.is_scenario() {
            return self.scenario_point(report, p);
        }
        if report.points.len() > 1 {
            self.heading(report, p);
        }
        let per = report.headline_per;
        let mut figures = format!("{} {}", rate(p.headline(per)), report.headline);
        if report.has_total() {
            figures.push_str(&format!("   {} {}", rate(p.transactions(per)), report.total_name()));
        }
        if let Some(reads) = &p.throughput.reads {
            figures.push_str(&format!("   {}", reads.describe()));
        }
        let figures = self.painted(BOLD, &figures);
        self.line(&figures);
        let ramp_up = if p.ramp_up_s > 0.0 {
            format!("ramp-up of {} excluded", seconds(p.ramp_up_s))
        } else if p.never_opened() {
            "ended before its window opened".into()
        } else {
            "no ramp-up".into()
        };
        let open = if p.closed { "" } else { "; the window did not close: partial figures" };
        let model = if report.open_loop { "open loop" } else { "closed loop" };
        self.wrapped(
            "",
            &format!("{}, {model}, {} measured, {ramp_up}{open}", p.users(), seconds(p.window_s)),
        );
        self.schedule(p);
        self.counts(report, p);
        self.precision(report, p);
        for line in generator(&p.generator, p.words) {
            self.wrapped("", &line);
        }
        self.sources(report, p);
        self.hosts(p);
        self.latency(report, p, first);
        self.statements(p);
        self.observed(p);
        self.errors(p);
        self.timeline(p);
        self.judgements(p);
    }

    /// The tenants of a scenario, one by one: the transactions and I/Os of different loads have no common
    /// sum.
    fn scenario_point(&mut self, report: &RunReport, p: &PointReport) {
        let cores = p.generator.cpu_cores.map_or_else(String::new, |cores| {
            format!("; {} CPU: {} cores", p.words.client, decimal(Some(cores)))
        });
        let text = format!("{}, {} measured{cores}", report.system(), seconds(p.window_s));
        self.wrapped("", &text);
        self.sources(report, p);
        self.latency(report, p, true);
        self.statements(p);
        self.observed(p);
        self.errors(p);
        self.timeline(p);
        self.judgements(p);
    }

    /// The load of each of several sources.
    pub(super) fn sources(&mut self, report: &RunReport, p: &PointReport) {
        if p.sources.is_empty() {
            return;
        }
        let row = |name: &str, rest: [String; 6]| {
            let [headline, share, p50, p95, p99, errors] = rest;
            format!("{:<24}{headline:>12}{share:>8}{p50:>9}{p95:>9}{p99:>9}{errors:>8}", cut(name, 23))
        };
        self.line("");
        let (unit, time): (_, fn(Option<f64>) -> String) =
            if report.is_io() { ("µs", significant_or_none) } else { ("ms", ms) };
        let [p50, p95, p99] = ["p50", "p95", "p99"].map(|name| format!("{name} {unit}"));
        let (name, headline, share) = if report.is_scenario() {
            ("tenant", "per second".into(), String::new())
        } else {
            ("source", report.headline.clone(), "share".into())
        };
        self.line(&row(name, [headline, share, p50, p95, p99, "errors".into()]));
        for source in &p.sources {
            let [p50, p95, p99] = [source.latency.p50_us, source.latency.p95_us, source.latency.p99_us];
            let [p50, p95, p99] = [p50, p95, p99].map(|value| bounded(value, time));
            let headline = rate(report.throughput_of(source));
            let share = if report.is_scenario() { String::new() } else { one_decimal(source.share_percent) };
            let errors = whole(source.errors);
            self.line(&row(&source.name, [headline, share, p50, p95, p99, errors]));
        }
    }

    /// The resource use of the hosts of a fleet, and when each started.
    fn hosts(&mut self, p: &PointReport) {
        let generator = &p.generator;
        if generator.hosts.is_empty() {
            return;
        }
        let row = |name: &str, rest: [String; 5]| {
            let [users, cpu, start, offset, drift] = rest;
            format!("{:<24}{users:>8}{cpu:>9}{start:>18}{offset:>12}{drift:>8}", cut(name, 23))
        };
        self.line("");
        let heads = ["users", "CPU", "start ms", "clock ms", "ppm"];
        self.line(&row("host", heads.map(str::to_owned)));
        for host in &generator.hosts {
            let bound = host.start_bound_us.map_or_else(String::new, |us| format!(" ± {:.3}", us / 1e3));
            let start = host.start_us.map_or_else(|| "–".into(), |us| format!("{:.3}{bound}", us / 1e3));
            let offset = host.clock_offset_us.map_or_else(|| "–".into(), |us| format!("{:.3}", us / 1e3));
            let drift = host.clock_drift_ppm.map_or_else(|| "–".into(), |ppm| format!("{ppm:.1}"));
            let cells = [whole(host.users.into()), one_decimal(host.cpu_host_percent), start, offset, drift];
            self.line(&row(&host.host, cells));
            if let Some(first) = &host.same_machine_as {
                self.wrapped(
                    "  ",
                    &format!("{} is on the machine of {first}: its CPUs count once", host.host),
                );
            }
            if let Some(why) = &host.lost {
                self.wrapped_in(RED, "  ", &format!("{} was lost: {why}", host.host));
            }
        }
        if let Some(start) = generator.start {
            let (skew, most) = (start.skew_us / 1e3, start.at_most_us / 1e3);
            let mut text = format!("the hosts started within {skew:.3} ms, at most {most:.3} ms");
            if let Some(end) = generator.end {
                let (skew, most) = (end.skew_us / 1e3, end.at_most_us / 1e3);
                text += &format!("; their windows closed within {skew:.3} ms, at most {most:.3} ms");
            }
            self.wrapped("", &text);
        }
    }

    /// The precision of the headline within the run.
    pub(super) fn precision(&mut self, report: &RunReport, p: &PointReport) {
        if let Some(precision) = p.within_run {
            self.wrapped(
                "",
                &format!(
                    "within-run precision only: {} ± {:.1} % (95 %, {:.0} independent seconds of {})",
                    report.headline,
                    precision.half_width_percent,
                    precision.effective_seconds,
                    precision.seconds
                ),
            );
        }
        if let Some(interval) = p.p99_within_run.filter(|_| p.open_loop) {
            self.wrapped("", &of_p99(&interval, p.words));
        }
        if p.too_short() {
            self.wrapped("", TOO_SHORT);
        }
    }

    /// Which of several points this is, and where to find the others.
    fn heading(&mut self, report: &RunReport, p: &PointReport) {
        if report.points.len() <= SERIES {
            self.wrapped_in(BOLD, "", &format!("{}:", p.name()));
            return;
        }
        let held = report.maximum_rate.as_ref().is_some_and(|found| found.highest_held() == Some(p.point));
        let which = if held { "the highest sustained rate" } else { "the best point" };
        self.wrapped_in(BOLD, "", &format!("{which}, {}:", p.name()));
        let words =
            format!("details of the {} other points: see the HTML and JSON reports", report.points.len() - 1);
        self.wrapped("", &words);
    }

    fn schedule(&mut self, p: &PointReport) {
        let Some(s) = &p.schedule else { return };
        let longest = s.longest_queue.map_or_else(String::new, |n| format!(", longest queue {}", whole(n)));
        let cut_off = match s.cut_off {
            0 => String::new(),
            some => format!(", {} cut off at the end", whole(some)),
        };
        let words = format!(
            "schedule: {}; {} due, {} refused, {} waiting at the end{cut_off}{longest}",
            s.describe(),
            whole(s.due),
            whole(s.refused),
            whole(s.waiting)
        );
        self.wrapped("", &words);
        if let Some(shortfall) = &s.shortfall {
            self.wrapped_in(if s.overloaded { RED } else { "" }, "", shortfall);
        }
    }

    fn counts(&mut self, report: &RunReport, p: &PointReport) {
        if let Some(server) = p.server.headline {
            let text = format!(
                "{} counted for {} by the client, {} by the server",
                whole(p.throughput.headline_count),
                report.headline,
                whole(server)
            );
            self.wrapped("", &text);
        }
        let per = report.headline_per;
        if let Some(rate_of_server) = p.server_transactions(per) {
            let name = if report.has_total() { report.total_name() } else { &report.headline };
            let rate = rate(Some(rate_of_server));
            self.wrapped("", &format!("{rate} {name} {SERVER_STATISTICS}"));
        }
    }
}

/// A value in microseconds; an I/O may cost less than one.
fn cost(us: f64) -> String {
    if us < 10.0 { significant(us) } else { rate(Some(us)) }
}

/// The resource use and the lateness of the load generator, in sentences.
pub(crate) fn generator(g: &GeneratorReport, words: &WorkloadLabels) -> Vec<String> {
    let mut lines = Vec::new();
    let each =
        |us: Option<f64>| us.map_or_else(String::new, |us| format!(", {} µs {}", cost(us), words.a_unit));
    if let Some(cores) = g.cpu_cores {
        let of = if g.of_hosts { "all hosts" } else { "the host" };
        let host = g.cpu_host_percent.map_or_else(String::new, |p| format!(" ({p:.1} % of {of})"));
        let us = each(g.cpu_us_per_transaction);
        lines.push(format!("{} CPU: {} cores{host}{us}", words.client, decimal(Some(cores))));
    }
    if let Some(delay) = g.run_delay_ms_per_s {
        let us = each(g.run_delay_us_per_transaction);
        lines.push(format!(
            "{} threads waited for a CPU: {} ms per second{us}",
            words.client,
            decimal(Some(delay))
        ));
    }
    if let Some(lag) = &g.lag
        && lag.samples == 0
    {
        lines.push("the generator's own lateness: no user was idle when a transaction was due".into());
    } else if let Some(lag) = &g.lag {
        lines.push(format!(
            "the generator's own lateness: p50 {} ms, p99 {} ms, max {} ms, over {} arrivals with an idle \
             user",
            ms(lag.p50_us),
            ms(lag.p99_us),
            ms(lag.max_us),
            whole(lag.samples)
        ));
    }
    lines
}
