//! Reading results: fio's and Kelvin's JSON, into one type, whatever else is in the stream.

mod fields;
mod stream;

pub use stream::parse_json;

/// What a stream held.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedStream {
    /// The results in their order; with `--status-interval` there are several of one run.
    pub results: Vec<IoResult>,
    /// Lines that are no JSON, which fio writes into the same stream.
    pub stray: Vec<Stray>,
}

/// Lines between results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    /// The first line, from 1.
    pub line: u32,
    /// How many.
    pub lines: u32,
    /// The first of them.
    pub text: String,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IoResult {
    /// The line on which it begins, from 1.
    pub line: u32,
    /// What wrote it: `fio-3.33`.
    pub version: String,
    /// When, in milliseconds since 1970; 0 where it does not say.
    pub at: i64,
    /// Its jobs or groups.
    pub jobs: Vec<JobResult>,
    /// The disks under them.
    pub disks: Vec<DiskResult>,
}

/// A job or group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// The machine it ran on, of fio's client mode.
    pub host: Option<String>,
    /// Its group.
    pub group: u64,
    /// The number of the error that ended it; 0 for none.
    pub error: i64,
    /// Errors that it went on after.
    pub errors: u64,
    /// Seconds.
    pub elapsed: u64,
    /// Its options with those of `[global]`, names as written, in alphabetical order.
    pub options: Vec<(String, String)>,
    /// `read`, `write`, `trim`, `mixed`, with what each did; those without I/O are not here.
    pub lines: Vec<(String, LineResult)>,
    /// Syncs and their times.
    pub syncs: TimesResult,
    /// Percent of a CPU, user and system.
    pub cpu: (f64, f64),
    /// The measured time of all its workers, in milliseconds.
    pub runtime: u64,
    /// Context switches.
    pub switches: u64,
    /// Share of the I/Os at each depth class, percent.
    pub depths: Vec<(String, f64)>,
    /// What became of a steady state that was waited for: attained.
    pub steady: Option<bool>,
    /// What only Kelvin says.
    pub kelvin: Option<KelvinResult>,
}

impl JobResult {
    /// The value of an option, by any of its names.
    pub fn option(&self, names: &[&str]) -> Option<&str> {
        self.options.iter().find(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
    }
}

/// One direction.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LineResult {
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Bytes a second.
    pub bandwidth: f64,
    /// Bandwidth as the result gives it in KiB a second, which old versions round differently.
    pub bandwidth_kib: f64,
    /// I/Os a second.
    pub iops: f64,
    /// Milliseconds.
    pub runtime: u64,
    /// I/Os that moved less than asked.
    pub short: u64,
    /// I/Os given up.
    pub dropped: u64,
    /// Submission times.
    pub submission: TimesResult,
    /// Completion times.
    pub completion: TimesResult,
    /// Total times.
    pub total: TimesResult,
    /// Samples of the I/Os a second: mean, deviation, how many.
    pub iops_samples: (f64, f64, u64),
}

/// Times, in nanoseconds whatever unit they were written in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TimesResult {
    /// How many.
    pub count: u64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
    /// Their mean.
    pub mean: f64,
    /// Their deviation.
    pub deviation: f64,
    /// Percentiles: percent, nanoseconds; ascending.
    pub percentiles: Vec<(f64, f64)>,
    /// Of JSON+: nanoseconds and how many I/Os took about so long; ascending.
    pub bins: Vec<(u64, u64)>,
}

impl TimesResult {
    /// A percentile that the result gives and that has ten I/Os or more beyond it.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let found = self.percentiles.iter().find(|known| (known.0 - percent).abs() < 1e-6)?;
        super::latency::is_known(self.count, percent).then_some(found.1)
    }
}

/// A disk over the run, all its users together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DiskResult {
    /// Its name.
    pub name: String,
    /// Reads that it did.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Requests that were merged into others, reads and writes.
    pub merges: (u64, u64),
    /// Percent of the time with a request in flight.
    pub busy: f64,
}

/// What only Kelvin's results have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KelvinResult {
    /// Workers that were added up.
    pub workers: u64,
    /// The engine that did the I/O.
    pub engine: String,
    /// Whether it went past the page cache.
    pub direct: bool,
    /// The depth asked for, all workers together.
    pub depth_asked: u64,
    /// The depth reached, by Little's law.
    pub depth: Option<f64>,
    /// Time that workers were ready to run and had no CPU, in nanoseconds.
    pub run_delay: Option<u64>,
    /// Over how long that was counted, all workers together, in nanoseconds; 0 where the result does not say.
    pub counted: u64,
    /// Times from the intended start, by direction.
    pub responses: Vec<(String, TimesResult)>,
    /// Its files and devices: path, depth reached, and what each direction did (I/Os a second, bytes a second, mean
    /// completion time in nanoseconds).
    pub targets: Vec<TargetResult>,
    /// What was noted.
    pub notes: Vec<String>,
    /// The run was not over.
    pub partial: bool,
}

/// A file or device.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TargetResult {
    /// Its path.
    pub path: String,
    /// The depth that was reached on it.
    pub depth: Option<f64>,
    /// Direction, I/Os a second, bytes a second, mean completion time in nanoseconds.
    pub lines: Vec<(String, f64, f64, f64)>,
}
