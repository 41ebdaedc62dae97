//! One part of the data, the items or a warehouse, loaded in one transaction.

use std::ops::RangeInclusive;

use kelvin_database::{BulkTable, Error, Result, Session, Timestamp};

use super::pool::Shared;
use super::{MissingPart, in_transaction};
use crate::tproc_c::data::RowGenerator;
use crate::tproc_c::schema::{Name, Table, table};

/// Rows between checks for a stop request and updates of the progress.
const STRIDE: u64 = 512;

/// The tables of a warehouse, referenced tables first.
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

/// The tables that have rows of part `part` (0 for the items).
pub(super) fn tables(part: u32) -> &'static [Name] {
    if part == 0 { &[Name::Item] } else { &OF_A_WAREHOUSE }
}

/// Loads a part and commits it together with its row in `kelvin_tproc_c_loaded`, so that the part is loaded
/// completely or not at all.
pub(super) fn load(
    session: &mut dyn Session,
    data_seed: u64,
    part: &MissingPart,
    time: Option<Timestamp>,
    shared: &Shared<'_>,
) -> Result<()> {
    let load = |session: &mut dyn Session| {
        // First, so that a second loader of the same part waits or fails before it has done any work.
        session.run(&format!("insert into kelvin_tproc_c_loaded (w_id) values ({})", part.number))?;
        let mut generator = RowGenerator::new(data_seed);
        let time = time.unwrap_or_else(Timestamp::now);
        for &name in &part.tables {
            let rows =
                TableRows { table: table(name), parts: part.number..=part.number, time, frozen: false };
            rows.load(session, &mut generator, &|| shared.go_on().map(|()| false), shared)?;
        }
        Ok(())
    };
    in_transaction(session, load).map_err(|error| error.context(&name(part.number)))
}

/// A table's rows of a range of parts.
pub(super) struct TableRows {
    pub(super) table: &'static Table,
    pub(super) parts: RangeInclusive<u32>,
    /// The time of the load, stored in the rows.
    pub(super) time: Timestamp,
    /// Whether the transaction has emptied the table, so that rows may be loaded as frozen: no other session
    /// needs the old content.
    pub(super) frozen: bool,
}

impl TableRows {
    /// Loads the rows; returns the last part that was loaded. `ends` is called every few rows: true ends the
    /// load after the current part, and an error aborts it.
    pub(super) fn load(
        &self,
        session: &mut dyn Session,
        generator: &mut RowGenerator,
        ends: &dyn Fn() -> Result<bool>,
        shared: &Shared<'_>,
    ) -> Result<u32> {
        self.copy(session, generator, ends, shared)
            .map_err(|error| error.context(&format!("table {}", self.table.name)))
    }

    fn copy(
        &self,
        session: &mut dyn Session,
        generator: &mut RowGenerator,
        ends: &dyn Fn() -> Result<bool>,
        shared: &Shared<'_>,
    ) -> Result<u32> {
        let columns = self.table.bulk_columns();
        let bulk = BulkTable { name: self.table.name, columns: &columns };
        let mut load =
            if self.frozen { session.bulk_load_frozen(&bulk)? } else { session.bulk_load(&bulk)? };
        let (mut rows, mut last) = (0_u64, 0);
        for part in self.parts.clone() {
            let mut ending = false;
            generator.rows(self.table.id, part, self.time, &mut |values| {
                load.row(values)?;
                rows += 1;
                if rows.is_multiple_of(STRIDE) {
                    shared.add_rows(STRIDE);
                    ending = ends()?;
                }
                Ok(())
            })?;
            last = part;
            if ending {
                break;
            }
        }
        let taken = load.finish()?;
        if taken != rows {
            return Err(Error::protocol(format!("{rows} rows were sent, but {taken} were loaded")));
        }
        shared.add_rows(rows % STRIDE);
        Ok(last)
    }
}

fn name(part: u32) -> String {
    if part == 0 { "loading the items".into() } else { format!("loading warehouse {part}") }
}
