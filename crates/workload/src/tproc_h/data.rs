//! The rows that dbgen generates, passed from the crate `tpchgen` directly to a load.

use std::fmt::Write as _;

use kelvin_database::{Decimal, Result, Timestamp, Value};
use tpchgen::dates::{MIN_GENERATE_DATE, TOTAL_DATE_RANGE, TPCHDate};
use tpchgen::decimal::TPCHDecimal;
use tpchgen::distribution::Distributions;
use tpchgen::generators::{
    Customer, CustomerGenerator, LineItem, LineItemGenerator, NationGenerator, Order, OrderGenerator, Part,
    PartGenerator, PartSuppGenerator, RegionGenerator, Supplier, SupplierGenerator,
};

use super::comments::{CommentText, Comments, row_of_order, short_text, with_review};
use super::schema::{Name, TABLES};

/// Microseconds per day.
const DAY: i64 = 86_400_000_000;

/// Part `number`, from 1 to `of`, of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) number: i32,
    pub(crate) of: i32,
}

/// Receives a row.
pub(crate) type Each<'a> = dyn FnMut(&[Value<'_>]) -> Result<()> + 'a;

/// Generates rows for a load.
#[derive(Debug)]
pub(crate) struct RowWriter {
    scale: f64,
    /// Every date of the data as text, for engines without dates, indexed by days since 1992-01-01.
    dates: Option<Vec<String>>,
    /// Reused buffers for texts that must be formatted.
    texts: [String; 3],
    comment: String,
    /// The comments of each table, in the order of [`TABLES`].
    comments: [Comments; TABLES.len()],
}

/// The orders of a part, without usable comments.
pub(crate) fn orders(scale: f64, Slice { number, of }: Slice) -> OrderGenerator<'static> {
    OrderGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), short_text())
}

/// The lines of a part's orders, without usable comments.
pub(crate) fn lines(scale: f64, Slice { number, of }: Slice) -> LineItemGenerator<'static> {
    LineItemGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), short_text())
}

fn lists() -> &'static Distributions {
    Distributions::static_default()
}

/// All nations, without usable comments.
pub(crate) fn nations() -> NationGenerator<'static> {
    NationGenerator::new_with_distributions_and_text_pool(lists(), short_text())
}

impl RowWriter {
    /// Rows at this scale factor. With `dates_are_text` dates are texts such as `1992-01-01`, else
    /// timestamps.
    pub(crate) fn new(scale: f64, dates_are_text: bool) -> Self {
        Self::with_text(CommentText::shared(), scale, dates_are_text)
    }

    /// The same with comments from another text.
    fn with_text(text: &'static CommentText, scale: f64, dates_are_text: bool) -> Self {
        let dates = dates_are_text.then(|| {
            (0..TOTAL_DATE_RANGE).map(|day| date_text(i64::from(day)).unwrap_or_default()).collect()
        });
        let comments = TABLES.each_ref().map(|table| Comments::new(text, table.id));
        Self { scale, dates, texts: Default::default(), comment: String::new(), comments }
    }

    /// Draws the next comment of this row of the generator.
    fn comment(&mut self, table: Name, row: i64) {
        self.comments[table as usize].next(row, &mut self.comment);
    }

    /// Calls `each` with the rows of a part of a table, in the order of its primary key.
    pub(crate) fn rows(&mut self, table: Name, part: Slice, each: &mut Each<'_>) -> Result<()> {
        let (scale, Slice { number, of }) = (self.scale, part);
        match table {
            Name::Region => RegionGenerator::new_with_distributions_and_text_pool(lists(), short_text())
                .iter()
                .try_for_each(|row| {
                    self.comment(table, row.r_regionkey);
                    each(&[Value::Int(row.r_regionkey), row.r_name.into(), Value::Text(&self.comment)])
                }),
            Name::Nation => nations().iter().try_for_each(|row| {
                self.comment(table, row.n_nationkey);
                each(&[
                    Value::Int(row.n_nationkey),
                    row.n_name.into(),
                    Value::Int(row.n_regionkey),
                    Value::Text(&self.comment),
                ])
            }),
            Name::Supplier => {
                let rows = SupplierGenerator::new_with_distributions_and_text_pool(
                    scale,
                    number,
                    of,
                    lists(),
                    short_text(),
                );
                rows.iter().try_for_each(|row| self.supplier(&row, each))
            }
            Name::Part => {
                let rows = PartGenerator::new_with_distributions_and_text_pool(
                    scale,
                    number,
                    of,
                    lists(),
                    short_text(),
                );
                rows.iter().try_for_each(|row| self.part(&row, each))
            }
            Name::PartSupp => {
                let rows = PartSuppGenerator::new_with_text_pool(scale, number, of, short_text());
                rows.iter().try_for_each(|row| {
                    self.comment(table, row.ps_partkey - 1);
                    each(&[
                        Value::Int(row.ps_partkey),
                        Value::Int(row.ps_suppkey),
                        Value::Int(row.ps_availqty.into()),
                        decimal(row.ps_supplycost),
                        Value::Text(&self.comment),
                    ])
                })
            }
            Name::Customer => {
                let rows = CustomerGenerator::new_with_distributions_and_text_pool(
                    scale,
                    number,
                    of,
                    lists(),
                    short_text(),
                );
                rows.iter().try_for_each(|row| self.customer(&row, each))
            }
            Name::Orders => {
                orders(scale, part).iter().try_for_each(|row| self.order(&row, row.o_orderkey, each))
            }
            Name::LineItem => {
                lines(scale, part).iter().try_for_each(|row| self.line(&row, row.l_orderkey, each))
            }
        }
    }

