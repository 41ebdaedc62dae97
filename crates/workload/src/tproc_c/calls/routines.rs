//! One call of a stored routine per transaction, in one round trip. The routines are Kelvin's own and follow
//! the specification; their texts are in [`functions`](super::functions), [`procedures`](super::procedures)
//! and [`tsql`](super::tsql).

use kelvin_database::{Decimal, Error, ErrorClass, Result, Rows, Session, Statement, Value};
use kelvin_measure::TransactionOutcome;

use super::{Details, Ended, Execute, count, lines, not_prepared, paid, status_found, unused_item};
use crate::tproc_c::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// Error code of a New-Order with an unused item, where a routine cannot roll back its own work.
const UNUSED_ITEM_STATE: &str = "KV001";
/// Error code for a missing row that complete data must have; SQL Server's error codes are numbers.
const MISSING_STATE: &str = "KV002";
const MISSING_NUMBER: &str = "58002/16/1";

/// How an engine's routines are called.
#[derive(Debug)]
pub(super) struct RoutineCalls {
    /// Settings of a user's session, run before anything is prepared.
    pub(super) settings: Option<&'static str>,
    pub(super) new_order: &'static str,
    pub(super) payment: &'static str,
    pub(super) delivery: &'static str,
    pub(super) stock_level: &'static str,
    pub(super) order_status: &'static str,
    pub(super) lines: LineParameters,
}

/// How the lines of an order are passed to New-Order, after its other parameters.
#[derive(Debug, Clone, Copy)]
pub(super) enum LineParameters {
    /// Arrays of numbers, items, supplying warehouses, quantities and rounds.
    Arrays,
    /// Their number, and all lines as one text ([`lines::as_json`]).
    Json,
}

/// The prepared calls and the reused memory of their results.
pub(crate) struct Routines {
    calls: &'static RoutineCalls,
    prepared: Option<Prepared>,
    rows: Rows,
    lines: String,
}

#[derive(Clone, Copy)]
struct Prepared {
    new_order: Statement,
    payment: Statement,
    delivery: Statement,
    stock_level: Statement,
    order_status: Statement,
}

impl Routines {
    pub(super) fn new(calls: &'static RoutineCalls) -> Self {
        Self { calls, prepared: None, rows: Rows::new(), lines: String::with_capacity(512) }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }
}

/// Sets the class of an error that one of Kelvin's routines raised.
fn classified(error: Error) -> Error {
    // MySQL's error number precedes the state.
    if error.code().0.ends_with(MISSING_STATE) || error.code().0 == MISSING_NUMBER {
        let message = error.message().to_owned();
        return Error::new(ErrorClass::Statement, message)
            .with_code(MISSING_STATE)
            .with_help("check the data with `kelvin check tproc-c`, or rebuild them");
    }
    error
}

/// Number and name as the routines take them; one of them is NULL.
fn customer_values(customer: Customer) -> (Value<'static>, Value<'static>) {
    match customer {
        Customer::Id(id) => (id.into(), Value::Null),
        Customer::Name(name) => (Value::Null, name.into()),
    }
}

impl Execute for Routines {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        if let Some(settings) = self.calls.settings {
            session.run(settings)?;
        }
        self.prepared = Some(Prepared {
            new_order: session.prepare(self.calls.new_order)?,
            payment: session.prepare(self.calls.payment)?,
            delivery: session.prepare(self.calls.delivery)?,
            stock_level: session.prepare(self.calls.stock_level)?,
            order_status: session.prepare(self.calls.order_status)?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let statement = self.prepared()?.new_order;
        let (home, district, customer) =
            (order.warehouse.into(), order.district.into(), order.customer.into());
        let (all_local, rounds) = (order.all_local().into(), order.rounds().into());
        let called = match self.calls.lines {
            LineParameters::Arrays => {
                let number = Value::IntArray(&order.number[..order.len]);
                let item = Value::IntArray(&order.item[..order.len]);
                let supply = Value::IntArray(&order.supply[..order.len]);
                let quantity = Value::IntArray(&order.quantity[..order.len]);
                let round = Value::IntArray(&order.round[..order.len]);
                let params =
                    [home, district, customer, all_local, rounds, number, item, supply, quantity, round];
                session.execute(statement, &params, &mut self.rows)
            }
            LineParameters::Json => {
                lines::as_json(order, &mut self.lines);
                let (count, lines) = (Value::Int(order.len as i64), self.lines.as_str().into());
                let params = [home, district, customer, all_local, rounds, count, lines];
                session.execute(statement, &params, &mut self.rows)
            }
        };
        match called {
            Err(error) if error.code().0 == UNUSED_ITEM_STATE => return unused_item(order),
            other => other.map_err(classified)?,
        }
        // A procedure that rolled the order back itself returns NULLs.
        if self.rows.is_null(0, 0)? {
            return unused_item(order);
        }
        done.order = self.rows.int(0, 0)?;
        done.cents = self.rows.decimal(0, 1, 2)?;
        done.count = self.rows.int(0, 2)?;
        Ok(TransactionOutcome::Committed)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let (id, name) = customer_values(payment.customer);
        let params = [
            payment.warehouse.into(),
            payment.district.into(),
            payment.customer_warehouse.into(),
            payment.customer_district.into(),
            id,
            name,
            Decimal::new(payment.amount, 2).into(),
        ];
        session.execute(self.prepared()?.payment, &params, &mut self.rows).map_err(classified)?;
        paid(&self.rows, payment.customer, done)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let params = [delivery.warehouse.into(), delivery.carrier.into()];
        session.execute(self.prepared()?.delivery, &params, &mut self.rows).map_err(classified)?;
        done.skipped = Some(DISTRICTS as u64 - count(self.rows.int(0, 0)?, DISTRICTS, "deliveries")?);
        Ok(TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        session.execute(self.prepared()?.stock_level, &level.values(), &mut self.rows).map_err(classified)?;
        done.count = self.rows.int(0, 0)?;
        Ok(TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let (id, name) = customer_values(status.customer);
        let params = [status.warehouse.into(), status.district.into(), id, name];
        session.execute(self.prepared()?.order_status, &params, &mut self.rows)?;
        status_found(&self.rows, status.customer, done)
    }
}
