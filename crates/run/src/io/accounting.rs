//! Accounting at the end of a run of I/O jobs: windows, invariants, what became of the rates, the jobs'
//! lines.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kelvin_measure::event::{ArrivalSchedule, Arrivals, Event, Window};
use kelvin_measure::invariant::{Invariant, counts_agree};
use kelvin_measure::storage::{JobLine, TargetLine};
use kelvin_measure::{Nanos, SECOND, Sink, SinkError};
use kelvin_spec::plan;
use kelvin_storage::Direction;
use kelvin_storage::control::RateChanges;
use kelvin_storage::job::Job;
use kelvin_storage::result::{DirectionOutcome, JobsOutcome, WorkerOutcome};

use super::describe;
use crate::heartbeat::{Gap, check_generator_ran};
use kelvin_storage::seconds::{Seconds, Sums};

/// Everything that is known at the end of a run.
pub(super) struct IoAccounting<'a> {
    pub(super) outcome: &'a JobsOutcome,
    pub(super) seconds: &'a Seconds,
    /// The point of each worker.
    pub(super) points: &'a [u32],
    /// The I/Os that each worker may have in flight.
    pub(super) depths: &'a [u32],
    /// Periods in which this process did not run.
    pub(super) gaps: &'a [Gap],
    /// Changes of the rates that the jobs request.
    pub(super) rates: &'a RateChanges,
    pub(super) accept_noise: bool,
}

impl IoAccounting<'_> {
    /// Emits the counts, window and invariants of each point. Returns whether the counts agree, hold-ups
    /// aside.
    pub(super) fn report_points(&self, sink: &mut dyn Sink) -> Result<bool, SinkError> {
        let all: BTreeSet<u32> = self.points.iter().copied().collect();
        let mut agree = true;
        for point in all {
            let sums = self.seconds.sums(point);
            let Some((open, close)) = sums.window else { continue };
            let elapsed = close - open;
            let workers = self.workers(point);
            let cpu = workers.iter().map(|(worker, _)| worker.cpu.0 + worker.cpu.1).sum();
            let delay = workers.iter().filter_map(|(worker, _)| worker.run_delay).reduce(|a, b| a + b);
            let ios: u64 = sums.kinds.iter().take(sums.bytes.len()).map(|kind| kind.committed).sum();
            sink.event(&Event::Counters { point, values: sums.bytes.clone() })?;
            let factor = self.rates.mean(open, close);
            let schedule = schedule(self.outcome, point, &workers, ios, (elapsed, factor.unwrap_or(1.0)));
            if let Some(schedule) = schedule.filter(|_| factor.is_some()) {
                self.report_arrivals(point, (open, elapsed), schedule.rate / factor.unwrap_or(1.0), sink)?;
            }
            sink.event(&Event::Window(Window {
                point,
                users: workers.len() as u32,
                elapsed,
                idle: 0,
                client_headline: ios,
                server_headline: None,
                server_transactions: None,
                client_cpu: cpu,
                client_run_delay: delay,
                schedule,
            }))?;
            for invariant in invariants(&sums, &workers, ios, elapsed) {
                agree &= invariant.holds;
                sink.event(&Event::Invariant { point, invariant })?;
            }
            // A run that was held up is void, although its counts are correct.
            if elapsed > 0 {
                let invariant = check_generator_ran(self.gaps, open, elapsed, self.accept_noise);
                sink.event(&Event::Invariant { point, invariant })?;
            }
            for gap in self.gaps.iter().filter(|gap| gap.within(open, close).is_some()) {
                sink.event(&gap.note(point, open))?;
            }
            sink.event(&Event::Audit { point, lines: Vec::new() })?;
        }
        Ok(agree)
    }

    /// Emits the requested arrivals of each whole second, where they were changed. `rate` is the rate of the
    /// jobs.
    fn report_arrivals(
        &self,
        point: u32,
        (open, elapsed): (Nanos, Nanos),
        rate: f64,
        sink: &mut dyn Sink,
    ) -> Result<(), SinkError> {
        for second in 0..elapsed / SECOND {
            let from = open + second * SECOND;
            let factor = self.rates.mean(from, from + SECOND).unwrap_or(1.0);
            let due = (rate * factor).round() as u64;
            let second = second as i64;
            sink.event(&Event::Arrivals(Arrivals { point, second, due, refused: 0, waiting: None }))?;
        }
        Ok(())
    }

    /// The workers of a point, each with its I/O depth.
    fn workers(&self, point: u32) -> Vec<(&WorkerOutcome, u32)> {
        let each = self.outcome.workers.iter().zip(self.points.iter().zip(self.depths));
        each.filter(|(_, (of, _))| **of == point).map(|(worker, (_, depth))| (worker, *depth)).collect()
    }
}

