//! Flags of `kelvin study analyze` and `kelvin study report`.

use std::path::PathBuf;

use clap::Args;

use super::StudyFolder;

/// `kelvin study analyze`.
#[derive(Debug, Args)]
#[command(
    after_help = "It needs no server: the same files and stored runs always give the same result. The \
    notebook's sections for analysis and next hypotheses, and next.toml, are rewritten.\n\
    \n\
    Examples:\n\
    \x20 kelvin study analyze buffers\n\
    \x20 kelvin study analyze buffers --json | jq .verdict"
)]
pub(crate) struct AnalyzeArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Print the complete analysis as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not change the notebook and next.toml
    #[arg(long)]
    pub(crate) no_write: bool,
}

/// `kelvin study report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    kelvin study report buffers                  buffers/report.html and buffers/report.md\n  \
    kelvin study report buffers --with-runs      also a page for each run, linked from the report\n  \
    kelvin study report buffers -o summary.md    only Markdown; -o - prints it")]
pub(crate) struct StudyReportArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Write only this file: Markdown if it ends in .md, HTML otherwise; - prints Markdown [default: report.html and
    /// report.md in the study's folder]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Also write a page for each run, in the folder runs next to the study's page
    #[arg(long)]
    pub(crate) with_runs: bool,
}
