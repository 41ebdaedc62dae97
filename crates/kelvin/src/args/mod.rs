//! The command line as typed. What it means is decided in `commands`.

mod ab;
mod choice_parser;
mod doctor;
#[cfg(test)]
mod documents;
mod familiar;
mod format;
mod history;
pub(crate) mod io;
pub(crate) mod io_plot;
mod language;
mod load;
mod observation;
mod observe;
mod pace;
mod parse;
mod pgbench;
mod repeat;
mod reset;
mod runs;
mod script;
mod serve;
mod server;
mod snapshot;
mod squeeze;
mod study;
mod study_analysis;
mod tproc_c;
mod transfer;
mod vioperf;
mod workload;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use kelvin_run::Spec;

pub(crate) use ab::AbArgs;
pub(crate) use doctor::DoctorArgs;
pub(crate) use format::{Format, FormatArgs, OutputArgs};
pub(crate) use history::{CompareArgs, GateArgs, HistoryArgs};
pub(crate) use io::IoArgs;
pub(crate) use observe::ObserveArgs;
pub(crate) use parse::parse;
pub(crate) use runs::{RmArgs, RunsArgs, TagArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use server::{ProfileArgs, ServerCommand, ServerEngine};
pub(crate) use snapshot::{SnapshotCommand, SnapshotTarget};
pub(crate) use squeeze::SqueezeArgs;
pub(crate) use study::{
    FolderArgs, ForkArgs, ListArgs, NewArgs, PlanArgs, RecoverArgs, StudyCommand, StudyFolder, StudyRunArgs,
};
pub(crate) use study_analysis::{AnalyzeArgs, StudyReportArgs};
pub(crate) use transfer::{ExportArgs, ImportArgs};
pub(crate) use vioperf::{Required, VioperfArgs};
pub(crate) use workload::{BuildArgs, CheckArgs, DropArgs, RunArgs};

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "kelvin",
    version = env!("KELVIN_VERSION"),
    about = "Measure a database, and be able to trust the answer",
    long_about = "Measure a database, and be able to trust the answer.\n\nStart with:  kelvin run tproc-c\n\
        It loads one warehouse into an embedded SQLite file, drives it with four virtual users, and prints \
        NOPM, latencies and a self-audit. Add --target postgres to do the same on a PostgreSQL server of its \
        own, or --target postgres://user@host/database for yours. `kelvin run --help` names the other workloads.",
    after_help = "Exit codes: 0 counted · 1 void: measured, not to be used · 2 bad input, nothing measured · \
        3 counted, but transactions failed · 4 failed, part kept · 5 too few runs to tell, 6 too much scatter (gate) · \
        130 partial: interrupted, part kept",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// What every subcommand understands.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// File that holds the results [default: kelvin.db in the user's data directory]
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "KELVIN_STORE",
        hide_env_values = true,
        display_order = 900
    )]
    pub(crate) store: Option<PathBuf>,
    /// Print only results and errors
    #[arg(long, short, global = true, display_order = 900)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Put a load on a database and measure it
    Run(RunArgs),
    /// Drive files and block devices with fio's job files and options, and measure them
    Io(Box<IoArgs>),
    /// Put a load on a database and cut its resources in turn: what does the throughput wait for?
    Squeeze(SqueezeArgs),
    /// Run two or more specifications in turn, in blocks, and tell their ratio
    Ab(AbArgs),
    /// List the groups of runs that belong together, or show one
    Groups(GroupsArgs),
    /// Make and load a workload's tables
    Build(BuildArgs),
    /// Check a workload's data against its consistency conditions
    Check(CheckArgs),
    /// Remove a workload's tables
    Drop(DropArgs),
    /// List the stored runs
    Runs(RunsArgs),
    /// Remove stored runs
    Rm(RmArgs),
    /// Label a stored run, or take its label away
    Tag(TagArgs),
    /// Write stored runs, groups or studies to a file, for another store
    Export(ExportArgs),
    /// Add the runs of an exported file, or of another store
    Import(ImportArgs),
    /// Show a stored run in the terminal
    Show(ShowArgs),
    /// Write a stored run as HTML, JSON, CSV or text
    Report(ReportArgs),
    /// Compare stored runs, groups of runs, or branches
    Compare(CompareArgs),
    /// Show a branch over time, and where its level changed
    History(HistoryArgs),
    /// Judge for continuous integration whether a candidate regressed
    Gate(GateArgs),
    /// Show the stored runs in a browser, and follow those that go on
    Serve(ServeArgs),
    /// A PostgreSQL server that kelvin makes and keeps for its runs
    ///
    /// It is made from the newest installed binaries, listens on no network, and keeps its data in
    /// /var/lib/kelvin for root, in the user's data directory otherwise; the environment variable
    /// KELVIN_SERVERS names another directory. Remove that directory, with the server stopped, to remove the data.
    #[command(subcommand)]
    Server(ServerCommand),
    /// Keep a database as it is, and bring it back
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Answer a question with runs that are planned, shuffled and resumable: factors, levels, a locked hypothesis
    #[command(subcommand)]
    Study(StudyCommand),
    /// Measure this machine before a load: processor, memory, clock, network, disk, and a database's settings
    Doctor(DoctorArgs),
    /// Watch this machine, and a database's part of it, without a load
    Observe(ObserveArgs),
    /// Measure whether storage is fast enough for a column store: MB/s for each core, by vioperf's four tests
    Vioperf(VioperfArgs),
    /// Explain a finding: what it means, how it is seen, its bounds, and what to do
    Explain(ExplainArgs),
    /// Print the completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages
    Man {
        /// Directory to write them into
        directory: PathBuf,
    },
}

