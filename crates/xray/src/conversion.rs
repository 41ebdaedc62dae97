//! A scenario of Kelvin's, as it is made from one of X-Ray's.

use crate::claim::Claim;
use crate::fault::{Fault, Location};
use crate::result::ResultMeasure;

/// A scenario of Kelvin's.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// Nodes of the imitated cluster.
    pub nodes: u32,
    /// The loads.
    pub tenants: Vec<Tenant>,
    /// What is done, one after another.
    pub steps: Vec<ConvertedStep>,
    /// What the results are judged by.
    pub expectations: Vec<Expectation>,
    /// Bytes of all files and devices, as far as the job files say it.
    pub bytes: u64,
    /// What means nothing without a hypervisor, and is left out.
    pub notes: Vec<String>,
    /// What the scenario measures only with a hypervisor.
    pub warnings: Vec<Fault>,
}

/// A load: a workload on the copies of its group.
#[derive(Debug, Clone, PartialEq)]
pub struct Tenant {
    /// Its name in the scenario.
    pub name: String,
    /// X-Ray's name.
    pub workload: String,
    /// X-Ray's group.
    pub group: String,
    /// How many machines are imitated.
    pub copies: u32,
    /// The agents of a fleet that run its machines; none of machines on this host.
    pub agents: Vec<String>,
    /// The text of its job file.
    pub job: String,
    /// Where each line of the text comes from; the file is empty for a line that is added.
    pub job_lines: Vec<Location>,
    /// What decides its random values, where the scenario says it.
    pub seed: Option<u32>,
    /// Seconds of its longest start, where the scenario says it.
    pub runtime: Option<f64>,
    /// Whether it is started in the part that is measured.
    pub measured: bool,
    /// Milliseconds after which its jobs end, where no step ends them.
    pub(crate) by_itself: Option<u64>,
}

/// A step, with what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvertedStep {
    /// X-Ray's step.
    pub source: &'static str,
    /// Its line.
    pub line: u32,
    /// What is done.
    pub action: ConvertedAction,
}

/// What a step does. Times are in seconds; tenants are indexes.
#[derive(Debug, Clone, PartialEq)]
pub enum ConvertedAction {
    /// Lay out the tenant's files, and write what was never written.
    Fill(usize),
    /// Begin the tenant's load.
    Start {
        /// Which.
        tenant: usize,
        /// It ends after this; none where it ends by itself or by a stop.
        runtime: Option<f64>,
        /// Its copies begin over this time.
        stagger: Option<f64>,
    },
    /// Wait until the tenant has ended, but not longer than this.
    WaitFor(usize, f64),
    /// End the tenant's load.
    Stop(usize),
    /// Wait.
    Pause(f64),
    /// Run a command, not longer than this.
    Run {
        /// For the shell.
        command: String,
        /// The longest time; none for Kelvin's own.
        timeout: Option<f64>,
        /// Whether its failure ends the scenario.
        may_fail: bool,
    },
    /// Run a command so many times, with pauses between them; `${round}` in it is the number.
    Repeat {
        /// How many times.
        count: u32,
        /// For the shell.
        command: String,
        /// Between two of them.
        interval: f64,
    },
    /// Mark the charts.
    Mark(String),
}

/// What a result of X-Ray's becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// X-Ray's name for the result.
    pub result: String,
    /// The tenant, as an index.
    pub tenant: usize,
    /// What is expected.
    pub measure: ResultMeasure,
    /// What every point is expected to be near: of all copies, or of each.
    pub expected: Option<f64>,
    /// Whether the points are sums of all copies.
    pub summed: bool,
    /// The bands of the points, theirs and the computed ones.
    pub claims: Vec<Claim>,
    /// Seconds that a point counts.
    pub width: f64,
    /// The mean completed I/Os per second of each copy that are asked for.
    pub throughput: Option<(f64, f64)>,
    /// No I/O may fail.
    pub no_errors: bool,
    /// What is odd in the claim.
    pub remark: Option<String>,
}
