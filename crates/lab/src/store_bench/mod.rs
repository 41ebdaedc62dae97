//! Runs on an opened target that are stored: a single run, or several in sequence for code that plans them. Callers
//! without a terminal, such as a page or an agent, make runs with it exactly as the command does.

mod io_on_fleet;
mod new_run;
mod prepare;
mod resume;
mod scenario;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use kelvin_diagnose::{Evidence, RunJudgements, TenantFigures, judge};
use kelvin_measure::event::Status;
use kelvin_measure::{Clock, labels};
use kelvin_run::fleet::Fleet;
use kelvin_run::io::{IoRun, IoRunOutcome, IoRunWatcher};
use kelvin_run::spec::Work;
use kelvin_run::{Environment, Run, RunError, Spec};
use kelvin_storage::control::RunOptions;
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::probe::StorageFacts;
use kelvin_store::{GroupId, GroupSlot, Judgement, NewRun, RunId, RunState, RunWriter, Store, StoredRun};
use kelvin_workload::Stop;

use crate::bench::{Bench, BenchError, Measured, Planned};
use crate::deep_observation::DeepObservation;
use crate::limits;
use crate::live::{Live, RunSummary};
use crate::open::{self, PasswordPrompt, Purpose};
use crate::run_trace::{RunTrace, TracedSink};
use crate::squeeze;

use crate::error::Doing;
pub use crate::error::StoreBenchError;
pub use new_run::{new_run, new_run_of_jobs};
pub use prepare::{build_data, check_data};
pub use resume::BegunRun;
pub use scenario::{PreparedTenant, reopen_tenant};

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Makes runs and stores them.
pub struct StoreBench<'a> {
    store: &'a Store,
    live: &'a mut dyn Live,
    stop: &'a Stop,
    origin: RunOrigin,
    history: Option<HistoryKey>,
    destroys: Vec<PathBuf>,
    fleet: Option<&'a dyn Fleet>,
}

/// The origin of the runs.
#[derive(Debug, Clone)]
pub struct RunOrigin {
    /// The command line that repeats the run, quoted for a shell; empty if there is none. It is stored with the run.
    pub command: String,
    /// Prompts for a password.
    pub prompt: PasswordPrompt,
}

/// The place of a run in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryKey {
    /// The branch.
    pub branch: String,
    /// The testbed; none for the one that follows from the environment.
    pub testbed: Option<String>,
}

/// A run that was executed.
pub struct CompletedRun {
    /// The run as stored.
    pub stored: StoredRun,
    /// The evidence from its events.
    pub evidence: Evidence,
    /// Its judgements.
    pub judged: RunJudgements,
}

impl<'a> StoreBench<'a> {
    /// Stores runs in `store`, shows them in `live`, and ends them early on `stop`.
    pub fn new(store: &'a Store, live: &'a mut dyn Live, stop: &'a Stop, origin: RunOrigin) -> Self {
        Self { store, live, stop, origin, history: None, destroys: Vec::new(), fleet: None }
    }

    /// Permits I/O jobs to overwrite these block devices whatever they contain.
    #[must_use]
    pub fn destroying(mut self, devices: &[PathBuf]) -> Self {
        self.destroys = devices.to_vec();
        self
    }

    /// Lets the hosts of a fleet generate the load. The specification contains their number.
    #[must_use]
    pub fn with_fleet(mut self, fleet: &'a dyn Fleet) -> Self {
        self.fleet = Some(fleet);
        self
    }

    /// Enters the runs into the history as well.
    #[must_use]
    pub fn in_history(mut self, history: Option<HistoryKey>) -> Self {
        self.history = history;
        self
    }

    /// Opens the target, creates missing data, and makes a run. With a `squeeze`, resources are cut in turn, and the
    /// window is set to the required length. `notes` are stored with the run. `spec` is updated with the
    /// properties that the run took from the database.
    pub fn run(
        &mut self,
        spec: &mut Spec,
        mut notes: Vec<String>,
        squeeze: Option<squeeze::Options>,
        member: Option<(GroupId, &GroupSlot)>,
    ) -> Result<CompletedRun> {
        if spec.is_io() {
            if let Some(fleet) = self.fleet {
                return self.run_io_on_fleet(spec, fleet, notes);
            }
            let run = io_run(spec, &self.destroys, None)?;
            return Ok(self.run_io(spec, run, member, &Clock::real(), &mut Unseen)?.0);
        }
        if let (None, Some(hosts)) = (self.fleet, spec.load.most_hosts()) {
            let why = format!("the load is that of {hosts} hosts of a fleet; name it with --fleet or --nats");
            return Err(StoreBenchError::Refused(why));
        }
        if let Work::TprocH(options) = &spec.work
            && options.query_sets == 0
        {
            let why = "query-sets = 0 is for tenants of a scenario, whose steps end the load";
            return Err(StoreBenchError::Refused(why.into()));
        }
        let opened =
            open::open(&spec.target, Purpose::Run, self.origin.prompt, &mut |text| self.live.message(text))?;
        let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)
            .doing("reading the version and the settings of the database")?;
        prepare::warn_of_faults(spec, &environment, self.live, &mut notes);
        let workload = prepare::prepare(spec, &opened, self.live, self.stop, &mut notes)?;
        let squeeze = squeeze
            .map(|options| prepare::squeeze(options, spec, &*opened.engine, &mut notes))
            .transpose()?;

