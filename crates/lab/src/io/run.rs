//! A run of I/O jobs: the jobs' own engine does the work, and what it tells becomes the events of a run like any other.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kelvin_measure::event::{Event, Phase, Schedule, Series, Status, Window};
use kelvin_measure::invariant::{Invariant, counts_agree};
use kelvin_measure::storage::{JobLine, TargetLine};
use kelvin_measure::{Clock, Nanos, Stop};
use kelvin_storage::control::{self, Prepared, RunOptions};
use kelvin_storage::event::{IoEvent, State, Watcher};
use kelvin_storage::job::{Job, Jobs};
use kelvin_storage::output::{self, OutputOptions};
use kelvin_storage::probe::{self, Facts};
use kelvin_storage::result::{Outcome, WorkerOutcome};
use kelvin_storage::{Direction, Target, TargetKind};

use super::plan::{self, Layout};
use super::seconds::{Seconds, Sums};
use super::words;
use crate::observation::{Watched, Watchers};
use crate::run::{RunError, Sink, SinkError};
use crate::spec::Observe;

/// I/O jobs whose targets are known and may be used; nothing is written yet.
pub struct IoRun {
    jobs: Jobs,
    prepared: Prepared,
    options: RunOptions,
    workers: Vec<Worker>,
}

/// Who looks on: what the jobs tell, and what was seen before their first I/O.
pub trait View: Watcher {
    /// The files are laid out and were looked at; the first I/O is next.
    fn looked(&mut self, facts: &Facts);
}

/// A worker as it was planned.
struct Worker {
    job: usize,
    targets: Vec<Target>,
}

/// What a run of I/O jobs came to.
#[derive(Debug)]
pub struct IoDone {
    /// How it ended.
    pub status: Status,
    /// The error that ended it, or a worker of it.
    pub error: Option<String>,
    /// The result that fio's outputs are made of; none when the jobs could not go on to an end.
    pub result: Option<Outcome>,
    /// What was seen around it.
    pub facts: Facts,
    /// Whether every invariant held.
    pub holds: bool,
    /// I/Os that failed.
    pub failed: u64,
}

impl IoRun {
    /// Finds the targets of the jobs. Nothing is written, and nothing read that a run would find changed.
    ///
    /// # Errors
    /// When a target is missing or must not be written.
    pub fn prepare(jobs: Jobs, options: RunOptions) -> kelvin_storage::Result<Self> {
        let prepared = control::prepare(&jobs, &options)?;
        let workers: Vec<Worker> = prepared
            .workers()
            .iter()
            .map(|worker| Worker { job: worker.job, targets: worker.targets.clone() })
            .collect();
        Ok(Self { jobs, prepared, options, workers })
    }

    /// The jobs.
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// The series of its seconds.
    pub fn series(&self) -> Vec<Series> {
        self.layout().series
    }

    /// Names of its counters: bytes by series.
    pub fn counters(&self) -> Vec<String> {
        let layout = self.layout();
        layout.series.iter().take(layout.kinds).map(|series| format!("bytes, {}", series.name)).collect()
    }

    /// What it reads and writes, in a few words.
    pub fn target(&self) -> String {
        let paths: BTreeSet<&Path> = self.all_targets().map(|target| target.path.as_path()).collect();
        let shown: Vec<String> = paths.iter().take(3).map(|path| path.display().to_string()).collect();
        match (shown.is_empty(), paths.len().saturating_sub(shown.len())) {
            (true, _) => "nothing".into(),
            (false, 0) => shown.join(", "),
            (false, more) => format!("{} and {more} more", shown.join(", ")),
        }
    }

    /// A path on the filesystem of the first file that lies on one.
    pub fn place(&self) -> Option<PathBuf> {
        let file = self.all_targets().find(|target| target.kind == TargetKind::File)?;
        let path = file.path.as_path();
        path.ancestors().find(|path| path.exists()).map(Path::to_owned)
    }

    /// Each worker's job, its number among the job's, and the seed of its random numbers.
    pub fn seeds(&self) -> Vec<(String, u32, u64)> {
        let name = |job: usize| self.jobs.jobs.get(job).map_or_else(String::new, |job| job.name.clone());
        self.prepared.workers().iter().map(|worker| (name(worker.job), worker.clone, worker.seed)).collect()
    }