/// Flags that say something about a run.
pub(crate) trait Flags {
    /// Puts them on top of what a file, or the defaults, say.
    fn apply(&self, spec: &mut Spec) -> Result<()>;
}

fn set<T: Clone>(place: &mut T, flag: Option<&T>) {
    if let Some(value) = flag {
        *place = value.clone();
    }
}

/// `kelvin groups`.
#[derive(Debug, Args)]
#[command(
    after_help = "`kelvin run … --repeat`, `kelvin ab` and `kelvin study run` make groups. Other commands name them group:3, or \
    group:3/B for one of their treatments.\n\n\
    Examples:\n  kelvin groups                 all of them, with the answer in a few words\n  \
    kelvin groups 3               what was printed when group 3 ended\n  \
    kelvin groups 3 --html ab.html\n  \
    kelvin compare group:3 group:5"
)]
pub(crate) struct GroupsArgs {
    /// The group to show: its number
    pub(crate) group: Option<i64>,
    /// Write the group's page to this file, too: one file that needs no network
    #[arg(long, value_name = "FILE", requires = "group")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin explain checkpoint-in-window\n  kelvin explain            every finding with its question"
)]
pub(crate) struct ExplainArgs {
    /// The finding by its name, as kelvin show and kelvin runs print it
    pub(crate) finding: Option<String>,
}

/// `kelvin show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its number, its label, or "last"; or a group of runs, such as group:3
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Every point in full, every note on the timeline, every finding and every line of evidence
    #[arg(long)]
    pub(crate) all: bool,
    /// The summary that a run ends with, on one screen
    #[arg(long, conflicts_with = "all")]
    pub(crate) brief: bool,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin report`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("format").multiple(false))]
pub(crate) struct ReportArgs {
    /// The run: its number, its label, or "last"
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// One self-contained page that needs no network (the default)
    #[arg(long, group = "format")]
    pub(crate) html: bool,
    /// Everything, for programs
    #[arg(long, group = "format")]
    pub(crate) json: bool,
    /// One row a second; a row a transaction type with =summary, a statement with =statements; what was seen of
    /// host and database by the second with =observed; an I/O job on a file or device with =jobs
    #[arg(long, group = "format", value_name = "ROWS", num_args = 0..=1, require_equals = true,
        default_missing_value = "seconds", value_parser = ["seconds", "summary", "statements", "observed", "jobs"])]
    pub(crate) csv: Option<String>,
    /// What `kelvin show` prints
    #[arg(long, group = "format")]
    pub(crate) text: bool,
    /// text, json, jsonl, csv, markdown or pgbench, as in kelvin show
    #[arg(
        long = "format",
        id = "form",
        group = "format",
        value_name = "FORMAT",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) form: Option<Format>,
    /// Where to; "-" is standard output [default: a file beside the store for HTML, else standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
