//! The command line as typed. `commands` interprets it.

mod ab;
mod advise;
mod cache;
mod choice_parser;
mod doctor;
#[cfg(test)]
mod documents;
mod fleet;
mod fleet_collect;
mod format;
mod hammerdb;
mod history;
pub(crate) mod io;
pub(crate) mod io_plot;
mod language;
mod load;
#[cfg(test)]
mod manifests;
mod observation;
mod observe;
mod other_tools;
mod pace;
mod parse;
mod pgbench;
mod repeat;
mod reset;
mod runs;
mod scan;
mod scenario;
mod script;
mod serve;
mod server;
mod snapshot;
mod squeeze;
mod study;
mod study_analysis;
mod tproc_c;
mod tproc_h;
mod trace;
mod transfer;
mod vioperf;
mod waits;
mod workload;
mod xray;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use kelvin_run::Spec;

pub(crate) use ab::AbArgs;
pub(crate) use advise::{AdviseArgs, Tried};
pub(crate) use cache::{CacheCommand, CacheProveArgs};
pub(crate) use doctor::DoctorArgs;
pub(crate) use fleet::{AgentArgs, FleetCommand, FleetNameArgs, FleetUpArgs, NatsArgs, RunFleetArgs};
pub(crate) use fleet_collect::{FleetCollectArgs, FleetResumeArgs};
pub(crate) use format::{Format, FormatArgs, OutputArgs};
pub(crate) use hammerdb::{HammerdbArgs, HammerdbCommand, HammerdbRunArgs};
pub(crate) use history::{CompareArgs, GateArgs, HistoryArgs, HistoryPlaceArgs};
pub(crate) use io::IoArgs;
pub(crate) use observe::ObserveArgs;
pub(crate) use parse::parse;
pub(crate) use runs::{RmArgs, RunsArgs, TagArgs};
pub(crate) use scenario::{ScenarioCommand, ScenarioFile, ScenarioFileArgs, ScenarioRunArgs};
pub(crate) use serve::ServeArgs;
pub(crate) use server::{ProfileArgs, ServerCommand, ServerEngine};
pub(crate) use snapshot::{SnapshotCommand, SnapshotTarget};
pub(crate) use squeeze::SqueezeArgs;
pub(crate) use study::{
    FolderArgs, ForkArgs, ListArgs, NewArgs, PlanArgs, RecoverArgs, StudyCommand, StudyFolder, StudyRunArgs,
};
pub(crate) use study_analysis::{AnalyzeArgs, StudyReportArgs};
pub(crate) use trace::{
    TraceCacheArgs, TraceCommand, TraceCsvArgs, TraceFileArgs, TracePolicy, TraceRecordArgs, TraceShowArgs,
    TraceStreams, TraceToFioArgs,
};
pub(crate) use transfer::{ExportArgs, ImportArgs};
pub(crate) use vioperf::{Required, VioperfArgs};
pub(crate) use waits::{Measure, PlansOf, SampledServerArgs, TopSqlArgs, WaitsArgs};
pub(crate) use workload::{BuildArgs, CheckArgs, DropArgs, RunArgs};
pub(crate) use xray::XrayArgs;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "kelvin",
    version = env!("KELVIN_VERSION"),
    about = "Measure a database, and trust the result",
    long_about = "Measure a database, and trust the result.\n\
        \n\
        Start with:  kelvin run tproc-c\n\
        It loads one warehouse into a temporary SQLite database, drives it with four virtual users, and \
        prints NOPM, latencies and a self-audit. Add --target postgres to do the same on a PostgreSQL \
        server that kelvin sets up, or --target postgres://user@host/database to use yours. `kelvin run \
        --help` lists the other workloads.",
    after_help = "Exit codes: 0 counted · 1 void: measured, but must not be used · 2 bad input, nothing \
        measured · 3 counted, but transactions failed · 4 failed, partial data kept · 5 too few runs, \
        6 too much scatter (gate) · 130 partial: interrupted, partial data kept",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Options of every subcommand.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// File in which results are stored [default: kelvin.db in the user's data directory]
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
    /// Run a load on a database and measure it
    Run(RunArgs),
    /// Drive files and block devices with fio's job files and options, and measure them
    Io(Box<IoArgs>),
    /// Reduce one resource at a time under load, to find which one limits throughput
    Squeeze(SqueezeArgs),
    /// Run several loads on one timeline, and measure how they affect each other
    #[command(subcommand)]
    Scenario(ScenarioCommand),
    /// Compare two or more specifications by running them alternately in blocks
    Ab(AbArgs),
    /// List changes that may improve a stored run, with upper bounds of their gains, and try them
    Advise(AdviseArgs),
    /// List groups of related runs, or show one
    Groups(GroupsArgs),
    /// Create and load a workload's tables
    Build(BuildArgs),
    /// Check a workload's data against its consistency conditions
    Check(CheckArgs),
    /// Remove a workload's tables
    Drop(DropArgs),
    /// List the stored runs
    Runs(RunsArgs),
    /// Remove stored runs
    Rm(RmArgs),
    /// Label a stored run, or remove its label
    Tag(TagArgs),
    /// Export stored runs, groups or studies to a file, for import into another store
    Export(ExportArgs),
    /// Import runs from an exported file or another store
    Import(ImportArgs),
    /// Show a stored run in the terminal
    Show(ShowArgs),
    /// Write a stored run as HTML, JSON, CSV or text
    Report(ReportArgs),
    /// Compare stored runs, groups of runs, or branches
    Compare(CompareArgs),
    /// Show the results of a branch over time, and where their level changed
    History(HistoryArgs),
    /// Fail a CI job if a candidate has regressed
    Gate(GateArgs),
    /// Show the stored runs in a browser, and follow runs in progress
    Serve(ServeArgs),
    /// Manage kelvin's own PostgreSQL, MySQL and MariaDB servers
    ///
    /// The server uses the newest installed binaries, does not listen on the network, and keeps its data in
    /// /var/lib/kelvin for root, otherwise in the user's data directory; the environment variable KELVIN_SERVERS
    /// sets another directory. To remove the data, stop the server and remove that directory.
    #[command(subcommand)]
    Server(ServerCommand),
    /// Manage a fleet of agents: processes on other hosts that generate load
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Run a fleet agent, which generates part of the load of runs that another host controls
    Agent(AgentArgs),
    /// Save the state of a database, and restore it
    #[command(subcommand)]
    Snapshot(SnapshotCommand),
    /// Answer a question with planned, randomized and resumable runs: factors, levels, a locked hypothesis
    #[command(subcommand)]
    Study(StudyCommand),
    /// Check this machine before a load: processor, memory, clock, network, disk, and a database's settings
    Doctor(DoctorArgs),
    /// Observe this machine, and a database's share of it, without running a load
    Observe(ObserveArgs),
    /// Show what a server's sessions wait for: wait classes, files, statements, blocking sessions
    Waits(WaitsArgs),
    /// Show a server's most expensive statements, their plans, and what changed since they were saved
    TopSql(TopSqlArgs),
    /// Record the block I/O requests of this host, and analyze traces
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Predict the effect of a larger database cache, and verify the prediction with a study
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Measure whether storage is fast enough for a column store: MB/s per core, with vioperf's four tests
    Vioperf(VioperfArgs),
    /// Run HammerDB CLI scripts without HammerDB
    Hammerdb(HammerdbArgs),
    /// Run a Nutanix X-Ray scenario on this host
    Xray(XrayArgs),
    /// Explain a finding (what it means, how it is detected, its thresholds, and what to do), or a term
    Explain(ExplainArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages
    Man {
        /// Directory for the man pages
        directory: PathBuf,
    },
}