    /// Sentences that belong to the result: what each job does, and how its file was read.
    pub fn notes(&self) -> Vec<String> {
        let how = self.jobs.jobs.iter().enumerate().map(|(index, job)| {
            kelvin_measure::storage::words(&job.name, &words::how(job, self.targets_of(index)))
        });
        how.chain(self.jobs.notes.iter().chain(self.prepared.notes()).cloned()).collect()
    }

    fn all_targets(&self) -> impl Iterator<Item = &Target> {
        self.workers
            .iter()
            .flat_map(|worker| &worker.targets)
            .filter(|target| target.kind != TargetKind::None)
    }

    /// Targets of the worker of a job that has most.
    fn targets_of(&self, job: usize) -> usize {
        self.workers
            .iter()
            .filter(|worker| worker.job == job)
            .map(|worker| worker.targets.len())
            .max()
            .unwrap_or(0)
    }

    fn layout(&self) -> Layout {
        let workers: Vec<(&Job, &[Target])> = self
            .workers
            .iter()
            .filter_map(|worker| Some((self.jobs.jobs.get(worker.job)?, worker.targets.as_slice())))
            .collect();
        Layout::new(&workers)
    }

    /// Lays out the files, looks at them as the jobs will find them, and runs the jobs. The last event is always
    /// [`Event::Finished`], whatever happened, unless the sink itself failed. What the jobs tell goes to `view` as well.
    /// A run that is stopped while its files are made has no result; what was made is kept.
    ///
    /// # Errors
    /// When an event could not be kept.
    pub fn execute(
        self,
        observe: &Observe,
        clock: &Clock,
        stop: &Stop,
        sink: &mut dyn Sink,
        view: &mut dyn View,
    ) -> Result<IoDone, RunError> {
        let paths: Vec<PathBuf> = self.place().into_iter().collect();
        let mut watched = Watched::start(sink, Watchers::beside_files(observe, &paths), clock)?;
        let of_jobs = plan::points(&self.jobs);
        let points: Vec<u32> =
            self.workers.iter().map(|worker| of_jobs.get(worker.job).copied().unwrap_or(0)).collect();
        let layout = self.layout();
        let (targets, depths) = self.shape();
        let Self { jobs, mut prepared, mut options, .. } = self;
        // What is seen of the host beside the jobs is told on the same clock.
        options.clock = Some(clock.clone());
        let mut relay = Relay {
            sink: &mut watched,
            view,
            stop,
            clock,
            jobs: &jobs,
            seconds: Seconds::new(layout, points.clone()),
            points: &points,
            began: BTreeSet::new(),
            current: 0,
            laid_out: false,
            error: None,
        };
        let mut facts = Facts::default();
        let ran = match control::lay_out(&mut prepared, stop, &mut relay) {
            Err(error) => Err(error),
            Ok(()) if stop.requested() => Ok(None),
            Ok(()) => {
                // Before the layout the probe would see files that are not there, or other bytes than are read.
                facts = probe::before(&prepared.targets(), &jobs);
                relay.view.looked(&facts);
                control::run(prepared, &options, stop, &mut facts.watching(&mut relay)).map(Some)
            }
        };
        relay.end();
        let (seconds, kept) = (relay.seconds, relay.error);
        if let Some(error) = kept {
            watched.finish()?;
            return Err(RunError::Sink(error));
        }
        let mut done = IoDone {
            status: Status::Complete,
            error: None,
            result: None,
            facts: facts.clone(),
            holds: true,
            failed: 0,
        };
        match ran {
            Ok(None) => {
                done.status = Status::Interrupted;
                done.error = Some("interrupted while files were laid out".into());
            }
            Ok(Some(outcome)) => {
                facts.after(&outcome);
                done.holds = tell(&outcome, &seconds, &points, &depths, &mut watched)?;
                done.failed = failed(&outcome);
                done.error = error_of(&outcome);
                done.status = match &done.error {
                    _ if outcome.interrupted => Status::Interrupted,
                    Some(_) => Status::Failed,
                    None => Status::Complete,
                };
                keep(&mut watched, "facts", &facts)?;
                keep(&mut watched, "jobs", &lines(&outcome, &of_jobs, &targets))?;
                let result = serde_json::from_str(&output::json(&outcome, &OutputOptions::new(), true))
                    .unwrap_or(serde_json::Value::Null);
                watched.event(&Event::Storage { what: "result".into(), body: result })?;
                done.facts = facts;
                done.result = Some(outcome);
            }
            Err(error) => {
                done.status = if stop.requested() { Status::Interrupted } else { Status::Failed };
                done.error = Some(error.to_string());
            }
        }
        watched.finish()?;
        sink.event(&Event::Finished { status: done.status, error: done.error.clone() })?;
        Ok(done)
    }

