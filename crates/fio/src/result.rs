//! The result of a run of jobs. Every output and every finding is derived from this alone.

use std::path::PathBuf;

use kelvin_measure::Nanos;

use crate::job::Jobs;
use crate::tick::{DepthCounts, Failures, IoSums, PriorityTimes};
use crate::{BinSums, Direction, Moments, PerDirection};

/// A whole run.
#[derive(Debug, Clone)]
pub struct JobsOutcome {
    /// The requested jobs.
    pub jobs: Jobs,
    /// When it began, in milliseconds since 1970.
    pub started: i64,
    /// From the beginning of the first worker to the end of the last.
    pub elapsed: Nanos,
    /// The workers in their order, including those that never began.
    pub workers: Vec<WorkerOutcome>,
    /// The devices under the targets.
    pub disks: Vec<DiskUse>,
    /// Whether a stop was requested.
    pub interrupted: bool,
}

/// The work of one worker in the measured part.
#[derive(Debug, Clone)]
pub struct WorkerOutcome {
    /// Its job, by its place in `jobs`.
    pub job: usize,
    /// The number of the clone, from 0.
    pub clone: u32,
    /// Its group, from 0: groups are separated by `stonewall` and `new_group`.
    pub group: u32,
    /// Its thread's number at the kernel.
    pub thread: i32,
    /// When it began, in milliseconds since 1970; none when it never did.
    pub started: Option<i64>,
    /// From its first I/O, ramp-up included, to its end.
    pub elapsed: Nanos,
    /// The measured part as it was.
    pub measured: Nanos,
    /// From the first to the last of each direction within the measured part, which rates are divided by.
    pub runtime: PerDirection<Nanos>,
    /// The files and devices, in the order of the ticks.
    pub targets: Vec<TargetOutcome>,
    /// The verifying passes, if there were any: their reads are not included in `targets`.
    pub verified: Option<Verified>,
    /// Samples of the bandwidth in KiB/s.
    pub bandwidth: PerDirection<Samples>,
    /// Samples of the I/Os per second.
    pub iops: PerDirection<Samples>,
    /// Syncs.
    pub syncs: Moments,
    /// The same by bin.
    pub sync_bins: BinSums,
    /// Queue depth.
    pub depth: DepthCounts,
    /// CPU time of the worker, user and system, in the measured part.
    pub cpu: (Nanos, Nanos),
    /// Time that it was ready to run and had no CPU; `None` where the kernel does not report it.
    pub run_delay: Option<Nanos>,
    /// Over how long CPU time and the wait for a CPU were counted: the measured part, and the reading of the counters at its
    /// ends.
    pub counted: Nanos,
    /// Context switches, voluntary and not.
    pub switches: (u64, u64),
    /// Page faults, major and minor.
    pub faults: (u64, u64),
    /// Errors that did not end it.
    pub failures: Vec<Failures>,
    /// The error that ended it early: the kernel's error number and message.
    pub error: Option<(i32, String)>,
    /// The depth found by a latency target, and whether the target was met.
    pub latency_depth: Option<u32>,
    /// The result of `steadystate`.
    pub steady: Option<SteadyOutcome>,
    /// Notes for the reader, such as a reduced depth.
    pub notes: Vec<String>,
}

/// One file or device.
#[derive(Debug, Clone)]
pub struct TargetOutcome {
    /// Its path.
    pub path: PathBuf,
    /// The block device below it, such as `vda`; `None` if there is none.
    pub device: Option<String>,
    /// By direction.
    pub directions: PerDirection<DirectionOutcome>,
}

/// The reads of verifying passes.
#[derive(Debug, Clone, Default)]
pub struct Verified {
    /// By direction.
    pub directions: PerDirection<DirectionOutcome>,
    /// The duration of the passes, including those of a backlog.
    pub time: Nanos,
}

impl std::ops::Index<Direction> for Verified {
    type Output = DirectionOutcome;

    fn index(&self, direction: Direction) -> &DirectionOutcome {
        &self.directions[direction]
    }
}

/// Times of the I/Os of one priority.
pub type PriorityOutcome = PriorityTimes<BinSums>;

impl PriorityOutcome {
    /// The class: 0 where none was requested.
    pub fn class(&self) -> u16 {
        self.priority >> 13
    }

    /// The level.
    pub fn level(&self) -> u16 {
        self.priority & 7
    }

