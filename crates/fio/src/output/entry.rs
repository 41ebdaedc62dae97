//! An entry of a result: a worker, or with `group_reporting` the sum of the workers of a group.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kelvin_measure::Nanos;

use crate::job::{Job, Mixed};
use crate::result::{DirectionOutcome, JobsOutcome, Samples, WorkerOutcome};
use crate::tick::DepthCounts;
use crate::{BinSums, Direction, Moments, PerDirection};

/// Samples of a rate, of one worker or of several that ran side by side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateSamples {
    /// Their number.
    pub count: u64,
    /// The least; of several workers the sum of theirs.
    pub least: f64,
    /// The greatest; of several workers the sum of theirs.
    pub greatest: f64,
    /// The mean; of several workers the sum of theirs.
    pub mean: f64,
    /// The deviation; of several workers as if they varied independently.
    pub deviation: f64,
}

impl RateSamples {
    fn add(&mut self, samples: &Samples) {
        if samples.count == 0 {
            return;
        }
        self.count += samples.count;
        self.least += samples.range.0;
        self.greatest += samples.range.1;
        self.mean += samples.mean();
        self.deviation = self.deviation.hypot(samples.deviation());
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.least += other.least;
        self.greatest += other.greatest;
        self.mean += other.mean;
        self.deviation = self.deviation.hypot(other.deviation);
    }
}

/// One direction of an entry, all its targets and workers together.
#[derive(Debug, Clone, Default)]
pub struct Line {
    /// The sums.
    pub sums: DirectionOutcome,
    /// The divisor of rates: the longest runtime of the workers.
    pub runtime: Nanos,
    /// Samples of the bandwidth in KiB/s.
    pub bandwidth: RateSamples,
    /// Samples of the I/Os per second.
    pub iops: RateSamples,
}

impl Line {
    /// I/Os per second.
    pub fn iops(&self) -> f64 {
        rate(self.sums.ios, self.runtime)
    }

    /// Bytes per second.
    pub fn bytes_per_second(&self) -> f64 {
        rate(self.sums.bytes, self.runtime)
    }

    fn merge(&mut self, other: &Self) {
        self.sums.merge(&other.sums);
        self.runtime = self.runtime.max(other.runtime);
        self.bandwidth.merge(&other.bandwidth);
        self.iops.merge(&other.iops);
    }
}

/// So many in so long, a second.
pub(super) fn rate(count: u64, nanos: Nanos) -> f64 {
    if nanos == 0 { 0.0 } else { count as f64 * 1e9 / nanos as f64 }
}

/// A file or device of an entry.
#[derive(Debug, Clone)]
pub struct TargetTotals {
    /// Its path; of several added up that of the device.
    pub path: PathBuf,
    /// The block device below it.
    pub device: Option<String>,
    /// The number of files in the sum.
    pub files: usize,
    /// By direction.
    pub directions: PerDirection<DirectionOutcome>,
    /// The divisor of rates: the longest measured part.
    pub measured: Nanos,
    /// Its mean number of I/Os in flight, by Little's law; `None` where times were not recorded.
    pub depth: Option<f64>,
}

impl TargetTotals {
    /// I/Os per second in a direction.
    pub fn iops(&self, direction: Direction) -> f64 {
        rate(self.directions[direction].ios, self.measured)
    }

    /// Bytes per second in a direction.
    pub fn bytes_per_second(&self, direction: Direction) -> f64 {
        rate(self.directions[direction].bytes, self.measured)
    }
}

/// An entry of a result.
#[derive(Debug)]
pub struct ResultEntry<'a> {
    /// The first worker's job.
    pub job: &'a Job,
    /// Its workers, at least one.
    pub workers: Vec<&'a WorkerOutcome>,
    /// By direction.
    pub directions: PerDirection<Line>,
    /// Syncs.
    pub syncs: Moments,
    /// The same by bin.
    pub sync_bins: BinSums,
    /// Queue depths.
    pub depth: DepthCounts,
    /// CPU time, user and system.
    pub cpu: (Nanos, Nanos),
    /// Over how long CPU time was counted, its workers added up.
    pub counted: Nanos,
    /// Context switches, voluntary and not, together as fio gives them.
    pub switches: u64,
    /// Page faults, major and minor.
    pub faults: (u64, u64),
    /// Errors that did not end a worker.
    pub errors: u64,
    /// The number of the first of them.
    pub first_error: Option<i32>,
    /// The error of the first worker that ended early.
    pub error: Option<(i32, &'a str)>,
}