    /// By job: targets of a worker; by worker: the I/Os that it may have under way.
    fn shape(&self) -> (Vec<usize>, Vec<u32>) {
        let targets = (0..self.jobs.jobs.len()).map(|job| self.targets_of(job)).collect();
        let depth = |worker: &Worker| self.jobs.jobs.get(worker.job).map_or(1, depth);
        (targets, self.workers.iter().map(depth).collect())
    }
}

/// I/Os that a worker of a job may have under way.
fn depth(job: &Job) -> u32 {
    if job.engine.name.is_asynchronous() { job.depth.depth } else { 1 }
}

fn keep(sink: &mut dyn Sink, what: &str, body: &impl serde::Serialize) -> Result<(), SinkError> {
    let body = serde_json::to_value(body)?;
    sink.event(&Event::Storage { what: what.into(), body })
}

fn failed(outcome: &Outcome) -> u64 {
    let directions = outcome.workers.iter().flat_map(|w| &w.targets).flat_map(|t| &t.directions.0);
    directions.map(|direction| direction.failed).sum()
}

fn error_of(outcome: &Outcome) -> Option<String> {
    outcome.workers.iter().find_map(|worker| {
        let (_, words) = worker.error.as_ref()?;
        let name = outcome.jobs.jobs.get(worker.job).map_or("?", |job| job.name.as_str());
        Some(format!("job {name}: {words}"))
    })
}

/// What is known of each point at the end: counts, window, what must hold. Whether it does.
fn tell(
    outcome: &Outcome,
    seconds: &Seconds,
    points: &[u32],
    depths: &[u32],
    sink: &mut dyn Sink,
) -> Result<bool, SinkError> {
    let all: BTreeSet<u32> = points.iter().copied().collect();
    let mut holds = true;
    for point in all {
        let sums = seconds.sums(point);
        let Some((open, close)) = sums.window else { continue };
        let elapsed = close - open;
        let workers: Vec<(&WorkerOutcome, u32)> = outcome
            .workers
            .iter()
            .zip(points.iter().zip(depths))
            .filter(|(_, (of, _))| **of == point)
            .map(|(worker, (_, depth))| (worker, *depth))
            .collect();
        let cpu = workers.iter().map(|(worker, _)| worker.cpu.0 + worker.cpu.1).sum();
        let delay = workers.iter().filter_map(|(worker, _)| worker.run_delay).reduce(|a, b| a + b);
        let ios: u64 = sums.kinds.iter().take(sums.bytes.len()).map(|kind| kind.committed).sum();
        sink.event(&Event::Counters { point, values: sums.bytes.clone() })?;
        sink.event(&Event::Window(Window {
            point,
            users: workers.len() as u32,
            elapsed,
            idle: 0,
            client_headline: ios,
            server_headline: None,
            server_transactions: None,
            client_cpu: cpu,
            client_run_delay: delay,
            schedule: schedule(&outcome.jobs, point, &workers, ios),
        }))?;
        for invariant in invariants(&sums, &workers, ios, elapsed) {
            holds &= invariant.holds;
            sink.event(&Event::Invariant { point, invariant })?;
        }
        sink.event(&Event::Audit { point, lines: Vec::new() })?;
    }
    Ok(holds)
}

