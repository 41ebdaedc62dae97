//! A job for tests, with fio's defaults: 4 KiB random writes of a file of 1 MiB.

use std::path::PathBuf;

use crate::error::Place;
use crate::job::*;
use crate::{Direction, Io, PerDirection, Target, TargetKind};

pub(super) fn job() -> Job {
    Job {
        name: "example".into(),
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
            size: Some(Amount::Bytes(1 << 20)),
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
            reads: false,
            writes: true,
            trims: false,
            trim_then_write: false,
            random: true,
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
            cycle: 1_000_000_000,
            ignore_think_time: false,
        },
        thinking: None,
        latency: LatencyGoal::default(),
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
        trims: Trims::default(),
        errors: ErrorRules::default(),
        logs: Logs::default(),
        report: ReportOptions {
            mixed: Mixed::None,
            percentiles: vec![99.0],
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

/// The same with `verify=`.
pub(super) fn verifying(method: VerifyMethod) -> Job {
    let pattern = matches!(method, VerifyMethod::Pattern | VerifyMethod::PatternHeader)
        .then(|| Pieces(vec![Piece::Bytes(b"kelvin".to_vec()), Piece::Offset]));
    Job {
        verify: Some(Verify {
            method,
            after: true,
            only: false,
            interval: None,
            offset: 0,
            pattern,
            pattern_interval: None,
            fatal: false,
            dump: false,
            threads: 0,
            backlog: None,
            backlog_batch: None,
            state_save: true,
            state_load: false,
            replay_generator: false,
            write_sequence: true,
            header_seed: true,
        }),
        ..job()
    }
}

pub(super) fn target(path: impl Into<PathBuf>) -> Target {
    Target { path: path.into(), kind: TargetKind::File, begin: 0, length: 1 << 20, device: None }
}

pub(super) fn write(offset: u64, length: u32) -> Io {
    Io { direction: Direction::Write, target: 0, offset, length }
}

pub(super) fn read(offset: u64, length: u32) -> Io {
    Io { direction: Direction::Read, ..write(offset, length) }
}
