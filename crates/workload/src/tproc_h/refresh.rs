//! The refresh functions (TPC-H clause 2.6, 2.7): RF1 inserts new orders with their lines, RF2 deletes as many old ones.
//!
//! Each pair has its window of the orders: the thousandth part of them. RF1 inserts the orders of the window once more, under
//! keys that the load leaves free (of each 32 keys it uses the first eight), and RF2 deletes those of the load in the same window,
//! as dbgen's update sets do. After a thousand pairs all orders of the load are gone.

use kelvin_database::{BulkTable, Error, Result, Session};
use tpchgen::generators::{LineItemGenerator, OrderGenerator};

use super::data::RowWriter;
use super::dialect::Dialect;
use super::schema::{Name, table};
use super::{Scale, state};
use crate::tproc_c::load::in_transaction;

/// Windows that the orders have.
pub(crate) const WINDOWS: i32 = 1000;

/// Orders of one DELETE.
const DELETED_AT_ONCE: usize = 250;

/// The key of an inserted order: in the second eight of its 32.
const fn inserted_key(key: i64) -> i64 {
    key + 8
}

/// Inserts the orders of a window, 1 to [`WINDOWS`], with their lines; returns the number of rows. One transaction.
pub(crate) fn insert(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    scale: Scale,
    window: u32,
) -> Result<u64> {
    let (number, factor) = (window_number(window)?, scale.factor());
    let as_text = dialect.has_only_integers();
    let mut writer = RowWriter::new(factor, as_text);
    let mut rows = 0;
    in_transaction(session, |session| {
        let columns = table(Name::Orders).bulk_columns(as_text);
        let orders = BulkTable { name: "orders", columns: &columns };
        let mut load = session.bulk_load(&orders)?;
        for order in OrderGenerator::new(factor, number, WINDOWS).iter() {
            writer.order(&order, inserted_key(order.o_orderkey), &mut |values| load.row(values))?;
        }
        rows += load.finish()?;
        let columns = table(Name::LineItem).bulk_columns(as_text);
        let lines = BulkTable { name: "lineitem", columns: &columns };
        let mut load = session.bulk_load(&lines)?;
        for line in LineItemGenerator::new(factor, number, WINDOWS).iter() {
            writer.line(&line, inserted_key(line.l_orderkey), &mut |values| load.row(values))?;
        }
        rows += load.finish()?;
        session.run(&state::refreshed(window))
    })?;
    Ok(rows)
}

/// Deletes the orders that the load put into a window, with their lines; returns the number of rows that the server deleted.
/// One transaction.
pub(crate) fn delete(session: &mut dyn Session, scale: Scale, window: u32) -> Result<u64> {
    let orders = OrderGenerator::new(scale.factor(), window_number(window)?, WINDOWS);
    let keys: Vec<String> = orders.iter().map(|order| order.o_orderkey.to_string()).collect();
    let mut rows = 0;
    in_transaction(session, |session| {
        keys.chunks(DELETED_AT_ONCE).try_for_each(|keys| {
            let keys = keys.join(", ");
            for (table, key) in [("lineitem", "l_orderkey"), ("orders", "o_orderkey")] {
                rows += session.query(&format!("delete from {table} where {key} in ({keys})"))?.affected();
            }
            Ok(())
        })
    })?;
    Ok(rows)
}

fn window_number(window: u32) -> Result<i32> {
    i32::try_from(window).ok().filter(|window| (1..=WINDOWS).contains(window)).ok_or_else(|| {
        Error::usage(format!("the data have been refreshed {WINDOWS} times, and no old orders are left"))
            .with_help("drop the data and rebuild them, or leave out the refresh functions: --no-refresh")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_a_thousandth_each_and_inserted_keys_are_free() {
        let keys = |window| OrderGenerator::new(0.01, window, WINDOWS).iter().map(|order| order.o_orderkey);
        let all: std::collections::BTreeSet<i64> =
            OrderGenerator::new(0.01, 1, 1).iter().map(|order| order.o_orderkey).collect();
        let mut inserted = std::collections::BTreeSet::new();
        for window in [1, 2, 999, 1000] {
            assert_eq!(keys(window).count(), 15);
            assert!(keys(window).all(|key| all.contains(&key) && !all.contains(&inserted_key(key))));
            assert!(keys(window).all(|key| inserted.insert(inserted_key(key))));
        }
        assert!(window_number(0).is_err() && window_number(1001).is_err());
    }
}
