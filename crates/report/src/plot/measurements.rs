//! The results of a job by direction, with the options by which charts compare them.

use kelvin_measure::text::parse_bytes;
use kelvin_storage::Direction;
use kelvin_storage::job::Jobs;
use kelvin_storage::output::read::{IoResult, JobResult};

use super::latency::CompletionTimes;
use crate::RunReport;

/// A job of a result or of a stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct JobMeasurement {
    /// The file or run from which it was read.
    pub source: String,
    /// Its name.
    pub job: String,
    /// The tool and its version.
    pub version: String,
    /// The block size as written; none if the result does not contain it.
    pub block_size: Option<String>,
    /// Largest number of I/Os in flight per worker.
    pub depth: Option<u64>,
    /// Number of workers.
    pub jobs: Option<u64>,
    /// The share of reads in per cent, for a mix.
    pub mix: Option<f64>,
    /// The pattern as written: "randread".
    pub pattern: Option<String>,
    /// Other options that affect the results, as written: engine, direct, rates, think time. Jobs that differ
    /// in them are not drawn together.
    pub others: Vec<(String, String)>,
    /// The results of each direction.
    pub did: Vec<DirectionMeasurement>,
}

/// Options that affect the results and are not on the axis of a chart.
const OTHERS: &[&[&str]] = &[
    &["ioengine"],
    &["direct"],
    &["buffered"],
    &["rate"],
    &["rate_iops"],
    &["rate_process"],
    &["thinktime"],
    &["iodepth_batch_submit", "iodepth_batch"],
    &["fsync"],
    &["fdatasync"],
    &["random_distribution"],
];

/// Those of [`OTHERS`] that are set, according to `find`.
fn others(find: impl Fn(&[&str]) -> Option<String>) -> Vec<(String, String)> {
    OTHERS.iter().filter_map(|names| Some((names[0].to_owned(), find(names)?))).collect()
}

/// The results of one direction.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionMeasurement {
    /// Direction.
    pub direction: Direction,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Mean completion time in nanoseconds.
    pub mean: Option<f64>,
    /// Completion times; several if clones were reported separately and cannot be combined.
    pub times: Vec<CompletionTimes>,
}

impl DirectionMeasurement {
    /// Adds the results of a clone of the job.
    fn add(&mut self, other: Self) {
        let weights = (self.iops, other.iops);
        self.mean = match (self.mean, other.mean) {
            (Some(a), Some(b)) => Some((a * weights.0 + b * weights.1) / (weights.0 + weights.1)),
            (mean, other) => mean.or(other),
        };
        self.iops += other.iops;
        self.bandwidth += other.bandwidth;
        for times in other.times {
            match self.times.first_mut() {
                Some(sum) if !sum.bins.is_empty() && !times.bins.is_empty() => sum.add(&times),
                _ => self.times.push(times),
            }
        }
    }
}

/// A block size in bytes, regardless of its spelling; none if it cannot be parsed.
pub(super) fn bytes(size: &str) -> Option<u64> {
    parse_bytes(size.split([',', '-', ':']).next()?).ok()
}

