//! The rows, as dbgen makes them: from the crate `tpchgen` straight into a load.

use std::fmt::Write as _;

use kelvin_database::{Decimal, Result, Timestamp, Value};
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, Part,
    PartGenerator, PartSuppGenerator, RegionGenerator, Supplier, SupplierGenerator,
};

use super::schema::Name;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// A part of a table: number `number` from 1 to `of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) number: i32,
    pub(crate) of: i32,
}

/// Hears a row.
pub(crate) type Each<'a> = dyn FnMut(&[Value<'_>]) -> Result<()> + 'a;

/// Makes rows for a load.
#[derive(Debug)]
pub(crate) struct RowWriter {
    scale: f64,
    /// Every date of the data as text, for engines without dates; by days since 1992-01-01.
    dates: Option<Vec<String>>,
    /// Texts that have to be formatted, kept for their memory.
    texts: [String; 3],
}

impl RowWriter {
    /// Rows at this scale factor. With `dates_are_text` dates are `1992-01-01`, else points in time.
    pub(crate) fn new(scale: f64, dates_are_text: bool) -> Self {
        let dates = dates_are_text.then(|| {
            (0..TOTAL_DATE_RANGE).map(|day| date_text(i64::from(day)).unwrap_or_default()).collect()
        });
        Self { scale, dates, texts: Default::default() }
    }

    /// Hands out the rows of a part of a table, in the order of its primary key.
    pub(crate) fn rows(&mut self, table: Name, part: Slice, each: &mut Each<'_>) -> Result<()> {
        let (scale, Slice { number, of }) = (self.scale, part);
        match table {
            Name::Region => RegionGenerator::new(scale, number, of).iter().try_for_each(|row| {
                each(&[Value::Int(row.r_regionkey), row.r_name.into(), row.r_comment.into()])
            }),
            Name::Nation => NationGenerator::new(scale, number, of).iter().try_for_each(|row| {
                each(&[
                    Value::Int(row.n_nationkey),
                    row.n_name.into(),
                    Value::Int(row.n_regionkey),
                    row.n_comment.into(),
                ])
            }),
            Name::Supplier => {
                SupplierGenerator::new(scale, number, of).iter().try_for_each(|row| self.supplier(&row, each))
            }
            Name::Part => {
                PartGenerator::new(scale, number, of).iter().try_for_each(|row| self.part(&row, each))
            }
            Name::PartSupp => PartSuppGenerator::new(scale, number, of).iter().try_for_each(|row| {
                each(&[
                    Value::Int(row.ps_partkey),
                    Value::Int(row.ps_suppkey),
                    Value::Int(row.ps_availqty.into()),
                    decimal(row.ps_supplycost),
                    row.ps_comment.into(),
                ])
            }),
            Name::Customer => {
                CustomerGenerator::new(scale, number, of).iter().try_for_each(|row| self.customer(&row, each))
            }
            Name::Orders => OrderGenerator::new(scale, number, of)
                .iter()
                .try_for_each(|row| self.order(&row, row.o_orderkey, each)),
            Name::LineItem => LineItemGenerator::new(scale, number, of)
                .iter()
                .try_for_each(|row| self.line(&row, row.l_orderkey, each)),
        }
    }

    fn supplier(&mut self, row: &Supplier, each: &mut Each<'_>) -> Result<()> {
        let [name, address, phone] = &mut self.texts;
        put(name, &row.s_name);
        put(address, &row.s_address);
        put(phone, &row.s_phone);
        each(&[
            Value::Int(row.s_suppkey),
            Value::Text(name),
            Value::Text(address),
            Value::Int(row.s_nationkey),
            Value::Text(phone),
            decimal(row.s_acctbal),
            Value::Text(&row.s_comment),
        ])
    }

    fn part(&mut self, row: &Part<'_>, each: &mut Each<'_>) -> Result<()> {
        let [name, maker, brand] = &mut self.texts;
        put(name, &row.p_name);
        put(maker, &row.p_mfgr);
        put(brand, &row.p_brand);
        each(&[
            Value::Int(row.p_partkey),
            Value::Text(name),
            Value::Text(maker),
            Value::Text(brand),
            row.p_type.into(),
            Value::Int(row.p_size.into()),
            row.p_container.into(),
            decimal(row.p_retailprice),
            row.p_comment.into(),
        ])
    }

