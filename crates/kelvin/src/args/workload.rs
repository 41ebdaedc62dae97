//! `run`, `build`, `check` and `drop` each have one subcommand per workload, so that each workload has its own
//! flags.
//!
//! A file can replace the workload. [`super::parse`] reads the file and inserts its workload; the flags then
//! override the values of the file.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use kelvin_lab::repeat::RepeatPlan;
use kelvin_lab::store_bench::HistoryKey;
use kelvin_run::Spec;
use kelvin_run::spec::WorkloadName;

use super::fleet::RunFleetArgs;
use super::load::LoadArgs;
use super::{Flags, OutputArgs, io, pgbench, scan, script, tproc_c, tproc_h};

/// `kelvin run`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin run <WORKLOAD|FILE.toml> [OPTIONS]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Workloads",
    subcommand_value_name = "WORKLOAD|FILE.toml",
    after_help = "Instead of a workload, a file written by --print-spec can be given; flags after it \
    override it. Each workload has its own help, such as kelvin run pgbench --help.\n\
    \n\
    Examples:\n\
    \x20 kelvin run tproc-c                                    on SQLite, in a temporary file\n\
    \x20 kelvin run tproc-c --target postgres -w 10 --users 8  on kelvin's own PostgreSQL server\n\
    \x20 kelvin run pgbench -s 100 -c 16 -T 60                 what pgbench -s 100 -c 16 -T 60 does\n\
    \x20 kelvin run pgbench -S -M prepared                     read-only, prepared statements\n\
    \x20 kelvin run script read.sql@9 write.sql --target postgres://me@db.example/shop\n\
    \x20 kelvin run tproc-c --warehouses 10 --print-spec > run.toml && kelvin run run.toml"
)]
pub(crate) struct RunArgs {
    #[command(subcommand)]
    workload: RunWorkload,
    #[arg(skip)]
    file: Option<Box<Spec>>,
}

/// What to run.
#[derive(Debug, Subcommand)]
enum RunWorkload {
    /// Orders, payments and deliveries of a wholesaler, derived from TPC-C (NOPM)
    TprocC(Box<tproc_c::RunArgs>),
    /// Analytic queries with checked answers, derived from TPC-H (power, throughput, queries/min)
    TprocH(Box<tproc_h::RunArgs>),
    /// pgbench's built-in scripts, or your own on its tables (tps)
    Pgbench(Box<pgbench::RunArgs>),
    /// Your own SQL on your own tables (tps)
    Script(Box<script::RunArgs>),
    /// Queries that read whole tables of TPROC-C (scans/s, rows/s)
    Scan(Box<scan::RunArgs>),
    /// Jobs in fio's format on files and block devices (IOPS)
    Io(Box<io::RunArgs>),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// The workloads that have tables of their own.
#[derive(Debug, Subcommand)]
enum OnTables<T: Args, H: Args, P: Args> {
    /// The warehouses of TPROC-C
    TprocC(Box<T>),
    /// The eight tables of TPROC-H
    TprocH(Box<H>),
    /// pgbench's accounts, tellers, branches and history
    Pgbench(Box<P>),
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// `kelvin build`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin build <WORKLOAD|FILE.toml> [OPTIONS]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Workloads",
    subcommand_value_name = "WORKLOAD|FILE.toml"
)]
pub(crate) struct BuildArgs {
    #[command(subcommand)]
    workload: OnTables<tproc_c::DataArgs, tproc_h::DataArgs, pgbench::BuildArgs>,
    #[arg(skip)]
    file: Option<Box<Spec>>,
    /// Do not check the consistency conditions after the load
    #[arg(long, global = true)]
    pub(crate) no_check: bool,
}

/// `kelvin check`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin check <WORKLOAD|FILE.toml> [OPTIONS]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Workloads",
    subcommand_value_name = "WORKLOAD|FILE.toml"
)]
pub(crate) struct CheckArgs {
    #[command(subcommand)]
    workload: OnTables<tproc_c::DataArgs, tproc_h::DataArgs, pgbench::DataArgs>,
    #[arg(skip)]
    file: Option<Box<Spec>>,
}

