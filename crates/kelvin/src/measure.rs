//! Runs on the opened target, kept in the store: one, or one after another for those that plan several.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use kelvin_database::{Engine, Home};
use kelvin_diagnose::{Evidence, RunJudgements, judge};
use kelvin_lab::{Bench, BenchError, Measured, Planned};
use kelvin_measure::event::{RatePeriod, Status};
use kelvin_measure::{Clock, Event};
use kelvin_run::io::{IoRun, IoRunOutcome, IoRunWatcher};
use kelvin_run::spec::{Build, Span, WorkloadName};
use kelvin_run::{Environment, Run, RunError, Sink, SinkError, Spec};
use kelvin_serve::{MetricsEndpoint, MetricsSink, RunInfo};
use kelvin_storage::control::RunOptions;
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::probe::StorageFacts;
use kelvin_store::{GroupId, GroupSlot, Judgement, NewRun, RunId, RunState, RunWriter, Store, StoredRun};
use kelvin_workload::{Stop, Workload};

use crate::args::{HistoryKey, SqueezeArgs};
use crate::commands::{self, SelectedWorkload, while_doing};
use crate::exit::{EndedEarly, Kept, Stopped};
use crate::live::{Live, Summary};
use crate::open::{self, Opened, Purpose};

/// Makes runs and keeps them in a store.
pub(crate) struct StoreBench<'a> {
    store: &'a Store,
    live: &'a mut dyn Live,
    stop: &'a Stop,
    metrics: Option<Metrics>,
    history: Option<HistoryKey>,
    destroys: Vec<PathBuf>,
}

/// A run that was made.
pub(crate) struct CompletedRun {
    /// As it was stored.
    pub(crate) stored: StoredRun,
    /// What was seen of it.
    pub(crate) evidence: Evidence,
    /// Whether it counts.
    pub(crate) judged: RunJudgements,
}

impl<'a> StoreBench<'a> {
    /// Runs are kept in `store`, seen in `live`, ended early by `stop`.
    pub(crate) fn new(
        store: &'a Store,
        live: &'a mut dyn Live,
        stop: &'a Stop,
        metrics: Option<Metrics>,
    ) -> Self {
        Self { store, live, stop, metrics, history: None, destroys: Vec::new() }
    }

    /// The same, whose I/O jobs may write to these block devices whatever they hold.
    pub(crate) fn destroying(mut self, devices: &[PathBuf]) -> Self {
        self.destroys = devices.to_vec();
        self
    }

    /// The same, which keeps its runs in the history as well.
    pub(crate) fn in_history(mut self, history: Option<HistoryKey>) -> Self {
        self.history = history;
        self
    }

    /// Opens the target, makes missing data, and runs. `spec` says afterwards what the run took from the database.
    pub(crate) fn run(
        &mut self,
        spec: &mut Spec,
        mut notes: Vec<String>,
        squeeze: Option<&SqueezeArgs>,
        member: Option<(GroupId, &GroupSlot)>,
    ) -> Result<CompletedRun> {
        if spec.workload == WorkloadName::Io {
            let run = io_run(spec, &self.destroys, None)?;
            return Ok(self.run_io(spec, run, member, &Clock::real(), &mut Unseen)?.0);
        }
        let opened = open::open(&spec.target, Purpose::Run, &mut |text| self.live.message(text))?;
        let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)
            .context("reading the version and the settings of the database")?;
        warn_of_faults(spec, &environment, self.live, &mut notes);
        let workload = prepare(spec, &opened, self.live, self.stop, &mut notes)?;
        let squeeze = squeeze
            .map(|squeeze| commands::squeeze::prepare(squeeze, spec, &*opened.engine, &mut notes))
            .transpose()?;

        // Again: what was made meanwhile has a size.
        let environment = Environment::read(&*opened.engine, &mut *opened.engine.connect()?)?;
        let info = new_run(spec, &*opened.engine, &*workload, notes, &environment)?;
        let writer = self.begin(&info, &environment, member, spec)?;
        let id = writer.id();

