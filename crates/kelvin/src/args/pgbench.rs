//! pgbench's flags, with pgbench's letters where they mean the same.

use anyhow::{Result, bail};
use clap::Args;
use kelvin_lab::Spec;
use kelvin_workload::pgbench::ScriptChoice;

use super::language::{Choices, LanguageArgs};
use super::load::{LoadArgs, TargetArgs};
use super::{Flags, set};

const TARGET: &str = "The database: postgres (a server of kelvin's own), postgres:VERSION, or \
    postgres://user@host:port/database [default: postgres]";

/// `kelvin check pgbench` and `kelvin drop pgbench`.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("target", |arg| arg.help(TARGET)))]
pub(crate) struct DataArgs {
    #[command(flatten)]
    target: TargetArgs,
}

/// How the tables are made.
#[derive(Debug, Clone, Args)]
pub(crate) struct TableArgs {
    /// Scale factor: 100,000 accounts, about 15 MB, each [default: what the database holds; 1 in an empty one]
    #[arg(long, short, value_name = "N", help_heading = "Tables")]
    scale: Option<u32>,

    /// Per cent of each page that the load fills [default: 100]
    #[arg(long, short = 'F', value_name = "N", help_heading = "Tables")]
    fillfactor: Option<u8>,

    /// Make foreign keys between the tables
    #[arg(long, help_heading = "Tables")]
    foreign_keys: bool,

    /// Make tables that no write-ahead log protects
    #[arg(long, help_heading = "Tables")]
    unlogged_tables: bool,

    /// Do not vacuum: neither the new tables nor, before a run, the two small ones
    #[arg(long, short, help_heading = "Tables")]
    no_vacuum: bool,
}

/// `kelvin build pgbench`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  kelvin build pgbench -s 20\n  \
    kelvin build pgbench -s 100 --target postgres://me@db.example/bench")]
pub(crate) struct BuildArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    tables: TableArgs,
}

/// `kelvin run pgbench`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("users", |arg| arg.short('c').visible_alias("client")),
    mut_arg("duration", |arg| arg.short('T').visible_alias("time")),
    mut_arg("transactions", |arg| arg.short('t')),
    mut_arg("seed", |arg| arg.visible_alias("random-seed")),
    mut_arg("rate", |arg| arg.short('R')),
    after_help = "Short flags are pgbench's here. -j, -P, --failures-detailed and --verbose-errors are accepted and change \
    nothing. The database is named with --target; its password comes from PGPASSWORD, from ~/.pgpass, or from a \
    prompt.\n\n\
    Examples:\n  kelvin run pgbench\n  kelvin run pgbench -S -M prepared -s 100 -c 16 -T 60\n  \
    kelvin run pgbench -b tpcb-like@1 -b select-only@9 --users 1,4,16\n  \
    kelvin run pgbench -f transfer.sql@3 -S -D limit=100 --target postgres://me@db.example/bench\n\n\
    docs/pgbench.md compares the two commands."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    choices: Choices,
    #[command(flatten)]
    pub(super) language: LanguageArgs,
    #[command(flatten)]
    tables: TableArgs,
    #[command(flatten)]
    pub(super) load: LoadArgs,
    #[command(flatten)]
    pub(super) familiar: FamiliarArgs,
}

/// What pgbench's users type and what is another thing, or nothing, here.
#[derive(Debug, Clone, Args)]
pub(crate) struct FamiliarArgs {
    /// How often a transaction is tried: once more than --retries; 0 is without limit
    #[arg(long, value_name = "N", conflicts_with = "retries", help_heading = "Load", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(0..=65536))]
    max_tries: Option<u32>,

    #[arg(long, short, hide = true, value_name = "N")]
    jobs: Option<u32>,

    #[arg(long, short = 'P', hide = true, value_name = "SECONDS")]
    progress: Option<u32>,

    #[arg(long, hide = true)]
    failures_detailed: bool,

    #[arg(long, hide = true)]
    verbose_errors: bool,
}

impl FamiliarArgs {
    /// Puts the flags on top of what the file says.
    pub(super) fn apply(&self, spec: &mut Spec) -> Result<()> {
        match self.max_tries {
            // pgbench's rule: what ends by count would never end where every try fails.
            Some(0) if spec.load.transactions.is_some() => {
                bail!("--max-tries 0 tries without limit, which needs a time limit: give -T instead of -t")
            }
            Some(0) => spec.load.retries = u16::MAX,
            Some(tries) => spec.load.retries = u16::try_from(tries - 1)?,
            None => {}
        }
        Ok(())
    }

    /// What the user is told about flags that change nothing.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.jobs.is_some() {
            notes.push("--jobs changes nothing: kelvin chooses its threads itself".to_owned());
        }
        if self.progress.is_some() {
            notes.push("--progress changes nothing: every second is shown and kept".to_owned());
        }
        if self.failures_detailed || self.verbose_errors {
            notes.push("errors are always told by class, code and second; no flag is needed".to_owned());
        }
        notes
    }
}

impl Flags for DataArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        Ok(())
    }
}

impl TableArgs {
    fn apply(&self, spec: &mut Spec) {
        let options = &mut spec.pgbench;
        options.scale = self.scale.or(options.scale);
        set(&mut options.fillfactor, self.fillfactor.as_ref());
        options.foreign_keys |= self.foreign_keys;
        options.unlogged_tables |= self.unlogged_tables;
        options.vacuum &= !self.no_vacuum;
    }
}

impl Flags for BuildArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.tables.apply(spec);
        self.data.apply(spec)
    }
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.data.apply(spec)?;
        self.tables.apply(spec);
        self.load.apply(spec);
        self.familiar.apply(spec)?;
        let options = &mut spec.pgbench;
        if !self.choices.0.is_empty() {
            options.scripts.clone_from(&self.choices.0);
        } else if options.scripts.is_empty() {
            options.scripts.push(ScriptChoice::builtin("tpcb-like")?);
        }
        self.language.apply(
            &mut options.define,
            &mut options.query_mode,
            &mut options.per_statement,
            &mut options.allow_shell,
        );
        Ok(())
    }
}
