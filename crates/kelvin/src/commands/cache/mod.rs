//! `kelvin cache`: predicts the effect of a larger cache, and measures it.

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

/// The file with the prediction in a study's folder.
const PREDICTION: &str = "prediction.json";
/// Minimum number of pages read for a prediction.
const PREDICTED_AT_LEAST: u64 = 1000;

/// Runs a subcommand.
pub(crate) fn cache(command: &CacheCommand, global: &Global) -> Result<Code> {
    match command {
        CacheCommand::Prove(args) if args.run.join(PREDICTION).is_file() => compare::compare(args),
        CacheCommand::Prove(args) => prove::prove(args, global),
    }
}

/// The prediction of a trace for the sizes of a study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CachePrediction {
    /// The run of the trace.
    run: i64,
    /// The class of files in the cache, as `kelvin trace show` names it.
    class: String,
    /// Bytes of a page.
    block: u64,
    /// Pages read in the window.
    accesses: u64,
    /// Sizes in ascending order; the first is that of the run.
    sizes: Vec<PredictedSize>,
}

/// The prediction for one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PredictedSize {
    /// The level of the study.
    level: String,
    /// Bytes that cache the files.
    bytes: u64,
    /// Reads per transaction, as a ratio to those at the first size.
    misses: MissRange,
    /// Upper bound of the ratio, valid if the smallest cache was not small.
    most: f64,
}

impl PredictedSize {
    /// The middle of the predicted range.
    fn predicted(&self) -> f64 {
        f64::midpoint(self.misses.low, self.misses.high)
    }
}

/// The class of database files that was read most. Other files are not in a database's cache.
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