/// Flags that describe a run.
pub(crate) trait Flags {
    /// Applies them on top of a file or the defaults.
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
    after_help = "`kelvin run … --repeat`, `kelvin ab` and `kelvin study run` make groups. Other commands \
    refer to them as group:3, or group:3/B for one treatment.\n\
    \n\
    Examples:\n\
    \x20 kelvin groups                 list all groups, with a short result\n\
    \x20 kelvin groups 3               print the result of group 3 again\n\
    \x20 kelvin groups 3 --html ab.html\n\
    \x20 kelvin compare group:3 group:5"
)]
pub(crate) struct GroupsArgs {
    /// The group to show: its number
    pub(crate) group: Option<i64>,
    /// Also write the group's page to this file, as self-contained HTML
    #[arg(long, value_name = "FILE", requires = "group")]
    pub(crate) html: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// `kelvin explain`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kelvin explain checkpoint-in-window\n  kelvin explain 'measured window'\n  \
                  kelvin explain            list every finding with its question, and the terms"
)]
pub(crate) struct ExplainArgs {
    /// The name of the finding, as kelvin show and kelvin runs print it, or a term
    pub(crate) finding: Option<String>,
}

/// `kelvin show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run: its number, its label, or "last"; or a group of runs, such as group:3
    #[arg(default_value = "last")]
    pub(crate) run: String,
    /// Show every point in full, every timeline note, every finding and all evidence
    #[arg(long)]
    pub(crate) all: bool,
    /// Show only the one-screen summary printed at the end of a run
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
    /// One self-contained page (the default)
    #[arg(long, group = "format")]
    pub(crate) html: bool,
    /// Everything, as JSON
    #[arg(long, group = "format")]
    pub(crate) json: bool,
    /// One row per second; with =summary one row per transaction type, with =statements per statement, with =observed
    /// the host and database metrics per second, with =jobs one row per I/O job and file or device, with =queries one
    /// row per executed TPROC-H query
    #[arg(long, group = "format", value_name = "ROWS", num_args = 0..=1, require_equals = true,
        default_missing_value = "seconds",
        value_parser = ["seconds", "summary", "statements", "observed", "jobs", "queries"])]
    pub(crate) csv: Option<String>,
    /// The output of `kelvin show`
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
    /// Output file; "-" is standard output [default: a file next to the store for HTML, otherwise standard
    /// output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
