//! TPROC-H: an open workload derived from TPC-H, by the specification's power and throughput tests or HammerDB's query sets.
//!
//! The data are dbgen's, from the crate `tpchgen`. Each answer is brought into a form that all engines share; its digest is in the
//! result, and at scale factor 1 it is compared with the published answer.

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

/// The workload.
#[derive(Debug)]
pub struct TprocH {
    options: Options,
    /// The steps that users take, and the same as transaction types.
    steps: Vec<Step>,
    kinds: Vec<TransactionKind>,
    /// What the database holds, and its dialect, once `inspect` has looked.
    found: Option<(State, &'static dyn Dialect)>,
    /// How its tables are stored, where not by rows in one piece.
    layout: String,
    ledger: Arc<Ledger>,
}

impl TprocH {
    /// The workload with these options.
    ///
    /// # Errors
    /// An option that is out of range, or does not go with another.
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

    /// The scale factor of the tables in a database; none where there are none.
    pub fn scale_in(engine: &dyn Engine) -> Result<Option<Scale>> {
        let dialect = dialect::of_engine(engine.kind())?;
        Ok(State::read(engine.connect()?.as_mut(), dialect)?.map(|state| state.scale))
    }

    /// What the user chose, and the database's scale factor once it was inspected.
    pub fn options(&self) -> &Options {
        &self.options
    }
}
