//! Scans: queries that read whole tables of TPROC-C, like reports that run beside its transactions.

mod query;
mod user;

use std::sync::Arc;

use kelvin_database::{Engine, Error, Result, Session};
use kelvin_measure::event::{AuditLine, CheckLine};
use kelvin_measure::{Clock, labels};
use serde::{Deserialize, Serialize};

use crate::tproc_c::{self, Profile, TprocC};
use crate::{
    BuildProgress, RatePeriod, Stop, TransactionKind, UserRange, VirtualUser, Workload, WorkloadData,
};
pub use query::Query;
use user::{ScanPlan, User};

/// The counters: rows, and bytes if the engine reports the sizes of its tables.
static COUNTERS: [&str; 2] = [labels::ROWS_READ, labels::TABLE_BYTES_READ];
const ROWS: usize = 0;
const BYTES: usize = 1;

/// The options of a scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// The queries; each user runs them in turn.
    pub queries: Vec<Query>,
    /// The profile whose schema the tables have.
    pub profile: Profile,
    /// Number of warehouses; `None` uses the number in the database, or builds one warehouse.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self { queries: Query::ALL.to_vec(), profile: Profile::default(), warehouses: None }
    }
}

/// The workload "scan".
#[derive(Debug)]
pub struct Scan {
    options: Options,
    kinds: Vec<TransactionKind>,
    /// The tables that are read; this workload builds them as TPROC-C does.
    tables: TprocC,
    plan: Arc<ScanPlan>,
}

impl Scan {
    /// Creates the workload with these options.
    ///
    /// # Errors
    /// No query, a query that is given twice, or a number of warehouses out of range.
    pub fn new(options: Options) -> Result<Self> {
        let queries = &options.queries;
        if queries.is_empty() {
            return Err(Error::usage("no query is given")
                .with_help(format!("choose from {}", Query::ALL.map(Query::name).join(", "))));
        }
        if let Some((_, twice)) =
            queries.iter().enumerate().find(|(at, query)| queries[..*at].contains(query))
        {
            return Err(Error::usage(format!("the query {twice} is given twice")));
        }
        let tables = TprocC::new(tproc_c::Options {
            profile: options.profile,
            warehouses: options.warehouses,
            ..tproc_c::Options::default()
        })?;
        let kinds = queries.iter().map(|query| TransactionKind::transaction(query.name(), true)).collect();
        let plan = Arc::new(ScanPlan { queries: queries.clone(), bytes: None });
        Ok(Self { options, kinds, tables, plan })
    }

    /// The options; after `inspect`, with the database's number of warehouses.
    pub fn options(&self) -> &Options {
        &self.options
    }
}

impl Workload for Scan {
    fn name(&self) -> &'static str {
        labels::SCAN
    }

    fn kinds(&self) -> &[TransactionKind] {
        &self.kinds
    }

    fn headline(&self) -> &'static str {
        "scans/s"
    }

    fn headline_per(&self) -> RatePeriod {
        RatePeriod::Second
    }

    fn counters(&self) -> &'static [&'static str] {
        if self.plan.bytes.is_some() { &COUNTERS } else { &COUNTERS[..=ROWS] }
    }

    fn check_engine(&self, engine: &dyn Engine) -> Result<()> {
        self.tables.dialect(engine).map(drop)
    }

    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        let (dialect, mut session) = (self.tables.dialect(engine)?, engine.connect()?);
        let metadata = self.tables.read_metadata(session.as_mut(), dialect)?;
        self.options.warehouses = Some(metadata.warehouses);
        let mut size = |query: &Query| dialect.table_bytes(session.as_mut(), query.table()).transpose();
        let queries = self.options.queries.clone();
        // All sizes or none: a partial sum would look like the total.
        let bytes = queries.iter().map(&mut size).collect::<Option<Result<Vec<u64>>>>().transpose()?;
        self.plan = Arc::new(ScanPlan { queries, bytes });
        Ok(Vec::new())
    }

    fn is_built(&self, engine: &dyn Engine) -> Result<bool> {
        self.tables.is_built(engine)
    }

    fn data(&self, engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        Workload::data(&self.tables, engine)
    }

    fn is_fresh(&self, session: &mut dyn Session) -> Result<bool> {
        Workload::is_fresh(&self.tables, session)
    }

    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()> {
        self.tables.build(engine, progress, stop)
    }

    fn drop_data(&self, engine: &dyn Engine) -> Result<()> {
        self.tables.drop_data(engine)
    }

    fn missing_objects(&self, engine: &dyn Engine) -> Result<Vec<String>> {
        self.tables.lacks(engine)
    }

    fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()> {
        self.tables.check(engine, progress, stop, each)
    }

    /// Scans do not change the data.
    fn counts_on_server(&self) -> bool {
        false
    }

    fn headline_count(&self, _session: &mut dyn Session) -> Result<u64> {
        Err(Error::usage("the data do not show how often they were read"))
    }

    fn users(&self, range: UserRange, _seed: u64, _clock: &Clock) -> Vec<Box<dyn VirtualUser>> {
        (0..range.count())
            .map(|place| Box::new(User::new(&self.plan, range.first() + place)) as Box<dyn VirtualUser>)
            .collect()
    }

    fn audit(&self, _counters: &[u64], _users: u32) -> Vec<AuditLine> {
        Vec::new()
    }
}
