//! One call of a stored function a transaction (PostgreSQL). The functions are ours and correct; their texts
//! stand beside this file. A call is its own transaction: one statement, one round trip.

use kelvin_database::postgres::faults;
use kelvin_database::{Decimal, Error, ErrorClass, Result, Rows, Session, Statement, Value};
use kelvin_measure::Outcome;

use super::{Done, Execute, count, not_prepared, paid, status_found, unused_item};
use crate::tproc_c::hammerdb;
use crate::tproc_c::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::options::Profile;
use crate::tproc_c::schema::DISTRICTS;

const TEXTS: [&str; 5] = [
    include_str!("new_order.sql"),
    include_str!("payment.sql"),
    include_str!("delivery.sql"),
    include_str!("stock_level.sql"),
    include_str!("order_status.sql"),
];

/// Names with the types that a caller gives: what identifies a function.
const SIGNATURES: [&str; 5] = [
    "kelvin_new_order(int, int, int, int, int, int[], int[], int[], int[], int[])",
    "kelvin_payment(int, int, int, int, int, varchar, numeric)",
    "kelvin_delivery(int, int)",
    "kelvin_stock_level(int, int, int)",
    "kelvin_order_status(int, int, int, varchar)",
];

/// The error code with which `kelvin_new_order` undoes an order with an unused item.
const UNUSED_ITEM_STATE: &str = "KV001";
/// The error code for a row that must be there and is not.
const MISSING_STATE: &str = "KV002";

/// Creates the functions, in place of older ones; for the `hammerdb` profile also those that bear HammerDB's
/// names.
pub(crate) fn create(session: &mut dyn Session, profile: Profile) -> Result<()> {
    create_for(session, profile, &faults::loses_rows_in_joins_sql())
}

/// The same with another condition, in SQL, for servers whose joins lose rows.
pub(super) fn create_for(session: &mut dyn Session, profile: Profile, joins_lose_rows: &str) -> Result<()> {
    // Not "create or replace": that keeps, and refuses to change, an older function's result type.
    drop(session)?;
    for text in TEXTS {
        let text = text.replace("/*joins lose rows*/", joins_lose_rows);
        session.run(&text).map_err(|error| error.context("creating the stored functions"))?;
    }
    match profile {
        Profile::Spec => Ok(()),
        Profile::Hammerdb => hammerdb::create(session),
    }
}

/// Drops what [`create`] made for either profile, if it is there. Routines that HammerDB itself made stay.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    hammerdb::drop(session)?;
    // PostgreSQL announces each function that is not there.
    for signature in SIGNATURES {
        session.run(&format!("DROP FUNCTION IF EXISTS {signature}"))?;
    }
    Ok(())
}

/// Functions that are not in the database with the parameters that we give them, in words.
pub(crate) fn missing(session: &mut dyn Session) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for signature in SIGNATURES {
        let rows = session.query(&format!("SELECT 1 WHERE to_regprocedure('{signature}') IS NOT NULL"))?;
        if rows.is_empty() {
            missing.push(format!("function {signature} is missing"));
        }
    }
    Ok(missing)
}

/// The prepared calls and the memory of their results.
pub(crate) struct Functions {
    prepared: Option<Prepared>,
    rows: Rows,
}

#[derive(Clone, Copy)]
struct Prepared {
    new_order: Statement,
    payment: Statement,
    delivery: Statement,
    stock_level: Statement,
    order_status: Statement,
}

impl Functions {
    pub(crate) fn new() -> Self {
        Self { prepared: None, rows: Rows::new() }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }
}

/// Gives an error that one of our routines raised its class.
pub(super) fn classified(error: Error) -> Error {
    // MySQL's own number comes before the state.
    if error.code().0.ends_with(MISSING_STATE) {
        let message = error.message().to_owned();
        return Error::new(ErrorClass::Statement, message)
            .with_code(MISSING_STATE)
            .with_help("check the data with `kelvin check tproc-c`, or build it again");
    }
    error
}

/// Number and name as the functions take them: one of them is null.
pub(super) fn customer_values(customer: Customer) -> (Value<'static>, Value<'static>) {
    match customer {
        Customer::Id(id) => (id.into(), Value::Null),
        Customer::Name(name) => (Value::Null, name.into()),
    }
}

impl Execute for Functions {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        self.prepared = Some(Prepared {
            new_order: session.prepare(
                "SELECT order_number, total, branded FROM \
                 kelvin_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            )?,
            payment: session
                .prepare("SELECT matched, balance FROM kelvin_payment($1, $2, $3, $4, $5, $6, $7)")?,
            delivery: session.prepare("SELECT kelvin_delivery($1, $2)")?,
            stock_level: session.prepare("SELECT kelvin_stock_level($1, $2, $3)")?,
            order_status: session.prepare(
                "SELECT matched, balance, order_number, entered, carrier, item, supply, quantity, amount, \
                 delivered FROM kelvin_order_status($1, $2, $3, $4)",
            )?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Done) -> Result<Outcome> {
        let params = [
            order.warehouse.into(),
            order.district.into(),
            order.customer.into(),
            order.all_local().into(),
            order.rounds().into(),
            Value::IntArray(&order.number[..order.len]),
            Value::IntArray(&order.item[..order.len]),
            Value::IntArray(&order.supply[..order.len]),
            Value::IntArray(&order.quantity[..order.len]),
            Value::IntArray(&order.round[..order.len]),
        ];
        match session.execute(self.prepared()?.new_order, &params, &mut self.rows) {
            Err(error) if error.code().0 == UNUSED_ITEM_STATE => return unused_item(order),
            other => other.map_err(classified)?,
        }
        done.order = self.rows.int(0, 0)?;
        done.cents = self.rows.decimal(0, 1, 2)?;
        done.count = self.rows.int(0, 2)?;
        Ok(Outcome::Committed)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Done) -> Result<Outcome> {
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

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        delivery: &Delivery,
        done: &mut Done,
    ) -> Result<Outcome> {
        let params = [delivery.warehouse.into(), delivery.carrier.into()];
        session.execute(self.prepared()?.delivery, &params, &mut self.rows).map_err(classified)?;
        done.skipped = Some(DISTRICTS as u64 - count(self.rows.int(0, 0)?, DISTRICTS, "deliveries")?);
        Ok(Outcome::Committed)
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        level: &StockLevel,
        done: &mut Done,
    ) -> Result<Outcome> {
        let params = [level.warehouse.into(), level.district.into(), level.threshold.into()];
        session.execute(self.prepared()?.stock_level, &params, &mut self.rows)?;
        done.count = self.rows.int(0, 0)?;
        Ok(Outcome::Committed)
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        status: &OrderStatus,
        done: &mut Done,
    ) -> Result<Outcome> {
        let (id, name) = customer_values(status.customer);
        let params = [status.warehouse.into(), status.district.into(), id, name];
        session.execute(self.prepared()?.order_status, &params, &mut self.rows)?;
        status_found(&self.rows, status.customer, done)
    }
}
