//! A job, resolved: what a job file or the flags asked for, with every value in base units and every default filled in.
//! The parser makes it, everything else reads it.

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

use crate::Direction;
use crate::error::Location;

/// One section of a job file, or what one `--name` began. `numjobs` makes several workers of it.
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
    /// `numjobs=`: how many workers do the same.
    pub clones: u32,
    /// What is read and written.
    pub targets: Targets,
    /// Which I/Os, in which order.
    pub pattern: Pattern,
    /// How long they are.
    pub blocks: Blocks,
    /// What is in them.
    pub buffers: Buffers,
    /// When it is brought to the medium.
    pub sync: Sync,
    /// How many at a time.
    pub depth: Depth,
    /// How fast at most.
    pub rate: Rate,
    /// Pauses.
    pub thinking: Option<Thinking>,
    /// A depth that is searched for.
    pub latency: LatencyGoal,
    /// Coupling with other jobs.
    pub flow: Option<Flow>,
    /// When it may end because nothing changes any more.
    pub steady: Option<SteadyState>,
    /// When it begins, how long it goes on.
    pub course: JobTiming,
    /// The process around it.
    pub process: Process,
    /// Which calls do the I/O.
    pub engine: EngineOptions,
    /// Whether data is verified.
    pub verify: Option<Verify>,
    /// A trace instead of a pattern.
    pub replay: Option<Replay>,
    /// Trims among the writes.
    pub trims: Trims,
    /// What errors end it.
    pub errors: ErrorRules,
    /// What is written down beside the result.
    pub logs: Logs,
    /// What the result shows.
    pub report: ReportOptions,
}

impl Job {
    /// Whether its files are gone through more than once: by `loops=`, by the time, or by an amount above the size.
    pub fn has_several_passes(&self) -> bool {
        self.course.loops > 1 || self.course.time_based || self.targets.io_size.is_some()
    }

    /// Whether I/Os of this direction are among its own. A trace may hold what it likes, and some of what is written may
    /// be trimmed.
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

    /// Whether I/Os have an intended start, by a rate or by a trace's own times, that does not wait for those before.
    pub fn is_open_loop(&self) -> bool {
        self.rate.limits() || self.replay.as_ref().is_some_and(|replay| !replay.no_stall)
    }
}

/// All jobs of a run in their order, with what was said in `[global]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Jobs {
    /// The options of `[global]`, names and values as written.
    pub global: Vec<(String, String)>,
    /// The jobs, at least one.
    pub jobs: Vec<Job>,
    /// What a reader of the result should know about how the file was read: options without effect here, values that
    /// mean something else than they seem.
    pub notes: Vec<String>,
}
