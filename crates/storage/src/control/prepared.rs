//! The workers of a run before it begins: their jobs, files and groups.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kelvin_measure::{Clock, Nanos, Random};

use super::check;
use crate::job::{Job, Jobs};
use crate::layout::{self, LayoutPlan, LayoutRules, LayoutWorker};
use crate::probe::safety;
use crate::worker::{RateChanges, WorkerPlan};
use crate::{Result, Target, TargetKind};
use kelvin_host::SystemTree;

/// Options of a run, in addition to its jobs.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// `--readonly`: jobs that write are refused.
    pub read_only: bool,
    /// `--i-know-it-destroys`: devices that may be overwritten although they seem to contain data.
    pub destroy: Vec<PathBuf>,
    /// `--prepare`: holes and extents that were never written are filled before the run.
    pub prepare: bool,
    /// The directory of log files that are named without a directory, and of the output of `exec_prerun`; the working
    /// directory by default.
    pub log_directory: Option<PathBuf>,
    /// `--aux-path`: the directory of the state and the dumps of `verify`; the working directory by default.
    pub aux_directory: Option<PathBuf>,
    /// The clock of all times of the run, for observers that share it; a new one by default.
    pub clock: Option<Clock>,
    /// Changes of the jobs' rates during the run.
    pub rates: Arc<RateChanges>,
}

/// One worker: a clone of a job.
#[derive(Debug, Clone)]
pub struct PlannedWorker {
    /// The index of its job.
    pub job: usize,
    /// The number of the clone, from 0.
    pub clone: u32,
    /// Its group, from 0, as fio counts them: `stonewall` and `new_group` begin a new one.
    pub group: u32,
    /// The number of stonewalls before it: it begins when all workers with a lower number have ended.
    pub wall: u32,
    /// Its files and devices.
    pub targets: Vec<Target>,
    /// The seed of its random numbers.
    pub seed: u64,
    /// Its CPU under `cpus_allowed_policy=split`.
    pub pinned: Option<u32>,
    /// Its earliest start, counted from the beginning of the run (`startdelay=`).
    pub delay: Nanos,
}

/// A run that was checked and can begin. Nothing has been written yet.
#[derive(Debug)]
pub struct Prepared {
    pub(super) jobs: Jobs,
    pub(super) each: Vec<Arc<Job>>,
    pub(super) workers: Vec<PlannedWorker>,
    pub(super) plan: LayoutPlan,
    pub(super) notes: Vec<String>,
    pub(super) laid_out: bool,
}

impl Prepared {
    /// The jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The workers in order.
    pub fn workers(&self) -> &[PlannedWorker] {
        &self.workers
    }

    /// The targets of each worker with the name of its job.
    pub fn targets(&self) -> Vec<(String, Vec<Target>)> {
        self.workers.iter().map(|worker| (self.job(worker).name.clone(), worker.targets.clone())).collect()
    }

    /// Notes for the user before the run.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The number of bytes that will be written before the first I/O.
    pub fn layout_bytes(&self) -> u64 {
        self.plan.makings.iter().flat_map(|making| &making.steps).map(|step| step.bytes()).sum()
    }

    pub(super) fn job(&self, worker: &PlannedWorker) -> &Arc<Job> {
        &self.each[worker.job]
    }
}

impl PlannedWorker {
    /// The plan for the worker; `number` is its number among all, `aux` the directory of verify's states.
    pub(super) fn plan(&self, number: u32, job: &Arc<Job>, aux: Option<&Path>) -> WorkerPlan {
        WorkerPlan {
            number,
            job: Arc::clone(job),
            clone: self.clone,
            group: self.group,
            targets: self.targets.clone(),
            seed: self.seed,
            pinned: self.pinned,
            aux_directory: aux.map(Path::to_owned),
        }
    }
}

/// Examines the jobs and decides the work of each worker. Nothing is written. Refuses jobs that cannot be run: a
/// missing directory, not enough space, a target that must not be written.
pub fn prepare(jobs: &Jobs, options: &RunOptions) -> Result<Prepared> {
    check::jobs(jobs, options)?;
    let mut workers = Vec::new();
    let (mut group, mut wall, mut in_group) = (0, 0, 0_u32);
    for (index, job) in jobs.jobs.iter().enumerate() {
        // The first job has no predecessor, whatever its options.
        if in_group > 0 && (job.course.stonewall || job.course.new_group) {
            group += 1;
            in_group = 0;
        }
        wall += u32::from(job.course.stonewall && !workers.is_empty());
        let first = job.first.number.map_or(workers.len() as u64, u64::from);
        for (number, clone) in (first..).zip((job.first.clone..).take(job.clones.max(1) as usize)) {
            let seed = seed(job, number);
            let (low, high) = job.course.start_delay;
            let delay = Random::part(seed, START_DELAY, 0).range(low as i64, high.max(low) as i64) as Nanos;
            let split = job.process.cpus_split.then_some(&job.process.cpus).filter(|cpus| !cpus.is_empty());
            let pinned = split.and_then(|cpus| cpus.get(clone as usize % cpus.len()).copied());
            workers.push(PlannedWorker {
                job: index,
                clone,
                group,
                wall,
                targets: Vec::new(),
                seed,
                pinned,
                delay,
            });
            in_group += 1;
        }
    }
    let tree = SystemTree::default();
    let who: Vec<_> = workers
        .iter()
        .map(|worker| LayoutWorker { job: &jobs.jobs[worker.job], clone: worker.clone, seed: worker.seed })
        .collect();
    let rules =
        LayoutRules { read_only: options.read_only, prepare: options.prepare, destroy: &options.destroy };
    let (targets, plan) = layout::plan_layout(&who, rules, &tree)?;
    for (worker, targets) in workers.iter_mut().zip(targets) {
        check::targets(&jobs.jobs[worker.job], &targets, options, &tree)?;
        worker.targets = targets;
    }
    // A device that its jobs only read may still be filled before.
    for making in plan.makings.iter().filter(|making| making.kind == TargetKind::Block) {
        safety::check(&making.path, true, &options.destroy)?;
    }
    layout::check_space(&plan)?;
    let each: Vec<_> = jobs.jobs.iter().cloned().map(Arc::new).collect();
    check::workers(&workers, &each, options)?;
    let notes = plan.notes.clone();
    Ok(Prepared { jobs: jobs.clone(), each, workers, plan, notes, laid_out: false })
}

/// The substream of a worker's random numbers for its start delay.
const START_DELAY: u64 = 0x64_65_6c_61_79;

/// The seed of a worker's random numbers: the same in every run while `randrepeat` is set, and a different one for each
/// worker, as with fio.
fn seed(job: &Job, worker: u64) -> u64 {
    let base = match job.pattern.seed {
        Some(seed) => seed,
        None if job.pattern.repeatable || job.pattern.all_repeatable => 0x6b65_6c76_696e,
        // The standard library's keys are random numbers from the operating system.
        None => RandomState::new().hash_one(worker),
    };
    Random::part(base, 0, worker).bits()
}
