//! Hand-made jobs, outcomes and ticks.
#![allow(dead_code, reason = "each test takes what it needs of it")]

use kelvin_storage::error::Place;
use kelvin_storage::job::{
    Amount, BlockSizes, Blocks, Buffers, Course, Depth, Disabled, Distribution, EngineName, EngineOptions,
    ErrorRules, ExitWhat, Fadvise, Fallocate, FileChoice, FileService, Generator, Job, Jobs, LatencyGoal,
    LockFile, Logs, Memory, Mixed, Pattern, Process, Rate, RateProcess, ReportOptions, Sequencer, Sync,
    SyncOpen, Targets, Trims,
};
use kelvin_storage::output::OutputOptions;
use kelvin_storage::result::{DirectionOutcome, DiskUse, Outcome, Samples, TargetOutcome, WorkerOutcome};
use kelvin_storage::tick::{DepthCounts, Failures, Tally};
use kelvin_storage::{BinSums, Direction, Moments, PerDirection};

const MILLISECOND: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000_000_000;

/// fio's default of `percentile_list`.
pub(crate) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// A job with fio's defaults.
pub(crate) fn job(name: &str) -> Job {
    Job {
        name: name.into(),
        place: Place::default(),
        description: None,
        given: Vec::new(),
        clones: 1,
        targets: Targets {
            filenames: Vec::new(),
            directories: Vec::new(),
            filename_format: "$jobname.$jobnum.$filenum".into(),
            unique_filename: true,
            files: 1,
            open_files: None,
            service: FileService { choice: FileChoice::RoundRobin, ios_per_switch: 1 },
            size: None,
            file_size: None,
            io_size: None,
            fill_device: false,
            append: false,
            offset: Amount::Bytes(0),
            offset_align: 0,
            offset_increment: Amount::Bytes(0),
            number_ios: None,
            create_serialize: true,
            create_fsync: true,
            create_on_open: false,
            create_only: false,
            allow_create: true,
            allow_mounted_write: false,
            pre_read: false,
            unlink: false,
            unlink_each_loop: false,
            fallocate: Fallocate::Native,
            fadvise: Fadvise::ByPattern,
            write_hint: None,
            invalidate: true,
            lock: LockFile::None,
        },
        pattern: Pattern {
            reads: true,
            writes: false,
            trims: false,
            trim_then_write: false,
            random: false,
            modifier: None,
            sequencer: Sequencer::Sequential,
            mix_read: 50.0,
            percentage_random: PerDirection::all(100.0),
            distribution: PerDirection::all(Distribution::Uniform),
            no_random_map: false,
            soft_random_map: false,
            generator: Generator::Random,
            repeatable: true,
            all_repeatable: false,
            seed: None,
            zones: None,
        },
        blocks: Blocks {
            sizes: PerDirection::all(BlockSizes::One(4096)),
            unaligned: false,
            by_sequence: false,
            align: PerDirection::all(None),
        },
        buffers: Buffers {
            zero: false,
            refill: false,
            scramble: true,
            compress_percentage: None,
            compress_chunk: 512,
            pattern: None,
            dedupe_percentage: None,
            dedupe_working_set: None,
            dedupe_global: false,
            memory: Memory::Malloc,
            memory_align: 0,
            huge_page_size: None,
        },
        sync: Sync {
            direct: false,
            open: SyncOpen::None,
            fsync: 0,
            fdatasync: 0,
            write_barrier: 0,
            range: None,
            end_fsync: false,
            fsync_on_close: false,
            overwrite: false,
            atomic: false,
        },
        depth: Depth {
            depth: 1,
            submit: None,
            complete_min: None,
            complete_max: None,
            low: None,
            serialize_overlap: false,
            offload: false,
        },
        rate: Rate {
            bytes: PerDirection::all(None),
            bytes_min: PerDirection::all(None),
            iops: PerDirection::all(None),
            iops_min: PerDirection::all(None),
            process: RateProcess::Linear,
            cycle: 1000 * MILLISECOND,
            ignore_think_time: false,
        },
        thinking: None,
        latency: LatencyGoal { percentile: 100.0, ..LatencyGoal::default() },
        flow: None,
        steady: None,
        course: Course {
            runtime: None,
            time_based: false,
            start_delay: (0, 0),
            ramp: 0,
            loops: 1,
            stonewall: false,
            wait_for: None,
            exit_all: false,
            exit_what: ExitWhat::Group,
            new_group: false,
            group_reporting: false,
        },
        process: Process::default(),
        engine: EngineOptions {
            name: EngineName::Psync,
            given: "psync".into(),
            fixed_buffers: None,
            register_files: None,
            sq_poll: false,
            sq_poll_cpu: None,
            high_priority: false,
            high_priority_percentage: None,
            nonvectored: true,
            force_async: 0,
            no_wait: false,
            uncached: false,
            command_priority: None,
            userspace_reap: false,
        },
        verify: None,
        replay: None,
        trims: Trims { verify_zero: true, ..Trims::default() },
        errors: ErrorRules::default(),
        logs: Logs { per_job: true, ..Logs::default() },
        report: ReportOptions {
            mixed: Mixed::None,
            percentiles: PERCENTILES.to_vec(),
            completion_percentiles: true,
            total_percentiles: false,
            submission_percentiles: false,
            disk_use: true,
            disabled: Disabled::default(),
            significant_figures: 4,
            bandwidth_window: 500 * MILLISECOND,
            iops_window: 500 * MILLISECOND,
            thousand: false,
            bits: false,
        },
    }
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
    let (mut totals, mut submissions) = (kelvin_storage::Bins::default(), kelvin_storage::Bins::default());
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

pub(crate) fn outcome(jobs: Jobs, workers: Vec<WorkerOutcome>) -> Outcome {
    Outcome {
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
