//! Facts that only the run provides, as plain data.

use serde::{Deserialize, Serialize};

use kelvin_fio::PerDirection;

/// Facts that only the run provides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunFacts {
    /// Seconds between the two readings of all counters.
    pub seconds: f64,
    /// Bytes that the jobs moved in that time, ramp-up included.
    pub claimed: PerDirection<u64>,
    /// I/Os of the jobs in that time.
    pub ios: PerDirection<u64>,
    /// Bytes that the verifying pass read.
    pub verified: u64,
    /// Bytes that this process requested from all block devices, read and written (`/proc/self/io`).
    pub process: Option<(u64, u64)>,
    /// The devices' own counters.
    pub devices: Vec<DeviceRun>,
    /// Other processes with I/O, in descending order of bytes.
    pub others: Vec<OtherProcess>,
    /// The CPUs.
    pub cpu: CpuRun,
    /// Dirty bytes in the page cache when the run began: their writes to a device are not the run's.
    pub dirty_before: u64,
    /// By job.
    pub jobs: Vec<JobRun>,
    /// The largest number of kernel threads that did I/O for io_uring at a time.
    pub io_workers: u32,
}

/// A device's counts between the two readings, for all its users together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeviceRun {
    /// Its name.
    pub name: String,
    /// I/Os.
    pub ios: PerDirection<u64>,
    /// I/Os that were merged into others.
    pub merges: PerDirection<u64>,
    /// Bytes.
    pub bytes: PerDirection<u64>,
    /// Flushes.
    pub flushes: u64,
    /// Milliseconds with at least one request in flight.
    pub busy: u64,
    /// Milliseconds in the queue, summed over requests.
    pub queued: u64,
}

/// Another process's I/O.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtherProcess {
    /// Its name.
    pub name: String,
    /// Its process ID.
    pub process: u32,
    /// Bytes read from block devices.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
}

/// The CPUs between the two readings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuRun {
    /// Share of all CPU time that was not idle.
    pub busy: Option<f64>,
    /// Share of all CPU time that the hypervisor gave to others.
    pub steal: Option<f64>,
    /// Seconds in which the control group's threads were throttled.
    pub throttled: Option<f64>,
}

/// The work of a job's workers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobRun {
    /// Workers that did something.
    pub workers: u32,
    /// Seconds of the measured part, mean of the workers.
    pub seconds: f64,
    /// I/Os of the measured part.
    pub ios: PerDirection<u64>,
    /// Bytes of the measured part.
    pub bytes: PerDirection<u64>,
    /// I/Os in flight per worker, by Little's law: the sum of their times divided by the time.
    pub depth: Option<f64>,
    /// Mean time from handing an I/O over to its completion, in nanoseconds.
    pub latency: Option<f64>,
    /// I/Os in flight when each was issued, mean.
    pub issued_depth: Option<f64>,
    /// Share of the time that the busiest worker was on a CPU.
    pub cpu: f64,
    /// CPU time of all workers per I/O, in nanoseconds.
    pub cpu_per_io: Option<f64>,
    /// Largest share of the time that a worker was ready to run without a CPU.
    pub run_delay: Option<f64>,
    /// Completion times.
    pub completion: PerDirection<Option<TimeSummary>>,
    /// Times from the intended start, where there is a rate.
    pub response: PerDirection<Option<TimeSummary>>,
    /// Bytes per second, one value for each [`JobRun::step`] of the measured part.
    pub series: Vec<f64>,
    /// Seconds per value of the series.
    pub step: f64,
    /// For a job with several devices: each device, its I/Os and their mean total time.
    pub devices: Vec<(String, u64, f64)>,
    /// The depth found by a latency target.
    pub latency_depth: Option<u32>,
}

/// Summary of a distribution, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeSummary {
    /// Their number.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// 50 % do not exceed it.
    pub median: u64,
    /// 99 % do not exceed it; `None` if there are too few.
    pub p99: Option<u64>,
}
