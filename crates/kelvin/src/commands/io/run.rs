//! One run of I/O jobs: fio's text first, the findings after it, the run in the store.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kelvin_diagnose::{Finding, Severity, io_findings};
use kelvin_lab::io::{IoDone, IoRun, text};
use kelvin_lab::{Sink, SinkError, Spec};
use kelvin_measure::{Clock, Event, Stop};
use kelvin_storage::control;
use kelvin_storage::job::Jobs;
use kelvin_storage::jobfile::{self, Parsed, RunWords};
use kelvin_storage::output::status::{Dumps, StatusLine, StatusOptions};
use kelvin_storage::output::{self, Format, OutputOptions};
use kelvin_store::{RunId, Store};

use super::code;
use crate::args::Global;
use crate::args::io::{IoArgs, IoFlags, WORKLOAD, texts};
use crate::commands::repeat::{self, Often};
use crate::live::{self, Live, Tui};
use crate::measure::{Metrics, StoreBench, io_run};
use crate::{out, place, signal};

/// Runs the jobs that the words name.
pub(super) fn run(args: &IoArgs, global: &Global) -> Result<ExitCode> {
    let words = texts(&args.words)?;
    if words.is_empty() {
        bail!("no job: give a job file, or --name=… --rw=… --filename=…; kelvin io --help has examples");
    }
    let parsed = jobfile::parse_words(&words)?;
    if let Some(told) = only_told(&parsed)? {
        out::write(&told)?;
        return Ok(ExitCode::SUCCESS);
    }
    let spec = spec(&words, &parsed, &args.flags)?;
    if args.flags.load.print_spec {
        out::write(&spec.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    kelvin_lab::observation::probe(&spec.observe).map_err(anyhow::Error::msg)?;
    if let Some(plan) = args.flags.repeat(&spec)? {
        let often = Often {
            json: args.flags.load.json,
            metrics: args.flags.load.metrics,
            destroys: &args.flags.i_know_it_destroys,
            history: args.flags.history()?,
        };
        return code(repeat::repeat(often, &spec, &plan, global)?);
    }
    once(args, &spec, &parsed.run, global)
}

/// What is asked for without a run: help, the version, the jobs as they were understood.
fn only_told(parsed: &Parsed) -> Result<Option<String>> {
    let run = &parsed.run;
    if let Some(told) = run.told() {
        return Ok(Some(told));
    }
    if parsed.jobs.jobs.is_empty() {
        bail!("no job: give a job file, or --name=… --rw=… --filename=…");
    }
    if run.show_command {
        return Ok(Some(jobfile::shown(&parsed.jobs)));
    }
    Ok(run.parse_only.then(String::new))
}

/// The specification that repeats the run, with Kelvin's own flags.
pub(super) fn spec(words: &[String], parsed: &Parsed, flags: &IoFlags) -> Result<Spec> {
    let mut spec = Spec::new(WORKLOAD);
    spec.io.job = match files_alone(words, parsed) {
        Some(files) => of_files(&files)?,
        None => text::of(&parsed.jobs),
    };
    spec.io.sections.clone_from(&parsed.run.sections);
    spec.io.read_only = parsed.run.read_only;
    flags.apply(&mut spec);
    spec.validate()?;
    let same = |jobs: &Jobs| {
        jobs.jobs.len() == parsed.jobs.jobs.len()
            && jobs.jobs.iter().zip(&parsed.jobs.jobs).all(|(a, b)| a.name == b.name && a.given == b.given)
    };
    let plain = kelvin_lab::spec::IoOptions { per_target: false, ..spec.io.clone() };
    if !same(&plain.jobs(1)?) {
        bail!(
            "these jobs cannot be written as one job file, which the run is to be kept as: several [global] sections among \
             flags; write them into a file"
        );
    }
    Ok(spec)
}

/// The job files, when there is nothing but them and flags that belong to no job.
fn files_alone(words: &[String], parsed: &Parsed) -> Option<Vec<PathBuf>> {
    let files = &parsed.run.files;
    let any = words.iter().any(|word| word == "--name" || word.starts_with("--name="));
    (!files.is_empty() && !any && !parsed.run.job_options).then(|| files.clone())
}

/// The texts of job files one after another: as in fio, each begins when those before it have ended.
fn of_files(files: &[PathBuf]) -> Result<String> {
    let mut all = String::new();
    for file in files {
        let one = text::resolved(file).map_err(anyhow::Error::msg)?;
        all.push_str(&one);
    }
    Ok(all)
}

/// Makes the run once.
fn once(args: &IoArgs, spec: &Spec, words: &RunWords, global: &Global) -> Result<ExitCode> {
    let flags = &args.flags;
    let run = io_run(spec, &flags.i_know_it_destroys)?;
    let formats = words.formats.clone();
    let machines = flags.load.json || formats.iter().any(|format| format.is_for_machines());
    before(&run, global.quiet);

    let stop = signal::listen()?;
    let mut file = match &words.output {
        Some(path) => Some(created(path)?),
        None => None,
    };
    let normal = formats.contains(&Format::Normal) && !flags.load.json;
    if normal {
        write(file.as_mut(), &(output::banner(run.jobs()) + &output::starting(run.jobs())))?;
    }
    let clock = Clock::real();
    let mut live: Box<dyn Live> =
        if flags.load.tui { Box::new(Tui::new(spec, global.quiet, &stop)?) } else { live::for_run(!flags.load.json, flags.load.json) };
    let line = words.eta.shows(std::io::stderr().is_terminal()) && !global.quiet && !flags.load.tui && !flags.load.json;
    let mut view = view(run.jobs(), words, line, &clock, file.as_ref())?;
    let metrics = flags.load.metrics.map(Metrics::start).transpose()?;

    let (id, done) = if args.no_store {
        (None, unkept(spec, run, &mut *live, &stop, &mut view)?)
    } else {
        let store = Store::open(place::store(global.store.as_deref())?)?;
        let mut bench = StoreBench::new(&store, &mut *live, &stop, metrics).in_history(flags.history()?);
        let (id, done) = bench.run_io(spec, run, Vec::new(), None, &mut view)?;
        (Some(id), done)
    };
    view.end();
    live.end();

    let Some(outcome) = &done.result else {
        bail!("{}", done.error.unwrap_or_else(|| "the jobs ended without a result".into()));
    };
    if !flags.load.json || file.is_some() {
        let options = OutputOptions { terse_version: words.terse_version, ..OutputOptions::new() };
        write(file.as_mut(), &output::written(outcome, &formats, &options)?)?;
    }
    after(&done, id, machines || file.is_some(), global.quiet)?;
    Ok(ExitCode::from(control::exit_code(outcome)))
}

/// What should be known before anything is done.
fn before(run: &IoRun, quiet: bool) {
    let findings: Vec<Finding> =
        io_findings(run.facts()).into_iter().filter(|finding| finding.severity != Severity::Note).collect();
    if !quiet && !findings.is_empty() {
        eprint!("before the run:\n{}", kelvin_report::text::findings(&findings));
    }
}

/// The findings, and where the run is kept. `apart` keeps them off standard output.
fn after(done: &IoDone, id: Option<RunId>, apart: bool, quiet: bool) -> Result<()> {
    let findings = io_findings(&done.facts);
    let mut told = String::new();
    if !findings.is_empty() {
        told.push_str("\nfindings\n");
        told.push_str(&kelvin_report::text::findings(&findings));
    }
    if let Some(error) = &done.error {
        eprintln!("kelvin: {error}");
    }
    if !done.holds {
        eprintln!("kelvin: counts that must agree do not: kelvin show says which; please report this");
    }
    if let Some(id) = id.filter(|_| !quiet) {
        told.push_str(&format!("\nkept as run {id}: kelvin show {id}\n"));
    }
    if apart {
        eprint!("{told}");
        return Ok(());
    }
    out::write(&told)
}

fn created(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// To the file of `--output`, else to standard output.
fn write(file: Option<&mut File>, text: &str) -> Result<()> {
    match file {
        Some(file) => file.write_all(text.as_bytes()).context("cannot write the output file"),
        None => out::write(text),
    }
}

/// The status line on standard error, with the result so far at intervals where that is asked for.
fn view(jobs: &Jobs, words: &RunWords, line: bool, clock: &Clock, file: Option<&File>) -> Result<StatusLine> {
    let options = StatusOptions { line, interval: words.eta_interval, newline: words.eta_newline };
    let view = StatusLine::new(jobs, options, clock.clone(), Box::new(std::io::stderr()));
    let Some(interval) = words.status_interval else { return Ok(view) };
    let out: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(file.try_clone().context("cannot write the output file twice")?),
        None => Box::new(std::io::stdout()),
    };
    let now = clock.now();
    let started = jiff::Timestamp::now().as_millisecond();
    Ok(view.with_dumps(Dumps::new(jobs, interval, now, started, words.formats.clone(), out)))
}

/// The same without the store.
fn unkept(
    spec: &Spec,
    run: IoRun,
    live: &mut dyn Live,
    stop: &Stop,
    view: &mut StatusLine,
) -> Result<IoDone> {
    struct Shown<'a>(&'a mut dyn Live);
    impl Sink for Shown<'_> {
        fn event(&mut self, event: &Event) -> Result<(), SinkError> {
            self.0.event(event);
            Ok(())
        }
    }
    Ok(run.execute(&spec.observe, &Clock::real(), stop, &mut Shown(live), view)?)
}
