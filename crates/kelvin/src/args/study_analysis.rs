//! Flags of `kelvin study analyze` and `kelvin study report`.

use std::path::PathBuf;

use clap::Args;

use super::StudyFolder;

/// `kelvin study analyze`.
#[derive(Debug, Args)]
#[command(
    after_help = "It needs no server: the folder's files and the stored runs say the same every time. The notebook's \
    parts for analysis and next hypotheses, and next.toml, are written anew.\n\n\
    Examples:\n  kelvin study analyze buffers\n  kelvin study analyze buffers --json | jq .verdict"
)]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// As JSON, everything that was found
    #[arg(long)]
    pub(crate) json: bool,
    /// Leave the notebook and next.toml as they are
    #[arg(long)]
    pub(crate) no_write: bool,
}

/// `kelvin study report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin study report buffers                  buffers/report.html and buffers/report.md\n  \
    kelvin study report buffers --with-runs      and a page for each run, linked from the study's\n  \
    kelvin study report buffers -o summary.md    Markdown alone; -o - prints it"
)]
pub(crate) struct StudyReportArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Write to this file alone: Markdown if it ends in .md, HTML otherwise; - prints Markdown [default: report.html and
    /// report.md in the study's folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write a page for each run, too, into the folder runs beside the study's page
    #[arg(long)]
    pub(crate) with_runs: bool,
}
