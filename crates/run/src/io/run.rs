//! A run of I/O jobs: the storage engine executes them, and their events become the events of a run.

use kelvin_measure::text::few;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kelvin_measure::event::{Event, Phase, Series, Status};
use kelvin_measure::{Clock, Nanos, Sink, SinkError, Stop, Totals};
use kelvin_observe::watch::Watcher;
use kelvin_spec::plan;
use kelvin_storage::control::{self, Prepared, RateChanges, RunOptions};
use kelvin_storage::event::{IoEvent, IoWatcher, WorkerState};
use kelvin_storage::job::{Job, Jobs};
use kelvin_storage::output::{self, OutputOptions};
use kelvin_storage::probe::{self, StorageFacts};
use kelvin_storage::result::JobsOutcome;
use kelvin_storage::{Direction, Target, TargetKind};

use super::accounting::{IoAccounting, depth, error_of, failed, lines};
use super::describe;
use crate::control::{Change, LoadControl};
use crate::error::RunError;
use crate::heartbeat::Heartbeat;
use crate::observation::{Watched, Watchers};
use crate::spec::Spec;
use kelvin_storage::SeriesLayout;
use kelvin_storage::seconds::Seconds;

/// The least time between a timeline's order and the start.
const HEAD_START: Duration = Duration::from_millis(20);

/// I/O jobs with targets that exist and may be used; nothing has been written yet.
pub struct IoRun {
    jobs: Jobs,
    prepared: Prepared,
    options: RunOptions,
    workers: Vec<Worker>,
    control: Option<Arc<LoadControl>>,
    /// The jobs of all hosts of a fleet, if this host is one of them.
    of_fleet: Option<Jobs>,
    /// Watchers in addition to those of the specification.
    further: Vec<Box<dyn Watcher>>,
}

/// An observer of the jobs' events, and of the facts collected before their first I/O.
pub trait IoRunWatcher: IoWatcher {
    /// Called when the files are laid out and inspected, before the first I/O.
    fn looked(&mut self, facts: &StorageFacts);
}

/// A planned worker.
struct Worker {
    job: usize,
    targets: Vec<Target>,
}

/// The outcome of a run of I/O jobs.
#[derive(Debug)]
pub struct IoRunOutcome {
    /// How it ended.
    pub status: Status,
    /// The error that ended the run or one of its workers.
    pub error: Option<String>,
    /// The result from which fio's outputs are made; `None` if the jobs did not run to an end.
    pub result: Option<JobsOutcome>,
    /// Facts about devices and files around the run.
    pub facts: StorageFacts,
    /// Whether every invariant held. A hold-up of this process, which makes a run void, does not matter here.
    pub holds: bool,
    /// I/Os that failed.
    pub failed: u64,
    /// The sums of each completed point, computed from the jobs' ticks and compared with what was stored.
    pub totals: Vec<(u32, Totals)>,
}

impl IoRun {
    /// Finds the targets of the jobs. Writes nothing, and reads nothing that would change what a run finds.
    ///
    /// # Errors
    /// When a target is missing or must not be written to.
    pub fn prepare(jobs: Jobs, options: RunOptions) -> kelvin_storage::Result<Self> {
        let prepared = control::prepare(&jobs, &options)?;
        let workers: Vec<Worker> = prepared
            .workers()
            .iter()
            .map(|worker| Worker { job: worker.job, targets: worker.targets.clone() })
            .collect();
        Ok(Self { jobs, prepared, options, workers, control: None, of_fleet: None, further: Vec::new() })
    }

    /// The same run as a fleet's host: its series are those of all hosts' jobs, whatever devices and workers
    /// this host has.
    #[must_use]
    pub fn of_fleet(mut self, jobs: Jobs) -> Self {
        self.of_fleet = Some(jobs);
        self
    }

    /// The same run with watchers in addition to those of the specification.
    #[must_use]
    pub fn beside(mut self, further: Vec<Box<dyn Watcher>>) -> Self {
        self.further = further;
        self
    }

    /// The number of its workers.
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Block devices that the jobs write to or trim, or that are filled first.
    pub fn written_devices(&self) -> BTreeSet<PathBuf> {
        let fills = self.options.prepare;
        let writes = |worker: &&Worker| {
            let job = self.jobs.jobs.get(worker.job);
            job.is_some_and(|job| fills || job.does(Direction::Write) || job.does(Direction::Trim))
        };
        let targets = self.workers.iter().filter(writes).flat_map(|worker| &worker.targets);
        let devices = targets.filter(|target| target.kind == TargetKind::Block);
        devices.map(|target| target.path.clone()).collect()
    }

