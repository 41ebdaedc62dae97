//! What each I/O job of a run did on each of its files and devices, as it is kept beside the run's counts.

use serde::{Deserialize, Serialize};

/// One job, all its clones together, in the measured part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobLine {
    /// Its name.
    pub job: String,
    /// The point of the run that it belongs to.
    pub point: u32,
    /// Its clones.
    pub workers: u32,
    /// What it does, in a sentence: pattern, block size, direct or cached, engine, depth, closed or open loop.
    pub how: String,
    /// I/Os that all its clones together may have under way.
    pub depth_asked: u32,
    /// I/Os that were under way on average, by Little's law; none where times were not taken.
    pub depth_reached: Option<f64>,
    /// Seconds of the measured part, of the clone that took longest.
    pub seconds: f64,
    /// CPU time of its threads in microseconds for each I/O; none without an I/O.
    pub cpu_us: Option<f64>,
    /// By file or device and direction; what had no I/O is left out.
    pub targets: Vec<TargetLine>,
}

impl JobLine {
    /// "job reader: random reads of 4 KiB, …".
    pub fn describe(&self) -> String {
        describe_job(&self.job, &self.how)
    }
}

/// A job with what it does, in a sentence.
pub fn describe_job(job: &str, how: &str) -> String {
    format!("job {job}: {how}")
}

/// One direction of a job on one file or device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetLine {
    /// The file or device.
    pub path: String,
    /// The block device below it.
    pub device: Option<String>,
    /// "read", "write" or "trim".
    pub direction: String,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// I/Os a second.
    pub iops: f64,
    /// Bytes a second.
    pub bandwidth: f64,
    /// Completion times in microseconds: mean, p50, p95, p99; none where fewer than ten I/Os lie beyond a percentile.
    pub times_us: [Option<f64>; 4],
    /// I/Os that were under way here on average, by Little's law.
    pub depth_reached: Option<f64>,
    /// I/Os that failed.
    pub failed: u64,
}
