//! One run of I/O jobs: prints fio's text first, then the findings, and stores the run.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use kelvin_diagnose::{Finding, Severity, io_findings};
use kelvin_lab::live::Live;
use kelvin_lab::store_bench::io_run;
use kelvin_measure::event::Status;
use kelvin_measure::{Clock, Stop};
use kelvin_run::Spec;
use kelvin_run::io::{IoRun, IoRunOutcome, IoRunWatcher, jobfile_text};
use kelvin_run::spec::{IoOptions, Work};
use kelvin_storage::control;
use kelvin_storage::error::Location;
use kelvin_storage::event::{IoEvent, IoWatcher};
use kelvin_storage::job::{Job, Jobs};
use kelvin_storage::jobfile::{self, EtaFlag, InfoRequest, OutputFormat, ParsedCommandLine, RunFlags};
use kelvin_storage::log::BandwidthLog;
use kelvin_storage::output::status::{Dumps, StatusLine, StatusOptions};
use kelvin_storage::output::{self, Format, OutputOptions, Remark, Remarks};
use kelvin_storage::probe::StorageFacts;
use kelvin_store::{RunId, Store};

use super::code;
use crate::args::Global;
use crate::args::io::{IoArgs, IoFlags, WORKLOAD, texts};
use crate::commands::fleet_agents;
use crate::commands::repeat::{self, RepeatOptions};
use crate::commands::run::{FleetRunView, run_on_fleet};
use crate::exit::Stopped;
use crate::measure::{WithMetrics, bench};
use crate::{out, paths, signal};
use kelvin_live::Tui;

