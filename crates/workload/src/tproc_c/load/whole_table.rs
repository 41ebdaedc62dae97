//! Tables loaded as a whole, one transaction each, on servers that write no log for a table that the same
//! transaction has emptied.
//!
//! The price: each table is loaded by one connection, so that at most as many connections are busy as there
//! are large tables. A killed server or a lost connection leaves complete tables, not complete warehouses. On
//! a stop request the warehouses that a table has so far are committed, and the next build continues after
//! them, warehouse by warehouse.

use kelvin_database::{Engine, Result, Session};

use super::part::TableRows;
use super::pool::{self, Job, Setup, Shared, Unit};
use super::{Missing, in_transaction};
use crate::tproc_c::data::RowGenerator;
use crate::tproc_c::schema::metadata::mark_table;
use crate::tproc_c::schema::{Table, rows_of_a_warehouse};
use crate::{BuildProgress, Stop};

/// Engine-specific actions before a table's rows.
pub(super) struct Beginning<'a> {
    /// The statement that empties the table in the transaction, if one is needed.
    pub(super) empty: &'a (dyn Fn(&Table) -> Option<String> + Sync),
    /// Whether the table's rows can be loaded as frozen.
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
    // A resumed build needs the same time for the other rows of a table.
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
