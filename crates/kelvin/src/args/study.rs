//! `kelvin study`'s subcommands and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kelvin_lab::study::Share;

use super::{AnalyzeArgs, StudyReportArgs};

/// `kelvin study`.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Make a folder with a study.toml to fill in and a notebook.md
    New(NewArgs),
    /// Show every run that a study will make, what is changed for it, the time left, and what it can find
    Plan(PlanArgs),
    /// Fix the hypothesis before the first run; what is changed later shows as a deviation
    #[command(after_help = "Example:\n  kelvin study lock buffers    writes buffers/lock.json, once")]
    Lock(FolderArgs),
    /// Make the runs that are left; after a crash, a reboot or Ctrl-C the same command goes on
    Run(StudyRunArgs),
    /// Say what the runs show: effects, interactions, the verdict on the hypothesis; no server is needed
    Analyze(AnalyzeArgs),
    /// Write the study as one page in its eight phases, HTML and Markdown
    Report(StudyReportArgs),
    /// List the studies that kelvin knows
    List(ListArgs),
    /// Show where a study stands: runs, void runs with their reasons, deviations
    #[command(after_help = "Example:\n  kelvin study show buffers")]
    Show(FolderArgs),
    /// Begin the next study from this one: the same file, nothing fixed, nothing run, a link to this one
    Fork(ForkArgs),
    /// Put back what a study changed when it was ended by kill -9 or a power cut
    Recover(RecoverArgs),
}

/// Which study.
#[derive(Debug, Clone, Args)]
pub(crate) struct StudyFolder {
    /// The study: its folder, or its name if `kelvin study list` knows it
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// A command that needs nothing but the study.
#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
}

/// `kelvin study new`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin study new buffers             one factor at two levels; runs as it stands, on SQLite\n  \
    kelvin study new buffers --example   three settings of PostgreSQL, 2 × 2 × 2\n\n\
    Then: edit buffers/study.toml, kelvin study plan buffers, kelvin study lock buffers, kelvin study run buffers."
)]
pub(crate) struct NewArgs {
    /// The folder to make; its last part is the study's name
    #[arg(value_name = "NAME")]
    pub(crate) folder: PathBuf,
    /// A study of synchronous_commit × shared_buffers × huge pages on a PostgreSQL server of kelvin's own
    #[arg(long)]
    pub(crate) example: bool,
}

/// `kelvin study plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin study plan buffers\n  kelvin study plan buffers --cv 3%    reckon with runs that scatter by 3 %"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Variation from run to run to reckon with (standard deviation ÷ mean), such as 1.5% [default: what the runs show,
    /// before that the file's assumed-cv]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) cv: Option<Share>,
}

/// `kelvin study run`.
#[derive(Debug, Args)]
#[command(
    after_help = "A factor that is put on is put back, however this ends; after kill -9, by kelvin study recover or by \
    the next kelvin study run. A run that fails its checks is void: kept, told, and made again at the end of its block, as \
    long as there are replacements.\n\n\
    Without kelvin study lock before the first run, what is found is exploratory.\n\n\
    Examples:\n  kelvin study run buffers                    also to go on after Ctrl-C, a crash or a reboot\n  \
    kelvin study run buffers --replacements 12  when the void runs have used up what the file allows"
)]
pub(crate) struct StudyRunArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// The most runs that may be made again, those of before included [default: the file's, or a fifth of all]
    #[arg(long, value_name = "N")]
    pub(crate) replacements: Option<u32>,
    /// Let the study's file run shell commands: its command factors, and \shell in its scripts
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Let the study change settings of a server that is not kelvin's own; they are put back
    #[arg(long)]
    pub(crate) allow_settings: bool,
    /// Let its I/O jobs write to this block device although it is mounted, in use or holds data; may be there several times
    #[arg(long, value_name = "DEVICE")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
}

/// `kelvin study list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kelvin study list\n  kelvin study list ~/studies --json | jq .state")]
pub(crate) struct ListArgs {
    /// Folders to look at too: studies, or folders that hold some
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// As JSON, one study a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// `kelvin study fork`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kelvin study fork buffers buffers-2")]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// The folder to make; its last part is the new study's name
    #[arg(value_name = "NEW")]
    pub(crate) to: PathBuf,
}

/// `kelvin study recover`.
#[derive(Debug, Args)]
#[command(
    after_help = "`kelvin study run` does it, too, before its first run.\n\nExample:\n  kelvin study recover buffers"
)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
}