/// Runs the jobs of the command line.
pub(super) fn run(args: &IoArgs, global: &Global) -> Result<ExitCode> {
    let words = texts(&args.words)?;
    if words.is_empty() {
        bail!("no job: give a job file, or --name=… --rw=… --filename=…; kelvin io --help has examples");
    }
    let parsed = jobfile::parse_arguments(&words)?;
    if let Some(text) = information(&parsed)? {
        out::write(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let repeated = args.flags.load.repeat.is_given();
    if args.flags.load.output.names_format() && !repeated {
        bail!(
            "kelvin io prints fio's output: --output-format=normal|terse|json|json+; kelvin run io has --format"
        );
    }
    let spec = spec(&parsed, &args.flags)?;
    if args.flags.load.print_spec {
        out::write(&spec.to_toml())?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.flags.load.fleet.is_given() {
        return on_fleet(args, spec, &parsed, global);
    }
    kelvin_run::observation::probe(&spec.observe).map_err(anyhow::Error::msg)?;
    if let Some(plan) = args.flags.repeat(&spec)? {
        let often = RepeatOptions {
            format: args.flags.load.output.format(),
            metrics: args.flags.load.metrics,
            destroys: &args.flags.i_know_it_destroys,
            history: args.flags.history()?,
        };
        return Ok(code(repeat::repeat(often, &spec, &plan, global)?));
    }
    once(args, &spec, &parsed, global)
}

/// Runs the jobs on the hosts of a fleet. The result is Kelvin's report, because fio's has one host.
fn on_fleet(args: &IoArgs, mut spec: Spec, parsed: &ParsedCommandLine, global: &Global) -> Result<ExitCode> {
    let load = &args.flags.load;
    if load.repeat.is_given() {
        bail!("--repeat and --until run on this host; omit them, or --hosts");
    }
    let words = &parsed.run;
    if args.no_store || words.output.is_some() || !words.formats.is_empty() || words.bandwidth_log {
        bail!(
            "a run on a fleet prints Kelvin's report and is stored: omit --no-store, --output, --output-format \
             and --bandwidth-log; kelvin report RUN --json has the result as JSON"
        );
    }
    let Some(fleet) = fleet_agents::gather(&load.fleet, &mut spec)? else {
        bail!("no fleet is given: use --fleet NAME after kelvin fleet up, or --nats URL");
    };
    let shown = FleetRunView {
        output: load.output.clone(),
        metrics: load.metrics,
        tui: load.tui,
        history: args.flags.history()?,
    };
    Ok(code(run_on_fleet(spec, &fleet, shown, global)?))
}

/// Output without a run: help, the version, the parsed jobs.
fn information(parsed: &ParsedCommandLine) -> Result<Option<String>> {
    let run = &parsed.run;
    let text = match &run.asked {
        Some(InfoRequest::Help) => jobfile::flags_help(),
        Some(InfoRequest::Version) => format!("{}\n", output::VERSION),
        Some(InfoRequest::CommandHelp(option)) => jobfile::command_help(option.as_deref()),
        Some(InfoRequest::EngineHelp(engine)) => jobfile::engine_help(engine.as_deref()),
        Some(InfoRequest::InflateLog(path)) => inflated(path)?,
        None if run.show_command => jobfile::render_command_line(&parsed.jobs) + "\n",
        None if run.parse_only => String::new(),
        None => return Ok(None),
    };
    Ok(Some(text))
}

/// The text of a compressed log.
fn inflated(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (text, whole) = kelvin_storage::log::inflate(&bytes);
    if !whole && text.is_empty() {
        bail!("{} is not a compressed log", path.display());
    }
    if !whole {
        out::note(&format!("kelvin: {} is truncated or damaged: this is the readable part", path.display()));
    }
    Ok(text)
}

/// The specification that repeats the run, with Kelvin's own flags.
pub(super) fn spec(parsed: &ParsedCommandLine, flags: &IoFlags) -> Result<Spec> {
    // A single file that is complete is kept as written.
    let mut texts = Vec::new();
    if let [file] = parsed.run.files.as_slice()
        && file.as_os_str() != "-"
    {
        texts.push((jobfile_text::resolved(file).map_err(anyhow::Error::msg)?, parsed.run.sections.clone()));
    }
    texts.push((jobfile_text::jobs_to_text(&parsed.jobs), Vec::new()));
    let wanted = without_locations(&parsed.jobs);
    let found = texts.into_iter().find(|(text, sections)| {
        jobfile::parse_text(text, None, sections).is_ok_and(|jobs| without_locations(&jobs) == wanted)
    });
    let Some((job, sections)) = found else {
        bail!(
            "these jobs cannot be stored as one job file: they have several separate [global] sections; put \
             them into one file"
        );
    };
    let io = IoOptions { job, sections, read_only: parsed.run.read_only, ..IoOptions::default() };
    let mut spec = Spec { work: Work::Io(io), ..Spec::new(WORKLOAD) };
    flags.apply(&mut spec)?;
    spec.validate()?;
    Ok(spec)
}

/// Jobs without the properties that only describe how they were written.
fn without_locations(jobs: &Jobs) -> Vec<Job> {
    let plain = |job: &Job| Job { place: Location::default(), given: Vec::new(), ..job.clone() };
    jobs.jobs.iter().map(plain).collect()
}

/// Runs the jobs once.
fn once(args: &IoArgs, spec: &Spec, parsed: &ParsedCommandLine, global: &Global) -> Result<ExitCode> {
    let (flags, words) = (&args.flags, &parsed.run);
    // These jobs have the locations at which they were written, which the specification's text does not have.
    let notes = parsed.jobs.notes.as_slice();
    let run = io_run(spec, &flags.i_know_it_destroys, words.aux_directory.clone())?;
    let formats = formats(words);
    let voice = Voice::new(args, words, &formats, global.quiet);
    let stop = signal::listen()?;
    let mut file = match &words.output {
        Some(path) => Some(created(path)?),
        None => None,
    };
    let normal = formats.contains(&Format::Normal) && !flags.load.output.events();
    if normal {
        write(file.as_mut(), &(output::banner(run.jobs()) + &output::starting(run.jobs())))?;
    }
    if words.debug_random && !flags.load.output.events() {
        write(file.as_mut(), &seeds(&run))?;
    }
    let clock = Clock::real();
    let live: Box<dyn Live> = if flags.load.tui {
        Box::new(Tui::new(spec, global.quiet, &stop, signal::request_stop)?)
    } else {
        kelvin_live::for_run(!flags.load.output.events(), flags.load.output.events())
    };
    let line = shows(words.eta) && !global.quiet && !flags.load.tui && !flags.load.output.events();
    let line = view(run.jobs(), words, &formats, line, &clock, file.as_ref())?;
    // The screen of --tui has no place for notes; they are printed with those after the run.
    let bandwidth = words.bandwidth_log.then(BandwidthLog::default);
    let mut view = StatusView { line, notes: voice.heard && !global.quiet && !flags.load.tui, bandwidth };
    let mut live = WithMetrics::around(live, flags.load.metrics)?;

    let (kept, done) = if args.no_store {
        (None, run_unstored(spec, run, &mut *live, &stop, &clock, &mut view)?)
    } else {
        let store = Store::open(paths::store(global.store.as_deref())?)?;
        let mut bench = bench(&store, &mut *live, &stop).in_history(flags.history()?);
        let (kept, done) = bench.run_io(spec, run, None, &clock, &mut view)?;
        (Some(kept), done)
    };
    view.line.end();
    live.end();
    if let Some(log) = &view.bandwidth {
        log.write(Path::new(""))?;
    }

    let Some(outcome) = &done.result else {
        if done.status == Status::Interrupted {
            return Err(Stopped("interrupted before the jobs started".into()).into());
        }
        bail!("{}", done.error.unwrap_or_else(|| "the jobs ended without a result".into()));
    };
    let findings = io_findings(&done.facts);
    if !flags.load.output.events() || file.is_some() {
        let id = kept.as_ref().map(|kept| kept.stored.id);
        let state = kept.as_ref().map(|kept| &kept.judged.run);
        let state = state.map(|judged| (judged.state.word(), judged.reasons.clone()));
        let remarks = Remarks {
            run: id.map(|id| id.0),
            state,
            findings: findings.iter().map(remark).collect(),
            notes: notes.to_vec(),
        };
        let options = OutputOptions { terse_version: words.terse_version, remarks, ..OutputOptions::new() };
        let mut text = output::render_formats(outcome, &formats, &options)?;
        if formats.contains(&Format::Normal) {
            text.push_str(&marked(&voice.remarks(&findings, notes, id)));
        }
        write(file.as_mut(), &text)?;
    }
    if voice.after {
        let id = kept.as_ref().map(|kept| kept.stored.id);
        eprint!("{}", voice.remarks(&findings, notes, id));
    }
    if let Some(error) = &done.error {
        out::note(&format!("kelvin: {error}"));
    }
    if !done.holds {
        out::note("kelvin: cross-checked counts disagree: kelvin show lists them; please report this");
    }
    Ok(ExitCode::from(control::exit_code(outcome)))
}

/// Destination of Kelvin's messages outside the result. As in fio, a successful run prints nothing on standard error,
/// since some programs take any output there for a failure: messages are included in the result's formats, as far as
/// these have a place for them.
struct Voice {
    /// Standard error is a terminal, or the output was requested.
    heard: bool,
    /// Messages after the run are printed there: the result on the terminal has no place for them.
    after: bool,
    quiet: bool,
}

impl Voice {
    fn new(args: &IoArgs, words: &RunFlags, formats: &[Format], quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let shown =
            formats.contains(&Format::Normal) && words.output.is_none() && !args.flags.load.output.events();
        Self { heard: args.notes || terminal, after: args.notes || terminal && !shown, quiet }
    }

    /// The findings, notes on the jobs, and where the run is stored.
    fn remarks(&self, findings: &[Finding], notes: &[String], id: Option<RunId>) -> String {
        let mut text = String::new();
        let findings = kelvin_report::text::findings(findings);
        if !findings.is_empty() {
            text.push_str("\nfindings\n");
            text.push_str(&findings);
        }
        for note in notes.iter().filter(|_| !self.quiet) {
            text.push_str(&format!("\nnote: {note}\n"));
        }
        if let Some(id) = id.filter(|_| !self.quiet) {
            text.push_str(&format!("\nstored as run {id}: kelvin show {id}\n"));
        }
        text
    }
}

/// Prefixes each line with Kelvin's mark, which lets parsers of fio's text recognise lines that are not fio's.
fn marked(text: &str) -> String {
    text.lines()
        .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("kelvin: {line}\n") })
        .collect()
}

fn remark(finding: &Finding) -> Remark {
    let small = if finding.is_shown() { "" } else { ", below the run's precision" };
    let effect = format!("effect: {}{small}", finding.effect.describe());
    let evidence = finding.evidence.iter().map(|fact| format!("{}: {}", fact.what, fact.found));
    Remark {
        id: finding.id.to_owned(),
        severity: finding.severity.word().to_owned(),
        title: finding.title.clone(),
        evidence: std::iter::once(effect).chain(evidence).collect(),
        next: finding.next.clone(),
    }
}

/// `--debug=random`: the seeds of the workers, in fio's format.
fn seeds(run: &IoRun) -> String {
    let each = run.seeds().into_iter().map(|(job, clone, seed)| {
        format!(
            "kelvin: random: job {job}, worker {clone}: FIO_RAND_NR_OFFS=1\n\
             kelvin: random: job {job}, worker {clone}: rand_seeds[0]={seed}\n"
        )
    });
    each.collect()
}

/// The formats of the result: fio's normal text by default.
fn formats(words: &RunFlags) -> Vec<Format> {
    let form = |format: &OutputFormat| match format {
        OutputFormat::Normal => Format::Normal,
        OutputFormat::Terse => Format::Terse,
        OutputFormat::Json => Format::Json,
        OutputFormat::JsonPlus => Format::JsonPlus,
    };
    if words.formats.is_empty() { vec![Format::Normal] } else { words.formats.iter().map(form).collect() }
}

/// Whether the status line is shown.
fn shows(eta: EtaFlag) -> bool {
    match eta {
        EtaFlag::Auto => std::io::stderr().is_terminal(),
        EtaFlag::Always => true,
        EtaFlag::Never => false,
    }
}

/// The status line, and notes before the first I/O.
struct StatusView {
    line: StatusLine,
    notes: bool,
    bandwidth: Option<BandwidthLog>,
}

impl IoWatcher for StatusView {
    fn event(&mut self, event: &IoEvent<'_>) {
        if let (IoEvent::Tick(tick), Some(log)) = (event, &mut self.bandwidth) {
            log.tick(tick);
        }
        self.line.event(event);
    }

    fn idle(&mut self) {
        self.line.idle();
    }
}

impl IoRunWatcher for StatusView {
    fn inspected(&mut self, facts: &StorageFacts) {
        let findings: Vec<Finding> =
            io_findings(facts).into_iter().filter(|finding| finding.severity != Severity::Note).collect();
        if self.notes && !findings.is_empty() {
            self.line.clear();
            eprint!("before the run:\n{}", kelvin_report::text::findings(&findings));
        }
    }
}

fn created(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes to the file of `--output`, otherwise to standard output.
fn write(file: Option<&mut File>, text: &str) -> Result<()> {
    match file {
        Some(file) => file.write_all(text.as_bytes()).context("cannot write the output file"),
        None => out::write(text),
    }
}

/// The status line on standard error, with intermediate results at intervals where requested.
fn view(
    jobs: &Jobs,
    words: &RunFlags,
    formats: &[Format],
    line: bool,
    clock: &Clock,
    file: Option<&File>,
) -> Result<StatusLine> {
    let options = StatusOptions { line, interval: words.eta_interval, newline: words.eta_newline };
    let view = StatusLine::new(jobs, options, clock.clone(), Box::new(std::io::stderr()));
    let Some(interval) = words.status_interval else { return Ok(view) };
    let out: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(file.try_clone().context("cannot write the output file twice")?),
        None => Box::new(std::io::stdout()),
    };
    let now = clock.now();
    let started = jiff::Timestamp::now().as_millisecond();
    Ok(view.with_dumps(Dumps::new(jobs, interval, now, started, formats.to_vec(), out)))
}

/// Runs the jobs without storing the run.
fn run_unstored(
    spec: &Spec,
    run: IoRun,
    live: &mut dyn Live,
    stop: &Stop,
    clock: &Clock,
    view: &mut StatusView,
) -> Result<IoRunOutcome> {
    Ok(run.execute(spec, clock, stop, live, view)?)
}