/// `kelvin drop`.
#[derive(Debug, Args)]
#[command(
    override_usage = "kelvin drop <WORKLOAD|FILE.toml> [OPTIONS]",
    disable_help_subcommand = true,
    subcommand_help_heading = "Workloads",
    subcommand_value_name = "WORKLOAD|FILE.toml"
)]
pub(crate) struct DropArgs {
    #[command(subcommand)]
    workload: OnTables<tproc_c::DataArgs, tproc_h::DataArgs, pgbench::DataArgs>,
    #[arg(skip)]
    file: Option<Box<Spec>>,
    /// Do not ask for confirmation
    #[arg(long, global = true)]
    pub(crate) yes: bool,
}

/// The specification: a file's or a workload's, with the flags on top.
fn spec(file: Option<&Spec>, workload: WorkloadName, flags: &dyn Flags) -> Result<Spec> {
    let mut spec = file.cloned().unwrap_or_else(|| Spec::new(workload));
    flags.apply(&mut spec)?;
    spec.validate()?;
    Ok(spec)
}

impl<T: Args + Flags, H: Args + Flags, P: Args + Flags> OnTables<T, H, P> {
    fn spec(&self, file: Option<&Spec>) -> Result<Spec> {
        match self {
            Self::TprocC(flags) => spec(file, WorkloadName::TprocC, &**flags),
            Self::TprocH(flags) => spec(file, WorkloadName::TprocH, &**flags),
            Self::Pgbench(flags) => spec(file, WorkloadName::Pgbench, &**flags),
            Self::Other(words) => unknown(words),
        }
    }
}

/// Rejects a file that allows its scripts to run shell commands.
pub(super) fn refuse_shell(spec: &Spec) -> Result<()> {
    if spec.work.allows_shell() {
        bail!(
            "the file allows its scripts to run shell commands on this machine (allow-shell = true): read \
             its scripts, and add --allow-shell to permit it"
        );
    }
    Ok(())
}

/// [`super::parse`] has replaced or refused every other word.
fn unknown<T>(words: &[OsString]) -> Result<T> {
    bail!("no workload in {words:?}")
}

impl RunArgs {
    /// The specification: a file's or a workload's, with the flags on top.
    pub(crate) fn spec(&self) -> Result<Spec> {
        let file = self.file.as_deref();
        match &self.workload {
            RunWorkload::TprocC(flags) => spec(file, WorkloadName::TprocC, &**flags),
            RunWorkload::TprocH(flags) => spec(file, WorkloadName::TprocH, &**flags),
            RunWorkload::Pgbench(flags) => spec(file, WorkloadName::Pgbench, &**flags),
            RunWorkload::Script(flags) => spec(file, WorkloadName::Script, &**flags),
            RunWorkload::Scan(flags) => spec(file, WorkloadName::Scan, &**flags),
            RunWorkload::Io(flags) => spec(file, WorkloadName::Io, &**flags),
            RunWorkload::Other(words) => unknown(words),
        }
    }

    /// Refuses a file whose scripts would run shell commands only because the file says that they may: it may
    /// come from anyone, and the user who runs it decides.
    pub(crate) fn refuse_shell_of_a_file(&self, spec: &Spec) -> Result<()> {
        let flag = match &self.workload {
            RunWorkload::Pgbench(flags) => flags.language.allow_shell,
            RunWorkload::Script(flags) => flags.language.allow_shell,
            RunWorkload::TprocC(_)
            | RunWorkload::TprocH(_)
            | RunWorkload::Scan(_)
            | RunWorkload::Io(_)
            | RunWorkload::Other(_) => false,
        };
        if self.file.is_some() && !flag { refuse_shell(spec) } else { Ok(()) }
    }

    /// How often the run is repeated; none if it runs once.
    pub(crate) fn repeat(&self, spec: &Spec) -> Result<Option<RepeatPlan>> {
        self.load().map_or(Ok(None), |load| load.repeat.plan(spec))
    }

    /// Where the load comes from, if not from this process.
    pub(crate) fn fleet(&self) -> Option<&RunFleetArgs> {
        self.load().map(|load| &load.fleet)
    }

    fn load(&self) -> Option<&LoadArgs> {
        match &self.workload {
            RunWorkload::TprocC(flags) => Some(&flags.load),
            RunWorkload::TprocH(flags) => Some(&flags.load),
            RunWorkload::Pgbench(flags) => Some(&flags.load),
            RunWorkload::Script(flags) => Some(&flags.load),
            RunWorkload::Scan(flags) => Some(&flags.load),
            RunWorkload::Io(flags) => Some(&flags.flags.load),
            RunWorkload::Other(_) => None,
        }
    }