/// What must hold of a point.
fn invariants(sums: &Sums, workers: &[(&WorkerOutcome, u32)], ios: u64, elapsed: Nanos) -> Vec<Invariant> {
    let directions =
        workers.iter().flat_map(|(worker, _)| &worker.targets).flat_map(|target| &target.directions.0);
    let (mut counted, mut bytes) = (0, 0);
    for direction in directions {
        counted += direction.ios;
        bytes += direction.bytes;
    }
    let mut found = vec![
        counts_agree(
            "the seconds add up to the result: I/Os",
            ("in the seconds", ios),
            ("in the result", counted),
            0,
        ),
        counts_agree(
            "the seconds add up to the result: bytes",
            ("in the seconds", sums.bytes.iter().sum()),
            ("in the result", bytes),
            0,
        ),
        counts_agree("every I/O has its time once", ("without or too many", sums.astray), ("allowed", 0), 0),
    ];
    let depth: u32 = workers.iter().map(|(_, depth)| depth).sum();
    if sums.timed > 0 && elapsed > 0 {
        // By Little's law the mean number under way is throughput × time; it cannot be more than was allowed. An I/O that
        // began before the window is in it with its whole time.
        let found_depth = sums.in_system as f64 / elapsed as f64;
        let edge = f64::from(depth) * sums.longest as f64 / elapsed as f64;
        found.push(Invariant::new(
            "Little's law: throughput × time is no more than the depth",
            found_depth <= f64::from(depth) * 1.02 + edge,
            format!("{found_depth:.2} under way by throughput × time, {depth} allowed"),
        ));
    }
    found
}

/// What became of the rate that was asked for.
fn schedule(jobs: &Jobs, point: u32, workers: &[(&WorkerOutcome, u32)], ios: u64) -> Option<Schedule> {
    let rate = plan::asked_of(jobs, point)?;
    let clones: u32 = workers.len() as u32;
    // Each worker was to keep its rate for as long as it ran.
    let of_worker = |worker: &WorkerOutcome| {
        let job = jobs.jobs.get(worker.job)?;
        Some(plan::asked_of_job(job)? / f64::from(job.clones.max(1)) * worker.measured as f64 / 1e9)
    };
    let due: f64 = workers.iter().map(|(worker, _)| of_worker(worker)).sum::<Option<f64>>()?;
    let random = plan::is_random(jobs, point);
    // Random gaps leave the count as uncertain as its root; even ones at most what is under way.
    let depth: u32 = workers.iter().map(|(_, depth)| depth).sum();
    let uncertain = if random { 4.0 * due.sqrt() } else { f64::from(depth + clones) };
    let behind = (due - ios as f64 - uncertain).max(0.0);
    let due = if behind > 0.0 { due as u64 } else { ios };
    Some(Schedule {
        rate,
        due,
        refused: 0,
        waiting: behind as u64,
        longest: behind as u64,
        ..Schedule::default()
    })
}

/// Each job on each of its targets.
fn lines(outcome: &Outcome, points: &[u32], targets: &[usize]) -> Vec<JobLine> {
    let mut found = Vec::new();
    for (index, job) in outcome.jobs.jobs.iter().enumerate() {
        let workers: Vec<&WorkerOutcome> =
            outcome.workers.iter().filter(|worker| worker.job == index).collect();
        let nanos = workers.iter().map(|worker| worker.measured).max().unwrap_or(0);
        let seconds = nanos as f64 / 1e9;
        let mut rows: Vec<(PathBuf, Option<String>, Direction, kelvin_storage::result::DirectionOutcome)> =
            Vec::new();
        for target in workers.iter().flat_map(|worker| &worker.targets) {
            for (direction, figures) in target.directions.iter().filter(|(_, f)| f.ios + f.failed > 0) {
                match rows.iter_mut().find(|row| row.0 == target.path && row.2 == direction) {
                    Some(row) => row.3.merge(figures),
                    None => {
                        rows.push((target.path.clone(), target.device.clone(), direction, figures.clone()));
                    }
                }
            }
        }
        rows.sort_by(|a, b| (&a.0, a.2).cmp(&(&b.0, b.2)));
        let targets_of_job: Vec<TargetLine> = rows
            .iter()
            .map(|(path, device, direction, figures)| line(path, device.clone(), *direction, figures, nanos))
            .collect();
        let ios: u64 = rows.iter().map(|row| row.3.ios).sum();
        let cpu: u64 = workers.iter().map(|worker| worker.cpu.0 + worker.cpu.1).sum();
        let depths: Option<f64> = targets_of_job.iter().map(|line| line.depth_reached).sum();
        found.push(JobLine {
            job: job.name.clone(),
            point: points.get(index).copied().unwrap_or(0),
            workers: workers.len() as u32,
            how: words::how(job, targets.get(index).copied().unwrap_or(1)),
            depth_asked: depth(job).saturating_mul(job.clones),
            depth_reached: depths.filter(|_| !targets_of_job.is_empty()),
            seconds,
            cpu_us: (ios > 0).then(|| cpu as f64 / 1e3 / ios as f64),
            targets: targets_of_job,
        });
    }
    found
}

