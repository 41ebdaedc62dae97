//! `kelvin observe`'s flags.

use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::{Span, TargetName};

/// `kelvin observe`.
#[derive(Debug, Args)]
#[command(
    after_help = "The observations are printed, not stored: they are not a run. --output writes them to a \
    file, one event per line, as `kelvin run --json` prints them. Ctrl-C ends the observation and prints its \
    summary."
)]
pub(crate) struct ObserveArgs {
    /// How long to observe
    #[arg(long, short, value_name = "TIME", default_value = "1m")]
    pub(crate) duration: Span,
    /// Interval between readings, 100ms to 1m
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Span,
    /// Also observe this database, and show its devices and processes separately
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<TargetName>,
    /// Also read a Prometheus endpoint of another host: node_exporter, postgres_exporter, pcm-exporter; may be given
    /// several times
    #[arg(long, value_name = "URL")]
    pub(crate) scrape: Vec<String>,
    /// Write every event to this file as JSON, one per line
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print only the events as JSON, one per line
    #[arg(long)]
    pub(crate) json: bool,
}
