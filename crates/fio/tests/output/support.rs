//! Hand-made jobs, outcomes and ticks.
#![allow(dead_code, reason = "each test takes what it needs of it")]

use kelvin_fio::job::*;
use kelvin_fio::output::OutputOptions;
use kelvin_fio::result::{DirectionOutcome, DiskUse, JobsOutcome, Samples, TargetOutcome, WorkerOutcome};
use kelvin_fio::tick::{DepthCounts, Failures, Tally};
use kelvin_fio::{BinSums, Direction, Moments, PerDirection};

const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A job with fio's defaults.
pub(crate) fn job(name: &str) -> Job {
    Job::named(name)
}

pub(crate) fn jobs(jobs: Vec<Job>) -> Jobs {
    Jobs { global: Vec::new(), jobs, notes: Vec::new() }
}

/// At one moment in one zone, so that texts are the same everywhere.
pub(crate) fn options() -> OutputOptions {
    OutputOptions { now: 1_795_304_395_144, zone: jiff::tz::TimeZone::UTC, ..OutputOptions::new() }
}

/// What ended in a direction: `count` I/Os of 4 KiB whose completion times are `first`, `first + step` …, each with a
/// submission of 1 µs before it.
pub(crate) fn tally(count: u64, first: u64, step: u64) -> Tally {
    let mut tally = Tally { ios: count, bytes: count * 4096, ..Tally::default() };
    let (mut totals, mut submissions) = (kelvin_fio::Bins::default(), kelvin_fio::Bins::default());
    for place in 0..count {
        let completion = first + place * step;
        tally.submission.record(1000);
        tally.completion.record(completion);
        tally.total.record(completion + 1000);
        tally.completion_bins.record(completion);
        totals.record(completion + 1000);
        submissions.record(1000);
    }
    tally.total_bins = Some(totals);
    tally.submission_bins = Some(submissions);
    tally
}

pub(crate) fn direction(count: u64, first: u64, step: u64) -> DirectionOutcome {
    let mut sums = DirectionOutcome::default();
    sums.add(&tally(count, first, step));
    sums
}

pub(crate) fn target(path: &str, device: Option<&str>) -> TargetOutcome {
    TargetOutcome { path: path.into(), device: device.map(Into::into), directions: PerDirection::default() }
}

fn samples(values: &[f64]) -> Samples {
    let mut samples = Samples::default();
    for value in values {
        samples.record(*value);
    }
    samples
}

/// A worker that ran for two seconds and did nothing yet.
pub(crate) fn worker(job: usize) -> WorkerOutcome {
    WorkerOutcome {
        job,
        clone: 0,
        group: 0,
        thread: 4711,
        started: Some(1_795_304_393_000),
        elapsed: 2 * SECOND,
        measured: 2 * SECOND,
        runtime: PerDirection::default(),
        targets: Vec::new(),
        verified: None,
        bandwidth: PerDirection([Samples::default(); 3]),
        iops: PerDirection([Samples::default(); 3]),
        syncs: Moments::default(),
        sync_bins: BinSums::default(),
        depth: DepthCounts {
            at: [10, 20, 30, 1940, 0, 0, 0],
            submitted: [0, 1500, 125, 0, 0, 0, 0],
            completed: [5, 1990, 5, 0, 0, 0, 0],
            sum: 15_630,
        },
        cpu: (200 * MILLISECOND, 500 * MILLISECOND),
        run_delay: Some(10 * MILLISECOND),
        counted: 2 * SECOND,
        switches: (2000, 12),
        faults: (0, 33),
        failures: Vec::new(),
        error: None,
        latency_depth: None,
        steady: None,
        notes: Vec::new(),
    }
}

/// With reads on one target: 2,000 of 50 µs to 450 µs.
pub(crate) fn reader(job: usize) -> WorkerOutcome {
    let mut worker = worker(job);
    let mut target = target("/data/f", Some("vda"));
    target.directions[Direction::Read] = direction(2000, 50_000, 200);
    worker.targets.push(target);
    worker.runtime[Direction::Read] = 2 * SECOND;
    worker.bandwidth[Direction::Read] = samples(&[3980.0, 4000.0, 4020.0]);
    worker.iops[Direction::Read] = samples(&[995.0, 1000.0, 1005.0]);
    worker
}

pub(crate) fn disk(name: &str) -> DiskUse {
    DiskUse {
        name: name.into(),
        ios: PerDirection([1990, 12, 0]),
        merges: PerDirection([3, 4, 0]),
        sectors: PerDirection([16_000, 96, 0]),
        ticks: PerDirection([480, 2, 0]),
        flushes: 2,
        in_queue: 482,
        busy: 1020,
        elapsed: 2000,
        below: Vec::new(),
    }
}

pub(crate) fn outcome(jobs: Jobs, workers: Vec<WorkerOutcome>) -> JobsOutcome {
    JobsOutcome {
        jobs,
        started: 1_795_304_393_000,
        elapsed: 2 * SECOND,
        workers,
        disks: vec![disk("vda")],
        interrupted: false,
    }
}

pub(crate) fn failures() -> Failures {
    Failures {
        target: 0,
        direction: Some(Direction::Read),
        number: 5,
        count: 3,
        first: (8192, 4096),
        message: "Input/output error".into(),
    }
}
