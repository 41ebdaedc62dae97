//! The initial data (TPC-C clause 4.3.3), generated from the data seed alone.
//!
//! Each table of each warehouse has a separate random stream, so the rows depend neither on the engine nor on
//! the number of loaders and what they loaded before; only timestamps come from the wall clock. Rows are
//! emitted as borrowed values: nothing is allocated per row.

mod customers;
mod filler;
mod orders;
mod stock;
mod warehouses;

use kelvin_database::{Decimal, Error, Result, Timestamp, Value};
use kelvin_measure::Random;

use super::non_uniform::{NonUniform, push_last_name};
use super::schema::Name;
use filler::Filler;
use orders::new_orders;

/// Receives the rows of a table, with values in the order of its columns.
pub(crate) type Emit<'e> = dyn FnMut(&[Value<'_>]) -> Result<()> + 'e;

/// Stream of a load's constants C; the streams of the tables follow it, numbered by [`Name`].
const CONSTANTS: u64 = 0x7470_6363;

/// The constants C with which data of this seed are loaded.
pub(crate) fn constants(data_seed: u64) -> NonUniform {
    NonUniform::for_load(&mut Random::part(data_seed, CONSTANTS, 0))
}

/// Generates the rows of one part after another; each loader has its own generator.
pub(crate) struct RowGenerator {
    seed: u64,
    constants: NonUniform,
    last_names: Vec<String>,
    filler: Filler,
    now: Timestamp,
}

impl RowGenerator {
    /// A generator whose rows, except for timestamps, depend only on `data_seed`.
    pub(crate) fn new(data_seed: u64) -> Self {
        let last_names = (0..1000)
            .map(|number| {
                let mut name = String::new();
                push_last_name(number, &mut name);
                name
            })
            .collect();
        Self {
            seed: data_seed,
            constants: constants(data_seed),
            last_names,
            filler: Filler::default(),
            now: Timestamp::now(),
        }
    }

    /// Emits all rows of `table` for warehouse `w_id` (0 for the items), with the time `now`.
    pub(crate) fn rows(&mut self, table: Name, w_id: u32, now: Timestamp, emit: &mut Emit<'_>) -> Result<()> {
        if (table == Name::Item) != (w_id == 0) {
            return Err(Error::usage(format!("warehouse {w_id} has no rows of {table:?}")));
        }
        self.now = now;
        match table {
            Name::Item => self.items(emit),
            Name::Warehouse => self.warehouse(w_id, emit),
            Name::District => self.districts(w_id, emit),
            Name::Customer => self.customers(w_id, emit),
            Name::History => self.history(w_id, emit),
            Name::Stock => self.stock(w_id, emit),
            Name::Orders => self.orders(w_id, emit),
            Name::NewOrder => new_orders(w_id, emit),
            Name::OrderLine => self.order_lines(w_id, emit),
        }
    }

    fn random(&self, table: Name, w_id: u32) -> Random {
        Random::part(self.seed, CONSTANTS + 1 + table as u64, u64::from(w_id))
    }
}

fn int(value: impl Into<i64>) -> Value<'static> {
    Value::Int(value.into())
}

/// Money in cents.
fn money(cents: i64) -> Value<'static> {
    Value::Decimal(Decimal::new(cents, 2))
}

