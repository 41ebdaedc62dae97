//! TPROC-H: an open workload derived from TPC-H, with the specification's power and throughput tests or
//! HammerDB's query sets.
//!
//! The data are dbgen's, from the crate `tpchgen`. Each answer is converted to a form that all engines share.
//! Its digest is in the result; at scale factor 1 it can be compared with the published answer.

mod analysis;
mod answer;
mod check;
mod comments;
mod data;
mod dialect;
mod digest;
mod ledger;
mod load;
mod options;
mod query;
mod refresh;
mod schema;
mod state;
mod user;
mod workload;

use std::sync::Arc;

use kelvin_database::{Engine, Result};

use crate::TransactionKind;
use dialect::Dialect;
use ledger::Ledger;
pub use options::{Options, Scale};
use state::State;
use user::Step;

pub use crate::tproc_c::Profile;

/// The workload TPROC-H.
#[derive(Debug)]
pub struct TprocH {
    options: Options,
    /// The users' steps, and the same steps as transaction types.
    steps: Vec<Step>,
    kinds: Vec<TransactionKind>,
    /// The data in the database and the dialect; set by `inspect`.
    found: Option<(State, &'static dyn Dialect)>,
    /// How the tables are stored; empty for an unpartitioned row store.
    layout: String,
    ledger: Arc<Ledger>,
}

impl TprocH {
    /// Creates the workload with these options.
    ///
    /// # Errors
    /// An option is out of range or conflicts with another.
    pub fn new(options: Options) -> Result<Self> {
        options.check()?;
        let mut steps: Vec<Step> = options.chosen().into_iter().map(Step::Query).collect();
        if options.refreshes() {
            steps.extend([Step::Insert, Step::Delete]);
        }
        let kind = |step: &Step| TransactionKind {
            name: step.name().into(),
            headline: matches!(step, Step::Query(_)),
            statement_of: None,
        };
        let kinds = steps.iter().map(kind).collect();
        Ok(Self { options, steps, kinds, found: None, layout: String::new(), ledger: Arc::default() })
    }

    /// The scale factor of the tables in a database; `None` if it has no tables.
    pub fn scale_in(engine: &dyn Engine) -> Result<Option<Scale>> {
        let dialect = dialect::of_engine(engine.kind())?;
        Ok(State::read(engine.connect()?.as_mut(), dialect)?.map(|state| state.scale))
    }

    /// The options; after `inspect`, with the database's scale factor.
    pub fn options(&self) -> &Options {
        &self.options
    }
}
