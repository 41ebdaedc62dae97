//! TPROC-C's implementation of [`Workload`].

use kelvin_database::{Engine, Result, Session};
use kelvin_measure::Clock;
use kelvin_measure::event::{AuditLine, CheckLine};

use super::inputs::KINDS;
use super::schema::metadata::missing_indexes;
use super::{TprocC, audit, calls, data_state, user};
use crate::{BuildProgress, Stop, TransactionKind, UserRange, VirtualUser, Workload, WorkloadData};

impl Workload for TprocC {
    fn name(&self) -> &'static str {
        "tproc-c"
    }

    fn kinds(&self) -> &[TransactionKind] {
        &KINDS
    }

    fn headline(&self) -> &'static str {
        "NOPM"
    }

    fn counters(&self) -> &'static [&'static str] {
        &audit::NAMES
    }

    fn check_engine(&self, engine: &dyn Engine) -> Result<()> {
        let dialect = self.dialect(engine)?;
        calls::possible(&self.options, dialect, engine.kind(), engine.capabilities()).map(|_| ())
    }

    fn inspect(&mut self, engine: &dyn Engine) -> Result<Vec<String>> {
        let mut session = engine.connect()?;
        let dialect = self.dialect(engine)?;
        let metadata = self.read_metadata(session.as_mut(), dialect)?;
        let (driven, notes) =
            calls::choose_calls(&self.options, dialect, engine.capabilities(), session.as_mut())?;
        let lacks = missing_indexes(session.as_mut(), dialect, metadata.profile)?;
        // From here on the options have the database's number of warehouses: two runs on the same data have
        // the same specification.
        self.options.warehouses = Some(metadata.warehouses);
        self.metadata = Some(metadata);
        self.driven = Some(driven);
        Ok([lacks, notes].concat())
    }

    fn is_built(&self, engine: &dyn Engine) -> Result<bool> {
        TprocC::is_built(self, engine)
    }

    fn data(&self, engine: &dyn Engine) -> Result<Option<WorkloadData>> {
        data_state::data(&self.options, engine, self.dialect(engine)?).map(Some)
    }

    fn is_fresh(&self, session: &mut dyn Session) -> Result<bool> {
        let dialect = (self.dialect_of)(session.engine())?;
        data_state::is_fresh(session, dialect)
    }

    fn build(&self, engine: &dyn Engine, progress: &dyn BuildProgress, stop: &Stop) -> Result<()> {
        TprocC::build(self, engine, progress, stop)
    }

    fn drop_data(&self, engine: &dyn Engine) -> Result<()> {
        TprocC::drop_data(self, engine)
    }

    fn check(
        &self,
        engine: &dyn Engine,
        progress: &dyn BuildProgress,
        stop: &Stop,
        each: &mut dyn FnMut(CheckLine),
    ) -> Result<()> {
        TprocC::check(self, engine, progress, stop, each)
    }

    fn missing_objects(&self, engine: &dyn Engine) -> Result<Vec<String>> {
        TprocC::lacks(self, engine)
    }

    fn headline_count(&self, session: &mut dyn Session) -> Result<u64> {
        TprocC::headline_count(self, session)
    }

    /// Returns no users before [`Workload::inspect`] has found usable data.
    fn users(&self, range: UserRange, seed: u64, _clock: &Clock) -> Vec<Box<dyn VirtualUser>> {
        match (&self.metadata, self.driven) {
            (Some(metadata), Some(driven)) => {
                let users = user::make(&self.options, metadata, driven, range, seed);
                users.map(|user| Box::new(user) as Box<dyn VirtualUser>).collect()
            }
            _ => Vec::new(),
        }
    }

    fn audit(&self, counters: &[u64], users: u32) -> Vec<AuditLine> {
        let warehouses = self.metadata.as_ref().map_or(1, |metadata| metadata.warehouses);
        let never_rolls_back = self.driven.is_some_and(|driven| driven.never_rolls_back);
        audit::judge(counters, users, warehouses, self.options.mix, never_rolls_back)
    }
}
