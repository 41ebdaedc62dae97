//! `kelvin observe`'s flags.

use std::path::PathBuf;

use clap::Args;
use kelvin_run::spec::{Span, TargetName};

/// `kelvin observe`.
#[derive(Debug, Args)]
#[command(
    after_help = "What is seen is printed and not stored: it is no run. --output keeps it in a file, one event a \
    line, as `kelvin run --json` prints them. Ctrl-C ends the watching and prints the summary of what there was."
)]
pub(crate) struct ObserveArgs {
    /// How long
    #[arg(long, short, value_name = "TIME", default_value = "1m")]
    pub(crate) duration: Span,
    /// From one look to the next, 100ms to 1m
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Span,
    /// Watch this database as well, and tell its devices and processes from others
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<TargetName>,
    /// Read a Prometheus endpoint of another host as well: node_exporter, postgres_exporter, pcm-exporter; may be given
    /// several times
    #[arg(long, value_name = "URL")]
    pub(crate) scrape: Vec<String>,
    /// Keep every event in this file, one a line as JSON
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print every event as a line of JSON, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