    /// fio's label: "clat prio 1/0".
    pub(crate) fn name(&self, times: &str) -> String {
        format!("{times} prio {}/{}", self.class(), self.level())
    }
}

/// One direction: sums of the measured part; priorities ascending.
pub type DirectionOutcome = IoSums<BinSums, BinSums>;

impl DirectionOutcome {
    /// Adds the completed I/Os of a tick.
    #[inline]
    pub fn add(&mut self, tally: &crate::tick::Tally) {
        self.add_moments(tally);
        self.completion_bins.add(&tally.completion_bins);
        let optional = [
            (&mut self.total_bins, &tally.total_bins),
            (&mut self.submission_bins, &tally.submission_bins),
            (&mut self.response_bins, &tally.response_bins),
        ];
        for (sums, bins) in optional {
            if let Some(bins) = bins {
                sums.add(bins);
            }
        }
        for one in &tally.priorities {
            let known = self.of_priority(one.priority);
            known.times.merge(&one.times);
            known.bins.add(&one.bins);
        }
    }

    /// As in fio: a single priority shows nothing beyond the values of the direction.
    pub(crate) fn shown_priorities(&self) -> &[PriorityOutcome] {
        if self.priorities.len() > 1 { &self.priorities } else { &[] }
    }

    /// The entry of a priority, created on first use.
    #[inline]
    fn of_priority(&mut self, priority: u16) -> &mut PriorityOutcome {
        let place = self.priorities.partition_point(|one| one.priority < priority);
        if self.priorities.get(place).is_none_or(|one| one.priority != priority) {
            let (times, bins) = (Moments::default(), BinSums::default());
            self.priorities.insert(place, PriorityOutcome { priority, times, bins });
        }
        &mut self.priorities[place]
    }

    /// Adds another's sums.
    #[inline]
    pub fn merge(&mut self, other: &Self) {
        self.add_moments(other);
        self.completion_bins.merge(&other.completion_bins);
        self.total_bins.merge(&other.total_bins);
        self.submission_bins.merge(&other.submission_bins);
        self.response_bins.merge(&other.response_bins);
        for one in &other.priorities {
            let known = self.of_priority(one.priority);
            known.times.merge(&one.times);
            known.bins.merge(&one.bins);
        }
    }
}

/// Samples of a rate over equal windows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Samples {
    /// Their number.
    pub count: u64,
    /// Least, greatest.
    pub range: (f64, f64),
    /// Sum and sum of squares.
    pub sums: (f64, f64),
}

impl Samples {
    /// Adds a sample.
    #[inline]
    pub fn record(&mut self, value: f64) {
        self.range =
            if self.count == 0 { (value, value) } else { (self.range.0.min(value), self.range.1.max(value)) };
        self.count += 1;
        self.sums.0 += value;
        self.sums.1 += value * value;
    }

    /// Their mean; 0 when there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sums.0 / self.count as f64 }
    }

    /// Their standard deviation (of a sample); 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        ((self.sums.1 - self.sums.0 * self.sums.0 / n).max(0.0) / (n - 1.0)).sqrt()
    }
}

/// The result of `steadystate`.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyOutcome {
    /// Whether it was reached.
    pub attained: bool,
    /// The deviation or slope at the end, in the criterion's unit.
    pub criterion: f64,
    /// The largest deviation from the mean.
    pub max_deviation: f64,
    /// The slope.
    pub slope: f64,
    /// I/Os per second by interval of the last window.
    pub iops: Vec<f64>,
    /// Bytes per second.
    pub bandwidth: Vec<f64>,
    /// Completion time, mean in nanoseconds.
    pub latency: Vec<f64>,
}

/// A device's own counters over the run (`/proc/diskstats`), all its users together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskUse {
    /// Its name.
    pub name: String,
    /// Reads, writes, trims that the device did.
    pub ios: PerDirection<u64>,
    /// Requests merged.
    pub merges: PerDirection<u64>,
    /// Sectors of 512 bytes.
    pub sectors: PerDirection<u64>,
    /// Time of requests, in milliseconds.
    pub ticks: PerDirection<u64>,
    /// Flushes.
    pub flushes: u64,
    /// Weighted time in queue, in milliseconds.
    pub in_queue: u64,
    /// Time with at least one request in flight, in milliseconds.
    pub busy: u64,
    /// Over how long, in milliseconds.
    pub elapsed: u64,
    /// The devices below it (of a mapped or RAID device).
    pub below: Vec<DiskUse>,
}
