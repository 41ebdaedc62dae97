//! The paragraph of a point of I/O jobs: what was measured, what each job did on each file and device, and the times.

use std::fmt::Write as _;

use kelvin_measure::storage::{JobLine, TargetLine};

use super::{BOLD, Page, cut, footnotes};
use crate::figure::{NONE, decimal, rate, seconds, significant, whole, workers};
use crate::{LatencyRow, PointReport, Report};

/// What a closed loop of I/Os cannot tell.
const CLOSED_LOOP: &str = "closed loop: a worker sends its next I/O when one under way has ended. While the device stalls, \
    nothing is sent, so that few I/Os meet the stall (coordinated omission); a rate (rate_iops) measures what they would \
    have waited";

/// The two times of an open loop.
const TWO_TIMES: &str = "response time: from when the I/O was to start by its rate to its completion; completion time: from \
    when it was handed to the kernel";

/// The times, where every I/O has them.
const COMPLETION: &str = "completion time: from the end of handing over to the completion";

impl Page {
    pub(super) fn io_point(&mut self, report: &Report, p: &PointReport) {
        self.line("");
        if report.points.len() > 1 {
            self.wrapped_in(BOLD, "", &format!("{}:", p.name()));
        }
        let jobs: Vec<&JobLine> = report.jobs.iter().filter(|job| job.point == p.point).collect();
        let bandwidth: f64 =
            jobs.iter().flat_map(|job| &job.targets).map(|target| target.bandwidth).sum::<f64>();
        let moved = if jobs.is_empty() { String::new() } else { format!("   {}", mebibytes(bandwidth)) };
        let figures = format!("{} {}{moved}", rate(p.headline(report.headline_per)), report.headline);
        let figures = self.painted(BOLD, &figures);
        self.line(&figures);
        let ramp_up = if p.ramp_up_s > 0.0 {
            format!("ramp-up of {} excluded", seconds(p.ramp_up_s))
        } else {
            "no ramp-up".into()
        };
        let open = if p.closed { "" } else { "; the window did not close: figures of a part" };
        let model = if report.open_loop { "open loop" } else { "closed loop" };
        let window = seconds(p.window_s);
        self.wrapped(
            "",
            &format!("{}, {model}, {window} measured as elapsed, {ramp_up}{open}", workers(p.users)),
        );
        if let Some(schedule) = &p.schedule
            && schedule.asked_per_second.is_some()
        {
            let behind = if schedule.overloaded {
                format!("; {} I/Os behind: the rate was not kept", whole(schedule.waiting))
            } else {
                String::new()
            };
            self.wrapped("", &format!("rate: {}{behind}", schedule.words()));
        }
        self.precision(report, p);
        for job in jobs {
            self.io_job(job);
        }
        if let Some(all) = &p.response_all {
            self.io_times("response, µs", &p.response, all);
        }
        self.io_times("completion, µs", &p.latency, &p.latency_all);
        for note in footnotes(p.latency.iter().chain(&p.response).chain(&p.response_all)) {
            self.wrapped("", &note.replace("transactions", "I/Os"));
        }
        self.wrapped("", if report.open_loop { TWO_TIMES } else { COMPLETION });
        if !report.open_loop {
            self.wrapped("", CLOSED_LOOP);
        }
        if let Some(cores) = p.generator.cpu_cores {
            let each = p.generator.cpu_us_per_transaction;
            let each = each.map_or(String::new(), |us| format!(", {} µs an I/O", significant(us)));
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
                "{} of {} I/Os under way on average",
                significant(reached),
                whole(job.depth_asked.into())
            ));
        }
        if let Some(cpu) = job.cpu_us {
            words.push(format!("{} µs of CPU an I/O", significant(cpu)));
        }
        if !words.is_empty() {
            self.wrapped("  ", &words.join(", "));
        }
        if job.targets.is_empty() {
            return;
        }
        let mut head = format!("  {:<30}", "");
        for name in ["IOPS", "MiB/s", "mean µs", "p50", "p99", "depth"] {
            let _ = write!(head, "{name:>10}");
        }
        self.line(&head);
        for target in &job.targets {
            self.line(&target_line(target));
        }
    }

    fn io_times(&mut self, title: &str, rows: &[LatencyRow], all: &LatencyRow) {
        self.line("");
        let mut head = format!("{title:<16}{:>11}", "count");
        for name in ["mean", "p50", "p95", "p99", "p99.9", "max"] {
            let _ = write!(head, "{name:>9}");
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
    // The end of a path tells files apart.
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
        let _ = write!(line, "{:>10}", value.map_or(NONE.into(), significant));
    }
    if target.failed > 0 {
        let _ = write!(line, "  {} failed", whole(target.failed));
    }
    line
}

fn times_line(row: &LatencyRow) -> String {
    let mut line = format!("{:<16}{:>11}", cut(&row.kind, 16), whole(row.count()));
    for us in [row.mean_us, row.p50_us, row.p95_us, row.p99_us, row.p999_us, row.max_us] {
        let _ = write!(line, "{:>9}", us.map_or(NONE.into(), significant));
    }
    line
}

/// Bytes a second in MiB/s.
fn mebibytes(bandwidth: f64) -> String {
    format!("{} MiB/s", significant(bandwidth / f64::from(1 << 20)))
}