/// The invariants of a point.
fn invariants(sums: &Sums, workers: &[(&WorkerOutcome, u32)], ios: u64, elapsed: Nanos) -> Vec<Invariant> {
    let directions =
        workers.iter().flat_map(|(worker, _)| &worker.targets).flat_map(|target| &target.directions.0);
    let (mut counted, mut bytes) = (0, 0);
    for direction in directions {
        counted += direction.ios;
        bytes += direction.bytes;
    }
    let mut found = vec![
        counts_agree(
            "the per-second records add up to the result: I/Os",
            ("in the records", ios),
            ("in the result", counted),
            0,
        ),
        counts_agree(
            "the per-second records add up to the result: bytes",
            ("in the records", sums.bytes.iter().sum()),
            ("in the result", bytes),
            0,
        ),
        counts_agree(
            "every I/O has exactly one completion time",
            ("missing or duplicate", sums.astray),
            ("allowed", 0),
            0,
        ),
    ];
    let depth: u32 = workers.iter().map(|(_, depth)| depth).sum();
    if sums.timed > 0 && elapsed > 0 {
        // By Little's law the mean number in flight is throughput × time. It cannot exceed the depth. An I/O
        // that began before the window counts with its whole time.
        let found_depth = sums.in_system as f64 / elapsed as f64;
        let edge = f64::from(depth) * sums.longest as f64 / elapsed as f64;
        found.push(Invariant::new(
            "Little's law: throughput × time does not exceed the depth",
            found_depth <= f64::from(depth) * 1.02 + edge,
            format!("{found_depth:.2} in flight by throughput × time, {depth} allowed"),
        ));
    }
    found
}

/// What became of the requested rate in a window of `elapsed`, in which it was on average `factor` times the
/// jobs' rate. A worker has to keep its rate while it runs; in the rest of the window it has no arrivals.
fn schedule(
    outcome: &JobsOutcome,
    point: u32,
    workers: &[(&WorkerOutcome, u32)],
    ios: u64,
    (elapsed, factor): (Nanos, f64),
) -> Option<ArrivalSchedule> {
    let jobs = &outcome.jobs;
    let clones: u32 = workers.len() as u32;
    let (mut rate, mut due) = (0.0, 0.0);
    for (worker, _) in workers {
        let job = jobs.jobs.get(worker.job)?;
        let own = factor * plan::asked_of_job(job)? / f64::from(job.clones.max(1));
        rate += own * covered(worker.measured, elapsed);
        due += if !outcome.interrupted && ended_by_amount(worker, job) {
            worker.targets.iter().flat_map(|target| &target.directions.0).map(|one| one.ios as f64).sum()
        } else {
            own * worker.measured as f64 / 1e9
        };
    }
    let random = plan::is_random(jobs, point);
    // With random gaps the count's standard deviation is its square root; with even gaps it differs by
    // at most the I/Os in flight.
    let depth: u32 = workers.iter().map(|(_, depth)| depth).sum();
    let uncertain = if random { 4.0 * due.sqrt() } else { f64::from(depth + clones) };
    let behind = (due - ios as f64 - uncertain).max(0.0);
    let due = if behind > 0.0 { due as u64 } else { ios };
    Some(ArrivalSchedule {
        rate,
        due,
        refused: 0,
        waiting: behind as u64,
        longest: behind as u64,
        ..ArrivalSchedule::default()
    })
}

/// The share of a window in which a worker ran. Workers begin and end some milliseconds apart; that
/// difference counts as covered.
fn covered(measured: Nanos, elapsed: Nanos) -> f64 {
    let apart = (elapsed / 50).max(100_000_000);
    if measured + apart >= elapsed { 1.0 } else { measured as f64 / elapsed as f64 }
}

