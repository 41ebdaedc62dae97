//! Facts that only the run can show.

use std::collections::BTreeMap;
use std::fs::File;

use super::counters::Reading;
use super::facts::{ProbedTargetKind, StorageFacts, TargetAfter};
use super::run_counts::{RunCounts, Series};
use super::run_facts::{JobRun, RunFacts, TimeSummary};
use super::{cache, targets};
use kelvin_fio::result::{DirectionOutcome, JobsOutcome, WorkerOutcome};
use kelvin_fio::{BinSums, Direction, Moments, PerDirection};
use kelvin_host::SystemTree;

/// A percentile is reported if at least this many lie beyond it.
pub const BEYOND: f64 = 10.0;

impl StorageFacts {
    /// Adds the facts of the run: the counters of devices, processes and CPUs since it began, and the work of its
    /// workers. If [`StorageFacts::event`] or [`StorageFacts::watching`] were not called, values per second are
    /// missing, layout counts as part of the run, and the bytes of the jobs do not include ramp-up.
    pub fn add_outcome(&mut self, outcome: &JobsOutcome) {
        let watched = std::mem::take(&mut self.watched);
        let now = Reading::take(&SystemTree::default());
        let mut run = RunFacts { io_workers: watched.io_workers, ..RunFacts::default() };
        (run.claimed, run.ios) = claimed(&watched, outcome);
        run.verified = outcome
            .workers
            .iter()
            .filter_map(|worker| worker.verified.as_ref())
            .map(|verified| verified[Direction::Read].bytes)
            .sum();
        if let Some(begun) = &watched.begun {
            let mut names: Vec<String> = Vec::new();
            for name in self.devices.iter().flat_map(|device| device.counted.iter().chain([&device.disk])) {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            run.seconds = now.at.duration_since(begun.at).as_secs_f64();
            run.process = now.own_since(begun);
            run.devices = now.devices_since(begun, &names);
            run.others = now.others_since(begun);
            run.cpu = now.cpu_since(begun);
            run.dirty_before = begun.dirty();
        }
        run.jobs = (0..self.jobs.len()).map(|job| job_run(job, outcome, &watched)).collect();
        self.look_at_targets(outcome);
        self.run = Some(run);
    }

    fn look_at_targets(&mut self, outcome: &JobsOutcome) {
        for target in self
            .targets
            .iter_mut()
            .filter(|target| matches!(target.kind, ProbedTargetKind::File | ProbedTargetKind::Block))
        {
            let mut moved = PerDirection::<u64>::default();
            let its = outcome.workers.iter().flat_map(|worker| &worker.targets);
            for of in its.filter(|of| of.path == target.path) {
                for (direction, done) in of.directions.iter() {
                    moved[direction] += done.bytes;
                }
            }
            let mut after = TargetAfter { moved, ..TargetAfter::default() };
            // A file may be deleted at the end.
            if let Ok(file) = File::open(&target.path) {
                after.size = file.metadata().map_or(0, |metadata| metadata.len());
                if target.kind == ProbedTargetKind::File {
                    after.cached = cache::cached(&file, target.region);
                    after.coverage =
                        target.written.then(|| targets::stored(&file, target.region, after.cached)).flatten();
                }
            }
            target.after = Some(after);
        }
    }
}

/// All bytes and I/Os of the jobs: from all ticks, or from the measured part if no tick was received.
fn claimed(watched: &RunCounts, outcome: &JobsOutcome) -> (PerDirection<u64>, PerDirection<u64>) {
    let mut bytes = PerDirection::<u64>::default();
    let mut ios = PerDirection::<u64>::default();
    for target in outcome.workers.iter().flat_map(|worker| &worker.targets) {
        for (direction, done) in target.directions.iter() {
            bytes[direction] += done.bytes;
            ios[direction] += done.ios;
        }
    }
    for direction in Direction::ALL {
        bytes[direction] = bytes[direction].max(watched.bytes[direction]);
        ios[direction] = ios[direction].max(watched.ios[direction]);
    }
    (bytes, ios)
}

fn job_run(job: usize, outcome: &JobsOutcome, watched: &RunCounts) -> JobRun {
    let all = outcome.workers.iter().enumerate().filter(|(_, worker)| worker.job == job);
    let workers: Vec<&WorkerOutcome> =
        all.clone().map(|(_, worker)| worker).filter(|worker| worker.measured > 0).collect();
    // The series is by planned workers: it is meaningless if another plan was executed.
    let as_planned = all.map(|(number, _)| number).all(|number| watched.jobs.get(number) == Some(&job));
    let (series, step) = watched.series.get(job).filter(|_| as_planned).map(Series::done).unwrap_or_default();
    let mut run = JobRun { workers: workers.len() as u32, series, step, ..JobRun::default() };
    let mut sums = PerDirection::<DirectionOutcome>::default();
    let mut devices: BTreeMap<&str, Moments> = BTreeMap::new();
    let (mut depths, mut issued, mut issued_sum, mut cpu, mut seconds) = (0.0, 0, 0, 0, 0.0);
    let mut timed = true;
    let mut all_times = Moments::default();
    for worker in &workers {
        let measured = worker.measured as f64;
        let mut under_way = 0.0;
        for target in &worker.targets {
            for (direction, done) in target.directions.iter() {
                sums[direction].merge(done);
                let times = if done.total.count > 0 { &done.total } else { &done.completion };
                // I/Os that are counted but not timed have no latency for Little's law.
                timed &= times.count >= done.ios;
                under_way += times.sum as f64 / measured;
                all_times.merge(times);
                if let Some(device) = &target.device {
                    devices.entry(device).or_default().merge(times);
                }
            }
        }
        depths += under_way;
        seconds += measured / 1e9;
        // The counters were read a little before and after the measured part: their values cover that time.
        let counted = worker.counted.max(1) as f64;
        issued += worker.depth.at.iter().sum::<u64>();
        issued_sum += worker.depth.sum;
        let used = worker.cpu.0 + worker.cpu.1;
        cpu += used;
        run.cpu = run.cpu.max(used as f64 / counted);
        let delay = worker.run_delay.map(|delay| delay as f64 / counted);
        run.run_delay = run.run_delay.into_iter().chain(delay).reduce(f64::max);
        run.latency_depth = worker.latency_depth.or(run.latency_depth);
    }
    let count = workers.len() as f64;
    let ios: u64 = sums.0.iter().map(|done| done.ios).sum();
    if !workers.is_empty() {
        run.seconds = seconds / count;
        run.latency = all_times.mean();
        run.depth = (timed && ios > 0).then_some(depths / count);
        run.issued_depth = (issued > 0).then(|| issued_sum as f64 / issued as f64);
        run.cpu_per_io = (ios > 0).then(|| cpu as f64 / ios as f64);
    }
    for (direction, done) in sums.iter() {
        run.ios[direction] = done.ios;
        run.bytes[direction] = done.bytes;
        run.completion[direction] = times(&done.completion, &done.completion_bins);
        run.response[direction] = times(&done.response, &done.response_bins);
    }
    if devices.len() > 1 {
        run.devices = devices
            .into_iter()
            .map(|(name, times)| (name.to_owned(), times.count, times.mean().unwrap_or(0.0)))
            .collect();
    }
    run
}

fn times(moments: &Moments, bins: &BinSums) -> Option<TimeSummary> {
    let count = bins.count();
    Some(TimeSummary {
        count,
        mean: moments.mean()?,
        median: bins.percentile(50.0)?,
        p99: bins.percentile(99.0).filter(|_| count as f64 * 0.01 >= BEYOND),
    })
}