        let run = Run {
            engine: Arc::clone(&opened.engine),
            workload,
            spec,
            clock: Clock::real(),
            stop: self.stop.clone(),
        };
        let mut sinks = Sinks { writer, live: &mut *self.live, metrics: self.metrics.as_mut() };
        let outcome = match squeeze {
            Some(squeeze) => {
                let series = kelvin_run::series(run.workload.kinds(), false);
                run.execute(&mut squeeze.around(&mut sinks, &series, &run.clock))
            }
            None => run.execute(&mut sinks),
        };
        let mut points = (0..).zip(outcome.iter().flat_map(|outcome| &outcome.points));
        let summed = points.try_for_each(|(point, result)| sinks.writer.set_totals(point, &result.totals));
        drop(sinks);
        self.live.end();
        let done = self.ended(id, outcome.map(drop))?;
        summed.map(|()| done).context(Kept)
    }

    /// Judges a run that has ended by what was stored of it, and keeps that for the lists; also of one whose error is told
    /// and has nothing to show.
    fn ended(&mut self, id: RunId, ended: Result<(), RunError>) -> Result<CompletedRun> {
        let judged = self.judged(id, ended.as_ref().err());
        ended.context(EndedEarly(id))?;
        judged.context(Kept)
    }

    fn judged(&mut self, id: RunId, error: Option<&RunError>) -> Result<CompletedRun> {
        let stored = self.store.load(id)?;
        let evidence = Evidence::from_run(&stored)?;
        let mut judged = judge(&stored, &evidence)?;
        if let (Some(error), RunState::Partial) = (error, judged.run.state) {
            // The store could not take the run's end.
            judged.run = Judgement {
                state: RunState::Failed,
                reasons: vec![format!("it was ended by an error: {error}")],
            };
        }
        let kept = self.store.keep_judgement(id, &judged.run);
        let point = stored.best_point();
        let figures =
            point.map(|point| kelvin_diagnose::key_figures(&stored, &evidence, point, &[])).transpose()?;
        self.live.judged(&Summary {
            run: id.0,
            valid: judged.run.counts(),
            judgement: &judged.run,
            failed: stored.failed(),
            point,
            figures: figures.unwrap_or_default(),
        });
        kept?;
        Ok(CompletedRun { stored, evidence, judged })
    }

    /// Runs I/O jobs. What they tell goes to `view`, too.
    pub(crate) fn run_io(
        &mut self,
        spec: &Spec,
        run: IoRun,
        member: Option<(GroupId, &GroupSlot)>,
        clock: &Clock,
        view: &mut dyn IoRunWatcher,
    ) -> Result<(CompletedRun, IoRunOutcome)> {
        let environment = Environment::of_files(run.target(), run.filesystem_path().as_deref());
        let info = NewRun {
            workload: spec.workload.as_str().into(),
            target: run.target(),
            label: spec.label.clone(),
            spec_toml: spec.to_toml(),
            command: command_line(),
            seed: spec.load.seed,
            random_algorithm: kelvin_measure::RANDOM_ALGORITHM.into(),
            kelvin_version: env!("CARGO_PKG_VERSION").into(),
            kinds: run.series(),
            headline: "IOPS".into(),
            headline_per: RatePeriod::Second,
            counter_names: run.counters(),
            notes: run.notes(),
            environment: serde_json::to_value(&environment)?,
            started: jiff::Timestamp::now(),
        };
        let writer = self.begin(&info, &environment, member, spec)?;
        let id = writer.id();
        let mut sinks = Sinks { writer, live: &mut *self.live, metrics: self.metrics.as_mut() };
        let done = run.execute(spec, clock, self.stop, &mut sinks, view);
        let mut points = done.iter().flat_map(|done| &done.totals);
        let summed = points.try_for_each(|(point, totals)| sinks.writer.set_totals(*point, totals));
        drop(sinks);
        self.live.end();
        let (done, ended) = match done {
            Ok(done) => (Some(done), Ok(())),
            Err(error) => (None, Err(error)),
        };
        let kept = self.ended(id, ended)?;
        summed.context(Kept)?;
        Ok((kept, done.context("the jobs ended without a result")?))
    }

    /// Puts a run that is about to begin into the store, its group and the history.
    fn begin(
        &mut self,
        info: &NewRun,
        environment: &Environment,
        member: Option<(GroupId, &GroupSlot)>,
        spec: &Spec,
    ) -> Result<RunWriter> {
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
        if let Some(metrics) = &mut self.metrics {
            self.live.message(&format!("metrics: http://{}/metrics", metrics.endpoint.address()));
            metrics.begin(id, info);
        }
        Ok(writer)
    }

    /// One run of a group, and what is to be known of it.
    fn member(&mut self, planned: &Planned<'_>) -> Result<Measured> {
        let began = Instant::now();
        let mut spec = planned.spec.clone();
        let done = self.run(&mut spec, Vec::new(), None, Some((planned.group, planned.slot)))?;
        let (run, status) = (done.stored.id, done.stored.status);
        if status == Status::Interrupted {
            return Err(anyhow!(Stopped(format!(
                "run {run} was interrupted; it is kept and does not count"
            ))));
        }
        let figures = kelvin_diagnose::key_figures(&done.stored, &done.evidence, 0, planned.metrics)?;
        Ok(Measured { run, figures, judgement: done.judged.run, seconds: began.elapsed().as_secs_f64() })
    }
}