    fn customer(&mut self, row: &Customer<'_>, each: &mut Each<'_>) -> Result<()> {
        let [name, address, phone] = &mut self.texts;
        put(name, &row.c_name);
        put(address, &row.c_address);
        put(phone, &row.c_phone);
        each(&[
            Value::Int(row.c_custkey),
            Value::Text(name),
            Value::Text(address),
            Value::Int(row.c_nationkey),
            Value::Text(phone),
            decimal(row.c_acctbal),
            row.c_mktsegment.into(),
            row.c_comment.into(),
        ])
    }

    /// An order under this key.
    pub(crate) fn order(&mut self, row: &Order<'_>, key: i64, each: &mut Each<'_>) -> Result<()> {
        let Self { dates, texts: [clerk, ..], .. } = self;
        put(clerk, &row.o_clerk);
        each(&[
            Value::Int(key),
            Value::Int(row.o_custkey),
            row.o_orderstatus.as_str().into(),
            decimal(row.o_totalprice),
            date(dates.as_deref(), row.o_orderdate),
            row.o_orderpriority.into(),
            Value::Text(clerk),
            Value::Int(row.o_shippriority.into()),
            row.o_comment.into(),
        ])
    }

    /// A line of the order of this key.
    pub(crate) fn line(&self, row: &LineItem<'_>, key: i64, each: &mut Each<'_>) -> Result<()> {
        let dates = self.dates.as_deref();
        each(&[
            Value::Int(key),
            Value::Int(row.l_partkey),
            Value::Int(row.l_suppkey),
            Value::Int(row.l_linenumber.into()),
            Value::Decimal(Decimal::new(row.l_quantity * 100, 2)),
            decimal(row.l_extendedprice),
            decimal(row.l_discount),
            decimal(row.l_tax),
            row.l_returnflag.into(),
            row.l_linestatus.into(),
            date(dates, row.l_shipdate),
            date(dates, row.l_commitdate),
            date(dates, row.l_receiptdate),
            row.l_shipinstruct.into(),
            row.l_shipmode.into(),
            row.l_comment.into(),
        ])
    }
}

/// Replaces a text.
fn put(text: &mut String, value: &impl std::fmt::Display) {
    text.clear();
    // Writing to a String does not fail.
    let _ = write!(text, "{value}");
}

fn decimal(value: TPCHDecimal) -> Value<'static> {
    Value::Decimal(Decimal::new(value.into_inner(), 2))
}

fn date(texts: Option<&[String]>, date: TPCHDate) -> Value<'_> {
    match texts {
        Some(texts) => Value::Text(&texts[date.into_inner() as usize]),
        None => Value::Timestamp(Timestamp(i64::from(date.to_unix_epoch()) * DAY)),
    }
}

/// A day of the years 1992 to 1998, by its distance from 1992-01-01, as `1992-01-01`; `None` outside of them.
pub(crate) fn date_text(day: i64) -> Option<String> {
    let day = i32::try_from(day).ok().filter(|day| (0..TOTAL_DATE_RANGE).contains(day))?;
    Some(TPCHDate::new(MIN_GENERATE_DATE + day).to_string())
}

/// A point in time that is the beginning of such a day.
pub(crate) fn date_of(at: Timestamp) -> Option<String> {
    (at.0 % DAY == 0).then(|| date_text(at.0 / DAY - i64::from(TPCHDate::UNIX_EPOCH_OFFSET))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_same_on_all_ways() {
        assert_eq!(date_text(0).as_deref(), Some("1992-01-01"));
        assert_eq!(date_text(2526).as_deref(), Some("1998-12-01"));
        assert_eq!(date_text(2557), None);
        assert_eq!(date_text(-1), None);
        assert_eq!(date_of(Timestamp(8035 * DAY + 59 * DAY)).as_deref(), Some("1992-02-29"));
        assert_eq!(date_of(Timestamp(8035 * DAY + 1)), None);
    }

    #[test]
    fn parts_together_are_the_table() {
        let collect = |of| {
            let (mut rows, mut writer) = (Vec::new(), RowWriter::new(0.01, true));
            for number in 1..=of {
                let each = &mut |values: &[Value<'_>]| {
                    rows.push(format!("{values:?}"));
                    Ok(())
                };
                writer.rows(Name::Supplier, Slice { number, of }, each).unwrap();
            }
            rows
        };
        let whole = collect(1);
        assert_eq!(whole.len(), 100);
        assert_eq!(collect(7), whole);
        assert!(whole[0].contains("Supplier#000000001"), "{}", whole[0]);
    }
}