    /// The same run, whose first I/O a timeline orders. Its seconds are counted from that start.
    #[must_use]
    pub fn controlled(mut self, control: Arc<LoadControl>) -> Self {
        self.control = Some(control);
        self
    }

    /// Creates the files of the jobs, and fills unwritten parts if requested. No job starts.
    ///
    /// # Errors
    /// When a file cannot be created.
    pub fn lay_out(mut self, stop: &Stop, watcher: &mut dyn IoWatcher) -> kelvin_storage::Result<()> {
        control::lay_out(&mut self.prepared, stop, watcher)
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
        self.layout().counters()
    }

    /// A brief description of what it reads and writes.
    pub fn target(&self) -> String {
        let paths: BTreeSet<&Path> = self.all_targets().map(|target| target.path.as_path()).collect();
        if paths.is_empty() {
            "nothing".into()
        } else {
            few(paths.iter().map(|path| path.to_string_lossy()), 3)
        }
    }

    /// The files and devices that it reads and writes.
    pub fn paths(&self) -> BTreeSet<PathBuf> {
        self.all_targets().map(|target| target.path.clone()).collect()
    }

    /// A path on the file system of the first target that is a file.
    pub fn filesystem_path(&self) -> Option<PathBuf> {
        let file = self.all_targets().find(|target| target.kind == TargetKind::File)?;
        let path = file.path.as_path();
        path.ancestors().find(|path| path.exists()).map(Path::to_owned)
    }

    /// The job of each worker, the worker's number within the job, and its random seed.
    pub fn seeds(&self) -> Vec<(String, u32, u64)> {
        let name = |job: usize| self.jobs.jobs.get(job).map_or_else(String::new, |job| job.name.clone());
        self.prepared.workers().iter().map(|worker| (name(worker.job), worker.clone, worker.seed)).collect()
    }

    /// Notes that belong to the result: what each job does, and how the job file was interpreted.
    pub fn notes(&self) -> Vec<String> {
        let how = self.jobs.jobs.iter().enumerate().map(|(index, job)| {
            kelvin_measure::storage::describe_job(
                &job.name,
                &describe::describe_job(job, self.targets_of(index)),
            )
        });
        how.chain(self.jobs.notes.iter().chain(self.prepared.notes()).cloned()).collect()
    }

    fn all_targets(&self) -> impl Iterator<Item = &Target> {
        self.workers
            .iter()
            .flat_map(|worker| &worker.targets)
            .filter(|target| target.kind != TargetKind::None)
    }

    /// The largest number of targets of a worker of a job.
    fn targets_of(&self, job: usize) -> usize {
        self.workers
            .iter()
            .filter(|worker| worker.job == job)
            .map(|worker| worker.targets.len())
            .max()
            .unwrap_or(0)
    }

    fn layout(&self) -> SeriesLayout {
        let workers: Vec<(&Job, &[Target])> = self
            .workers
            .iter()
            .filter_map(|worker| Some((self.jobs.jobs.get(worker.job)?, worker.targets.as_slice())))
            .collect();
        SeriesLayout::new(&workers, self.of_fleet.as_ref())
    }