impl<'a> ResultEntry<'a> {
    fn new(job: &'a Job) -> Self {
        Self {
            job,
            workers: Vec::new(),
            directions: PerDirection::default(),
            syncs: Moments::default(),
            sync_bins: BinSums::default(),
            depth: DepthCounts::default(),
            cpu: (0, 0),
            counted: 0,
            switches: 0,
            faults: (0, 0),
            errors: 0,
            first_error: None,
            error: None,
        }
    }

    fn add(&mut self, worker: &'a WorkerOutcome) {
        for target in &worker.targets {
            for (direction, sums) in target.directions.iter() {
                self.directions[direction].sums.merge(sums);
            }
        }
        for direction in Direction::ALL {
            let mut runtime = worker.runtime[direction];
            let line = &mut self.directions[direction];
            // As in fio: reads for verification are among the reads, and their times among theirs.
            if let Some(verified) = worker.verified.as_ref().filter(|verified| verified[direction].ios > 0) {
                line.sums.merge(&verified[direction]);
                runtime += verified.time;
            }
            line.runtime = line.runtime.max(runtime);
            line.bandwidth.add(&worker.bandwidth[direction]);
            line.iops.add(&worker.iops[direction]);
        }
        self.syncs.merge(&worker.syncs);
        self.sync_bins.merge(&worker.sync_bins);
        self.depth.merge(&worker.depth);
        self.cpu.0 += worker.cpu.0;
        self.cpu.1 += worker.cpu.1;
        self.counted += worker.counted;
        self.switches += worker.switches.0 + worker.switches.1;
        self.faults.0 += worker.faults.0;
        self.faults.1 += worker.faults.1;
        for failures in &worker.failures {
            self.errors += failures.count;
            self.first_error = self.first_error.or(Some(failures.number));
        }
        if self.error.is_none() {
            self.error = worker.error.as_ref().map(|(number, words)| (*number, words.as_str()));
        }
        self.workers.push(worker);
    }

