//! `kelvin trace`: block requests, recorded and described.

mod cache;
mod record;
mod show;
mod table;

use anyhow::Result;
use kelvin_trace::{Trace, import};

use crate::args::{Global, TraceCommand, TraceFileArgs};
use crate::exit::Code;

/// Runs what was asked for.
pub(crate) fn trace(command: &TraceCommand, global: &Global) -> Result<Code> {
    match command {
        TraceCommand::Record(args) => record::record(args, global),
        TraceCommand::Show(args) => show::show(args),
        TraceCommand::Cache(args) => cache::cache(args),
    }
}

fn read(args: &TraceFileArgs) -> Result<Trace> {
    Ok(import::open(&args.file, args.most)?)
}