    fn supplier(&mut self, row: &Supplier, each: &mut Each<'_>) -> Result<()> {
        self.comment(Name::Supplier, row.s_suppkey - 1);
        with_review(&mut self.comment, &row.s_comment);
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
            Value::Text(&self.comment),
        ])
    }

    fn part(&mut self, row: &Part<'_>, each: &mut Each<'_>) -> Result<()> {
        self.comment(Name::Part, row.p_partkey - 1);
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
            Value::Text(&self.comment),
        ])
    }

    fn customer(&mut self, row: &Customer<'_>, each: &mut Each<'_>) -> Result<()> {
        self.comment(Name::Customer, row.c_custkey - 1);
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
            Value::Text(&self.comment),
        ])
    }

    /// Emits an order with this key.
    pub(crate) fn order(&mut self, row: &Order<'_>, key: i64, each: &mut Each<'_>) -> Result<()> {
        self.comment(Name::Orders, row_of_order(row.o_orderkey));
        let Self { dates, texts: [clerk, ..], comment, .. } = self;
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
            Value::Text(comment),
        ])
    }

    /// Emits a line of the order with this key.
    pub(crate) fn line(&mut self, row: &LineItem<'_>, key: i64, each: &mut Each<'_>) -> Result<()> {
        self.comment(Name::LineItem, row_of_order(row.l_orderkey));
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
            Value::Text(&self.comment),
        ])
    }
}

/// Replaces the content of `text`.
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

/// The date `day` days after 1992-01-01, as `1992-01-01`; `None` outside the years 1992 to 1998.
pub(crate) fn date_text(day: i64) -> Option<String> {
    let day = i32::try_from(day).ok().filter(|day| (0..TOTAL_DATE_RANGE).contains(day))?;
    Some(TPCHDate::new(MIN_GENERATE_DATE + day).to_string())
}

/// The date of a timestamp at midnight; `None` for other timestamps and outside these years.
pub(crate) fn date_of(at: Timestamp) -> Option<String> {
    (at.0 % DAY == 0).then(|| date_text(at.0 / DAY - i64::from(TPCHDate::UNIX_EPOCH_OFFSET))).flatten()
}

#[cfg(test)]
mod tests {
    use tpchgen::text::TextPool;

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

    /// The last columns of each table, with comments from a text that the generator uses, too.
    #[test]
    fn comments_are_those_of_the_generator() {
        let size = 100_000;
        let ours: &'static CommentText = Box::leak(Box::new(CommentText::new(size)));
        let theirs: &'static TextPool = Box::leak(Box::new(TextPool::new(size, lists())));
        // One supplier in a thousand has praise or complaints.
        let scale = |table| if table == Name::Supplier { 1.0 } else { 0.01 };
        let found = |table, part| {
            let (mut comments, mut writer) = (Vec::new(), RowWriter::with_text(ours, scale(table), true));
            let each = &mut |values: &[Value<'_>]| {
                let Some(Value::Text(comment)) = values.last() else { panic!("no text at the end") };
                comments.push((*comment).to_owned());
                Ok(())
            };
            writer.rows(table, part, each).unwrap();
            comments
        };
        macro_rules! equal {
            ($table:ident, $part:expr, $rows:expr, $comment:ident) => {
                let wanted: Vec<_> = $rows.iter().map(|row| row.$comment.to_string()).collect();
                assert!(wanted.len() > 4);
                assert!(found(Name::$table, $part) == wanted, "{:?}", $part);
            };
        }
        for (number, of) in [(1, 1), (3, 4), (2, 4), (4, 4)] {
            let part = Slice { number, of };
            let (scale, text) = (0.01, theirs);
            equal!(
                Part,
                part,
                PartGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), text),
                p_comment
            );
            equal!(
                PartSupp,
                part,
                PartSuppGenerator::new_with_text_pool(scale, number, of, text),
                ps_comment
            );
            equal!(
                Supplier,
                part,
                SupplierGenerator::new_with_distributions_and_text_pool(1.0, number, of, lists(), text),
                s_comment
            );
            equal!(
                Customer,
                part,
                CustomerGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), text),
                c_comment
            );
            equal!(
                Orders,
                part,
                OrderGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), text),
                o_comment
            );
            equal!(
                LineItem,
                part,
                LineItemGenerator::new_with_distributions_and_text_pool(scale, number, of, lists(), text),
                l_comment
            );
        }
        let part = Slice { number: 1, of: 1 };
        equal!(
            Nation,
            part,
            NationGenerator::new_with_distributions_and_text_pool(lists(), theirs),
            n_comment
        );
        equal!(
            Region,
            part,
            RegionGenerator::new_with_distributions_and_text_pool(lists(), theirs),
            r_comment
        );
    }
}
