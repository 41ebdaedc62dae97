//! A job while its options are being read: what `[global]` hands on, and what can only be resolved when all are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::value::Value;
use crate::error::Place;
use crate::job::{
    Amount, BlockSizes, Blocks, Buffers, Course, Depth, Disabled, Distribution, EngineName, EngineOptions,
    ErrorRules, ExitWhat, Fadvise, Fallocate, FileChoice, FileService, Flow, Generator, Job, LatencyGoal,
    LockFile, Logs, Memory, Mixed, Pattern, Process, Rate, RateProcess, Replay, ReportOptions, Sequencer,
    SteadyFigure, SteadyState, Strided, Sync, SyncOpen, Targets, Thinking, Trims, Verify, VerifyMethod,
};
use crate::{Direction, PerDirection};

/// A part of `bssplit=`: the size, and its percentage where one was given.
pub(crate) type Part = (u32, Option<f64>);

/// An option was given.
#[derive(Debug, Clone)]
pub(crate) struct Written {
    pub(crate) place: Place,
    /// By the job itself, and not by `[global]`.
    pub(crate) own: bool,
}

/// A job in the making.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    /// What needs no resolving is written into it at once.
    pub(crate) job: Job,
    /// Where each option was given last, by its own name (never an alias).
    pub(crate) written: BTreeMap<&'static str, Written>,
    pub(crate) sizes: PerDirection<Option<u32>>,
    pub(crate) ranges: PerDirection<Option<(u32, u32)>>,
    pub(crate) splits: PerDirection<Option<Vec<Part>>>,
    pub(crate) verify: Option<VerifyMethod>,
    pub(crate) verify_options: Verify,
    pub(crate) thinking: Thinking,
    pub(crate) flow: Flow,
    pub(crate) steady: SteadyState,
    pub(crate) replay: Replay,
    pub(crate) strided: bool,
    pub(crate) zones: Strided,
    pub(crate) priority_class: Option<u8>,
    pub(crate) priority_level: Option<u8>,
    pub(crate) command_percentage: Option<[f64; 2]>,
    pub(crate) command_class: Option<u8>,
    pub(crate) command_level: Option<u8>,
    pub(crate) working_set: bool,
    pub(crate) working_set_percentage: f64,
    pub(crate) epoch: bool,
    pub(crate) epoch_clock: i32,
    pub(crate) log_compression: bool,
    pub(crate) open_directory: Option<PathBuf>,
}

const MILLISECOND: u64 = 1_000_000;

impl Draft {
    /// fio's defaults.
    pub(crate) fn new() -> Self {
        Self {
            job: job(),
            written: BTreeMap::new(),
            sizes: PerDirection::all(None),
            ranges: PerDirection::all(None),
            splits: PerDirection::all(None),
            verify: None,
            verify_options: verify(),
            thinking: Thinking { time: 0, spin: 0, blocks: 1, by_issue: false, io_time: None },
            flow: Flow { id: 0, weight: 0, sleep: 0 },
            steady: SteadyState {
                figure: SteadyFigure::Iops,
                slope: true,
                limit: 0.01,
                percent: true,
                window: 0,
                ramp: 0,
                interval: 1000 * MILLISECOND,
            },
            replay: Replay {
                files: Vec::new(),
                no_stall: false,
                time_scale: 100.0,
                redirect: None,
                align: None,
                scale: None,
                skip: Vec::new(),
                chunked: false,
            },
            strided: false,
            zones: Strided { range: 0, size: 0, skip: 0 },
            priority_class: None,
            priority_level: None,
            command_percentage: None,
            command_class: None,
            command_level: None,
            working_set: false,
            working_set_percentage: 5.0,
            epoch: false,
            epoch_clock: 0,
            log_compression: false,
            open_directory: None,
        }
    }

    /// Whether one of the options was given, by the job or by `[global]`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.written.contains_key(name)
    }

    /// Where an option was given last; where the job begins if it was not.
    pub(crate) fn place(&self, name: &str) -> Place {
        self.written.get(name).map_or_else(|| self.job.place.clone(), |written| written.place.clone())
    }

    /// `kb_base=1000` holds.
    pub(crate) fn thousand(&self) -> bool {
        self.job.report.thousand
    }

    /// The sizes of a direction: `bssplit` goes before `bsrange`, and that before `bs`, as in fio, whatever the order.
    pub(crate) fn block_sizes(&self, direction: Direction) -> BlockSizes {
        if let Some(split) = &self.splits[direction] {
            return BlockSizes::Split(filled(split));
        }
        match self.ranges[direction] {
            Some((least, most)) if least != most => BlockSizes::Range(least, most),
            Some((size, _)) => BlockSizes::One(size),
            None => BlockSizes::One(self.sizes[direction].unwrap_or(4096)),
        }
    }
}

/// The percentages, where those left out share the rest evenly.
fn filled(split: &[Part]) -> Vec<(u32, f64)> {
    let given: f64 = split.iter().filter_map(|part| part.1).sum();
    let open = split.iter().filter(|part| part.1.is_none()).count().max(1);
    let share = (100.0 - given) / open as f64;
    split.iter().map(|(size, percent)| (*size, percent.unwrap_or(share))).collect()
}

/// Reads a value into a draft.
pub(crate) type Apply = fn(&mut Draft, &Value<'_>) -> Result<(), String>;

fn job() -> Job {
    Job {
        name: String::new(),
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

/// fio's default of `percentile_list`.
pub(crate) const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

fn verify() -> Verify {
    Verify {
        method: VerifyMethod::Null,
        after: true,
        only: false,
        interval: None,
        offset: 0,
        pattern: None,
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_fills_what_was_left_open() {
        let split = [(4096, Some(50.0)), (1024, None), (32768, None)];
        assert_eq!(filled(&split), [(4096, 50.0), (1024, 25.0), (32768, 25.0)]);
    }
}