        let deep = if spec.observe.deep {
            let target = spec.target.target()?;
            let (deep, note) =
                DeepObservation::begin(&opened.engine, &target, &mut |text| self.live.message(text))?;
            self.live.message(&note);
            notes.push(note);
            Some(deep)
        } else {
            None
        };

        let mut trace = RunTrace::begin_if(spec, self.store, Some(&opened.engine))?;
        let streams: Vec<_> = trace.iter_mut().filter_map(RunTrace::watcher).collect();

        // Read again, because data created meanwhile has a size.
        let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)?;
        let info = NewRun {
            command: self.origin.command.clone(),
            notes,
            ..new_run(spec, &*opened.engine, &*workload, &environment)?
        };
        // The store comes first, so that everything the live view shows is stored.
        let mut writer = self.begin(&info, &environment, member, spec)?;
        let id = writer.id();

        let run = Run {
            engine: Arc::clone(&opened.engine),
            workload,
            spec,
            clock: Clock::real(),
            stop: self.stop.clone(),
            fleet: self.fleet,
        };
        let mut sinks = (&mut writer, &mut *self.live);
        let mut sinks = TracedSink::new(&mut sinks, trace, self.store, id, &run.clock);
        let outcome = match squeeze {
            Some(squeeze) => {
                let series = kelvin_run::series(run.workload.kinds(), false);
                run.execute_beside(&mut squeeze.around(&mut sinks, &series, &run.clock), streams)
            }
            None => run.execute_beside(&mut sinks, streams),
        };
        drop(sinks);
        let mut points = (0..).zip(outcome.iter().flat_map(|outcome| &outcome.points));
        let summed = points.try_for_each(|(point, result)| writer.set_totals(point, &result.totals));
        drop(writer);
        self.live.end();
        let switched_back = deep.map_or(Ok(()), DeepObservation::end);
        let done = self.ended(id, outcome.map(drop))?;
        switched_back?;
        summed.map(|()| done).map_err(StoreBenchError::kept)
    }

    /// Judges a run that has ended from its stored events, and stores the judgement for lists; also a run that ended
    /// with an error.
    fn ended(&mut self, id: RunId, ended: std::result::Result<(), RunError>) -> Result<CompletedRun> {
        let judged = self.judged(id, ended.as_ref().err());
        ended.map_err(|error| StoreBenchError::EndedEarly(id, error))?;
        judged.map_err(StoreBenchError::kept)
    }

    fn judged(&mut self, id: RunId, error: Option<&RunError>) -> Result<CompletedRun> {
        let stored = self.store.load(id)?;
        let evidence = Evidence::from_run(&stored)?;
        let mut judged = judge(&stored, &evidence)?;
        if let (Some(error), RunState::Partial) = (error, judged.run.state) {
            // The store failed to record the end of the run.
            judged.run = Judgement {
                state: RunState::Failed,
                reasons: vec![format!("it was ended by an error: {error}")],
            };
        }
        let kept = self.store.keep_judgement(id, &judged.run);
        let point = stored.best_point();
        let one_load = point.filter(|_| stored.info.workload != labels::SCENARIO);
        let figures =
            one_load.map(|point| kelvin_diagnose::key_figures(&stored, &evidence, point, &[])).transpose()?;
        let tenants = point.map(|point| TenantFigures::all(&stored, &evidence, point, &[])).transpose()?;
        self.live.judged(&RunSummary {
            run: id.0,
            valid: judged.run.counts(),
            judgement: &judged.run,
            failed: stored.failed(),
            point,
            figures: figures.unwrap_or_default(),
            tenants: tenants.unwrap_or_default(),
        });
        kept?;
        Ok(CompletedRun { stored, evidence, judged })
    }

    /// Runs I/O jobs. Their events are also passed to `view`.
    pub fn run_io(
        &mut self,
        spec: &Spec,
        run: IoRun,
        member: Option<(GroupId, &GroupSlot)>,
        clock: &Clock,
        view: &mut dyn IoRunWatcher,
    ) -> Result<(CompletedRun, IoRunOutcome)> {
        let environment = Environment::of_files(run.target(), run.filesystem_path().as_deref());
        let info = NewRun {
            command: self.origin.command.clone(),
            counter_names: run.counters(),
            notes: run.notes(),
            ..new_run_of_jobs(spec, run.target(), run.series(), &environment)?
        };
        let mut trace = RunTrace::begin_if(spec, self.store, None)?;
        let streams = trace.iter_mut().filter_map(RunTrace::watcher).collect();
        let mut writer = self.begin(&info, &environment, member, spec)?;
        let id = writer.id();
        let mut sinks = (&mut writer, &mut *self.live);
        let mut sinks = TracedSink::new(&mut sinks, trace, self.store, id, clock);
        let done = run.beside(streams).execute(spec, clock, self.stop, &mut sinks, view);
        drop(sinks);
        let mut points = done.iter().flat_map(|done| &done.totals);
        let summed = points.try_for_each(|(point, totals)| writer.set_totals(*point, totals));
        drop(writer);
        self.live.end();
        let (done, ended) = match done {
            Ok(done) => (Some(done), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let kept = self.ended(id, ended)?;
        summed.map_err(StoreBenchError::kept)?;
        let done = done.ok_or_else(|| StoreBenchError::Refused("the jobs ended without a result".into()))?;
        Ok((kept, done))
    }

    /// Creates a run that is about to start in the store, its group and the history.
    fn begin(
        &mut self,
        info: &NewRun,
        environment: &Environment,
        member: Option<(GroupId, &GroupSlot)>,
        spec: &Spec,
    ) -> Result<RunWriter> {
        // A server that a killed scenario left limited would be measured with those limits.
        for change in limits::recover_left_over()? {
            self.live.message(&format!("reverted what a killed process left behind: {change}"));
        }
        let writer = self.store.begin_run(info)?;
        let id = writer.id();
        if let Some(HistoryKey { branch, testbed }) = &self.history {
            let testbed = testbed.clone().unwrap_or_else(|| environment.client_host.testbed());
            self.store.enter_history(id, branch, &testbed)?;
        }
        if let Some((group, slot)) = member {
            self.store.enter_group(group, id, slot)?;
        }
        self.live.begin(id, info, spec);
        Ok(writer)
    }

    /// Makes a run of a group, and returns its measurement.
    fn member(&mut self, planned: &Planned<'_>) -> Result<Measured> {
        let began = Instant::now();
        let mut spec = planned.spec.clone();
        if let Work::TprocH(options) = &mut spec.work {
            // It would take as long again, and leave its pages in the caches for the next run.
            options.no_analyze = true;
        }
        let done = self.run(&mut spec, Vec::new(), None, Some((planned.group, planned.slot)))?;
        let (run, status) = (done.stored.id, done.stored.status);
        if status == Status::Interrupted {
            return Err(StoreBenchError::Stopped(format!(
                "run {run} was interrupted; it is stored and does not count"
            )));
        }
        let figures = kelvin_diagnose::key_figures(&done.stored, &done.evidence, 0, planned.metrics)?;
        Ok(Measured { run, figures, judgement: done.judged.run, seconds: began.elapsed().as_secs_f64() })
    }
}

impl Bench for StoreBench<'_> {
    fn measure(&mut self, planned: &Planned<'_>) -> std::result::Result<Measured, BenchError> {
        self.member(planned).map_err(|error| {
            if self.stop.requested() {
                return BenchError::Interrupted;
            }
            BenchError::Failed(error.into())
        })
    }

    fn report(&mut self, text: &str) {
        self.live.message(text);
    }

    fn stopped(&self) -> bool {
        self.stop.requested()
    }
}

