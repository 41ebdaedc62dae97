//! One part of the data, the items or a warehouse, in one transaction.

use kelvin_database::{BulkTable, Error, Result, Session, Timestamp};

use super::in_transaction;
use super::pool::Shared;
use crate::tproc_c::data::RowGenerator;
use crate::tproc_c::schema::{Name, Table, table};

/// Rows between two checks of the stop flag and the progress.
const STRIDE: u64 = 512;

/// The tables of a warehouse, referenced ones first.
const OF_A_WAREHOUSE: [Name; 8] = [
    Name::Warehouse,
    Name::District,
    Name::Customer,
    Name::History,
    Name::Stock,
    Name::Orders,
    Name::NewOrder,
    Name::OrderLine,
];

/// Loads part `part` (0 for the items) and commits it together with its row in `kelvin_tproc_c_loaded`, so
/// that the part is there as a whole or not at all.
pub(super) fn load(session: &mut dyn Session, data_seed: u64, part: u32, shared: &Shared<'_>) -> Result<()> {
    let load = |session: &mut dyn Session| load_rows(session, data_seed, part, shared);
    in_transaction(session, load).map_err(|error| error.context(&name(part)))
}

fn load_rows(session: &mut dyn Session, data_seed: u64, part: u32, shared: &Shared<'_>) -> Result<()> {
    // First, so that a second loader of the same part waits or fails before it has done the work.
    session.run(&format!("insert into kelvin_tproc_c_loaded (w_id) values ({part})"))?;
    let mut generator = RowGenerator::new(data_seed);
    let now = Timestamp::now();
    let tables: &[Name] = if part == 0 { &[Name::Item] } else { &OF_A_WAREHOUSE };
    for &name in tables {
        let table = table(name);
        load_table(session, &mut generator, table, part, now, shared)
            .map_err(|error| error.context(&format!("table {}", table.name)))?;
    }
    Ok(())
}

fn load_table(
    session: &mut dyn Session,
    generator: &mut RowGenerator,
    table: &Table,
    part: u32,
    now: Timestamp,
    shared: &Shared<'_>,
) -> Result<()> {
    let columns = table.bulk_columns();
    let bulk = BulkTable { name: table.name, columns: &columns };
    let mut load = session.bulk_load(&bulk)?;
    let mut rows = 0_u64;
    generator.rows(table.id, part, now, &mut |values| {
        load.row(values)?;
        rows += 1;
        if rows.is_multiple_of(STRIDE) {
            shared.add_rows(STRIDE);
            shared.go_on()?;
        }
        Ok(())
    })?;
    let taken = load.finish()?;
    if taken != rows {
        return Err(Error::protocol(format!("{rows} rows were sent, but {taken} were loaded")));
    }
    shared.add_rows(rows % STRIDE);
    Ok(())
}

fn name(part: u32) -> String {
    if part == 0 { "loading the items".into() } else { format!("loading warehouse {part}") }
}
