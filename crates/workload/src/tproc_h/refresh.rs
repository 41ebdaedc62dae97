//! The refresh functions (TPC-H clause 2.6, 2.7): RF1 inserts new orders with their lines, RF2 deletes as many old ones.
//!
//! Each pair uses one window of the orders, a thousandth of them. RF1 inserts the window's orders again, with
//! keys that the load leaves unused (of every 32 keys it uses the first eight). RF2 deletes the loaded orders
//! of the same window, as with dbgen's update sets. After a thousand pairs all loaded orders are deleted. A
//! trickle refresh does the same order by order.

use std::ops::Range;

use kelvin_database::{BulkTable, Error, Result, Session};
use tpchgen::generators::OrderGenerator;

use super::data::{RowWriter, Slice, lines, orders};
use super::dialect::Dialect;
use super::schema::{Name, table};
use super::{Scale, state};
use crate::tproc_c::load::in_transaction;

/// Number of windows.
pub(crate) const WINDOWS: i32 = 1000;

/// Orders per DELETE statement.
const DELETED_AT_ONCE: usize = 250;

/// The key of an inserted order: among the second eight of its 32 keys.
const fn inserted_key(key: i64) -> i64 {
    key + 8
}

/// Some of the loaded orders, as slices of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Orders {
    scale: Scale,
    numbers: Range<i32>,
    of: i32,
}

impl Orders {
    /// The orders of a window, 1 to [`WINDOWS`].
    pub(crate) fn of_window(scale: Scale, window: u32) -> Result<Self> {
        let number = window_number(window)?;
        Ok(Self { scale, numbers: number..number + 1, of: WINDOWS })
    }

    /// The same, as slices of one order each.
    pub(crate) fn each_of_window(scale: Scale, window: u32) -> Result<Self> {
        let number = window_number(window)?;
        let rows = |part, of| OrderGenerator::calculate_row_count(scale.factor(), part, of) as i32;
        let first = rows(1, WINDOWS) * (number - 1) + 1;
        Ok(Self { scale, numbers: first..first + rows(number, WINDOWS), of: rows(1, 1) })
    }

    /// Takes the first slice.
    pub(crate) fn take_first(&mut self) -> Self {
        let numbers = self.numbers.start..self.numbers.end.min(self.numbers.start + 1);
        self.numbers.start = numbers.end;
        Self { numbers, ..*self }
    }

    /// Takes all remaining slices.
    pub(crate) fn take_all(&mut self) -> Self {
        let numbers = self.numbers.clone();
        self.numbers.start = numbers.end;
        Self { numbers, ..*self }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn slices(&self) -> impl Iterator<Item = Slice> {
        let of = self.of;
        self.numbers.clone().map(move |number| Slice { number, of })
    }
}

/// Inserts the orders again with new keys, together with their lines, in one transaction; returns the number
/// of rows.
pub(crate) fn insert(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    new: &Orders,
    window: u32,
) -> Result<u64> {
    let (factor, as_text) = (new.scale.factor(), dialect.has_only_integers());
    let mut writer = RowWriter::new(factor, as_text);
    let mut rows = 0;
    in_transaction(session, |session| {
        let columns = table(Name::Orders).bulk_columns(as_text);
        let bulk = BulkTable { name: "orders", columns: &columns };
        let mut load = session.bulk_load(&bulk)?;
        for order in new.slices().flat_map(|slice| orders(factor, slice).iter()) {
            writer.order(&order, inserted_key(order.o_orderkey), &mut |values| load.row(values))?;
        }
        rows += load.finish()?;
        let columns = table(Name::LineItem).bulk_columns(as_text);
        let bulk = BulkTable { name: "lineitem", columns: &columns };
        let mut load = session.bulk_load(&bulk)?;
        for line in new.slices().flat_map(|slice| lines(factor, slice).iter()) {
            writer.line(&line, inserted_key(line.l_orderkey), &mut |values| load.row(values))?;
        }
        rows += load.finish()?;
        session.run(&state::refreshed(window))
    })?;
    Ok(rows)
}

/// Deletes loaded orders and their lines in one transaction; returns the number of rows that the server
/// deleted.
pub(crate) fn delete(session: &mut dyn Session, old: &Orders) -> Result<u64> {
    let factor = old.scale.factor();
    let old = old.slices().flat_map(|slice| orders(factor, slice).iter());
    let keys: Vec<String> = old.map(|order| order.o_orderkey.to_string()).collect();
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

    fn keys(of: &Orders) -> Vec<i64> {
        let all = of.slices().flat_map(|slice| orders(of.scale.factor(), slice).iter());
        all.map(|order| order.o_orderkey).collect()
    }

    #[test]
    fn windows_are_a_thousandth_each_and_inserted_keys_are_free() {
        let scale = Scale::try_from(0.01).unwrap();
        let all: std::collections::BTreeSet<i64> =
            orders(0.01, Slice { number: 1, of: 1 }).iter().map(|order| order.o_orderkey).collect();
        let mut inserted = std::collections::BTreeSet::new();
        for window in [1, 2, 999, 1000] {
            let keys = keys(&Orders::of_window(scale, window).unwrap());
            assert_eq!(keys.len(), 15);
            assert!(keys.iter().all(|key| all.contains(key) && !all.contains(&inserted_key(*key))));
            assert!(keys.iter().all(|key| inserted.insert(inserted_key(*key))));
        }
        assert!(window_number(0).is_err() && window_number(1001).is_err());
    }

    #[test]
    fn one_by_one_the_orders_of_a_window_are_the_same() {
        // At scale factor 0.011 the last window has more orders.
        for (factor, window) in [(0.01, 1), (0.01, 7), (0.011, 500), (0.011, 1000)] {
            let scale = Scale::try_from(factor).unwrap();
            let whole = keys(&Orders::of_window(scale, window).unwrap());
            let mut left = Orders::each_of_window(scale, window).unwrap();
            let mut taken = keys(&left.take_first());
            assert_eq!(taken.len(), 1);
            taken.extend(keys(&left.take_first()));
            taken.extend(keys(&left.take_all()));
            assert_eq!(taken, whole, "{factor} {window}");
            assert!(left.is_empty() && keys(&left.take_first()).is_empty());
        }
    }
}
