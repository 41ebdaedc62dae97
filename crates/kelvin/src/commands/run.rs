//! `kelvin run`: from the specification to the report.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use kelvin_database::{Engine, EngineKind};
use kelvin_lab::spec::{Build, Span, WorkloadName};
use kelvin_lab::{Environment, Outcome, Run, Sink, SinkError, Spec};
use kelvin_measure::event::Status;
use kelvin_measure::{Clock, Event};
use kelvin_report::Report;
use kelvin_serve::{MetricsEndpoint, MetricsSink, RunInfo};
use kelvin_store::{NewRun, RunId, RunWriter, Store};
use kelvin_workload::{Stop, Workload};

use super::workload::Chosen;
use crate::args::{Global, RunArgs, SqueezeArgs};
use crate::exit::{Code, Kept};
use crate::live::{self, Live, Tui};
use crate::open::{self, Opened, Purpose};
use crate::{out, place, signal};

/// Puts the load on and reports.
pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Code> {
    run_squeezed(args, global, None)
}

/// The same, with resources cut while it runs.
pub(super) fn run_squeezed(args: &RunArgs, global: &Global, squeeze: Option<&SqueezeArgs>) -> Result<Code> {
    let mut spec = args.spec()?;
    if args.print_spec() {
        out::write(&spec.to_toml())?;
        return Ok(Code::Success);
    }
    args.refuse_shell_of_a_file(&spec)?;
    let stop = signal::listen()?;
    let mut live: Box<dyn Live> = if args.tui() {
        Box::new(Tui::new(&spec, global.quiet, &stop)?)
    } else {
        live::for_run(global.quiet, args.json())
    };
    let mut metrics = args.metrics().map(Metrics::start).transpose()?;
    let store_path = place::store(global.store.as_deref())?;
    let store = Store::open(&store_path)?;
    let opened = open::open(&spec.target, Purpose::Run, &mut |text| live.say(text))?;
    let mut notes = args.notes();
    let workload = prepare(&mut spec, &opened, &mut *live, &stop, &mut notes)?;
    let squeeze = squeeze
        .map(|squeeze| super::squeeze::prepare(squeeze, &mut spec, &*opened.engine, &mut notes))
        .transpose()?;

    let mut session = opened.engine.connect()?;
    let environment = Environment::read(&*opened.engine, &mut *session)?;
    drop(session);
    let info = new_run(&spec, &*opened.engine, &*workload, notes, &environment)?;
    let writer = store.begin(&info)?;
    let id = writer.id();
    live.begin(id, &info, &spec);
    if let Some(metrics) = &mut metrics {
        live.say(&format!("metrics: http://{}/metrics", metrics.endpoint.address()));
        metrics.begin(id, &info);
    }

    let run = Run { engine: Arc::clone(&opened.engine), workload, spec: &spec, clock: Clock::real(), stop };
    let mut sinks = Sinks { writer, live: &mut *live, squeezed: None, metrics };
    let outcome = match squeeze {
        Some(squeeze) => {
            let series = kelvin_lab::series(run.workload.kinds(), false);
            run.execute(&mut squeeze.around(&mut sinks, &series, &run.clock))
        }
        None => run.execute(&mut sinks),
    };
    let squeezed = sinks.squeezed.take();
    drop(sinks);
    live.end();
    let outcome = outcome.with_context(|| format!("run {id} ended early"))?;

    show(&store, &store_path, id, args).context(Kept)?;
    if let Some(squeezed) = squeezed.filter(|_| !args.json()) {
        super::squeeze::show(&squeezed).context(Kept)?;
    }
    Ok(code(&outcome))
}

/// Prints the stored run and writes its page.
fn show(store: &Store, path: &Path, id: RunId, args: &RunArgs) -> Result<()> {
    let report = Report::load(store, id)?;
    if !args.json() {
        out::write(&kelvin_report::text::render(&report, super::show::options()))?;
    }
    match write_report(path, id, &report) {
        Ok(path) if !args.json() => {
            out::line(&format!("\nReport: {}\nAgain:  kelvin show {id}", path.display()))?;
        }
        Ok(_) => {}
        // The figures are in the store; a report can be written again.
        Err(error) => eprintln!("kelvin: the HTML report could not be written: {error:#}"),
    }
    Ok(())
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
    let mut chosen = Chosen::on(engine, spec)?;
    if !chosen.get().is_built(engine)? {
        if spec.build == Build::Never {
            super::must_be_built(chosen.get(), engine)?;
        }
        super::build::build_data(engine, &chosen, live, stop)?;
        super::check::check_data(engine, chosen.get(), live, stop)?;
    }
    if let Chosen::Pgbench(pgbench) = &chosen {
        pgbench.vacuum(engine).context("cannot vacuum before the run; --no-vacuum leaves it out")?;
        if spec.check && !pgbench.is_checked() {
            notes
                .push("--check: no condition tells whether these scripts did right; none was checked".into());
        }
    }
    notes.extend(chosen.inspect(engine)?);
    notes.extend(chosen.working_set(engine)?);
    notes.extend(cautions(spec, engine));
    Ok(chosen.shared())
}

/// What a reader of the figures has to know about how they came to be.
fn cautions(spec: &Spec, engine: &dyn Engine) -> Vec<String> {
    let mut cautions = Vec::new();
    if engine.kind() == EngineKind::Sqlite {
        cautions.push(
            "SQLite runs in WAL mode with synchronous=NORMAL: a commit survives a crash of the process, not a power \
             cut; PostgreSQL at its defaults waits for the disk"
                .into(),
        );
    }
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
        kinds: kelvin_lab::series(workload.kinds(), spec.load.is_open_loop()),
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

/// Writes the HTML report beside the store and returns where.
fn write_report(store: &Path, id: RunId, report: &Report) -> Result<PathBuf> {
    let path = place::report(store, id)?;
    std::fs::write(&path, kelvin_report::html::render(report)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn code(outcome: &Outcome) -> Code {
    match outcome.status {
        Status::Interrupted => Code::Interrupted,
        Status::Failed | Status::Partial => Code::Aborted,
        Status::Complete if !outcome.is_valid() => Code::NotValid,
        Status::Complete if outcome.failed() > 0 => Code::WithErrors,
        Status::Complete => Code::Success,
    }
}

/// Every consumer of a run's events. The store comes first: what the live view shows is kept.
struct Sinks<'a> {
    writer: RunWriter,
    live: &'a mut dyn Live,
    squeezed: Option<kelvin_measure::event::Squeeze>,
    metrics: Option<Metrics>,
}

/// The run as Prometheus sees it, for as long as this lives.
struct Metrics {
    endpoint: MetricsEndpoint,
    sink: MetricsSink,
}

impl Metrics {
    fn start(address: SocketAddr) -> Result<Self> {
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
        if let Event::Squeeze(squeezed) = event {
            self.squeezed = Some(squeezed.clone());
        }
        if let Some(metrics) = &mut self.metrics {
            metrics.sink.event(event);
        }
        Ok(())
    }
}
