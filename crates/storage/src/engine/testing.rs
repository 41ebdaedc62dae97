//! Jobs for the tests of the engines and of the loop.

use std::path::Path;

use crate::job::*;
use crate::{PerDirection, Target, TargetKind};

/// The heap, and random bytes.
pub(crate) fn buffers() -> Buffers {
    Buffers {
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

/// Random reads of 4 KiB by an engine, with a depth.
pub(crate) fn job(name: EngineName, depth: u32) -> Job {
    Job {
        name: "test".into(),
        place: crate::error::Place::default(),
        description: None,
        given: Vec::new(),
        clones: 1,
        targets: Targets {
            filenames: Vec::new(),
            directories: Vec::new(),
            filename_format: String::new(),
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
            random: true,
            modifier: None,
            sequencer: Sequencer::Sequential,
            mix_read: 50.0,
            percentage_random: PerDirection::all(100.0),
            distribution: PerDirection([Distribution::Uniform, Distribution::Uniform, Distribution::Uniform]),
            no_random_map: true,
            soft_random_map: false,
            generator: Generator::Random,
            repeatable: true,
            all_repeatable: false,
            seed: None,
            zones: None,
        },
        blocks: Blocks {
            sizes: PerDirection([BlockSizes::One(4096), BlockSizes::One(4096), BlockSizes::One(4096)]),
            unaligned: false,
            by_sequence: false,
            align: PerDirection::default(),
        },
        buffers: buffers(),
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
            depth,
            submit: None,
            complete_min: None,
            complete_max: None,
            low: None,
            serialize_overlap: false,
            offload: false,
        },
        rate: Rate {
            bytes: PerDirection::default(),
            bytes_min: PerDirection::default(),
            iops: PerDirection::default(),
            iops_min: PerDirection::default(),
            process: RateProcess::Linear,
            cycle: 1_000_000_000,
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
            name,
            given: name.word().into(),
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
        trims: Trims::default(),
        errors: ErrorRules { ignore: [Vec::new(), Vec::new(), Vec::new()], ..ErrorRules::default() },
        logs: Logs::default(),
        report: ReportOptions {
            mixed: Mixed::None,
            percentiles: vec![50.0, 99.0],
            completion_percentiles: true,
            total_percentiles: false,
            submission_percentiles: false,
            disk_use: true,
            disabled: Disabled::default(),
            significant_figures: 4,
            bandwidth_window: 500_000_000,
            iops_window: 500_000_000,
            thousand: false,
            bits: false,
        },
    }
}

/// The same, writing.
pub(crate) fn writing(mut job: Job) -> Job {
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job
}

/// A file as a target.
pub(crate) fn file(path: &Path, length: u64) -> Target {
    Target { path: path.to_owned(), kind: TargetKind::File, begin: 0, length, device: None }
}