impl Bench for StoreBench<'_> {
    fn measure(&mut self, planned: &Planned<'_>) -> Result<Measured, BenchError> {
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

/// The jobs of a specification with their targets found; nothing is written yet. States and dumps of `verify` go to `aux`.
pub(crate) fn io_run(spec: &Spec, destroys: &[PathBuf], aux: Option<PathBuf>) -> Result<IoRun> {
    let jobs = spec.io.jobs(spec.load.seed)?;
    let options = RunOptions {
        read_only: spec.io.read_only,
        destroy: destroys.to_vec(),
        prepare: spec.io.prepare,
        aux_directory: aux,
        ..RunOptions::default()
    };
    Ok(IoRun::prepare(jobs, options)?)
}

/// Nobody looks at what the jobs tell beside the run's events.
pub(crate) struct Unseen;

impl IoWatcher for Unseen {
    fn event(&mut self, _event: &IoEvent<'_>) {}
}

impl IoRunWatcher for Unseen {
    // The facts are kept with the run, and its findings are told with it.
    fn looked(&mut self, _facts: &StorageFacts) {}
}

/// Makes the data if it is not there and looks at it; what the result's reader has to know is added to `notes`.
fn prepare(
    spec: &mut Spec,
    opened: &Opened,
    live: &mut dyn Live,
    stop: &Stop,
    notes: &mut Vec<String>,
) -> Result<Arc<dyn Workload>> {
    let engine = &*opened.engine;
    let mut chosen = SelectedWorkload::for_engine(engine, spec)?;
    if !spec.reset.is_nothing() {
        notes.extend(commands::snapshot::reset(spec, opened, &chosen, live, stop)?);
    } else if !chosen.get().is_built(engine).map_err(while_doing("looking for the workload's data"))? {
        if spec.build == Build::Never {
            commands::must_be_built(chosen.get(), engine)?;
        }
        commands::build::build_data(engine, &chosen, live, stop)?;
        commands::check::check_data(engine, chosen.get(), live, stop)?;
    }
    if let SelectedWorkload::Pgbench(pgbench) = &chosen {
        pgbench.vacuum(engine).context("cannot vacuum before the run; --no-vacuum leaves it out")?;
        if spec.check && !pgbench.is_checked() {
            notes
                .push("--check: no condition tells whether these scripts did right; none was checked".into());
        }
    }
    notes.extend(chosen.inspect(engine)?);
    if let SelectedWorkload::TprocC(tproc_c) = &chosen {
        spec.tproc_c.warehouses = tproc_c.options().warehouses;
    }
    notes.extend(chosen.working_set(engine)?);
    notes.extend(cautions(spec, engine));
    Ok(chosen.shared())
}

/// Names the faults that are known of the server's version, before anything is done there. A TPROC-C run on such a
/// server is checked: a broken condition must not be overlooked.
fn warn_of_faults(spec: &mut Spec, environment: &Environment, live: &mut dyn Live, notes: &mut Vec<String>) {
    let faults = environment.database.iter().flat_map(|database| &database.faults);
    let mut told: Vec<String> = faults
        .map(|fault| format!("{}: {}. {} ({})", fault.versions, fault.what, fault.effect, fault.source))
        .collect();
    if !told.is_empty() && spec.workload == WorkloadName::TprocC && !spec.check {
        spec.check = true;
        told.push(
            "the consistency conditions are checked after the run, because of the server's known fault"
                .into(),
        );
    }
    for text in told {
        live.message(&format!("warning: {text}"));
        notes.push(text);
    }
}

/// What a reader of the figures has to know about how they came to be.
fn cautions(spec: &Spec, engine: &dyn Engine) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(engine.home().and_then(Home::caution).map(str::to_owned));
    let long_enough = |span: Span| span >= Span::seconds(60);
    if spec.workload == WorkloadName::TprocC
        && spec.tproc_c.keying_and_thinking
        && !(long_enough(spec.load.ramp_up) && long_enough(spec.load.duration))
    {
        cautions.push(
            "with keying and thinking a New-Order takes 30 s on average before anything is sent: a ramp-up or a \
             window under a minute sees the short transactions only"
                .into(),
        );
    }
    cautions
}

fn new_run(
    spec: &Spec,
    engine: &dyn Engine,
    workload: &dyn Workload,
    notes: Vec<String>,
    environment: &Environment,
) -> Result<NewRun> {
    Ok(NewRun {
        workload: workload.name().into(),
        target: engine.describe(),
        label: spec.label.clone(),
        spec_toml: spec.to_toml(),
        command: command_line(),
        seed: spec.load.seed,
        random_algorithm: kelvin_measure::RANDOM_ALGORITHM.into(),
        kelvin_version: env!("CARGO_PKG_VERSION").into(),
        kinds: kelvin_run::series(workload.kinds(), spec.load.is_open_loop()),
        headline: workload.headline().into(),
        headline_per: workload.headline_per(),
        counter_names: workload.counters().iter().map(|&name| name.into()).collect(),
        notes,
        environment: serde_json::to_value(environment)?,
        started: jiff::Timestamp::now(),
    })
}

/// The command line that repeats the run, quoted for a shell where it must be.
fn command_line() -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    let words = std::env::args().skip(1).map(quoted);
    std::iter::once("kelvin".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Every consumer of a run's events. The store comes first: what the live view shows is kept.
struct Sinks<'a> {
    writer: RunWriter,
    live: &'a mut dyn Live,
    metrics: Option<&'a mut Metrics>,
}

/// The run as Prometheus sees it, for as long as this lives.
pub(crate) struct Metrics {
    endpoint: MetricsEndpoint,
    sink: MetricsSink,
}

impl Metrics {
    /// Listens at this address.
    pub(crate) fn start(address: SocketAddr) -> Result<Self> {
        let (endpoint, sink) = MetricsEndpoint::start(address)?;
        Ok(Self { endpoint, sink })
    }

    fn begin(&mut self, id: RunId, info: &NewRun) {
        self.sink.begin(RunInfo {
            run: id.to_string(),
            workload: info.workload.clone(),
            headline: info.headline.clone(),
            per: info.headline_per,
            series: info.kinds.clone(),
        });
    }
}

impl Sink for Sinks<'_> {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.writer.consume(event)?;
        self.live.event(event);
        if let Some(metrics) = &mut self.metrics {
            metrics.sink.event(event);
        }
        Ok(())
    }
}
