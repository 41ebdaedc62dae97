//! `kelvin run`: from the specification to the report.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_fleet::controller::NatsFleet;
use kelvin_lab::live::Live;
use kelvin_lab::squeeze;
use kelvin_lab::store_bench::{CompletedRun, HistoryKey, StoreBenchError};
use kelvin_measure::transaction_log::COLUMNS;
use kelvin_report::RunReport;
use kelvin_run::Spec;
use kelvin_run::spec::LogFile;
use kelvin_store::{RunId, Store};
use kelvin_workload::pgbench::Pgbench;

use crate::args::{Format, Global, OutputArgs, RunArgs, RunFleetArgs, SqueezeArgs};
use crate::document::{self, RunDocument};
use crate::exit::Code;
use crate::measure::{WithMetrics, bench};
use crate::{out, paths, signal};
use kelvin_live::Tui;

/// Runs the load and prints the report.
pub(crate) fn run(args: &RunArgs, global: &Global) -> Result<Code> {
    run_squeezed(args, global, None)
}

/// As [`run`], with resources reduced during the run if `squeeze` is given.
pub(super) fn run_squeezed(args: &RunArgs, global: &Global, squeeze: Option<&SqueezeArgs>) -> Result<Code> {
    if let Some(name) = args.show_script() {
        let (name, text) = Pgbench::builtin_text(name)?;
        out::write(&format!("-- {name}\n{text}"))?;
        return Ok(Code::Success);
    }
    let mut spec = args.spec()?;
    if args.print_spec() {
        out::write(&spec.to_toml())?;
        return Ok(Code::Success);
    }
    if args.initializes() {
        return super::build::build_tables(spec, true, global);
    }
    args.refuse_shell_of_a_file(&spec)?;
    // Results of a database with reduced resources are not entered in its history.
    let history = if squeeze.is_some() { args.refuse_history()? } else { args.history()? };
    let squeeze = match squeeze {
        Some(args) => {
            squeeze::suits(&spec).map_err(anyhow::Error::msg)?;
            Some(args.options()?)
        }
        None => None,
    };
    kelvin_run::observation::probe(&spec.observe).map_err(anyhow::Error::msg)?;
    if let Some(plan) = args.repeat(&spec)? {
        if args.fleet().is_some_and(RunFleetArgs::is_given) {
            bail!("--repeat and --until run on this host; omit them, or --hosts");
        }

        if squeeze.is_some() {
            bail!("a squeeze runs once: its slices are its repetitions; omit --repeat and --until");
        }
        let often = super::repeat::RepeatOptions {
            format: args.output().format(),
            metrics: args.metrics(),
            destroys: args.destroys(),
            history,
        };
        return super::repeat::repeat(often, &spec, &plan, global);
    }
    let fleet = args.fleet().map_or(Ok(None), |fleet| super::fleet_agents::gather(fleet, &mut spec))?;
    if let Some(log) = &spec.load.transaction_log {
        begin_log(log)?;
    }
    let stop = signal::listen()?;
    let live: Box<dyn Live> = if args.tui() {
        Box::new(Tui::new(&spec, global.quiet, &stop, signal::request_stop)?)
    } else {
        kelvin_live::for_run(global.quiet, args.output().events())
    };
    let mut live = WithMetrics::around(live, args.metrics())?;
    let store_path = paths::store(global.store.as_deref())?;
    let store = Store::open(&store_path)?;
    let mut bench = bench(&store, &mut *live, &stop).in_history(history).destroying(args.destroys());
    if let Some(fleet) = &fleet {
        bench = bench.with_fleet(fleet);
    }
    // The note identifies the run in the fleet if this process dies.
    let notes = args.notes().into_iter().chain(fleet.as_ref().map(NatsFleet::note)).collect();
    let done = bench.run(&mut spec, notes, squeeze, None);
    drop(bench);
    if let Some(fleet) = &fleet
        && let Err(error) = fleet.finish(done.is_ok())
    {
        out::note(&format!("kelvin: the agents could not be notified of the end of the run: {error}"));
    }
    let done = done?;

    let code = Code::from_run_state(done.judged.run.state, done.stored.failed());
    show(&store, &store_path, done, &args.output()).map_err(StoreBenchError::kept)?;
    Ok(code)
}

/// How a run on a fleet is displayed and stored.
pub(super) struct FleetRunView {
    pub(super) output: OutputArgs,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) tui: bool,
    pub(super) history: Option<HistoryKey>,
}

/// Runs I/O jobs on a fleet and prints the report.
pub(super) fn run_on_fleet(
    mut spec: Spec,
    fleet: &NatsFleet,
    view: FleetRunView,
    global: &Global,
) -> Result<Code> {
    let stop = signal::listen()?;
    let live: Box<dyn Live> = if view.tui {
        Box::new(Tui::new(&spec, global.quiet, &stop, signal::request_stop)?)
    } else {
        kelvin_live::for_run(global.quiet, view.output.events())
    };
    let mut live = WithMetrics::around(live, view.metrics)?;
    let store_path = paths::store(global.store.as_deref())?;
    let store = Store::open(&store_path)?;
    let mut bench = bench(&store, &mut *live, &stop).in_history(view.history).with_fleet(fleet);
    let done = bench.run(&mut spec, vec![fleet.note()], None, None);
    drop(bench);
    if let Err(error) = fleet.finish(done.is_ok()) {
        out::note(&format!("kelvin: the agents could not be notified of the end of the run: {error}"));
    }
    let done = done?;
    let code = Code::from_run_state(done.judged.run.state, done.stored.failed());
    show(&store, &store_path, done, &view.output).map_err(StoreBenchError::kept)?;
    Ok(code)
}

/// Creates the file for the transaction log before the measurement; never overwrites a file.
fn begin_log(log: &LogFile) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let made = options.write(true).create_new(true).mode(0o600).open(&log.path);
    let heading = if log.as_pgbench { "" } else { COLUMNS };
    made.and_then(|mut file| file.write_all(heading.as_bytes()))
        .with_context(|| format!("cannot create the transaction log {}", log.path.display()))
}

/// Prints the stored run and writes its HTML report.
pub(super) fn show(store: &Store, path: &Path, done: CompletedRun, output: &OutputArgs) -> Result<()> {
    let id = done.stored.id;
    let report = RunReport::from_judged(store, &done.stored, done.evidence, done.judged)?;
    if !output.events() {
        let options = document::text_options(false);
        let shown = RunDocument { report: &report, options, brief: !output.verbose };
        document::print(&shown, output.format())?;
    }
    match write_report(path, id, &report) {
        Ok(page) if output.format() == Format::Text => {
            let kelvin = paths::kelvin_command(path);
            let more = if output.verbose { "" } else { "   (or run with --verbose)" };
            out::line(&format!("\nMore:   {kelvin} show {id}{more}\nReport: {}", page.display()))?;
        }
        Ok(_) => {}
        // Only a note: the run is stored, and the report can be written later.
        Err(error) => out::note(&format!("kelvin: the HTML report could not be written: {error:#}")),
    }
    Ok(())
}

/// Writes the HTML report beside the store and returns its path.
fn write_report(store: &Path, id: RunId, report: &RunReport) -> Result<PathBuf> {
    let path = paths::report(store, id)?;
    out::private(&path, &kelvin_report::html::render(report)?)?;
    Ok(path)
}
