//! Tables loaded as a whole, one transaction each, on servers that write no log for a table which the transaction itself
//! has emptied.
//!
//! The price: a table is loaded by one connection, so that no more connections are busy than there are large tables; and
//! what a killed server or a lost connection leaves is tables, not warehouses. Where somebody asks to end, the warehouses
//! that a table has by then are committed, and the next build goes on behind them, warehouse by warehouse.

use kelvin_database::{Engine, Result, Session};

use super::part::TableRows;
use super::pool::{self, Job, Setup, Shared, Unit};
use super::{Missing, in_transaction};
use crate::tproc_c::data::RowGenerator;
use crate::tproc_c::schema::metadata::mark_table;
use crate::tproc_c::schema::{Table, rows_of_a_warehouse};
use crate::{BuildProgress, Stop};

/// What an engine does before the rows of a table.
pub(super) struct Beginning<'a> {
    /// The statement that empties the table in the transaction, where one is needed.
    pub(super) empty: &'a (dyn Fn(&Table) -> Option<String> + Sync),
    /// Whether rows can come in as visible to all.
    pub(super) frozen: &'a (dyn Fn(&Table) -> bool + Sync),
}

/// Loads the tables that have no row of any warehouse.
pub(super) fn load(
    missing: &Missing,
    engine: &dyn Engine,
    (loaders, setup): (usize, &Setup<'_>),
    seed: u64,
    beginning: &Beginning<'_>,
    (progress, stop): (&dyn BuildProgress, &Stop),
) -> Result<()> {
    // The rows of a table that is completed later have to have the same time.
    let Some(time) = missing.time else { return Ok(()) };
    let tables = missing.whole_tables();
    let parts = u64::from(missing.warehouses);
    let rows = tables.iter().map(|table| rows_of_a_warehouse(table.id) * parts).sum();
    let unit = Unit::Rows { rows, parts };
    let job = Job { what: "rows of the warehouses loaded", before: 0, unit, progress, stop };
    pool::run(engine, loaders, setup, job, &tables, &|session, table, shared| {
        let rows =
            TableRows { table, parts: 1..=missing.warehouses, time, frozen: (beginning.frozen)(table) };
        let load = |session: &mut dyn Session| {
            if let Some(sql) = (beginning.empty)(table) {
                session.run(&sql)?;
            }
            let last = rows.load(session, &mut RowGenerator::new(seed), &|| ends(shared), shared)?;
            session.run(&mark_table(table.id, last))
        };
        in_transaction(session, load).map_err(|error| error.context("loading all warehouses"))
    })
}

fn ends(shared: &Shared<'_>) -> Result<bool> {
    shared.go_on_to_the_end().map(|()| shared.asked_to_end())
}
