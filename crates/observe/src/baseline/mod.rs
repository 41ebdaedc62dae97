//! The capacity of the idle machine: the preflight of a run and the baseline tests of a study.
//!
//! [`measure`] takes a few seconds (more with a disk) and returns a [`Baseline`]: facts as text, results as numbers.
//! Two of them are compared with [`compare`], and [`judge`] reports problems for a run on such a machine. Everything
//! that needs only the processor or the memory is measured by CPU time, so that other processes take time from it but
//! do not change its speed.

mod clock;
mod compare;
mod database;
mod directory;
mod disk;
mod disturbance;
mod facts;
mod judge;
mod loopback;
mod memory;
mod percentile;
mod processor;
mod sync;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use kelvin_database::Engine;
use kelvin_measure::observation::UnavailableMetrics;
use serde::{Deserialize, Serialize};

pub use crate::baseline_fact::BaselineFact;
pub use compare::{Changed, Comparison, Line, compare};
pub use disturbance::OTHERS;
pub use judge::{Remark, judge};

/// Incremented whenever a measurement is changed: results of different methods are not compared.
const METHOD: u32 = 2;

/// Optional measurements, in addition to those of the host.
#[derive(Clone, Default)]
pub struct Options {
    /// Directory on whose filesystem a commit's `fdatasync` is timed; `None` skips it. The directory of a database on
    /// this host takes precedence.
    pub directory: Option<PathBuf>,
    /// Directory whose disk is measured: random and sequential access to a file of at most 1 GiB and a tenth of the
    /// free space, which is removed afterwards.
    pub disk: Option<PathBuf>,
    /// Database whose settings are read and whose round trip is timed.
    pub engine: Option<Arc<dyn Engine>>,
}

/// The kind of a metric: it decides which direction is better, and the difference up to which two values count as
/// equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineMetricKind {
    /// Work of processor or memory a second, by CPU time.
    Speed,
    /// Time that processor or memory takes, by CPU time.
    Cost,
    /// Median of a latency.
    Latency,
    /// 99th percentile of a latency.
    Tail,
    /// Bytes per second of a device.
    Bandwidth,
    /// The activity of other processes meanwhile; not compared.
    Disturbance,
}

impl BaselineMetricKind {
    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::Speed | Self::Bandwidth)
    }

    /// The ratio above 1, in either direction, up to which two values count as equal; `None` for metrics that are not
    /// compared.
    ///
    /// Speeds and costs are medians of passes by CPU time. Single-thread speed stayed within 4 % on a busy machine,
    /// while memory latency ranged from 277 to 330 ns: 5 % suggests another clock rate, memory or placement, and memory
    /// exceeds it by chance where other processes use the machine. The median of a latency depends on when a sleeping
    /// thread or device wakes, which varies by 10 to 20 % from one minute to the next on a healthy host; 30 % is beyond
    /// that. A 99th percentile depends on a hundredth of the samples and on everything else that ran: only a factor of
    /// two is significant.
    pub fn bound(self) -> Option<f64> {
        match self {
            Self::Speed | Self::Cost => Some(0.05),
            Self::Latency | Self::Bandwidth => Some(0.30),
            Self::Tail => Some(1.0),
            Self::Disturbance => None,
        }
    }
}

/// A measured metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineMetric {
    /// Stable, dotted: "processor.single-thread", "sync.p50".
    pub name: String,
    /// The label, for display.
    pub label: String,
    /// The value, in `unit`.
    pub value: f64,
    /// "M/s", "GB/s", "MB/s", "ns", "µs", "%", "cores" or "1".
    pub unit: String,
    /// The kind.
    pub kind: BaselineMetricKind,
    /// Passes or operations that it rests on.
    pub samples: u64,
}

/// The baseline of a host, and of a database if requested, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// Way of measuring; see [`compare`].
    pub method: u32,
    /// "release", or "debug" for an unoptimised build of kelvin.
    pub build: String,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// Facts, in the order in which they are shown.
    pub facts: Vec<BaselineFact>,
    /// Figures, in the order in which they are shown.
    pub figures: Vec<BaselineMetric>,
    /// Metrics that could not be measured, and why.
    pub absent: Vec<UnavailableMetrics>,
}

