//! The results of a measurement.

use std::fmt;
use std::time::Duration;

use kelvin_host::TickShares;
use serde::{Serialize, Serializer};

use super::MB;
use super::counters::{Counters, Counts, sum};
use super::plan::VioperfPlan;
use super::verdict::{ThroughputGrade, deciding};

/// The tests, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Test {
    /// Files grow, then are overwritten; sequentially.
    Write,
    /// Each block is read and written back; sequentially.
    ReWrite,
    /// Blocks are read sequentially.
    Read,
    /// Blocks are read in an order without adjacent blocks.
    SkipRead,
}

impl Test {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Write, Self::ReWrite, Self::Read, Self::SkipRead];

    /// vioperf's name of it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Write => "Write",
            Self::ReWrite => "ReWrite",
            Self::Read => "Read",
            Self::SkipRead => "SkipRead",
        }
    }

    /// The name of its counter.
    pub fn counter(self) -> &'static str {
        match self {
            Self::Write | Self::Read => "MB/s",
            Self::ReWrite => "(MB-read+MB-write)/s",
            Self::SkipRead => "seeks/s",
        }
    }
}

/// A test's rate: MB/s of 10^6 bytes read and written, or seeks per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rate {
    /// Read, in MB/s.
    pub read: Option<f64>,
    /// Written, in MB/s.
    pub write: Option<f64>,
    /// Seeks per second.
    pub seeks: Option<f64>,
}

impl Rate {
    fn for_test(test: Test, counts: &Counts, span: Duration) -> Self {
        let seconds = span.as_secs_f64().max(1e-9);
        let (read, write) = (counts.read as f64 / MB / seconds, counts.written as f64 / MB / seconds);
        match test {
            Test::Write => Self { write: Some(write), ..Self::default() },
            Test::ReWrite => Self { read: Some(read), write: Some(write), ..Self::default() },
            Test::Read => Self { read: Some(read), ..Self::default() },
            Test::SkipRead => Self { seeks: Some(counts.seeks as f64 / seconds), ..Self::default() },
        }
    }

    /// The rate per core.
    #[must_use]
    pub fn per_core(self, cores: f64) -> Self {
        let per = |value: Option<f64>| value.map(|value| value / cores);
        Self { read: per(self.read), write: per(self.write), seeks: per(self.seeks) }
    }
}

impl fmt::Display for Rate {
    /// As vioperf prints it: `150`, `150+150`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value: f64| if value < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") };
        let parts: Vec<String> =
            [self.read, self.write, self.seeks].into_iter().flatten().map(word).collect();
        f.pad(&parts.join("+"))
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in [("read_mb_s", self.read), ("write_mb_s", self.write), ("seeks_s", self.seeks)] {
            if let Some(value) = value {
                map.serialize_entry(name, &value)?;
            }
        }
        map.end()
    }
}

/// A row of the table and of the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The test.
    pub test: Test,
    /// The directory, or `all`.
    pub directory: String,
    /// The name of the counter.
    pub counter_name: &'static str,
    /// The rate since the test's beginning.
    pub counter_value: Rate,
    /// The rate since the previous row.
    pub counter_value_recent: Rate,
    /// The rate since the beginning, per core.
    pub counter_value_per_core: Rate,
    /// The rate since the previous row, per core.
    pub counter_value_per_core_recent: Rate,
    /// Running threads.
    pub thread_count: u32,
    /// Percent of the time of all CPUs since the previous row, by all users of the machine together.
    pub cpu_percent: Option<f64>,
    /// Percent of the time of all CPUs in which they waited for I/O and were otherwise idle.
    pub io_wait_percent: Option<f64>,
    /// Seconds since the test's beginning.
    pub elapsed_s: f64,
    /// Seconds to the test's end.
    pub remaining_s: f64,
    /// Seconds that the recent values cover.
    pub recent_s: f64,
}

/// The rows of a moment: one for each element of the counts.
pub(super) fn rows(
    test: Test,
    plan: &VioperfPlan,
    counts: &[Counts],
    recent: &[Counts],
    (span, recent_span): (Duration, Duration),
    machine: Option<TickShares>,
    length: Duration,
) -> Vec<Row> {
    let cores = plan.cores.counted;
    counts
        .iter()
        .zip(recent)
        .enumerate()
        .map(|(index, (counts, recent))| {
            let directory =
                plan.directories.get(index).map_or_else(|| "all".into(), |at| at.path.display().to_string());
            let (value, recent) =
                (Rate::for_test(test, counts, span), Rate::for_test(test, recent, recent_span));
            Row {
                test,
                directory,
                counter_name: test.counter(),
                counter_value: value,
                counter_value_recent: recent,
                counter_value_per_core: value.per_core(cores),
                counter_value_per_core_recent: recent.per_core(cores),
                thread_count: counts.threads,
                cpu_percent: machine.map(|shares| 100.0 * shares.taken),
                io_wait_percent: machine.map(|shares| 100.0 * shares.waiting),
                elapsed_s: span.as_secs_f64(),
                remaining_s: length.saturating_sub(span).as_secs_f64(),
                recent_s: recent_span.as_secs_f64(),
            }
        })
        .collect()
}

