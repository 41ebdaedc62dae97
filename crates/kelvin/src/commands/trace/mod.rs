//! `kelvin trace`: records and describes block requests.

mod cache;
mod record;
mod show;
mod table;
mod to_fio;
mod verify;

use std::io::{BufWriter, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_lab::run_trace::{TRACE, trace_path};
use kelvin_measure::Nanos;
use kelvin_store::{RunId, Store};
use kelvin_trace::export::write_csv;
use kelvin_trace::import::MOST;
use kelvin_trace::summary::TraceSummary;
use kelvin_trace::{Trace, import};
use serde::Deserialize as _;

use crate::args::{Global, TraceCommand, TraceCsvArgs, TraceFileArgs};
use crate::exit::Code;
use crate::paths;

/// Runs a subcommand.
pub(crate) fn trace(command: &TraceCommand, global: &Global) -> Result<Code> {
    match command {
        TraceCommand::Record(args) => record::record(args, global),
        TraceCommand::Show(args) => show::show(args, global),
        TraceCommand::Cache(args) => cache::cache(args, global),
        TraceCommand::ToFio(args) => to_fio::to_fio(args, global),
        TraceCommand::Csv(args) => csv(args, global),
    }
}

fn csv(args: &TraceCsvArgs, global: &Global) -> Result<Code> {
    let trace = read(&args.trace, global)?;
    let written = match &args.output {
        Some(path) => write_csv(&trace, BufWriter::new(to_fio::create(path)?)),
        None => write_csv(&trace, BufWriter::new(std::io::stdout().lock())),
    };
    match written {
        // A closed pipe is not an error.
        Err(error) if error.kind() == ErrorKind::BrokenPipe && args.output.is_none() => Ok(Code::Success),
        written => written.map(|()| Code::Success).context("cannot write the csv"),
    }
}

/// A run's recording, and its measured window by the recording's clock.
pub(crate) struct RunTrace {
    pub(crate) trace: Trace,
    /// `None` for runs of an older Kelvin.
    pub(crate) window: Option<Range<Nanos>>,
}

/// Reads the recording of a run.
pub(crate) fn run_trace(path: &Path, store: &Store, run: RunId) -> Result<RunTrace> {
    let traced = read_run(path, store, run, MOST)?;
    let is_whole = traced.trace.requests.len() < MOST
        && traced.trace.recording.as_ref().is_some_and(|recording| {
            let lost = recording.lost > 0 || recording.unreadable_pages > 0;
            !lost && !recording.full && !recording.files_partial && recording.complete
        });
    if !is_whole {
        bail!(
            "the recording of run {run} does not have all requests with their files: nothing follows from it"
        );
    }
    Ok(traced)
}

fn read_run(path: &Path, store: &Store, run: RunId, most: usize) -> Result<RunTrace> {
    let file = recording_of(path, run)?;
    Ok(RunTrace { trace: import::open(&file, most)?, window: window_of(store, run)? })
}

fn recording_of(path: &Path, run: RunId) -> Result<PathBuf> {
    let file = trace_path(path, run);
    if !file.exists() {
        bail!("run {run} was not made with --trace: there is no {}", file.display());
    }
    Ok(file)
}

fn window_of(store: &Store, run: RunId) -> Result<Option<Range<Nanos>>> {
    let stored = store.load(run)?;
    let summary = stored.storage(TRACE).map(TraceSummary::deserialize).transpose();
    Ok(summary.ok().flatten().and_then(|summary| summary.window).map(|(begin, end)| begin..end))
}

/// Writes a new file; an error if the file exists.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    to_fio::write_new(path, bytes)
}

/// The trace in a file. If there is no such file, the trace of a run: its measured window, or all of it.
fn read(args: &TraceFileArgs, global: &Global) -> Result<Trace> {
    if args.file.exists() {
        return Ok(import::open(&args.file, args.max_requests)?);
    }
    let Some((path, store, run)) = named_run(args, global)? else {
        return Ok(import::open(&args.file, args.max_requests)?);
    };
    let RunTrace { mut trace, window } = read_run(&path, &store, run, args.max_requests)?;
    if args.whole {
        return Ok(trace);
    }
    if let Some(window) = window {
        return Ok(trace.within(window.start, window.end));
    }
    trace.notes.push("the run does not record the time of its window: this is its whole recording".into());
    Ok(trace)
}

/// The file of a trace, and for a run its measured window.
fn source(args: &TraceFileArgs, global: &Global) -> Result<(PathBuf, Option<Range<Nanos>>)> {
    if !args.file.exists()
        && let Some((path, store, run)) = named_run(args, global)?
    {
        let window = if args.whole { None } else { window_of(&store, run)? };
        return Ok((recording_of(&path, run)?, window));
    }
    Ok((args.file.clone(), None))
}

/// The run of this name. `None` if there is no store or no such run: then a file was meant.
fn named_run(args: &TraceFileArgs, global: &Global) -> Result<Option<(PathBuf, Store, RunId)>> {
    let Some(wanted) = args.file.to_str().filter(|name| !name.contains('/')) else { return Ok(None) };
    let path = paths::store(global.store.as_deref())?;
    let Ok(store) = Store::open_read_only(&path) else { return Ok(None) };
    let run = store.find(wanted).ok();
    Ok(run.map(|run| (path, store, run)))
}
