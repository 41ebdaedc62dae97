//! TPROC-C's flags.

use anyhow::Result;
use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_workload::tproc_c::{Calls, Mix, Profile};

use super::choice_parser::one_of;
use super::load::{LoadArgs, TargetArgs};
use super::{Flags, set};

/// Data of TPROC-C: the options that `run`, `build`, `check` and `drop` share.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("target", |arg| arg.short('t')))]
pub(crate) struct DataArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Number of warehouses, about 100 MB each [default: that of the existing data; 1 in an empty database]
    #[arg(long, short, value_name = "N", help_heading = "TPROC-C")]
    warehouses: Option<u32>,

    /// Variant: the specification's, or HammerDB's schema and routines [default: spec]
    #[arg(long, value_parser = one_of::<Profile>(&["spec", "hammerdb"]), help_heading = "TPROC-C")]
    profile: Option<Profile>,

    /// Number of parallel connections for loading [default: depends on the engine and the cores]
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    loaders: Option<u32>,

    /// Seed of the initial data [default: that of the existing data; 1 in an empty database]
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    data_seed: Option<u64>,

    /// Create foreign keys between the tables
    #[arg(long, help_heading = "TPROC-C")]
    foreign_keys: bool,

    /// Number of hash partitions of order_line by warehouse (PostgreSQL)
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    partitions: Option<u32>,

    /// Store each warehouse and each district row on a separate page (SQL Server)
    #[arg(long, help_heading = "TPROC-C")]
    fill_page: bool,
}

/// `kelvin run tproc-c`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("users", |arg| arg.short('u')),
    mut_arg("duration", |arg| arg.short('d')),
    mut_arg("verbose", |arg| arg.short('v')),
    after_help = "The password comes from PGPASSWORD, from ~/.pgpass, or from a prompt; a URL that contains \
    a password is rejected, because every user on the host can read command lines.\n\
    \n\
    Examples:\n\
    \x20 kelvin run tproc-c\n\
    \x20 kelvin run tproc-c --target postgres --warehouses 10 --users 8 --ramp-up 1m --duration 5m\n\
    \x20 kelvin run tproc-c --target postgres --users 1,2,4,8,16\n\
    \x20 kelvin run tproc-c --warehouses 10 --print-spec > run.toml && kelvin run run.toml"
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    data: DataArgs,

    /// How transactions are executed: one SQL statement per round trip, SQL in as few round trips as
    /// possible, or one stored function per transaction [default: functions, or statements on SQLite]
    #[arg(long, value_parser = one_of::<Calls>(&["statements", "pipelined", "functions|procedures"]), help_heading = "TPROC-C")]
    calls: Option<Calls>,

    /// Choose a random home warehouse for each transaction, instead of one per user
    #[arg(long, help_heading = "TPROC-C")]
    all_warehouses: bool,

    /// Simulate the keying and think times of TPC-C
    #[arg(long, help_heading = "TPROC-C")]
    keying_and_thinking: bool,

    /// Weights of New-Order/Payment/Delivery/Stock-Level/Order-Status [default: 10/10/1/1/1]
    #[arg(long, value_name = "W/W/W/W/W", help_heading = "TPROC-C")]
    mix: Option<Mix>,

    #[command(flatten)]
    pub(super) load: LoadArgs,
}

impl Flags for DataArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        let Work::TprocC(options) = &mut spec.work else { return Ok(()) };
        options.warehouses = self.warehouses.or(options.warehouses);
        set(&mut options.profile, self.profile.as_ref());
        options.data_seed = self.data_seed.or(options.data_seed);
        options.loaders = self.loaders.or(options.loaders);
        options.partitions = self.partitions.or(options.partitions);
        options.foreign_keys |= self.foreign_keys;
        options.fill_page |= self.fill_page;
        Ok(())
    }
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.data.apply(spec)?;
        self.load.apply(spec)?;
        let Work::TprocC(options) = &mut spec.work else { return Ok(()) };
        set(&mut options.mix, self.mix.as_ref());
        options.calls = self.calls.or(options.calls);
        options.all_warehouses |= self.all_warehouses;
        options.keying_and_thinking |= self.keying_and_thinking;
        Ok(())
    }
}