/// Writes of one kind: extending a file, or overwriting data.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    /// Bytes of all threads.
    pub bytes: u64,
    /// MB/s of all threads together: the sum over threads of the bytes written divided by the time
    /// that the writes took.
    pub mb_s: f64,
    /// The same per core.
    pub mb_s_per_core: f64,
}

/// The CPU cost of a test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// The test.
    pub test: Test,
    /// CPU µs per MB for making and checking checksums; `None` without checksums.
    pub crc_us_per_mb: Option<f64>,
    /// CPU µs per MB for everything else: the kernel's part, filling the blocks.
    pub rest_us_per_mb: f64,
    /// Percent of a CPU that each thread used on average.
    pub thread_cpu_percent: f64,
}

/// The complete result.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The plan.
    pub plan: VioperfPlan,
    /// The rows in order.
    #[serde(skip)]
    pub rows: Vec<Row>,
    /// Each test as a whole, all directories together.
    pub tests: Vec<Row>,
    /// Writes that extended files.
    pub extend: Option<Split>,
    /// Overwrites in the same test.
    pub overwrite: Option<Split>,
    /// CPU costs by test.
    pub costs: Vec<Cost>,
    /// The deciding test and its MB/s per core.
    pub deciding: Option<(Test, f64)>,
    /// The grade of this rate; `None` if not all tests were done.
    pub verdict: Option<ThroughputGrade>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Whether a stop was requested.
    pub interrupted: bool,
    /// The error that ended it early.
    pub failure: Option<String>,
    /// Files that were kept on request.
    pub kept: Vec<std::path::PathBuf>,
}

/// Percent of a CPU from which the processor was the limit and not the storage.
const BUSY: f64 = 90.0;

impl Report {
    pub(super) fn new(plan: VioperfPlan) -> Self {
        Self {
            notes: plan.notes.clone(),
            plan,
            rows: Vec::new(),
            tests: Vec::new(),
            extend: None,
            overwrite: None,
            costs: Vec::new(),
            deciding: None,
            verdict: None,
            interrupted: false,
            failure: None,
            kept: Vec::new(),
        }
    }

    /// Adds the result of a test.
    pub(super) fn add(&mut self, test: Test, whole: Option<Row>, counters: &[Counters], elapsed: Duration) {
        let moved = sum(counters, |counters| &counters.read) + sum(counters, |counters| &counters.written);
        if moved == 0 {
            return;
        }
        self.tests.extend(whole);
        let (cpu, crc) = (sum(counters, |counters| &counters.cpu), sum(counters, |counters| &counters.crc));
        let summed = sum(counters, |counters| &counters.summed);
        let per_mb = |nanos: u64, bytes: u64| nanos as f64 / 1e3 / (bytes as f64 / MB);
        let threads = counters.len().max(1) as f64;
        self.costs.push(Cost {
            test,
            crc_us_per_mb: (summed > 0).then(|| per_mb(crc, summed)),
            rest_us_per_mb: per_mb(cpu.saturating_sub(crc), moved),
            thread_cpu_percent: 100.0 * cpu as f64 / elapsed.as_nanos() as f64 / threads,
        });
        if test == Test::Write {
            let cores = self.plan.cores.counted;
            let split = |bytes: &dyn Fn(&Counters) -> u64, nanos: &dyn Fn(&Counters) -> u64| {
                let total: u64 = counters.iter().map(bytes).sum();
                let rate: f64 = counters
                    .iter()
                    .filter(|counters| bytes(counters) > 0 && nanos(counters) > 0)
                    .map(|counters| bytes(counters) as f64 / MB / (nanos(counters) as f64 / 1e9))
                    .sum();
                (total > 0).then_some(Split { bytes: total, mb_s: rate, mb_s_per_core: rate / cores })
            };
            let load =
                |counter: &std::sync::atomic::AtomicU64| counter.load(std::sync::atomic::Ordering::Relaxed);
            self.extend = split(&|all| load(&all.extended), &|all| load(&all.extending));
            self.overwrite = split(&|all| load(&all.overwritten), &|all| load(&all.overwriting));
        }
    }

    /// Determines the deciding rate and its grade.
    pub(super) fn finish(&mut self) {
        let whole = !self.interrupted && self.failure.is_none();
        let rates: Vec<_> = self.tests.iter().map(|row| (row.test, row.counter_value_per_core)).collect();
        self.deciding = deciding(&rates).filter(|_| whole);
        self.verdict = self.deciding.map(|(_, rate)| ThroughputGrade::for_rate(rate));
        for cost in self.costs.iter().filter(|cost| cost.thread_cpu_percent >= BUSY) {
            self.notes.push(format!(
                "{} was limited by the CPU: each thread used {:.0} % of a CPU, so the storage may be faster \
                 than this",
                cost.test.word(),
                cost.thread_cpu_percent
            ));
        }
    }
}
