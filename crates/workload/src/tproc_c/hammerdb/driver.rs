//! Calls HammerDB's routines. The customer's last name is a parameter of the call.

use kelvin_database::{Cell, Decimal, Error, Result, Rows, Session, Statement, Timestamp, Value, sqlserver};
use kelvin_measure::TransactionOutcome;

use crate::tproc_c::calls::{Details, Ended, Execute, count, not_prepared};
use crate::tproc_c::inputs::{
    Customer, DELIVERY, Delivery, NEW_ORDER, NewOrder, ORDER_STATUS, OrderStatus, PAYMENT, Payment,
    STOCK_LEVEL, StockLevel,
};
use crate::tproc_c::schema::DISTRICTS;

/// Calls the routines of one variant; they are looked up in `prepare`.
pub(crate) struct Driver {
    warehouses: i64,
    find: Find,
    prepared: Option<Prepared>,
    rows: Rows,
}

/// Finds the routines in the database and prepares their calls; `None` if they do not exist.
pub(super) type Find = fn(&mut dyn Session) -> Result<Option<Prepared>>;

/// The calls, in the order of the transaction types, and the meaning of their results.
pub(super) struct Prepared {
    pub(super) calls: [Call; 5],
    pub(super) answers: Answers,
}

/// A prepared call, and the transaction's value that each of its parameters takes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) statement: Statement,
    pub(super) takes: Vec<Takes>,
}

/// The value that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// A value by name: home, warehouses, district, customer, lines, `c_w`, `c_d` (the customer's warehouse
    /// and district), `by_name`, amount, last, carrier, threshold.
    Meant(&'static str),
    /// The time.
    Now,
    /// NULL: a pure output parameter.
    Null,
}

/// Information in the results, in addition to success.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answers {
    pub(super) order: OrderAnswer,
    /// Payment's first column is the customer's number; NULL if no customer has the name.
    pub(super) chosen: bool,
    /// Delivery's first column is the number of districts that had an order.
    pub(super) delivered: bool,
    /// Order-Status returns a row per line.
    pub(super) lines: bool,
    /// An error is returned as a row ([`error_of`]).
    pub(super) errors: bool,
}

/// How New-Order reports that it rolled the order back.
#[derive(Debug, Clone, Copy)]
pub(super) enum OrderAnswer {
    /// It never rolls back.
    Committed,
    /// The first column is the total; it is 0 if the order was rolled back.
    Total,
    /// This column, the order's number, is NULL.
    Number(usize),
    /// This statement, executed after the call, returns 0.
    Asked(Statement),
    /// This statement returns 0 for warehouse, district, order and customer; the order's number is this
    /// column minus one.
    Kept(Statement, usize),
}

/// The values of a transaction, by name.
type Values<'a> = [(&'static str, Value<'a>)];

/// Most parameters of a call: the names of the longest list, a NULL, and the time twice.
pub(super) const MOST: usize = 12;

impl Driver {
    pub(super) fn new(warehouses: u32, find: Find) -> Self {
        Self { warehouses: i64::from(warehouses), find, prepared: None, rows: Rows::new() }
    }

    fn call(&mut self, session: &mut dyn Session, kind: u16, values: &Values<'_>) -> Result<Answers> {
        let prepared = self.prepared.as_ref().ok_or_else(not_prepared)?;
        let call = &prepared.calls[usize::from(kind)];
        let mut params = [Value::Null; MOST];
        for (param, takes) in params.iter_mut().zip(&call.takes) {
            *param = match takes {
                Takes::Now => Timestamp::now().into(),
                Takes::Null => Value::Null,
                Takes::Meant(name) => {
                    values.iter().find(|(of, _)| of == name).map_or(Value::Null, |(_, value)| *value)
                }
            };
        }
        session.execute(call.statement, &params[..call.takes.len()], &mut self.rows)?;
        if prepared.answers.errors
            && let Some(error) = error_of(&self.rows)?
        {
            return Err(error);
        }
        Ok(prepared.answers)
    }
}

/// The error that HammerDB's procedures on SQL Server return as a row: number, severity, state, procedure,
/// line and message, a shape that no other result has; for memory-optimised tables a word and the number.
fn error_of(rows: &Rows) -> Result<Option<Error>> {
    let number = |column| matches!(rows.cell(0, column), Ok(Cell::Int(_)));
    Ok(match (rows.len(), rows.columns()) {
        (1, 6) if number(0) && number(1) && number(2) => {
            let [code, severity, state] = [rows.int(0, 0)?, rows.int(0, 1)?, rows.int(0, 2)?];
            let message = rows.optional(0, 5, Rows::text)?.unwrap_or("an error without a message");
            Some(sqlserver::error(code as i32, severity as u8, state as u8, message))
        }
        (1, 2) if number(1) && rows.text(0, 0).is_ok_and(|word| word == "IMOLTPERROR") => {
            Some(sqlserver::error(rows.int(0, 1)? as i32, 16, 1, "an error of memory-optimized tables"))
        }
        _ => None,
    })
}

