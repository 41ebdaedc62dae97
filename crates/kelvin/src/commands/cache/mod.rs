//! `kelvin cache`: what a larger cache would bring, and whether it does.

mod compare;
mod prove;
mod run_size;

use anyhow::Result;
use kelvin_trace::attribution::FileClass;
use kelvin_trace::cache::MissRange;
use kelvin_trace::{Operation, Request, Trace};
use serde::{Deserialize, Serialize};

use crate::args::{CacheCommand, Global};
use crate::exit::Code;

/// The file of a study's folder with what was predicted.
const PREDICTION: &str = "prediction.json";
/// Reads of fewer pages predict nothing.
const PREDICTED_AT_LEAST: u64 = 1000;

/// Runs what was asked for.
pub(crate) fn cache(command: &CacheCommand, global: &Global) -> Result<Code> {
    match command {
        CacheCommand::Prove(args) if args.run.join(PREDICTION).is_file() => compare::compare(args),
        CacheCommand::Prove(args) => prove::prove(args, global),
    }
}

/// What a trace predicts for the sizes of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CachePrediction {
    /// The run whose trace it is of.
    run: i64,
    /// Whose files the cache has, as `kelvin trace show` names them.
    class: String,
    /// Bytes of a page.
    block: u64,
    /// Pages that were read in the window.
    accesses: u64,
    /// In ascending order; the first is that of the run.
    sizes: Vec<PredictedSize>,
}

/// What is predicted for a size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PredictedSize {
    /// The level of the study.
    level: String,
    /// Bytes that cache the files.
    bytes: u64,
    /// Reads per transaction, as a share of those at the first size.
    misses: MissRange,
    /// No more than this, if the smallest cache was not small.
    most: f64,
}

impl PredictedSize {
    /// The middle of what is known.
    fn predicted(&self) -> f64 {
        f64::midpoint(self.misses.low, self.misses.high)
    }
}

/// The class of a database's data that was read most: others are no cache's concern here.
fn data_class(trace: &Trace) -> Option<(FileClass, String)> {
    let classes = [FileClass::PostgresData, FileClass::InnodbData, FileClass::SqliteDatabase];
    let most = classes.into_iter().max_by_key(|class| bytes_read(trace, class.name()))?;
    let name = most.name();
    (bytes_read(trace, name) > 0).then(|| (most, name.to_owned()))
}

/// The reads of a class's files.
fn reads<'a>(trace: &'a Trace, class: &'a str) -> impl Iterator<Item = &'a Request> {
    trace.requests.iter().filter(move |request| {
        let file = || trace.files.get(request.file as usize);
        request.operation == Operation::Read
            && trace.is_own(request)
            && file().is_some_and(|file| file.class.name() == class)
    })
}

fn bytes_read(trace: &Trace, class: &str) -> u64 {
    reads(trace, class).map(|request| u64::from(request.length)).sum()
}
