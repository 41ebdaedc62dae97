//! TPROC-H's flags.

use anyhow::{Result, bail};
use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_workload::tproc_h::{Profile, Scale};

use super::choice_parser::one_of;
use super::load::{LoadArgs, TargetArgs};
use super::{Flags, set};

/// Data of TPROC-H: the options that `run`, `build`, `check` and `drop` share.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("target", |arg| arg.short('t')))]
pub(crate) struct DataArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Scale factor, about 1 GB of data per unit: 0.01 to 1000 [default: that of the existing data; 1 in an empty
    /// database]
    #[arg(long, short = 's', value_name = "N", help_heading = "TPROC-H")]
    scale: Option<Scale>,

    /// Number of parallel connections for loading [default: depends on the engine and the cores]
    #[arg(long, value_name = "N", help_heading = "TPROC-H")]
    loaders: Option<u32>,

    /// Partition orders and lineitem by year (PostgreSQL)
    #[arg(long, help_heading = "TPROC-H")]
    partition: bool,

    /// Build columnstore tables (SQL Server: clustered columnstore indexes)
    #[arg(long, help_heading = "TPROC-H")]
    colstore: bool,

    /// Use the parameters of the specification's validation run, and compare the answers with the published ones
    /// (scale factor 1, data as loaded)
    #[arg(long, help_heading = "TPROC-H")]
    validate: bool,
}

/// `kelvin run tproc-h`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("users", |arg| arg.short('u').help("Virtual users, each with its query sets (hammerdb profile) [default: 1]")),
    mut_arg("verbose", |arg| arg.short('v')),
    after_help = "The power test runs the queries one after another, between the two refresh functions; the \
    throughput test runs several streams and the refresh functions concurrently. A query that fails, takes \
    longer than --timeout or has a wrong answer voids the result and is reported. The metrics are derived \
    from TPC-H and are not TPC results.\n\
    \n\
    Examples:\n\
    \x20 kelvin run tproc-h --scale 0.01                              on SQLite, in a temporary file\n\
    \x20 kelvin run tproc-h --target postgres --scale 1\n\
    \x20 kelvin run tproc-h --target postgres --scale 1 --validate    compare with the published answers\n\
    \x20 kelvin run tproc-h --target postgres --streams 0 --queries 1,6,14 --no-refresh\n\
    \x20 kelvin run tproc-h --target postgres --profile hammerdb --users 1,2,4 --query-sets 2\n\
    \n\
    docs/tproc-h.md describes tests, answers and metrics."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    data: DataArgs,

    /// Tests: the specification's power and throughput tests, or HammerDB's users with query sets [default: spec]
    #[arg(long, value_parser = one_of::<Profile>(&["spec", "hammerdb"]), help_heading = "TPROC-H")]
    profile: Option<Profile>,

    /// Streams of the throughput test; 0 runs the power test only [default: depends on the scale factor, at least 2]
    #[arg(long, value_name = "N", help_heading = "TPROC-H")]
    streams: Option<u32>,

    /// Query sets of each virtual user (hammerdb profile) [default: 1]
    #[arg(long, value_name = "N", help_heading = "TPROC-H")]
    query_sets: Option<u32>,

    /// Queries to run, by number [default: all 22]
    #[arg(long, value_name = "N,…", value_delimiter = ',', help_heading = "TPROC-H")]
    queries: Vec<u8>,

    /// Omit the refresh functions, which change the data
    #[arg(long, help_heading = "TPROC-H")]
    no_refresh: bool,

    /// While the queries run, insert and delete the orders of the refresh functions one by one, with this pause in
    /// milliseconds; in the hammerdb profile the last user does this
    #[arg(long, value_name = "MS", help_heading = "TPROC-H")]
    trickle_refresh: Option<u32>,

    /// Skip the extra execution of each query after the load, which analyzes its plan (PostgreSQL)
    #[arg(long, help_heading = "TPROC-H")]
    no_analyze: bool,

    #[command(flatten)]
    pub(super) load: LoadArgs,
}

impl Flags for DataArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        let Work::TprocH(options) = &mut spec.work else { return Ok(()) };
        options.scale = self.scale.or(options.scale);
        options.loaders = self.loaders.or(options.loaders);
        options.partition |= self.partition;
        options.colstore |= self.colstore;
        options.validate |= self.validate;
        Ok(())
    }
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.data.apply(spec)?;
        let Work::TprocH(options) = &mut spec.work else { return Ok(()) };
        set(&mut options.profile, self.profile.as_ref());
        set(&mut options.query_sets, self.query_sets.as_ref());
        options.streams = self.streams.or(options.streams);
        if !self.queries.is_empty() {
            options.queries.clone_from(&self.queries);
        }
        options.no_refresh |= self.no_refresh;
        options.trickle_refresh = self.trickle_refresh.or(options.trickle_refresh);
        options.no_analyze |= self.no_analyze;
        if options.query_sets == 0 {
            bail!("--query-sets 0 is for tenants of a scenario, whose steps end the load");
        }
        let is_spec = options.profile == Profile::Spec;
        if let Some(flag) = self.load.decided_by_queries() {
            bail!("{flag} does not apply to tproc-h: its queries decide how long it takes");
        }
        if is_spec && self.load.gives_users() {
            bail!(
                "--users does not apply to the power and throughput tests: --streams gives the number of streams, and \
                 --profile hammerdb has virtual users"
            );
        }
        self.load.apply(spec)?;
        Ok(())
    }
}
