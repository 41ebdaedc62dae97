//! `kelvin study`'s subcommands and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use kelvin_lab::study::Share;

use super::{AnalyzeArgs, StudyReportArgs};

/// `kelvin study`.
#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// Create a folder with a study.toml to fill in and a notebook.md
    New(NewArgs),
    /// Show every planned run with its settings, the time left, and the effects that can be detected
    Plan(PlanArgs),
    /// Lock the hypothesis before the first run; later changes are shown as deviations
    #[command(after_help = "Example:\n  kelvin study lock buffers    writes buffers/lock.json, once")]
    Lock(FolderArgs),
    /// Run the study; after a crash, a reboot or Ctrl-C, the same command resumes it
    Run(StudyRunArgs),
    /// Analyze the runs: effects, interactions, the verdict on the hypothesis; needs no server
    Analyze(AnalyzeArgs),
    /// Write the study's report, in eight phases, as HTML and Markdown
    Report(StudyReportArgs),
    /// List the known studies
    List(ListArgs),
    /// Show the status of a study: runs, void runs with their reasons, deviations
    #[command(after_help = "Example:\n  kelvin study show buffers")]
    Show(FolderArgs),
    /// Create a follow-up study: a copy of study.toml, not locked, without runs, with a link to this study
    Fork(ForkArgs),
    /// Revert the changes of a study that was ended by kill -9 or a power failure
    Recover(RecoverArgs),
}

/// Which study.
#[derive(Debug, Clone, Args)]
pub(crate) struct StudyFolder {
    /// The study: its folder, or its name if `kelvin study list` shows it
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// A command that needs only the study.
#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
}

/// `kelvin study new`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n\
    \x20 kelvin study new buffers             one factor at two levels, on SQLite; ready to run\n\
    \x20 kelvin study new buffers --example   three PostgreSQL settings, 2 × 2 × 2\n\
    \n\
    Then: edit buffers/study.toml, kelvin study plan buffers, kelvin study lock buffers, kelvin study run \
    buffers.")]
pub(crate) struct NewArgs {
    /// The folder to create; its last component is the study's name
    #[arg(value_name = "NAME")]
    pub(crate) folder: PathBuf,
    /// A study of synchronous_commit × shared_buffers × huge pages on kelvin's own PostgreSQL server
    #[arg(long)]
    pub(crate) example: bool,
}

/// `kelvin study plan`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin study plan buffers\n  kelvin study plan buffers --cv 3%    assume that \
                  runs vary by 3 %"
)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Variation from run to run to assume (standard deviation ÷ mean), such as 1.5% [default: as measured by the runs;
    /// before the first runs, the file's assumed-cv]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) cv: Option<Share>,
}

/// `kelvin study run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Settings changed for a factor are always restored when the command ends; after kill -9, by \
    kelvin study recover or the next kelvin study run. A run that fails its checks is void: it is stored, \
    reported, and replaced at the end of its block while replacements are left.\n\
    \n\
    Without kelvin study lock before the first run, the results are exploratory.\n\
    \n\
    Examples:\n\
    \x20 kelvin study run buffers                    start, or resume after Ctrl-C, a crash or a reboot\n\
    \x20 kelvin study run buffers --replacements 12  if the file's replacements are used up"
)]
pub(crate) struct StudyRunArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// Maximum number of replaced runs in total, earlier ones included [default: that of the file, or 20 % of the runs]
    #[arg(long, value_name = "N")]
    pub(crate) replacements: Option<u32>,
    /// Let the study run shell commands: command factors, and \shell in scripts
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Let the study change settings of an external server; they are restored
    #[arg(long)]
    pub(crate) allow_settings: bool,
    /// Let I/O jobs write to this block device even if it is mounted, in use or holds data; may be given several times
    #[arg(long, value_name = "DEVICE")]
    pub(crate) i_know_it_destroys: Vec<PathBuf>,
}

/// `kelvin study list`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  kelvin study list\n  kelvin study list ~/studies --json | jq .state")]
pub(crate) struct ListArgs {
    /// Also search these folders: studies, or folders that contain studies
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Print JSON, one study per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// `kelvin study fork`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  kelvin study fork buffers buffers-2")]
pub(crate) struct ForkArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
    /// The folder to create; its last component is the new study's name
    #[arg(value_name = "NEW")]
    pub(crate) to: PathBuf,
}

/// `kelvin study recover`.
#[derive(Debug, Args)]
#[command(
    after_help = "`kelvin study run` also does this before its first run.\n\nExample:\n  kelvin study \
                  recover buffers"
)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    pub(crate) study: StudyFolder,
}