/// A tax or discount in units of 0.0001.
fn rate(units: i64) -> Value<'static> {
    Value::Decimal(Decimal::new(units, 4))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::{Hash, Hasher};

    use super::*;
    use crate::tproc_c::schema::TABLES;

    fn each_row(table: Name, w_id: u32, mut each: impl FnMut(&[Value<'_>])) {
        let mut emit = |row: &[Value<'_>]| {
            each(row);
            Ok(())
        };
        RowGenerator::new(7).rows(table, w_id, Timestamp(0), &mut emit).unwrap();
    }

    fn digest(generator: &mut RowGenerator, table: Name, w_id: u32) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        let mut emit = |row: &[Value<'_>]| {
            format!("{row:?}").hash(&mut hasher);
            Ok(())
        };
        generator.rows(table, w_id, Timestamp(0), &mut emit).unwrap();
        hasher.finish()
    }

    #[test]
    fn rows_depend_on_the_seed_and_the_warehouse_and_not_on_what_was_made_before() {
        let mut used = RowGenerator::new(7);
        digest(&mut used, Name::OrderLine, 3);
        digest(&mut used, Name::Customer, 1);
        for table in [Name::Customer, Name::Orders, Name::History, Name::District] {
            let fresh = digest(&mut RowGenerator::new(7), table, 2);
            assert_eq!(digest(&mut used, table, 2), fresh, "{table:?}");
            assert_ne!(digest(&mut used, table, 4), fresh, "{table:?}");
            assert_ne!(digest(&mut RowGenerator::new(8), table, 2), fresh, "{table:?}");
        }
    }

    #[test]
    fn rows_have_the_width_of_their_tables_and_texts_fit_their_columns() {
        use crate::tproc_c::schema::ColumnKind;
        for table in &TABLES {
            each_row(table.id, u32::from(table.id != Name::Item), |row| {
                assert_eq!(row.len(), table.columns.len());
                for (value, column) in row.iter().zip(table.columns) {
                    let fits = match (value, column.kind) {
                        (Value::Null, _) => column.nullable,
                        (Value::Int(n), ColumnKind::Int4) => i32::try_from(*n).is_ok(),
                        (Value::Int(n), ColumnKind::Int2) => i16::try_from(*n).is_ok(),
                        (Value::Text(text), ColumnKind::VarChar(most)) => text.len() <= usize::from(most),
                        (Value::Text(text), ColumnKind::Char(length)) => text.len() == usize::from(length),
                        (Value::Decimal(d), ColumnKind::Decimal { precision, scale }) => {
                            d.scale == scale && d.unscaled.abs() < 10_i64.pow(u32::from(precision))
                        }
                        (Value::Timestamp(_), ColumnKind::Timestamp) => true,
                        _ => false,
                    };
                    assert!(fits, "{}: {value:?}", column.name);
                }
            });
        }
    }

    #[test]
    fn lines_belong_to_the_orders_of_the_same_warehouse() {
        let mut counts = Vec::new();
        let mut customers = BTreeSet::new();
        each_row(Name::Orders, 5, |row| {
            let [Value::Int(o_id), Value::Int(c_id), Value::Int(d_id), Value::Int(lines)] =
                [row[1], row[3], row[4], row[6]]
            else {
                panic!("{row:?}");
            };
            counts.push((d_id, o_id, lines));
            assert!(customers.insert((d_id, c_id)), "customer {c_id} of district {d_id} has two orders");
        });
        let mut found: Vec<(i64, i64, i64)> = Vec::new();
        each_row(Name::OrderLine, 5, |row| {
            let [Value::Int(o_id), Value::Int(d_id), Value::Int(number)] = [row[1], row[5], row[6]] else {
                panic!("{row:?}");
            };
            match found.last_mut() {
                Some(last) if (last.0, last.1) == (d_id, o_id) => last.2 += 1,
                _ => found.push((d_id, o_id, 1)),
            }
            assert_eq!(found.last().unwrap().2, number);
        });
        assert_eq!(counts, found);
        assert_eq!(counts.len(), 30_000);
    }

    #[test]
    #[ignore = "a measurement: run it alone, with --release and --nocapture"]
    #[expect(clippy::print_stdout, reason = "its output is its purpose")]
    fn speed_of_generation() {
        for table in &TABLES {
            let started = std::time::Instant::now();
            let mut rows = 0_u64;
            for w_id in if table.id == Name::Item { 0..1 } else { 1..11 } {
                each_row(table.id, w_id, |_| rows += 1);
            }
            println!("{:10} {rows:8} rows in {:?}", table.name, started.elapsed());
        }
    }
}