fn line(
    path: &Path,
    device: Option<String>,
    direction: Direction,
    figures: &kelvin_storage::result::DirectionOutcome,
    nanos: Nanos,
) -> TargetLine {
    let seconds = nanos as f64 / 1e9;
    let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let percentile = |percent: f64| {
        let beyond = figures.completion.count as f64 * (1.0 - percent / 100.0);
        let known = figures.completion_bins.percentile(percent).filter(|_| beyond + 1e-9 >= 10.0);
        known.map(|nanos| nanos as f64 / 1e3)
    };
    let whole = if figures.total.count > 0 { &figures.total } else { &figures.completion };
    TargetLine {
        path: path.display().to_string(),
        device,
        direction: direction.word().into(),
        ios: figures.ios,
        bytes: figures.bytes,
        iops: rate(figures.ios),
        bandwidth: rate(figures.bytes),
        times_us: [
            figures.completion.mean().map(|nanos| nanos / 1e3),
            percentile(50.0),
            percentile(95.0),
            percentile(99.0),
        ],
        depth_reached: (whole.count > 0 && nanos > 0).then(|| whole.sum as f64 / nanos as f64),
        failed: figures.failed,
    }
}

/// Hands what the jobs tell to the run's sink, and to the view.
struct Relay<'a, 'b> {
    sink: &'a mut Watched<'b>,
    view: &'a mut dyn View,
    stop: &'a Stop,
    clock: &'a Clock,
    jobs: &'a Jobs,
    seconds: Seconds,
    /// By worker.
    points: &'a [u32],
    /// Points that have begun.
    began: BTreeSet<u32>,
    current: u32,
    laid_out: bool,
    error: Option<SinkError>,
}

impl Relay<'_, '_> {
    fn send(&mut self, event: &Event) {
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.sink.event(event) {
            // Figures that nobody keeps are not worth the load.
            self.stop.request();
            self.error = Some(error);
        }
    }

    fn send_all(&mut self, events: Vec<Event>) {
        for mut event in events {
            if let Event::Phase { point, phase, users, planned, .. } = &mut event {
                *users = self.points.iter().filter(|of| *of == point).count() as u32;
                *planned = match phase {
                    Phase::Measure => {
                        plan::planned_measure(self.jobs, *point).map(|planned| planned.as_nanos() as Nanos)
                    }
                    _ => None,
                };
            }
            self.send(&event);
        }
    }

    /// A worker of a point does something: those before it are over.
    fn begin(&mut self, point: u32) {
        if !self.began.insert(point) {
            return;
        }
        if point > self.current {
            let events = self.seconds.end(self.current);
            self.send_all(events);
            self.current = point;
        }
        let at = self.clock.now();
        self.send_all(vec![Event::Phase { point, phase: Phase::Connect, at, users: 0, planned: None }]);
    }

    fn end(&mut self) {
        let events = self.seconds.end(self.current);
        self.send_all(events);
    }
}

impl Watcher for Relay<'_, '_> {
    fn event(&mut self, event: &IoEvent<'_>) {
        self.view.event(event);
        match event {
            // Files of all jobs are made before the first begins: that begins no point.
            IoEvent::State { worker, state } if !matches!(state, State::Planned | State::SettingUp) => {
                if let Some(&point) = self.points.get(*worker as usize) {
                    self.begin(point);
                }
            }
            IoEvent::State { .. } => {}
            IoEvent::Layout { what, done, total, .. } => {
                if !std::mem::replace(&mut self.laid_out, true) {
                    let at = self.clock.now();
                    self.send(&Event::Phase { point: 0, phase: Phase::Build, at, users: 0, planned: None });
                }
                self.send(&Event::Progress { what: (*what).to_owned(), done: *done, total: *total, rows: 0 });
            }
            IoEvent::Tick(tick) => {
                let events = self.seconds.tick(tick);
                self.send_all(events);
            }
            IoEvent::Note(text) => {
                let point = self.current;
                self.send(&Event::Note { point, second: 0, text: (*text).to_owned() });
            }
        }
    }

    fn idle(&mut self) {
        self.view.idle();
    }
}