    /// The first worker. There is always one.
    pub fn first(&self) -> Option<&'a WorkerOutcome> {
        self.workers.first().copied()
    }

    /// The reads of verifying passes, over all workers.
    pub fn verified(&self) -> DirectionOutcome {
        let mut sums = DirectionOutcome::default();
        for verified in self.workers.iter().filter_map(|worker| worker.verified.as_ref()) {
            sums.merge(&verified[Direction::Read]);
        }
        sums
    }

    /// The sum over all directions, for `unified_rw_reporting`.
    pub fn mixed(&self) -> Line {
        let mut all = Line::default();
        for (_, line) in self.directions.iter() {
            all.merge(line);
        }
        all
    }

    /// The lines to show, with their labels: `read`, `write`, `trim`, `mixed`.
    pub fn lines(&self) -> Vec<(&'static str, Line)> {
        let mut lines = Vec::new();
        let mode = self.job.report.mixed;
        if mode != Mixed::Mixed {
            for direction in Direction::ALL {
                lines.push((direction.word(), self.directions[direction].clone()));
            }
        }
        if mode != Mixed::None {
            lines.push(("mixed", self.mixed()));
        }
        lines
    }

    /// I/Os, bytes and runtime of one of its [`Self::lines`], without a copy of its bins; `None` where it has no such
    /// line.
    pub(super) fn brief(&self, word: &str) -> Option<(u64, u64, Nanos)> {
        let mode = self.job.report.mixed;
        let shown = |direction: &Direction| match word {
            "mixed" => mode != Mixed::None,
            _ => mode != Mixed::Mixed && direction.word() == word,
        };
        Direction::ALL.into_iter().filter(shown).map(|direction| &self.directions[direction]).fold(
            None,
            |sums: Option<(u64, u64, Nanos)>, line| {
                let (ios, bytes, runtime) = sums.unwrap_or_default();
                Some((ios + line.sums.ios, bytes + line.sums.bytes, runtime.max(line.runtime)))
            },
        )
    }

    /// Its percentage of the CPU, user and system.
    pub fn cpu_percent(&self) -> (f64, f64) {
        let share = |nanos: Nanos| rate(nanos, self.counted) / 1e9 * 100.0;
        (share(self.cpu.0), share(self.cpu.1))
    }

    /// Its files and devices, each once.
    pub fn targets(&self) -> Vec<TargetTotals> {
        self.targets_by(|target| (target.path.clone(), target.device.clone()))
    }

    /// The number of its files and devices.
    pub fn target_count(&self) -> usize {
        let paths = self.workers.iter().flat_map(|worker| &worker.targets).map(|target| &target.path);
        paths.collect::<BTreeSet<_>>().len()
    }

    /// Its devices; files on the same device are added up.
    pub fn devices(&self) -> Vec<TargetTotals> {
        self.targets_by(|target| match &target.device {
            Some(device) => (Path::new("/dev").join(device), target.device.clone()),
            None => (target.path.parent().unwrap_or(&target.path).to_owned(), None),
        })
    }

    fn targets_by(
        &self,
        name: impl Fn(&crate::result::TargetOutcome) -> (PathBuf, Option<String>),
    ) -> Vec<TargetTotals> {
        let mut lines: Vec<TargetTotals> = Vec::new();
        let mut places: BTreeMap<PathBuf, usize> = BTreeMap::new();
        // A file that several workers share counts once.
        let mut files: BTreeSet<&Path> = BTreeSet::new();
        for worker in &self.workers {
            for target in &worker.targets {
                let (path, device) = name(target);
                let place = *places.entry(path.clone()).or_insert(lines.len());
                if place == lines.len() {
                    lines.push(TargetTotals {
                        path,
                        device,
                        files: 0,
                        directions: PerDirection::default(),
                        measured: 0,
                        depth: None,
                    });
                }
                let Some(line) = lines.get_mut(place) else { continue };
                line.files += usize::from(files.insert(&target.path));
                line.measured = line.measured.max(worker.measured);
                for (direction, sums) in target.directions.iter() {
                    line.directions[direction].merge(sums);
                    // Each worker over its own time: those of a group need not run equally long.
                    if let Some(depth) = little(sums, worker.measured) {
                        *line.depth.get_or_insert(0.0) += depth;
                    }
                }
            }
        }
        lines
    }

    /// The mean number of I/Os in flight, over all targets and workers; `None` where times were not recorded.
    pub fn effective_depth(&self) -> Option<f64> {
        self.workers
            .iter()
            .flat_map(|worker| worker.targets.iter().map(|target| (target, worker.measured)))
            .flat_map(|(target, measured)| {
                target.directions.0.iter().filter_map(move |sums| little(sums, measured))
            })
            .reduce(|sum, depth| sum + depth)
    }
}

/// Little's law: I/Os per second × mean time of an I/O, which equals the sum of the times divided by the elapsed time.
fn little(sums: &DirectionOutcome, measured: Nanos) -> Option<f64> {
    // Without total times the completions' are the best there is; they lack the submission.
    let times = if sums.total.count > 0 { &sums.total } else { &sums.completion };
    (times.count > 0 && measured > 0).then(|| {
        // Times may be recorded for fewer I/Os than completed: their mean is used for the others.
        times.sum as f64 / times.count as f64 * sums.ios as f64 / measured as f64
    })
}

/// The entries of a result in their order. As in fio: a worker of a job with `group_reporting` is added to the
/// preceding entry if that is of the same group.
pub fn merged(outcome: &JobsOutcome) -> Vec<ResultEntry<'_>> {
    let mut entries: Vec<ResultEntry<'_>> = Vec::new();
    for worker in &outcome.workers {
        let Some(job) = outcome.jobs.jobs.get(worker.job) else { continue };
        let joins = job.course.group_reporting
            && entries.last().and_then(ResultEntry::first).is_some_and(|first| first.group == worker.group);
        if !joins {
            entries.push(ResultEntry::new(job));
        }
        if let Some(entry) = entries.last_mut() {
            entry.add(worker);
        }
    }
    entries
}

/// Bytes per second of a line of a whole group, which its entries' samples are shares of.
pub(super) fn group_rate(entries: &[ResultEntry<'_>], group: u32, word: &str) -> f64 {
    let (mut bytes, mut runtime) = (0, 0);
    for entry in entries.iter().filter(|entry| entry.first().is_some_and(|first| first.group == group)) {
        if let Some((_, more, time)) = entry.brief(word) {
            bytes += more;
            runtime = runtime.max(time);
        }
    }
    rate(bytes, runtime)
}
