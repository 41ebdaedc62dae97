//! The section of a point of I/O jobs: what was measured, the results of each job on each file and device,
//! and the latencies.

use std::fmt::Write as _;

use kelvin_measure::Bounded;
use kelvin_measure::storage::{JobLine, TargetLine};

use super::{BOLD, Page, RED, footnotes, two_times};
use crate::{LatencyRow, PointReport, RunReport};
use kelvin_measure::text::{bounded, cut, decimal, rate, seconds, significant, significant_or_none, whole};

impl Page {
    /// The phases, each with its jobs. Phases run different jobs, so they are neither a series nor ranked.
    pub(super) fn io_points(&mut self, report: &RunReport) {
        self.line("");
        let mut head = format!("{:<5}  {:<19}{:>7}", "phase", "jobs", "workers");
        for (width, name) in IO_COLUMNS {
            column(&mut head, width, name);
        }
        self.line(&head);
        for p in &report.points {
            let jobs: Vec<&str> = report.jobs_of(p).map(|job| job.job.as_str()).collect();
            let mut line = format!("{:<5}  {:<19}{:>7}", p.point + 1, cut(&jobs.join(", "), 19), p.users);
            let times = p.client_latency();
            let values = [p.headline(report.headline_per), report.mebibytes_of(p)]
                .map(|value| value.map(Bounded::exactly))
                .into_iter()
                .chain([times.p50_us, times.p95_us, times.p99_us])
                .map(|value| bounded(value, significant_or_none));
            for ((width, _), value) in IO_COLUMNS.iter().zip(values) {
                column(&mut line, *width, &value);
            }
            self.line(&line);
        }
        self.wrapped("", &format!("times of all I/Os: {}", times_of(report)));
    }

    pub(super) fn io_point(&mut self, report: &RunReport, p: &PointReport, first: bool) {
        self.line("");
        if report.points.len() > 1 {
            self.wrapped_in(BOLD, "", &format!("{}:", p.name()));
        }
        let moved =
            report.mebibytes_of(p).map_or(String::new(), |moved| format!("   {} MiB/s", significant(moved)));
        let figures = format!("{} {}{moved}", rate(p.headline(report.headline_per)), report.headline);
        let figures = self.painted(BOLD, &figures);
        self.line(&figures);
        let ramp_up = if p.ramp_up_s > 0.0 {
            format!("ramp-up of {} excluded", seconds(p.ramp_up_s))
        } else {
            "no ramp-up".into()
        };
        let open = if p.closed { "" } else { "; the window did not close: partial figures" };
        let window = seconds(p.window_s);
        let how = loop_words(p);
        self.wrapped("", &format!("{}, {how}, {window} measured, {ramp_up}{open}", p.users()));
        if let Some(schedule) = &p.schedule
            && schedule.asked_per_second.is_some()
        {
            self.wrapped("", &format!("rate: {}", schedule.describe()));
            if let Some(shortfall) = &schedule.shortfall {
                self.wrapped_in(if schedule.overloaded { RED } else { "" }, "", shortfall);
            }
        }
        self.precision(report, p);
        self.sources(report, p);
        for job in report.jobs_of(p) {
            self.io_job(job);
        }
        if let Some(all) = &p.response_all {
            self.io_times("response, µs", &p.response, all);
        }
        self.io_times("completion, µs", &p.latency, &p.latency_all);
        for note in footnotes(p.latency.iter().chain(&p.response).chain(&p.response_all), p.words) {
            self.wrapped("", &note);
        }
        if p.response_all.is_some() {
            self.wrapped("", &two_times(p.words));
        } else if first {
            self.wrapped("", &format!("{}: {}", p.words.time, p.words.time_is));
        }
        // Printed once, for the first point with a closed loop.
        let closed = report.points.iter().find(|p| !p.open_loop);
        if closed.is_some_and(|closed| closed.point == p.point) {
            self.wrapped("", p.words.closed_loop);
        }
        if let Some(cores) = p.generator.cpu_cores {
            let each = p.generator.cpu_us_per_transaction;
            let each = each.map_or(String::new(), |us| format!(", {} µs per I/O", significant(us)));
            self.line("");
            self.wrapped("", &format!("CPU of the workers: {} cores{each}", decimal(Some(cores))));
        }
        self.observed(p);
        self.errors(p);
        self.timeline(p);
        self.judgements(p);
    }

