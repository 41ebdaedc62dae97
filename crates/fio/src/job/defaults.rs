//! The defaults of a job: fio's.

use kelvin_measure::SECOND;

use super::{
    Amount, BlockSizes, Blocks, Buffers, Depth, Disabled, Distribution, EngineName, EngineOptions,
    ErrorRules, ExitWhat, Fadvise, Fallocate, FileChoice, FileService, FirstWorker, Job, JobTiming,
    LatencyGoal, LockFile, Logs, Memory, Mixed, Pattern, Process, RandomGenerator, Rate, RateProcess,
    ReportOptions, Sequencer, Sync, SyncOpen, Targets, Trims, Verify, VerifyMethod,
};
use crate::PerDirection;
use crate::error::Location;

/// fio's default of `percentile_list`.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

impl Job {
    /// With this name, and with fio's defaults for everything else: sequential reads of 4 KiB by psync.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            place: Location::default(),
            description: None,
            given: Vec::new(),
            clones: 1,
            first: FirstWorker::default(),
            targets: Targets::default(),
            pattern: Pattern::default(),
            blocks: Blocks::default(),
            buffers: Buffers::default(),
            sync: Sync::default(),
            depth: Depth::default(),
            rate: Rate::default(),
            thinking: None,
            latency: LatencyGoal { percentile: 100.0, ..LatencyGoal::default() },
            flow: None,
            steady: None,
            course: JobTiming::default(),
            process: Process::default(),
            engine: EngineOptions::default(),
            verify: None,
            replay: None,
            trims: Trims { verify_zero: true, ..Trims::default() },
            errors: ErrorRules::default(),
            logs: Logs { per_job: true, ..Logs::default() },
            report: ReportOptions::default(),
        }
    }
}

impl Default for Targets {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Default for Pattern {
    fn default() -> Self {
        Self {
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
            generator: RandomGenerator::Random,
            repeatable: true,
            all_repeatable: false,
            seed: None,
            zones: None,
        }
    }
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            sizes: PerDirection::all(BlockSizes::One(4096)),
            unaligned: false,
            by_sequence: false,
            align: PerDirection::all(None),
        }
    }
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Default for Sync {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Default for Depth {
    fn default() -> Self {
        Self {
            depth: 1,
            submit: None,
            complete_min: None,
            complete_max: None,
            low: None,
            serialize_overlap: false,
            offload: false,
        }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self {
            bytes: PerDirection::all(None),
            bytes_min: PerDirection::all(None),
            iops: PerDirection::all(None),
            iops_min: PerDirection::all(None),
            process: RateProcess::Linear,
            cycle: SECOND,
            ignore_think_time: false,
        }
    }
}

impl Default for JobTiming {
    fn default() -> Self {
        Self {
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
        }
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
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
            command_priorities: Vec::new(),
            userspace_reap: false,
        }
    }
}

impl Default for ReportOptions {
    fn default() -> Self {
        Self {
            mixed: Mixed::None,
            percentiles: PERCENTILES.to_vec(),
            completion_percentiles: true,
            total_percentiles: false,
            submission_percentiles: false,
            disk_use: true,
            disabled: Disabled::default(),
            significant_figures: 4,
            bandwidth_window: SECOND / 2,
            iops_window: SECOND / 2,
            thousand: false,
            bits: false,
        }
    }
}

impl Verify {
    /// By this method, and with fio's defaults for everything else.
    pub fn by(method: VerifyMethod) -> Self {
        Self {
            method,
            after: true,
            only: false,
            interval: None,
            offset: 0,
            pattern: None,
            pattern_interval: None,
            fatal: false,
            dump: false,
            threads: 0,
            thread_cpus: Vec::new(),
            backlog: None,
            backlog_batch: None,
            state_save: true,
            state_load: false,
            replay_generator: false,
            write_sequence: true,
            header_seed: true,
        }
    }
}