/// The jobs of a specification with their targets resolved; nothing is written yet. State files and dumps of `verify`
/// go to `aux`.
///
/// # Errors
/// When the specification is for another workload, or the jobs cannot run.
pub fn io_run(spec: &Spec, destroys: &[PathBuf], aux: Option<PathBuf>) -> Result<IoRun> {
    io_run_of_host(spec, (0, 1), destroys, aux)
}

/// The same for a single host of a fleet.
///
/// # Errors
/// See [`io_run`].
pub fn io_run_of_host(
    spec: &Spec,
    host: (u32, u32),
    destroys: &[PathBuf],
    aux: Option<PathBuf>,
) -> Result<IoRun> {
    let Work::Io(io) = &spec.work else {
        let why = format!("{} is not a workload of I/O jobs", spec.workload().as_str());
        return Err(StoreBenchError::Refused(why));
    };
    let jobs = io.jobs_of_host(spec.load.seed, host)?;
    let options = RunOptions {
        read_only: io.read_only,
        destroy: destroys.to_vec(),
        prepare: io.prepare,
        log_directory: aux.clone(),
        aux_directory: aux,
        ..RunOptions::default()
    };
    Ok(IoRun::prepare(jobs, options)?)
}

/// A view that ignores the jobs' events.
pub struct Unseen;

impl IoWatcher for Unseen {
    fn event(&mut self, _event: &IoEvent<'_>) {}
}

impl IoRunWatcher for Unseen {
    // The facts are stored with the run, and its findings are reported with it.
    fn looked(&mut self, _facts: &StorageFacts) {}
}