    /// Lays out the files, inspects them as the jobs will find them, and runs the jobs. The last event is
    /// always [`Event::Finished`], unless the sink itself failed. The jobs' events also go to `view`. A run
    /// that is stopped during the layout has no result; its files are kept.
    ///
    /// # Errors
    /// When an event could not be stored.
    pub fn execute(
        mut self,
        spec: &Spec,
        clock: &Clock,
        stop: &Stop,
        sink: &mut dyn Sink,
        view: &mut dyn IoRunWatcher,
    ) -> Result<IoRunOutcome, RunError> {
        let paths: Vec<PathBuf> = self.filesystem_path().into_iter().collect();
        let mut watchers = Watchers::beside_files(&spec.observe, &paths);
        watchers.watchers.append(&mut self.further);
        let mut watched = Watched::start(sink, watchers, clock)?;
        let of_jobs = plan::points(&self.jobs);
        let points: Vec<u32> =
            self.workers.iter().map(|worker| of_jobs.get(worker.job).copied().unwrap_or(0)).collect();
        let layout = self.layout();
        let (targets, depths) = self.shape();
        let Self { jobs, prepared, mut options, control, .. } = self;
        // The host is observed on the same clock.
        options.clock = Some(clock.clone());
        let rates = Rates {
            changes: Arc::clone(&options.rates),
            control: control.clone(),
            asked: plan::asked_of_all(&jobs),
        };
        let mut relay = Relay {
            sink: &mut watched,
            view,
            stop,
            clock,
            jobs: &jobs,
            seconds: Seconds::new(layout, points.clone()),
            points: &points,
            began: BTreeSet::new(),
            rates: &rates,
            current: 0,
            laid_out: false,
            error: None,
        };
        let mut facts = StorageFacts::default();
        let heartbeat = Heartbeat::start(clock.clone())?;
        let ran = lay_out_and_run(prepared, &options, control.as_deref(), &mut facts, &mut relay);
        relay.end();
        let gaps = heartbeat.finish();
        let (seconds, kept) = (relay.seconds, relay.error);
        if let Some(error) = kept {
            watched.finish()?;
            return Err(RunError::Sink(error));
        }
        let mut done = IoRunOutcome {
            status: Status::Complete,
            error: None,
            result: None,
            facts: facts.clone(),
            holds: true,
            failed: 0,
            totals: seconds.totals(),
        };
        match ran {
            Ok(None) => {
                done.status = Status::Interrupted;
                done.error = Some("interrupted before the first I/O".into());
            }
            Ok(Some(outcome)) => {
                facts.add_outcome(&outcome);
                let books = IoAccounting {
                    outcome: &outcome,
                    seconds: &seconds,
                    points: &points,
                    depths: &depths,
                    gaps: &gaps,
                    rates: &rates.changes,
                    accept_noise: spec.accept_noise,
                };
                done.holds = books.report_points(&mut watched)?;
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

    /// The number of targets of a worker, by job, and the I/Os that a worker may have in flight, by worker.
    fn shape(&self) -> (Vec<usize>, Vec<u32>) {
        let targets = (0..self.jobs.jobs.len()).map(|job| self.targets_of(job)).collect();
        let depth = |worker: &Worker| self.jobs.jobs.get(worker.job).map_or(1, depth);
        (targets, self.workers.iter().map(depth).collect())
    }
}

/// Lays out the files and runs the jobs; `None` if stopped before the first I/O. `facts` describe what the
/// jobs find.
fn lay_out_and_run(
    mut prepared: Prepared,
    options: &RunOptions,
    control: Option<&LoadControl>,
    facts: &mut StorageFacts,
    relay: &mut Relay<'_, '_>,
) -> kelvin_storage::Result<Option<JobsOutcome>> {
    let stop = relay.stop;
    control::lay_out(&mut prepared, stop, relay)?;
    if stop.requested() {
        return Ok(None);
    }
    // Before the layout, files may be missing or have other contents than will be read.
    *facts = probe::facts_before_run(&prepared.targets(), relay.jobs);
    relay.view.looked(facts);
    let begun = match control.map(|control| control.begin(relay.clock, HEAD_START, stop)) {
        Some(None) => return Ok(None),
        begun => begun.flatten(),
    };
    relay.seconds.align(begun);
    control::run(prepared, options, stop, &mut facts.watching(relay)).map(Some)
}

fn keep(sink: &mut dyn Sink, what: &str, body: &impl serde::Serialize) -> Result<(), SinkError> {
    let body = serde_json::to_value(body)?;
    sink.event(&Event::Storage { what: what.into(), body })
}

/// A timeline's orders about the jobs' rates.
struct Rates {
    changes: Arc<RateChanges>,
    control: Option<Arc<LoadControl>>,
    /// I/Os per second that all jobs request.
    asked: Option<f64>,
}

impl Rates {
    /// Applies the orders since the last call. The ratios between the jobs' rates are kept.
    fn follow(&self) {
        let Some((control, asked)) = self.control.as_ref().zip(self.asked) else { return };
        for (at, change) in control.relay().1 {
            if let Change::Rate(rate) = change {
                self.changes.change_at(at, rate / asked);
            }
        }
    }
}

/// Forwards the jobs' events to the run's sink and to the view.
struct Relay<'a, 'b> {
    sink: &'a mut Watched<'b>,
    view: &'a mut dyn IoRunWatcher,
    stop: &'a Stop,
    clock: &'a Clock,
    jobs: &'a Jobs,
    seconds: Seconds,
    /// The point of each worker.
    points: &'a [u32],
    /// Points that have begun.
    began: BTreeSet<u32>,
    rates: &'a Rates,
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
            // Results that cannot be stored do not justify the load.
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

    /// A worker of `point` is active: the points before it have ended.
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

impl IoWatcher for Relay<'_, '_> {
    fn event(&mut self, event: &IoEvent<'_>) {
        self.view.event(event);
        self.rates.follow();
        match event {
            // The files of all jobs are created before the first job starts, so that does not begin a point.
            IoEvent::State { worker, state }
                if !matches!(state, WorkerState::Planned | WorkerState::SettingUp) =>
            {
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
        self.rates.follow();
        self.view.idle();
    }
}
