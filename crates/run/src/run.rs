//! A whole run: all points one after another, the checks, the end.

use std::sync::{Arc, mpsc};

use kelvin_database::Engine;
use kelvin_measure::event::{CheckLine, MaximumRate, Phase, Status};
use kelvin_measure::{Clock, Event, Sink};
use kelvin_observe::watch::Watcher;
use kelvin_workload::{BuildProgress, Stop, Workload};

use crate::driver::{FleetShare, Point, PointResult};
use crate::error::RunError;
use crate::find_max::Search;
use crate::fleet::{self, Fleet};
use crate::observation::{Watched, Watchers};
use crate::spec::{Load, Slo, Span, Spec};
use crate::{sweep, trial};

/// How many times the requested duration a trial at a low rate may take.
const LONGER: f64 = 10.0;

/// The result of a run.
#[derive(Debug, Clone)]
pub struct RunOutcome {
    /// How it ended.
    pub status: Status,
    /// The error that ended it.
    pub error: Option<String>,
    /// The points that were measured.
    pub points: Vec<PointResult>,
    /// The results of the consistency checks after the load, if they were requested.
    pub checks: Vec<CheckLine>,
}

impl RunOutcome {
    /// Transactions that failed for good, over the whole load of all points.
    pub fn failed(&self) -> u64 {
        self.points.iter().flat_map(|p| p.totals.transactions(&p.totals.all)).map(|kind| kind.failed).sum()
    }

    /// Errors of any kind, including those of transactions that succeeded when retried.
    pub fn errors(&self) -> u64 {
        self.points.iter().map(|p| p.errors).sum()
    }
}

/// A run that is ready to start: the data exist and have been inspected.
pub struct Run<'a> {
    /// The database.
    pub engine: Arc<dyn Engine>,
    /// The workload, inspected.
    pub workload: Arc<dyn Workload>,
    /// What to run.
    pub spec: &'a Spec,
    /// The run's clock.
    pub clock: Clock,
    /// Requests an early end.
    pub stop: Stop,
    /// The hosts that generate the load; `None` if this process does.
    pub fleet: Option<&'a dyn Fleet>,
}

