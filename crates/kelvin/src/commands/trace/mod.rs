//! `kelvin trace`: block requests, recorded and described.

mod cache;
mod record;
mod show;
mod table;
mod to_fio;
mod verify;

use std::io::{BufWriter, ErrorKind};

use anyhow::{Context, Result, bail};
use kelvin_lab::run_trace::trace_path;
use kelvin_store::Store;
use kelvin_trace::export::write_csv;
use kelvin_trace::{Trace, import};

use crate::args::{Global, TraceCommand, TraceCsvArgs, TraceFileArgs};
use crate::exit::Code;
use crate::paths;

/// Runs what was asked for.
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
        // Who reads it has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe && args.output.is_none() => Ok(Code::Success),
        written => written.map(|()| Code::Success).context("cannot write the csv"),
    }
}

/// The trace in a file, or, where there is no such file, that of a run.
fn read(args: &TraceFileArgs, global: &Global) -> Result<Trace> {
    if args.file.exists() {
        return Ok(import::open(&args.file, args.most)?);
    }
    let Some(wanted) = args.file.to_str().filter(|name| !name.contains('/')) else {
        return Ok(import::open(&args.file, args.most)?);
    };
    let path = paths::store(global.store.as_deref())?;
    // Without a store, or a run of this name, a file was meant.
    let found = Store::open_read_only(&path).ok().and_then(|store| store.find(wanted).ok());
    let Some(run) = found else { return Ok(import::open(&args.file, args.most)?) };
    let trace = trace_path(&path, run);
    if !trace.exists() {
        bail!("run {run} was not made with --trace: there is no {}", trace.display());
    }
    Ok(import::open(&trace, args.most)?)
}
