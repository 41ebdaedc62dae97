//! `kelvin run`, and what `build`, `check` and `drop` share with it.

use std::num::NonZeroU64;
use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use kelvin_lab::Spec;
use kelvin_lab::spec::{Build, Span, TargetName, Users, WorkloadName};
use kelvin_workload::tproc_c::{Calls, Mix, Profile};

use super::words::one_of;

/// A workload on a database. Every flag overrides what a file says.
#[derive(Debug, Clone, Args)]
pub(crate) struct DataArgs {
    /// A workload (tproc-c), or a file that `--print-spec` wrote
    #[arg(value_name = "WORKLOAD|FILE.toml")]
    pub(crate) what: String,

    /// The database: sqlite, sqlite:FILE, postgres (a server of kelvin's own), or
    /// postgres://user@host:port/database [default: sqlite, in a temporary file]
    ///
    /// The password comes from PGPASSWORD, from ~/.pgpass, or from a prompt; an URL with a password in it is
    /// refused, because command lines can be read by everybody on the host.
    #[arg(long, short, value_name = "TARGET")]
    pub(crate) target: Option<TargetName>,

    /// Number of warehouses, about 100 MB each [default: what the database holds; 1 in an empty one]
    #[arg(long, short, value_name = "N", help_heading = "TPROC-C")]
    pub(crate) warehouses: Option<u32>,

    /// Whose rules: the specification's, or HammerDB's schema and routines [default: spec]
    #[arg(long, value_parser = one_of::<Profile>(&["spec", "hammerdb"]), help_heading = "TPROC-C")]
    pub(crate) profile: Option<Profile>,

    /// Connections that load at the same time [default: by the engine and the cores]
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    pub(crate) loaders: Option<u32>,

    /// Seed of the initial data [default: what the database holds; 1 in an empty one]
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    pub(crate) data_seed: Option<u64>,

    /// Make foreign keys between the tables
    #[arg(long, help_heading = "TPROC-C")]
    pub(crate) foreign_keys: bool,

    /// Hash partitions of order_line by warehouse (PostgreSQL)
    #[arg(long, value_name = "N", help_heading = "TPROC-C")]
    pub(crate) partitions: Option<u32>,
}

/// `kelvin run`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "Examples:\n  kelvin run tproc-c\n  kelvin run tproc-c --target postgres --warehouses 10 \
    --users 8 --ramp-up 1m --duration 5m\n  kelvin run tproc-c --target postgres --users 1,2,4,8,16\n  \
    kelvin run tproc-c --warehouses 10 --print-spec > run.toml && kelvin run run.toml"
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,

    /// Virtual users; several numbers (1,2,4,8) are run in turn [default: 4]
    #[arg(long, short, value_name = "N[,N…]")]
    pub(crate) users: Option<Users>,

    /// Load before the measured window, in no figure [default: 5s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) ramp_up: Option<Span>,

    /// Length of the measured window [default: 20s]
    #[arg(long, short, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) duration: Option<Span>,

    /// Transactions of each user, instead of a ramp-up and a duration
    #[arg(long, value_name = "N", conflicts_with_all = ["duration", "ramp_up"], value_parser = at_least_one)]
    pub(crate) transactions: Option<NonZeroU64>,

    /// Decides every random value of the run [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,

    /// How often a transaction is repeated after a serialization failure, a deadlock or a busy lock [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) retries: Option<u16>,

    /// No statement waits longer than this for the server [default: 1m]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) timeout: Option<Span>,

    /// A name to find the run by
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,

    /// Refuse to run when the data is not there, instead of making it
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Check the consistency conditions after the run
    #[arg(long)]
    pub(crate) check: bool,

    /// How transactions are executed: client SQL one statement a round trip, client SQL in as few round
    /// trips as possible, or one stored function a transaction [default: functions, or statements on SQLite]
    #[arg(long, value_parser = one_of::<Calls>(&["statements", "pipelined", "functions"]), help_heading = "TPROC-C")]
    pub(crate) calls: Option<Calls>,

    /// Each transaction draws its home warehouse, instead of each user keeping one
    #[arg(long, help_heading = "TPROC-C")]
    pub(crate) all_warehouses: bool,

    /// Users wait for keying and thinking as people would
    #[arg(long, help_heading = "TPROC-C")]
    pub(crate) keying_and_thinking: bool,

    /// Weights of New-Order/Payment/Delivery/Stock-Level/Order-Status [default: 10/10/1/1/1]
    #[arg(long, value_name = "W/W/W/W/W", help_heading = "TPROC-C")]
    pub(crate) mix: Option<Mix>,

    /// Print the file that says the same as this command line, and end
    #[arg(long)]
    pub(crate) print_spec: bool,

    /// Print every event as a line of JSON on standard output, and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
}

impl DataArgs {
    /// The specification: a file's or a workload's, with the flags on top.
    pub(crate) fn spec(&self) -> Result<Spec> {
        let mut spec = match self.what.as_str() {
            "tproc-c" => Spec::new(WorkloadName::TprocC),
            file if file.contains(['/', '.']) || Path::new(file).exists() => Spec::read(Path::new(file))?,
            other => {
                bail!("there is no workload \"{other}\"; there is tproc-c, or give a file such as run.toml")
            }
        };
        set(&mut spec.target, self.target.as_ref());
        spec.tproc_c.warehouses = self.warehouses.or(spec.tproc_c.warehouses);
        set(&mut spec.tproc_c.profile, self.profile.as_ref());
        spec.tproc_c.data_seed = self.data_seed.or(spec.tproc_c.data_seed);
        spec.tproc_c.loaders = self.loaders.or(spec.tproc_c.loaders);
        spec.tproc_c.partitions = self.partitions.or(spec.tproc_c.partitions);
        spec.tproc_c.foreign_keys |= self.foreign_keys;
        spec.validate()?;
        Ok(spec)
    }
}

impl RunArgs {
    /// The specification: a file's or a workload's, with the flags on top.
    pub(crate) fn spec(&self) -> Result<Spec> {
        let mut spec = self.data.spec()?;
        set(&mut spec.load.users, self.users.as_ref());
        set(&mut spec.load.ramp_up, self.ramp_up.as_ref());
        set(&mut spec.load.duration, self.duration.as_ref());
        set(&mut spec.load.seed, self.seed.as_ref());
        set(&mut spec.load.retries, self.retries.as_ref());
        set(&mut spec.load.timeout, self.timeout.as_ref());
        set(&mut spec.tproc_c.mix, self.mix.as_ref());
        spec.load.transactions =
            if self.duration.is_some() { None } else { self.transactions.or(spec.load.transactions) };
        spec.label = self.label.clone().or(spec.label);
        spec.tproc_c.calls = self.calls.or(spec.tproc_c.calls);
        spec.tproc_c.all_warehouses |= self.all_warehouses;
        spec.tproc_c.keying_and_thinking |= self.keying_and_thinking;
        spec.check |= self.check;
        if self.no_build {
            spec.build = Build::Never;
        }
        spec.validate()?;
        Ok(spec)
    }
}

fn at_least_one(text: &str) -> Result<NonZeroU64, String> {
    match text.parse::<u64>().map(NonZeroU64::new) {
        Ok(Some(number)) => Ok(number),
        Ok(None) => Err("0 transactions measure nothing; give at least 1".into()),
        Err(_) => Err("not a number of transactions".into()),
    }
}

fn set<T: Clone>(place: &mut T, flag: Option<&T>) {
    if let Some(value) = flag {
        *place = value.clone();
    }
}