impl Run<'_> {
    /// Runs every point and the checks. The last event is always [`Event::Finished`], unless the sink itself
    /// failed.
    ///
    /// # Errors
    /// When no point could be measured, or an event could not be stored.
    pub fn execute(&self, sink: &mut dyn Sink) -> Result<RunOutcome, RunError> {
        self.execute_with_watchers(sink, Vec::new())
    }

    /// As [`Run::execute`], with watchers in addition to those of the specification.
    ///
    /// # Errors
    /// Those of [`Run::execute`].
    pub fn execute_with_watchers(
        &self,
        sink: &mut dyn Sink,
        further: Vec<Box<dyn Watcher>>,
    ) -> Result<RunOutcome, RunError> {
        let mut outcome =
            RunOutcome { status: Status::Complete, error: None, points: Vec::new(), checks: Vec::new() };
        // Started before the users connect. A server that assigns connections in order must place the users'
        // as it would without watchers.
        let mut watchers =
            Watchers::for_plan(&self.spec.observe, self.spec.target.is_managed(), true, Some(&self.engine));
        watchers.watchers.extend(further);
        let mut watched = Watched::start(sink, watchers, &self.clock)?;
        let declared = self.fleet.map_or(Ok(()), |fleet| fleet::declare(fleet, &mut watched));
        let result = declared
            .and_then(|()| self.points(&mut watched, &mut outcome))
            .and_then(|()| self.checks(&mut watched, &mut outcome));
        watched.finish()?;
        if let Err(error @ RunError::Sink(_)) = result {
            return Err(error);
        }
        if let Err(error) = &result {
            outcome.status =
                if matches!(error, RunError::Interrupted) { Status::Interrupted } else { Status::Failed };
            outcome.error = Some(error.to_string());
        }
        self.analyze(sink, &outcome)?;
        sink.event(&Event::Finished { status: outcome.status, error: outcome.error.clone() })?;
        // Without a measured point there is only the error to report.
        match result {
            Err(error) if outcome.points.is_empty() => Err(error),
            _ => Ok(outcome),
        }
    }

    /// Runs all points: those of the specification, or those of a search for the highest rate.
    fn points(&self, sink: &mut dyn Sink, outcome: &mut RunOutcome) -> Result<(), RunError> {
        let load = &self.spec.load;
        if let (true, Some(slo)) = (load.find_max, &load.slo) {
            return self.search(slo, sink, outcome);
        }
        for (point, (users, rate)) in load.points().into_iter().enumerate() {
            if !self.point(load, (users, rate, load.hosts_of(point)), sink, outcome)? {
                // The points so far are still fitted.
                break;
            }
            if let (Some(slo), Some(point)) = (&load.slo, outcome.points.last()) {
                let trial = trial::judge(slo, point);
                let text = trial::describe_trial(&trial);
                sink.event(&Event::Note { point: trial.point, second: 0, text })?;
            }
        }
        if load.sweep.as_ref().is_some_and(|sweep| !sweep.is_over_hosts()) {
            for event in sweep::fit(&outcome.points, load.seed) {
                sink.event(&event)?;
            }
        }
        Ok(())
    }

    /// Runs one point; returns whether the run continues.
    fn point(
        &self,
        load: &Load,
        (users, rate, hosts): (u32, Option<f64>, Option<u32>),
        sink: &mut dyn Sink,
        outcome: &mut RunOutcome,
    ) -> Result<bool, RunError> {
        let fleet = match (self.fleet, hosts) {
            (Some(fleet), Some(hosts)) => Some(FleetShare { fleet, hosts }),
            (None, None) => None,
            (None, Some(hosts)) => {
                let why =
                    format!("the load is that of {hosts} hosts of a fleet; name the fleet that has them");
                return Err(RunError::Start(why));
            }
            (Some(_), None) => {
                return Err(RunError::Start("a fleet is given, but the load has no number of hosts".into()));
            }
        };
        let point = Point {
            index: outcome.points.len() as u32,
            users,
            most_users: self.spec.load.points().iter().map(|(users, _)| *users).max().unwrap_or(users),
            rate,
            load,
            accept_noise: self.spec.accept_noise,
            observed: self.spec.observe.enabled,
            clock: &self.clock,
            stop: &self.stop,
            control: None,
            fleet,
        };
        let result = point.run(&self.engine, &self.workload, sink)?;
        let (interrupted, gave_up) = (result.interrupted, result.gave_up.clone());
        outcome.points.push(result);
        if interrupted {
            outcome.status = Status::Interrupted;
        } else if let Some(error) = gave_up {
            return Err(RunError::Start(format!("every user gave up; the last error was: {error}")));
        }
        Ok(!interrupted)
    }

    /// Searches for the highest rate that meets the objective. An interrupted search also reports its result.
    fn search(&self, slo: &Slo, sink: &mut dyn Sink, outcome: &mut RunOutcome) -> Result<(), RunError> {
        let load = &self.spec.load;
        let users = load.points().first().map_or(1, |&(users, _)| users);
        // A low rate needs a longer trial for the same number of response times, up to this multiple of the
        // requested duration.
        let longest = load.duration.duration().as_secs_f64() * LONGER;
        let search =
            Search::new(load.first_rate(), load.resolution, Search::BUDGET).map_err(RunError::Start)?;
        let mut search = search.not_below(slo.arrivals_to_expect() / longest);
        let mut trials = Vec::new();
        let mut ended = Ok(true);
        while let Some(rate) = search.next() {
            let before = outcome.points.len();
            let window = load.duration.duration().max(slo.shortest_window(rate));
            let trial = Load { duration: Span::from_duration(window), ..load.clone() };
            ended = self.point(&trial, (users, Some(rate), load.hosts_of(0)), sink, outcome);
            if matches!(ended, Err(RunError::Sink(_))) {
                break;
            }
            // A trial in which every user gave up was measured and fails. One that could not start or was
            // stopped was not measured. In both cases the trials before it are reported.
            let measured = outcome.points.get(before).filter(|point| !point.interrupted);
            let Some(point) = measured else { break };
            ended = Ok(true);
            let trial = trial::judge(slo, point);
            let text = trial::describe_trial(&trial);
            sink.event(&Event::Note { point: trial.point, second: 0, text })?;
            search.add_trial(rate, trial::search_trial(&trial));
            trials.push(trial);
        }
        let found = search.outcome();
        for text in trial::remarks(&found, &trials) {
            let point = trials.last().map_or(0, |trial| trial.point);
            sink.event(&Event::Note { point, second: 0, text })?;
        }
        let (held, failed) = (found.highest, found.lowest_failed);
        sink.event(&Event::MaximumRate(MaximumRate { held, failed, slo: slo.to_string(), trials }))?;
        ended.map(drop)
    }

    /// Collects query plans when load and observation have ended. A failure becomes a note, since the results
    /// are valid.
    fn analyze(&self, sink: &mut dyn Sink, outcome: &RunOutcome) -> Result<(), RunError> {
        if outcome.status != Status::Complete {
            return Ok(());
        }
        let with = (self.spec.load.seed, self.spec.load.timeout.duration());
        let analyzed = relay(sink, &self.stop, |sender| {
            let each = &mut |analysis| drop(sender.send(Event::QueryAnalysis(Box::new(analysis))));
            self.workload.analyze(&*self.engine, with, (&Heard(sender.clone()), &self.stop), each)
        });
        match analyzed {
            Err(error @ RunError::Sink(_)) => Err(error),
            Err(error) => {
                let point = outcome.points.last().map_or(0, |point| point.window.point);
                let text = format!("plans were not analyzed completely: {error}");
                Ok(sink.event(&Event::Note { point, second: 0, text })?)
            }
            Ok(_) => Ok(()),
        }
    }

    fn checks(&self, sink: &mut dyn Sink, outcome: &mut RunOutcome) -> Result<(), RunError> {
        if self.spec.check && outcome.status == Status::Complete {
            outcome.checks = check_consistency(
                &*self.engine,
                &*self.workload,
                &self.clock,
                &self.stop,
                Phase::CheckAfter,
                sink,
            )?;
        }
        Ok(())
    }
}

