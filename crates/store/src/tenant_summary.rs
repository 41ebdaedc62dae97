//! The tenants of scenarios as the list of runs has them. The figure is that of [`crate::SourceStatistics`], counted by the
//! database: no histogram is decoded.

use std::collections::BTreeMap;

use kelvin_measure::event::RatePeriod;
use rusqlite::params;

use crate::error::{Error, Result};
use crate::point_statistics::pace;
use crate::run::{RunSummary, TenantSummary};
use crate::store::Store;

const NAMES: &str = "SELECT source_id, tenant FROM source WHERE run = ?1 AND tenant IS NOT NULL";

const STRETCHES: &str = "SELECT source_id, sum((body ->> 'to') - (body ->> 'from')) FROM event WHERE run = ?1 AND name = \
                         'stretch' GROUP BY source_id";

/// Transactions of the measured seconds, and the last of these.
const COUNTS: &str = "SELECT source_id, sum(committed + rolled_back) FROM second WHERE run = ?1 AND part = 1 AND kind IN \
                      (SELECT kind FROM series WHERE run = ?1 AND role = 'transaction') GROUP BY source_id";

const LAST: &str =
    "SELECT source_id, max(second) + 1 FROM second WHERE run = ?1 AND part = 1 GROUP BY source_id";

impl Store {
    /// The tenants of a run of a scenario, in the order of their sources; `points` of the run are known.
    pub(crate) fn tenants_of(&self, run: &RunSummary) -> Result<Vec<TenantSummary>> {
        let names: BTreeMap<i64, String> = self.by_source(NAMES, run)?;
        let stretches: BTreeMap<i64, i64> = self.by_source(STRETCHES, run)?;
        let counts: BTreeMap<i64, i64> = self.by_source(COUNTS, run)?;
        let last: BTreeMap<i64, i64> = self.by_source(LAST, run)?;
        let window = run.points.first().map(|point| point.seconds);
        let tenant = |(id, name): (i64, String)| {
            // As far as its source says; of a run that was killed, as far as its seconds go.
            let own = stretches.get(&id).map(|nanos| *nanos as f64 / 1e9);
            let seconds = own.or(window).or_else(|| last.get(&id).map(|last| *last as f64));
            let count = counts.get(&id).map_or(0, |count| u64::try_from(*count).unwrap_or(0));
            let per_second = pace(count, seconds.unwrap_or(0.0), RatePeriod::Second);
            TenantSummary { name, per_second }
        };
        Ok(names.into_iter().map(tenant).collect())
    }

    fn by_source<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        run: &RunSummary,
    ) -> Result<BTreeMap<i64, T>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement = self.connection().prepare_cached(sql).map_err(to)?;
        let rows =
            statement.query_map(params![run.id.0], |row| Ok((row.get(0)?, row.get(1)?))).map_err(to)?;
        rows.collect::<rusqlite::Result<_>>().map_err(to)
    }
}
