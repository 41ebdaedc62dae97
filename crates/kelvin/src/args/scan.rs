//! `kelvin run scan`: an analytic load on TPROC-C's tables.

use anyhow::Result;
use clap::Args;
use kelvin_run::Spec;
use kelvin_run::spec::Work;
use kelvin_workload::scan::Query;
use kelvin_workload::tproc_c::Profile;

use super::choice_parser::one_of;
use super::load::{LoadArgs, TargetArgs};
use super::{Flags, set};

/// `kelvin run scan`.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("target", |arg| arg.short('t')),
    mut_arg("users", |arg| arg.short('u')),
    mut_arg("duration", |arg| arg.short('d')),
    mut_arg("verbose", |arg| arg.short('v')),
    after_help = "Each user runs the queries in turn. A query reads every row of one table. A scan that takes \
        longer than --timeout is an error: raise it for large tables. The tables are those of kelvin run tproc-c and can be used by both at the same time; missing ones are created.\n\
    \n\
    Queries:\n\
    \x20 stock-value            stock value of each warehouse (stock, joined with item)\n\
    \x20 order-lines-by-item    the ten best-selling items (order_line)\n\
    \x20 customers-by-district  balances and payments of each district (customer)\n\
    \n\
    Examples:\n\
    \x20 kelvin run scan --target postgres -u 2\n\
    \x20 kelvin run scan --target postgres --rate 0.5 --queries stock-value --timeout 10m\n\
    \n\
    docs/scan.md describes the metrics."
)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    target: TargetArgs,

    /// Queries to run, by name [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = "Scan")]
    queries: Vec<Query>,

    /// Number of warehouses, about 100 MB each [default: that of the existing data; 1 in an empty database]
    #[arg(long, short, value_name = "N", help_heading = "Scan")]
    warehouses: Option<u32>,

    /// Schema of the tables: the specification's, or HammerDB's [default: spec]
    #[arg(long, value_parser = one_of::<Profile>(&["spec", "hammerdb"]), help_heading = "Scan")]
    profile: Option<Profile>,

    #[command(flatten)]
    pub(super) load: LoadArgs,
}

impl Flags for RunArgs {
    fn apply(&self, spec: &mut Spec) -> Result<()> {
        self.target.apply(spec);
        self.load.apply(spec)?;
        let Work::Scan(options) = &mut spec.work else { return Ok(()) };
        if !self.queries.is_empty() {
            options.queries.clone_from(&self.queries);
        }
        options.warehouses = self.warehouses.or(options.warehouses);
        set(&mut options.profile, self.profile.as_ref());
        Ok(())
    }
}
