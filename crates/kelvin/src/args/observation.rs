//! The flags of observation during a load.

use clap::Args;
use kelvin_observe::engine::ExplainSample;
use kelvin_run::Spec;
use kelvin_run::spec::Span;

use super::set;

/// What is observed during the load.
#[derive(Debug, Clone, Args)]
pub(crate) struct ObservationArgs {
    /// Do not observe host and database during the load
    #[arg(long, conflicts_with_all = ["observe", "observe_interval", "sample_rate", "scrape", "explain_sample"], help_heading = "Observation")]
    no_observe: bool,

    /// How closely to observe the database; "deep" enables Performance Schema instruments of MySQL and MariaDB during
    /// the run, which show latches by name and cost CPU [default: normal]
    #[arg(long, value_name = "DEPTH", help_heading = "Observation")]
    observe: Option<Depth>,

    /// Interval between readings of host and database counters, at least 100ms [default: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Observation")]
    observe_interval: Option<Span>,

    /// Samples per second of the sessions' wait events, 1 to 100 [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Observation")]
    sample_rate: Option<u32>,

    /// Record the block I/O requests of all devices during the run (requires root), to show which files they are for,
    /// how sequential and bursty they are, and the effect of a cache (see kelvin trace)
    #[arg(long, help_heading = "Observation")]
    trace: bool,

    /// With --trace: do not estimate after the run how many of the blocks read contain only zeros, which takes a few
    /// seconds
    #[arg(long, help_heading = "Observation")]
    no_trace_zeros: bool,

    /// After the window, execute the most time-consuming statements once more with EXPLAIN (ANALYZE), each in a
    /// transaction that is rolled back, and compare the planner's row estimates with the actual rows (PostgreSQL,
    /// MySQL, MariaDB); "writes" includes statements that change data (PostgreSQL)
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "reads",
        help_heading = "Observation")]
    explain_sample: Option<ExplainWhich>,

    /// Also read a Prometheus endpoint of another host: `node_exporter`, `postgres_exporter`, `pcm-exporter`;
    /// may be given several times
    #[arg(long, value_name = "URL", help_heading = "Observation")]
    scrape: Vec<String>,
}

/// How closely the database is observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Depth {
    // What the server shows with its present settings.
    Normal,
    // Also what it shows with instruments that are off by default. Not a doc comment: with help for
    // one value, clap prints the help of every flag as a paragraph.
    Deep,
}

/// Which statements are executed for their plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExplainWhich {
    // Statements that only read.
    Reads,
    // Also statements that change data.
    Writes,
}

impl From<ExplainWhich> for ExplainSample {
    fn from(which: ExplainWhich) -> Self {
        match which {
            ExplainWhich::Reads => Self::Reads,
            ExplainWhich::Writes => Self::Writes,
        }
    }
}

impl ObservationArgs {
    /// Applies the flags on top of the file.
    pub(super) fn apply(&self, spec: &mut Spec) {
        let observe = &mut spec.observe;
        set(&mut observe.interval, self.observe_interval.as_ref());
        set(&mut observe.sample_rate, self.sample_rate.as_ref());
        if let Some(depth) = self.observe {
            observe.deep = depth == Depth::Deep;
            observe.enabled = true;
        }
        observe.trace |= self.trace;
        observe.trace_zeros &= !self.no_trace_zeros;
        if let Some(which) = self.explain_sample {
            observe.explain = Some(which.into());
            observe.enabled = true;
        }
        if self.observe_interval.is_some() || self.sample_rate.is_some() || !self.scrape.is_empty() {
            observe.enabled = true;
        }
        if self.no_observe {
            observe.enabled = false;
            observe.deep = false;
            observe.explain = None;
        }
        if !self.scrape.is_empty() {
            observe.scrape.clone_from(&self.scrape);
        }
    }
}
