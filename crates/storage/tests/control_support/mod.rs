//! Jobs, a small real worker, and a watcher that records its events.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

use kelvin_measure::event::LoadPart;
use kelvin_measure::{Nanos, Random, Stop};
use kelvin_storage::control::{self, Prepared, RunOptions, WorkerIo};
use kelvin_storage::event::{IoEvent, IoWatcher, WorkerState};
use kelvin_storage::job::*;
use kelvin_storage::message::{Message, WorkerEnd};
use kelvin_storage::result::JobsOutcome;
use kelvin_storage::tick::{DepthCounts, Tally, Tick};
use kelvin_storage::worker::{Shared, WorkerPlan};
use kelvin_storage::{Direction, Moments, PerDirection, Result};

pub const SECOND: Nanos = 1_000_000_000;
pub const MILLI: Nanos = 1_000_000;

/// A job with fio's defaults that may write where something is mounted.
pub fn job(name: &str) -> Job {
    let mut job = Job::named(name);
    job.targets.allow_mounted_write = true;
    job
}

/// A job that reads files of this many bytes in a directory.
pub fn reader(name: &str, directory: &Path, size: u64) -> Job {
    let mut job = job(name);
    job.targets.directories = vec![directory.into()];
    job.targets.size = Some(Amount::Bytes(size));
    job
}

/// A job that writes files of this many bytes in a directory.
pub fn writer(name: &str, directory: &Path, size: u64) -> Job {
    let mut job = reader(name, directory, size);
    (job.pattern.reads, job.pattern.writes) = (false, true);
    job
}

/// Runs the job for a time, with repeated passes.
pub fn lasting(mut job: Job, time: Nanos) -> Job {
    (job.course.runtime, job.course.time_based) = (Some(time), true);
    job
}

/// Uses this engine for the job's I/O, with a depth of eight if it supports that.
pub fn by(engine: EngineName, mut job: Job) -> Job {
    (job.engine.name, job.engine.given) = (engine, engine.word().into());
    job.depth.depth = if engine.is_asynchronous() { 8 } else { 1 };
    job
}

/// The job reads its target and not the page cache.
pub fn forgetful(mut job: Job) -> Job {
    job.sync.direct = true;
    job
}

/// Uses one named file.
pub fn on(mut job: Job, path: &Path) -> Job {
    (job.targets.filenames, job.targets.directories) = (vec![path.into()], Vec::new());
    job
}

pub fn jobs(jobs: impl IntoIterator<Item = Job>) -> Jobs {
    Jobs { jobs: jobs.into_iter().collect(), ..Jobs::default() }
}

/// Records its events.
#[derive(Debug, Default)]
pub struct Heard {
    pub states: Vec<(u32, WorkerState)>,
    pub layouts: Vec<(u32, String, u64, u64)>,
    pub notes: Vec<String>,
    pub ticks: u64,
    pub ios: u64,
    /// When the first tick began, on the run's clock.
    pub first: Option<Nanos>,
    /// Receives a message at the first measured I/O.
    pub at_work: Option<Sender<()>>,
}

impl IoWatcher for Heard {
    fn event(&mut self, event: &IoEvent<'_>) {
        match event {
            IoEvent::State { worker, state } => self.states.push((*worker, *state)),
            IoEvent::Layout { worker, what, done, total } => {
                self.layouts.push((*worker, (*what).to_owned(), *done, *total));
            }
            IoEvent::Tick(tick) => {
                self.ticks += 1;
                self.first.get_or_insert(tick.from);
                let measured = tick.targets.iter().filter(|_| tick.part == LoadPart::Measured);
                self.ios += measured.flat_map(|t| t.0.iter().flatten()).map(|tally| tally.ios).sum::<u64>();
                if self.ios > 0 {
                    let _nobody_listens = self.at_work.take().map(|at_work| at_work.send(()));
                }
            }
            IoEvent::Note(note) => self.notes.push((*note).to_owned()),
        }
    }
}

/// Prepares and runs jobs with the small worker.
pub fn run(jobs: &Jobs, options: &RunOptions) -> Result<(JobsOutcome, Heard)> {
    let mut heard = Heard::default();
    let outcome = run_prepared(control::prepare(jobs, options)?, options, &Stop::new(), &mut heard)?;
    Ok((outcome, heard))
}

pub fn run_prepared(
    prepared: Prepared,
    options: &RunOptions,
    stop: &Stop,
    heard: &mut Heard,
) -> Result<JobsOutcome> {
    control::run(prepared, options, stop, heard)
}

/// A worker that does one read or write after another.
pub struct Plain;

const TICK: Nanos = 20 * MILLI;

impl WorkerIo for Plain {
    fn run(&self, plan: WorkerPlan, shared: &Shared) -> WorkerEnd {
        let mut worker = Worker::new(plan, shared);
        let error = worker.work().err().map(|error| {
            let text = error.to_string();
            (error.raw_os_error().unwrap_or(libc::EIO), text)
        });
        worker.cut();
        let end = WorkerEnd {
            worker: worker.plan.number,
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
            course: (worker.began, shared.clock.now()),
            error,
            ..WorkerEnd::default()
        };
        shared.messages.send(Message::End(Box::new(end.clone()))).unwrap();
        end
    }
}