/// Checks the consistency conditions and emits each result when it is known.
pub fn check_consistency(
    engine: &dyn Engine,
    workload: &dyn Workload,
    clock: &Clock,
    stop: &Stop,
    phase: Phase,
    sink: &mut dyn Sink,
) -> Result<Vec<CheckLine>, RunError> {
    sink.event(&Event::Phase { point: 0, phase, at: clock.now(), users: 0, planned: None })?;
    relay(sink, stop, |sender| {
        let each = &mut |line| drop(sender.send(Event::Check { phase, line }));
        workload.check(engine, &Heard(sender.clone()), stop, each)
    })
}

/// Runs `work` in a thread and forwards its events to the sink as they arrive. Returns the check results
/// among them.
fn relay(
    sink: &mut dyn Sink,
    stop: &Stop,
    work: impl FnOnce(mpsc::Sender<Event>) -> kelvin_database::Result<()> + Send,
) -> Result<Vec<CheckLine>, RunError> {
    let mut lines = Vec::new();
    let mut refused = None;
    let done = std::thread::scope(|scope| {
        // Sending fails only when the command is ending.
        let (sender, receiver) = mpsc::channel();
        let work = scope.spawn(move || work(sender));
        for event in receiver {
            if refused.is_none() {
                refused = sink.event(&event).err();
            }
            if let Event::Check { line, .. } = event {
                lines.push(line);
            }
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    match done {
        Err(_) if stop.requested() => return Err(RunError::Interrupted),
        done => done?,
    }
    match refused {
        Some(error) => Err(error.into()),
        None => Ok(lines),
    }
}

/// Forwards progress as events.
struct Heard(mpsc::Sender<Event>);

impl BuildProgress for Heard {
    fn update(&self, what: &str, done: u64, total: u64, rows: u64) {
        drop(self.0.send(Event::Progress { what: what.into(), done, total, rows }));
    }
}