    /// Whether only the tables are to be made.
    pub(crate) fn initializes(&self) -> bool {
        matches!(&self.workload, RunWorkload::Pgbench(flags) if flags.initialize)
    }

    /// The built-in script that is to be printed.
    pub(crate) fn show_script(&self) -> Option<&str> {
        if let RunWorkload::Pgbench(flags) = &self.workload { flags.show_script.as_deref() } else { None }
    }

    /// Print the specification and end.
    pub(crate) fn print_spec(&self) -> bool {
        self.load().is_some_and(|load| load.print_spec)
    }

    /// What is printed at the end.
    pub(crate) fn output(&self) -> OutputArgs {
        self.load().map(|load| load.output.clone()).unwrap_or_default()
    }

    /// Where the run is shown to Prometheus.
    pub(crate) fn metrics(&self) -> Option<SocketAddr> {
        self.load().and_then(|load| load.metrics)
    }

    /// Where the run is kept in the history; none if it is not.
    pub(crate) fn history(&self) -> Result<Option<HistoryKey>> {
        self.load().map_or(Ok(None), |load| load.history.history_key())
    }

    /// Refuses flags that would keep the run in the history.
    pub(crate) fn refuse_history(&self) -> Result<Option<HistoryKey>> {
        if self.load().is_some_and(|load| load.history.is_given()) {
            bail!(
                "a squeezed run shows the results of a squeezed database and is not part of a history; omit \
                 --branch"
            );
        }
        Ok(None)
    }

    /// The live view on the whole terminal.
    pub(crate) fn tui(&self) -> bool {
        self.load().is_some_and(|load| load.tui)
    }

    /// Notes on flags that have no effect.
    pub(crate) fn notes(&self) -> Vec<String> {
        match &self.workload {
            RunWorkload::Pgbench(flags) => flags.familiar.notes(),
            RunWorkload::Script(flags) => flags.familiar.notes(),
            RunWorkload::TprocC(_)
            | RunWorkload::TprocH(_)
            | RunWorkload::Scan(_)
            | RunWorkload::Io(_)
            | RunWorkload::Other(_) => Vec::new(),
        }
    }

    /// Block devices that may be written although they hold something.
    pub(crate) fn destroys(&self) -> &[PathBuf] {
        match &self.workload {
            RunWorkload::Io(flags) => &flags.flags.i_know_it_destroys,
            _ => &[],
        }
    }
}

/// A command whose first word may be a file.
pub(super) trait TakesFile {
    /// The words from the first on, when that is no workload.
    fn other(&self) -> Option<&[OsString]>;
    /// Takes what the file says.
    fn set_file(&mut self, spec: Spec);
    /// The workloads that this command knows.
    fn workloads(&self) -> &'static [WorkloadName];
}

impl TakesFile for RunArgs {
    fn other(&self) -> Option<&[OsString]> {
        if let RunWorkload::Other(words) = &self.workload { Some(words) } else { None }
    }

    fn set_file(&mut self, spec: Spec) {
        self.file = Some(Box::new(spec));
    }

    fn workloads(&self) -> &'static [WorkloadName] {
        &WorkloadName::ALL
    }
}

macro_rules! on_tables {
    ($args:ty) => {
        impl $args {
            /// The specification: a file's or a workload's, with the flags on top.
            pub(crate) fn spec(&self) -> Result<Spec> {
                self.workload.spec(self.file.as_deref())
            }
        }

        impl TakesFile for $args {
            fn other(&self) -> Option<&[OsString]> {
                if let OnTables::Other(words) = &self.workload { Some(words) } else { None }
            }

            fn set_file(&mut self, spec: Spec) {
                self.file = Some(Box::new(spec));
            }

            fn workloads(&self) -> &'static [WorkloadName] {
                &[WorkloadName::TprocC, WorkloadName::TprocH, WorkloadName::Pgbench]
            }
        }
    };
}

on_tables!(BuildArgs);
on_tables!(CheckArgs);
on_tables!(DropArgs);
