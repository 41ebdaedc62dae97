//! A job, resolved: the options of a job file or the command line, with every value in base units and every default
//! filled in. The parser creates it, everything else reads it.

mod behaviour;
mod data;
mod defaults;
mod logs;
mod shape;
mod targets;

pub use behaviour::*;
pub use data::*;
pub use logs::*;
pub use shape::*;
pub use targets::*;

use std::ops::Range;

use crate::Direction;
use crate::error::Location;

/// One section of a job file, or the options that follow one `--name`. `numjobs` makes several workers of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its name: the section's, or `name=`.
    pub name: String,
    /// Where it was written.
    pub place: Location,
    /// `description=`.
    pub description: Option<String>,
    /// The options as given for this job, in their order, names and values as written; without those of `[global]`.
    pub given: Vec<(String, String)>,
    /// `numjobs=`: the number of identical workers.
    pub clones: u32,
    /// The first of its workers, where other hosts have some.
    pub first: FirstWorker,
    /// Files and devices.
    pub targets: Targets,
    /// Direction and order of the I/Os.
    pub pattern: Pattern,
    /// Lengths of the I/Os.
    pub blocks: Blocks,
    /// Content of the I/Os.
    pub buffers: Buffers,
    /// Syncing to the medium.
    pub sync: Sync,
    /// Number of I/Os in flight.
    pub depth: Depth,
    /// Maximum rate.
    pub rate: Rate,
    /// Pauses.
    pub thinking: Option<Thinking>,
    /// A depth that is searched for.
    pub latency: LatencyGoal,
    /// Coupling with other jobs.
    pub flow: Option<Flow>,
    /// When it may end because it has reached a steady state.
    pub steady: Option<SteadyState>,
    /// Its start and its duration.
    pub course: JobTiming,
    /// The process around it.
    pub process: Process,
    /// The calls that do the I/O.
    pub engine: EngineOptions,
    /// Whether data is verified.
    pub verify: Option<Verify>,
    /// A trace instead of a pattern.
    pub replay: Option<Replay>,
    /// Trims among the writes.
    pub trims: Trims,
    /// Errors that end it.
    pub errors: ErrorRules,
    /// Logs written in addition to the result.
    pub logs: Logs,
    /// The content of the result.
    pub report: ReportOptions,
}

impl Job {
    /// Whether it passes over its files more than once: by `loops=`, by the time, or by an amount above the size.
    pub fn has_several_passes(&self) -> bool {
        self.course.loops > 1 || self.course.time_based || self.targets.io_size.is_some()
    }

    /// Whether it has I/Os of this direction. A trace may contain any, and some of the written blocks may be trimmed.
    pub fn does(&self, direction: Direction) -> bool {
        match &self.replay {
            None => {
                self.pattern.has(direction) || direction == Direction::Trim && self.trims.percentage > 0.0
            }
            Some(replay) => !replay.skip.contains(&match direction {
                Direction::Read => ReplaySkip::Read,
                Direction::Write => ReplaySkip::Write,
                Direction::Trim => ReplaySkip::Trim,
            }),
        }
    }

    /// Whether I/Os have an intended start, by a rate or by a trace's times, that does not wait for preceding ones.
    #[inline]
    pub fn is_open_loop(&self) -> bool {
        self.rate.limits() || self.replay.as_ref().is_some_and(|replay| !replay.no_stall)
    }
}

/// Where the workers of a job on this host begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FirstWorker {
    /// The number of the clone, from 0.
    pub clone: u32,
    /// Its number among the workers of all jobs on all hosts; none where this host has them all.
    pub number: Option<u32>,
}

/// All jobs of a run in their order, with the options of `[global]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Jobs {
    /// The options of `[global]`, names and values as written.
    pub global: Vec<(String, String)>,
    /// The jobs, at least one.
    pub jobs: Vec<Job>,
    /// Notes on the interpretation of the file for a reader of the result: options without effect here, values with a
    /// surprising meaning.
    pub notes: Vec<String>,
}

impl Jobs {
    /// The number of workers of all jobs.
    pub fn workers(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.clones.max(1))).sum()
    }

    /// The jobs with these of their workers only, numbered over all jobs in their order. A worker does the same wherever it is:
    /// it keeps the number of its clone, by which its files and offsets are found, and its random numbers.
    #[must_use]
    pub fn part(&self, range: Range<u32>) -> Self {
        let mut next = 0_u32;
        let part = self.jobs.iter().filter_map(|job| {
            let (begin, end) = (next, next.saturating_add(job.clones.max(1)));
            next = end;
            let own = begin.max(range.start)..end.min(range.end);
            let first = FirstWorker { clone: own.start.saturating_sub(begin), number: Some(own.start) };
            (!own.is_empty()).then(|| Job { clones: own.end - own.start, first, ..job.clone() })
        });
        Self { jobs: part.collect(), ..self.clone() }
    }
}