impl Baseline {
    /// The value of a metric by its name.
    pub fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.value)
    }

    /// A fact by its name.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }

    fn new() -> Self {
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self {
            method: METHOD,
            build: build.into(),
            took_ms: 0,
            facts: Vec::new(),
            figures: Vec::new(),
            absent: Vec::new(),
        }
    }

    pub(crate) fn add_fact(&mut self, name: &str, label: &str, value: impl Into<String>) {
        self.facts.push(BaselineFact::new(name, label, value));
    }

    fn put(
        &mut self,
        name: &str,
        label: &str,
        value: f64,
        unit: &str,
        kind: BaselineMetricKind,
        samples: u64,
    ) {
        let (name, label, unit) = (name.into(), label.into(), unit.into());
        self.figures.push(BaselineMetric { name, label, value, unit, kind, samples });
    }

    /// Median and 99th percentile of times in nanoseconds, shown in microseconds.
    fn put_latency(&mut self, name: &str, label: &str, times: &mut [u64]) {
        let samples = times.len() as u64;
        for (word, p, kind) in
            [("p50", 0.5, BaselineMetricKind::Latency), ("p99", 0.99, BaselineMetricKind::Tail)]
        {
            let (name, label) = (format!("{name}.{word}"), format!("{label} {word}"));
            match percentile::percentile(times, p) {
                Some(time) => self.put(&name, &label, time as f64 / 1e3, "µs", kind, samples),
                None => self.miss(&label, format!("{samples} samples are too few")),
            }
        }
    }

    fn miss(&mut self, what: &str, why: impl Into<String>) {
        self.absent.push(UnavailableMetrics { what: what.into(), why: why.into() });
    }
}

/// A stop was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Measures; takes less than ten seconds without a disk. `progress` is called at the beginning of each part, and stops
/// the measurement with [`ControlFlow::Break`]. Metrics that cannot be measured are in [`Baseline::absent`].
///
/// # Errors
/// [`Interrupted`] when `progress` requested a stop; no files are left behind.
pub fn measure(
    options: &Options,
    progress: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<Baseline, Interrupted> {
    let since = Instant::now();
    let mut baseline = Baseline::new();
    let mut begin = |what: &str| match progress(what) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Interrupted),
    };
    facts::read(&mut baseline);
    let quiet = disturbance::DisturbanceMeter::start();
    begin("clock")?;
    clock::measure(&mut baseline);
    begin("processor")?;
    processor::measure(&mut baseline);
    begin("memory")?;
    memory::measure(&mut baseline);
    begin("timer")?;
    clock::lateness(&mut baseline);
    begin("loopback network")?;
    loopback::measure(&mut baseline);
    // Before the server and the disk, whose activity is caused by the measurement.
    quiet.finish(&mut baseline);
    let mut directory = options.directory.clone();
    if let Some(engine) = &options.engine {
        begin("database")?;
        directory = database::measure(&mut baseline, &**engine).or(directory);
    }
    if let Some(directory) = &directory {
        begin("fdatasync")?;
        sync::measure(&mut baseline, directory);
    }
    if let Some(directory) = &options.disk {
        disk::measure(&mut baseline, directory, disk::MOST_BYTES, &mut begin)?;
    }
    baseline.took_ms = since.elapsed().as_millis() as u64;
    Ok(baseline)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measured value, on any machine: its size shows nothing about the code.
    pub(super) fn measured(baseline: &Baseline, name: &str) -> f64 {
        let value = baseline.figure(name).unwrap_or_else(|| panic!("no {name}: {baseline:?}"));
        assert!(value.is_finite() && value > 0.0, "{name}: {value}");
        value
    }

    #[test]
    fn a_baseline_is_whole_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { directory: Some(directory.path().into()), ..Options::default() };
        let mut heard = Vec::new();
        let baseline = measure(&options, &mut |what| {
            heard.push(what.to_owned());
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(heard.first().map(String::as_str), Some("clock"));
        for name in
            ["clock.read", "processor.single-thread", "timer.late.p50", "loopback.one-cpu.p50", "sync.p50"]
        {
            measured(&baseline, name);
        }
        let mut names: Vec<_> = baseline.figures.iter().map(|figure| &figure.name).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "two figures of one name");
        let text = serde_json::to_string(&baseline).unwrap();
        assert_eq!(serde_json::from_str::<Baseline>(&text).unwrap().figures.len(), all);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn who_asks_to_stop_is_heard() {
        assert_eq!(measure(&Options::default(), &mut |_| ControlFlow::Break(())), Err(Interrupted));
    }
}