struct Worker<'a> {
    plan: WorkerPlan,
    shared: &'a Shared,
    began: Nanos,
    from: Nanos,
    tallies: Vec<PerDirection<Option<Box<Tally>>>>,
}

impl<'a> Worker<'a> {
    fn new(plan: WorkerPlan, shared: &'a Shared) -> Self {
        let began = shared.clock.now();
        let tallies = plan.targets.iter().map(|_| PerDirection::default()).collect();
        Self { plan, shared, began, from: began, tallies }
    }

    fn part(&self, at: Nanos) -> LoadPart {
        if at < self.began + self.plan.job.course.ramp { LoadPart::RampUp } else { LoadPart::Measured }
    }

    fn cut(&mut self) {
        let to = self.shared.clock.now();
        let targets: Vec<_> = self
            .tallies
            .iter_mut()
            .map(|target| PerDirection(target.0.each_mut().map(Option::take)))
            .collect();
        let tick = Tick {
            worker: self.plan.number,
            from: self.from,
            to,
            part: self.part(self.from),
            targets,
            syncs: Moments::default(),
            sync_bins: None,
            depth: DepthCounts::default(),
            failures: Vec::new(),
        };
        self.from = to;
        self.shared.messages.send(Message::Tick(Box::new(tick))).unwrap();
    }

    fn is_over(&self, now: Nanos) -> bool {
        let course = &self.plan.job.course;
        self.shared.stop.requested()
            || self.shared.end[self.plan.number as usize].load(Ordering::Acquire)
            || course.runtime.is_some_and(|runtime| now >= self.began + course.ramp + runtime)
    }

    fn work(&mut self) -> std::io::Result<()> {
        let job = Arc::clone(&self.plan.job);
        self.shared.messages.send(Message::State(self.plan.number, WorkerState::Running)).unwrap();
        let files: Vec<File> = self
            .plan
            .targets
            .iter()
            .map(|target| {
                let flags = if job.sync.direct { libc::O_DIRECT } else { 0 };
                let mut options = OpenOptions::new();
                options.read(!job.pattern.writes).write(job.pattern.writes).custom_flags(flags);
                options.open(&target.path)
            })
            .collect::<std::io::Result<_>>()?;
        let block = u64::from(job.blocks.sizes[Direction::Read].largest());
        let direction = if job.pattern.writes { Direction::Write } else { Direction::Read };
        let mut memory = vec![0xa5_u8; block as usize + 4096];
        let aligned = memory.as_ptr().align_offset(4096);
        let buffer = &mut memory[aligned..aligned + block as usize];
        let mut random = Random::part(self.plan.seed, 1, 1);
        loop {
            for (number, file) in files.iter().enumerate() {
                let target = self.plan.targets[number].clone();
                for index in 0..target.length / block {
                    let now = self.shared.clock.now();
                    if self.is_over(now) {
                        return Ok(());
                    }
                    if now >= self.from + TICK || self.part(now) != self.part(self.from) {
                        self.cut();
                    }
                    let index = if job.pattern.random {
                        random.range(0, (target.length / block) as i64 - 1) as u64
                    } else {
                        index
                    };
                    let at = target.begin + index * block;
                    let before = self.shared.clock.now();
                    if direction == Direction::Read {
                        file.read_exact_at(buffer, at)?;
                    } else {
                        file.write_all_at(buffer, at)?;
                    }
                    let time = self.shared.clock.now() - before;
                    let tally = self.tallies[number][direction].get_or_insert_default();
                    tally.ios += 1;
                    tally.bytes += block;
                    tally.completion.record(time);
                    tally.completion_bins.record(time);
                    if let Some(rate) = job.rate.iops[direction] {
                        std::thread::sleep(std::time::Duration::from_nanos(SECOND / rate));
                    }
                }
            }
            if !job.course.time_based {
                break;
            }
        }
        for file in &files {
            if job.pattern.writes {
                file.sync_all()?;
            }
        }
        Ok(())
    }
}

/// Reads and writes of all workers together: I/Os and bytes.
pub fn sums(outcome: &JobsOutcome) -> PerDirection<(u64, u64)> {
    let mut sums: PerDirection<(u64, u64)> = PerDirection::default();
    for target in outcome.workers.iter().flat_map(|worker| &worker.targets) {
        for (direction, of) in target.directions.iter() {
            sums[direction].0 += of.ios;
            sums[direction].1 += of.bytes;
        }
    }
    sums
}

/// The files of each worker.
pub fn paths(outcome: &JobsOutcome) -> Vec<Vec<PathBuf>> {
    outcome.workers.iter().map(|w| w.targets.iter().map(|t| t.path.clone()).collect()).collect()
}