/// Whether a worker ended because it had completed its amount of I/O, so that no arrivals remained.
fn ended_by_amount(worker: &WorkerOutcome, job: &Job) -> bool {
    // The last I/O before the end of the runtime may have ended slightly earlier.
    let in_time = |runtime: Nanos| worker.measured < runtime - runtime / 50;
    worker.error.is_none() && job.course.runtime.is_none_or(in_time)
}

/// One line for each job on each of its targets.
pub(super) fn lines(outcome: &JobsOutcome, points: &[u32], targets: &[usize]) -> Vec<JobLine> {
    let mut found = Vec::new();
    for (index, job) in outcome.jobs.jobs.iter().enumerate() {
        let workers: Vec<&WorkerOutcome> =
            outcome.workers.iter().filter(|worker| worker.job == index).collect();
        let nanos = workers.iter().map(|worker| worker.measured).max().unwrap_or(0);
        let seconds = nanos as f64 / 1e9;
        let mut rows: Vec<(PathBuf, Option<String>, Direction, DirectionOutcome)> = Vec::new();
        for target in workers.iter().flat_map(|worker| &worker.targets) {
            for (direction, figures) in target.directions.iter().filter(|(_, f)| f.ios + f.failed > 0) {
                match rows.iter_mut().find(|row| row.0 == target.path && row.2 == direction) {
                    Some(row) => row.3.merge(figures),
                    None => {
                        rows.push((target.path.clone(), target.device.clone(), direction, figures.clone()));
                    }
                }
            }
        }
        rows.sort_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
        let targets_of_job: Vec<TargetLine> = rows
            .iter()
            .map(|(path, device, direction, figures)| line(path, device.clone(), *direction, figures, nanos))
            .collect();
        let ios: u64 = rows.iter().map(|row| row.3.ios).sum();
        let cpu: u64 = workers.iter().map(|worker| worker.cpu.0 + worker.cpu.1).sum();
        let depths: Option<f64> = targets_of_job.iter().map(|line| line.depth_reached).sum();
        found.push(JobLine {
            job: job.name.clone(),
            point: points.get(index).copied().unwrap_or(0),
            workers: workers.len() as u32,
            how: describe::describe_job(job, targets.get(index).copied().unwrap_or(1)),
            depth_asked: depth(job).saturating_mul(job.clones),
            depth_reached: depths.filter(|_| !targets_of_job.is_empty()),
            seconds,
            cpu_us: (ios > 0).then(|| cpu as f64 / 1e3 / ios as f64),
            targets: targets_of_job,
        });
    }
    found
}

fn line(
    path: &Path,
    device: Option<String>,
    direction: Direction,
    figures: &DirectionOutcome,
    nanos: Nanos,
) -> TargetLine {
    let seconds = nanos as f64 / 1e9;
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let percentile = |percent: f64| {
        let beyond = figures.completion.count as f64 * (1.0 - percent / 100.0);
        let known = figures.completion_bins.percentile(percent).filter(|_| beyond + 1e-9 >= 10.0);
        known.map(|nanos| nanos as f64 / 1e3)
    };
    let whole = if figures.total.count > 0 { &figures.total } else { &figures.completion };
    TargetLine {
        path: path.display().to_string(),
        device,
        direction: direction.word().into(),
        ios: figures.ios,
        bytes: figures.bytes,
        iops: rate(figures.ios),
        bandwidth: rate(figures.bytes),
        times_us: [
            figures.completion.mean().map(|nanos| nanos / 1e3),
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
        ],
        depth_reached: (whole.count > 0 && nanos > 0).then(|| whole.sum as f64 / nanos as f64),
        failed: figures.failed,
    }
}

/// I/Os that a worker of a job may have in flight.
pub(super) fn depth(job: &Job) -> u32 {
    if job.engine.name.is_asynchronous() { job.depth.depth } else { 1 }
}

pub(super) fn failed(outcome: &JobsOutcome) -> u64 {
    let directions = outcome.workers.iter().flat_map(|w| &w.targets).flat_map(|t| &t.directions.0);
    directions.map(|direction| direction.failed).sum()
}

pub(super) fn error_of(outcome: &JobsOutcome) -> Option<String> {
    outcome.workers.iter().find_map(|worker| {
        let (_, words) = worker.error.as_ref()?;
        let name = outcome.jobs.jobs.get(worker.job).map_or("?", |job| job.name.as_str());
        Some(format!("job {name}: {words}"))
    })
}