/// Number, name and flag. HammerDB's routines always expect both a number and a name.
fn customer_values(customer: Customer) -> [(&'static str, Value<'static>); 3] {
    match customer {
        Customer::Id(id) => [("customer", id.into()), ("last", "".into()), ("by_name", 0.into())],
        Customer::Name(name) => [("customer", 0.into()), ("last", name.into()), ("by_name", 1.into())],
    }
}

impl Execute for Driver {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let found = (self.find)(session)?;
        self.prepared = Some(
            found.ok_or_else(|| Error::usage("HammerDB's stored routines are no longer in the database"))?,
        );
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let values = [
            ("home", order.warehouse.into()),
            ("warehouses", self.warehouses.into()),
            ("district", order.district.into()),
            ("customer", order.customer.into()),
            ("lines", Value::Int(order.len as i64)),
        ];
        let rolled_back = match self.call(session, NEW_ORDER, &values)?.order {
            OrderAnswer::Committed => false,
            OrderAnswer::Total => {
                done.cents = self.rows.decimal(0, 0, 2)?;
                done.cents == 0
            }
            OrderAnswer::Number(column) => self.rows.is_null(0, column)?,
            OrderAnswer::Kept(statement, next) => {
                let number = Value::Int(self.rows.int(0, next)? - 1);
                let key = [order.warehouse.into(), order.district.into(), number, order.customer.into()];
                session.execute(statement, &key, &mut self.rows)?;
                self.rows.int(0, 0)? == 0
            }
            OrderAnswer::Asked(statement) => {
                session.execute(statement, &[], &mut self.rows)?;
                self.rows.int(0, 0)? == 0
            }
        };
        Ok(if rolled_back { TransactionOutcome::RolledBack } else { TransactionOutcome::Committed })
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let [customer, last, by_name] = customer_values(payment.customer);
        let values = [
            ("home", payment.warehouse.into()),
            ("district", payment.district.into()),
            ("c_w", payment.customer_warehouse.into()),
            ("c_d", payment.customer_district.into()),
            customer,
            last,
            by_name,
            ("amount", Decimal::new(payment.amount, 2).into()),
        ];
        if self.call(session, PAYMENT, &values)?.chosen && self.rows.is_null(0, 0)? {
            done.matched = Some(0);
            return Ok(TransactionOutcome::RolledBack);
        }
        Ok(TransactionOutcome::Committed)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let values = [("home", delivery.warehouse.into()), ("carrier", delivery.carrier.into())];
        if self.call(session, DELIVERY, &values)?.delivered {
            done.skipped = Some(DISTRICTS as u64 - count(self.rows.int(0, 0)?, DISTRICTS, "deliveries")?);
        }
        Ok(TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        let values = [
            ("home", level.warehouse.into()),
            ("district", level.district.into()),
            ("threshold", level.threshold.into()),
        ];
        self.call(session, STOCK_LEVEL, &values)?;
        if !self.rows.is_empty() && !self.rows.is_null(0, 0)? {
            done.count = self.rows.int(0, 0)?;
        }
        Ok(TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let [customer, last, by_name] = customer_values(status.customer);
        let values = [
            ("home", status.warehouse.into()),
            ("district", status.district.into()),
            customer,
            last,
            by_name,
        ];
        if self.call(session, ORDER_STATUS, &values)?.lines {
            done.count = self.rows.len() as i64;
        }
        Ok(TransactionOutcome::Committed)
    }

    fn server_draws_lines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use kelvin_database::ErrorClass;

    use super::*;

    fn row(cells: &[Cell], text: &str) -> Rows {
        let mut rows = Rows::new();
        rows.reset(cells.len() + 1, false);
        for cell in cells {
            rows.push(*cell);
        }
        rows.push_text(text.as_bytes()).unwrap();
        rows
    }

    #[test]
    fn an_error_among_the_answers_is_an_error() {
        let deadlock = [1205, 13, 51].map(Cell::Int);
        let answer = row(&[deadlock[0], deadlock[1], deadlock[2], Cell::Null, Cell::Int(7)], "deadlocked");
        let error = error_of(&answer).unwrap().unwrap();
        assert_eq!((error.class(), error.code().0.as_str()), (ErrorClass::Deadlock, "1205/13/51"));
        // Results of Stock-Level, Delivery and Order-Status.
        for cells in [&[][..], &[Cell::Int(1), Cell::Int(7)], &[Cell::Int(1); 7]] {
            assert!(error_of(&row(cells, "x")).unwrap().is_none());
        }
        assert!(error_of(&Rows::new()).unwrap().is_none());
        let mut conflict = Rows::new();
        conflict.reset(2, false);
        conflict.push_text(b"IMOLTPERROR").unwrap();
        conflict.push(Cell::Int(41302));
        assert!(error_of(&conflict).unwrap().unwrap().class().is_retryable());
    }
}