    fn io_job(&mut self, job: &JobLine) {
        self.line("");
        self.wrapped("", &format!("job {}: {}", job.job, job.how));
        let mut words = Vec::new();
        if let Some(reached) = job.depth_reached {
            words.push(format!(
                "{} of {} I/Os in flight on average",
                significant(reached),
                whole(job.depth_asked.into())
            ));
        }
        if let Some(cpu) = job.cpu_us {
            words.push(format!("{} µs of CPU per I/O", significant(cpu)));
        }
        if !words.is_empty() {
            self.wrapped("  ", &words.join(", "));
        }
        if job.targets.is_empty() {
            return;
        }
        let mut head = format!("  {:<30}", "");
        for name in ["IOPS", "MiB/s", "mean µs", "p50", "p99", "depth"] {
            column(&mut head, 10, name);
        }
        self.line(&head);
        for target in &job.targets {
            self.line(&target_line(target));
        }
    }

    pub(super) fn io_times(&mut self, title: &str, rows: &[LatencyRow], all: &LatencyRow) {
        self.line("");
        let mut head = format!("{title:<16} {:>10}", "count");
        for name in ["mean", "p50", "p95", "p99", "p99.9", "max"] {
            column(&mut head, 9, name);
        }
        self.line(&head);
        for row in rows {
            self.line(&times_line(row));
        }
        if rows.len() > 1 {
            self.line(&times_line(all));
        }
    }
}

fn target_line(target: &TargetLine) -> String {
    let device = target.device.as_ref().filter(|device| !target.path.ends_with(device.as_str()));
    let device = device.map_or(String::new(), |device| format!(" ({device})"));
    // The end of a path distinguishes files.
    let path: Vec<char> = target.path.chars().collect();
    let room = 30_usize.saturating_sub(target.direction.len() + 2 + device.chars().count());
    let shown: String = if path.len() > room {
        std::iter::once('…').chain(path[path.len() - room.saturating_sub(1)..].iter().copied()).collect()
    } else {
        path.iter().collect()
    };
    let mut line = format!("  {:<30}", cut(&format!("{} {shown}{device}", target.direction), 30));
    let [mean, p50, _, p99] = target.times_us;
    for value in
        [Some(target.iops), Some(target.bandwidth / f64::from(1 << 20)), mean, p50, p99, target.depth_reached]
    {
        column(&mut line, 10, &significant_or_none(value));
    }
    if target.failed > 0 {
        let _ = write!(line, "  {} failed", whole(target.failed));
    }
    line
}

fn times_line(row: &LatencyRow) -> String {
    let mut line = format!("{:<16} {:>10}", cut(&row.kind, 16), whole(row.count()));
    for us in row.times() {
        column(&mut line, 9, &bounded(us, significant_or_none));
    }
    line
}

/// Appends a right-aligned column. A value that fills it still has a space before it.
fn column(line: &mut String, width: usize, text: &str) {
    let _ = write!(line, " {text:>width$}", width = width - 1);
}

/// Widths and names of the numeric columns in the table of phases.
const IO_COLUMNS: [(usize, &str); 5] =
    [(11, "IOPS"), (9, "MiB/s"), (9, "p50 µs"), (9, "p95 µs"), (9, "p99 µs")];

/// The kind of latencies in the table of phases.
pub(crate) fn times_of(report: &RunReport) -> String {
    let open = report.points.iter().filter(|p| p.open_loop).count();
    match open {
        0 => "completion times".into(),
        all if all == report.points.len() => "response times".into(),
        _ => "completion times; response times of phases with a rate".into(),
    }
}

/// Whether the point is an open or a closed loop, as text.
pub(crate) fn loop_words(p: &PointReport) -> &'static str {
    match (p.open_loop, &p.response_all) {
        (true, _) => "open loop",
        (false, None) => "closed loop",
        (false, Some(_)) => {
            "closed loop next to jobs with a rate; response times cover only the I/Os of those jobs"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::column;

    #[test]
    fn columns_never_run_together() {
        let mut line = String::from("read");
        for value in ["1,234,567", "12,345,678", "5"] {
            column(&mut line, 9, value);
        }
        assert_eq!(line, "read 1,234,567 12,345,678        5");
    }
}