impl JobMeasurement {
    /// The jobs of a result; `source` is the name of its file.
    pub fn of_result(source: &str, result: &IoResult) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for job in &result.jobs {
            let one = Self::of_job(source, &result.version, job);
            // Without group_reporting each clone has a separate entry; the job's result is their sum.
            let known = found.iter_mut().find(|known| known.is_clone_of(&one));
            match known {
                Some(known) => known.add(one),
                None if !one.did.is_empty() => found.push(one),
                None => {}
            }
        }
        found
    }

    fn is_clone_of(&self, other: &Self) -> bool {
        self.jobs.is_some_and(|jobs| jobs > 1)
            && (&self.job, &self.block_size, &self.pattern) == (&other.job, &other.block_size, &other.pattern)
            && (self.jobs, self.depth, &self.others) == (other.jobs, other.depth, &other.others)
    }

    fn add(&mut self, other: Self) {
        for did in other.did {
            match self.did.iter_mut().find(|known| known.direction == did.direction) {
                Some(known) => known.add(did),
                None => self.did.push(did),
            }
        }
    }

    fn of_job(source: &str, version: &str, job: &JobResult) -> Self {
        let share = |name: &str| job.option(&[name]).and_then(|text| text.parse::<f64>().ok());
        let count = |name: &str| job.option(&[name]).map_or(Some(1), |text| text.parse().ok());
        let pattern = job.option(&["rw", "readwrite"]).unwrap_or("read").to_owned();
        let is_mix = ["rw", "readwrite", "randrw"].contains(&pattern.split(':').next().unwrap_or(""));
        let write = share("rwmixwrite").map(|share| 100.0 - share);
        let mix = is_mix.then(|| share("rwmixread").or(write).unwrap_or(50.0));
        let is_range = job.option(&["bssplit", "bsrange", "blocksize_range"]).is_some();
        let did = job.lines.iter().filter_map(|(word, line)| {
            let direction = Direction::ALL.into_iter().find(|direction| direction.word() == word)?;
            let name = format!("{source} {}", job.name);
            let times = &line.completion;
            let times = if times.count == 0 { &line.total } else { times };
            Some(DirectionMeasurement {
                direction,
                iops: line.iops,
                bandwidth: line.bandwidth,
                mean: (times.count > 0).then_some(times.mean),
                times: vec![CompletionTimes {
                    name,
                    count: times.count,
                    bins: times.bins.clone(),
                    percentiles: times.percentiles.clone(),
                }],
            })
        });
        Self {
            source: source.to_owned(),
            job: job.name.clone(),
            version: version.to_owned(),
            block_size: (!is_range).then(|| job.option(&["bs", "blocksize"]).unwrap_or("4k").to_owned()),
            depth: count("iodepth"),
            jobs: count("numjobs"),
            mix,
            pattern: Some(pattern),
            others: others(|names| job.option(names).map(ToOwned::to_owned)),
            did: did.collect(),
        }
    }

    /// The jobs of a stored run, combined with those of its specification.
    pub fn of_run(report: &RunReport, jobs: &Jobs) -> Vec<Self> {
        let option = |name: &str, names: &[&str]| {
            let job = jobs.jobs.iter().find(|job| job.name == name)?;
            let found = job
                .given
                .iter()
                .rev()
                .chain(jobs.global.iter().rev())
                .find(|(known, _)| names.contains(&known.as_str()));
            found.map(|(_, value)| value.clone())
        };
        let source = match &report.label {
            Some(label) => format!("run {} {label}", report.run),
            None => format!("run {}", report.run),
        };
        let each = report.details.jobs.iter().map(|line| {
            let job = jobs.jobs.iter().find(|job| job.name == line.job);
            let mut did = Vec::new();
            for direction in Direction::ALL {
                let targets = || line.targets.iter().filter(|target| target.direction == direction.word());
                if targets().next().is_none() {
                    continue;
                }
                let timed = || targets().filter_map(|target| Some((target.times_us[0]?, target.ios as f64)));
                let weight: f64 = timed().map(|(_, ios)| ios).sum();
                let mean = timed().map(|(us, ios)| us * ios).sum::<f64>() / weight * 1e3;
                did.push(DirectionMeasurement {
                    direction,
                    iops: targets().map(|target| target.iops).sum(),
                    bandwidth: targets().map(|target| target.bandwidth).sum(),
                    mean: (weight > 0.0).then_some(mean),
                    times: Vec::new(),
                });
            }
            let depth = job.map(|job| u64::from(line.depth_asked) / u64::from(job.clones.max(1)));
            Self {
                source: source.clone(),
                job: line.job.clone(),
                version: format!("kelvin {}", report.recipe.kelvin_version),
                block_size: option(&line.job, &["bs", "blocksize"]),
                depth,
                jobs: job.map(|job| job.clones.into()),
                mix: job
                    .filter(|job| job.pattern.reads && job.pattern.writes)
                    .map(|job| job.pattern.mix_read),
                pattern: option(&line.job, &["rw", "readwrite"]),
                others: others(|names| option(&line.job, names)),
                did,
            }
        });
        each.collect()
    }

    /// A description: job, pattern, block size, depth, workers, tool.
    pub(super) fn about(&self) -> String {
        let mut words = vec![format!("job {}", self.job)];
        words.extend(self.pattern.clone());
        words.extend(self.mix.map(|mix| format!("{mix} % reads")));
        words.extend(self.block_size.as_ref().map(|size| format!("bs {size}")));
        words.extend(self.depth.map(|depth| format!("depth {depth}")));
        words.extend(self.jobs.filter(|jobs| *jobs > 1).map(|jobs| format!("{jobs} jobs")));
        words.extend(self.others_in_words());
        words.push(self.version.clone());
        words.join(", ")
    }

    /// Engine, rates and the like: "ioengine=libaio".
    pub(super) fn others_in_words(&self) -> impl Iterator<Item = String> {
        self.others.iter().map(|(name, value)| format!("{name}={value}"))
    }
}
