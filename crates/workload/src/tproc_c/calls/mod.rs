//! The ways of executing a transaction, all with the same effect.
//!
//! All ways take locks in the same order, so that they can run concurrently without deadlocks by design:
//! New-Order locks its district and then stock rows by (warehouse, item); Payment locks customer, district
//! and warehouse; Delivery locks the districts by number and then their customers by district.

mod customer;
pub(crate) mod functions;
mod lines;
pub(crate) mod mysql;
pub(crate) mod pipelined;
pub(crate) mod procedures;
mod routines;
pub(crate) mod sql;
mod statements;
pub(crate) mod tsql;

use kelvin_database::{
    Capabilities, EngineKind, Error, ErrorClass, Result, Rows, Session, TransactionControl,
};
use kelvin_measure::TransactionOutcome;

use super::dialect::Dialect;
use super::hammerdb::Routines;
use super::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel, Transaction};
use super::options::{Calls, Options, Profile};
use super::schema::CUSTOMERS;
pub(crate) use statements::OneByOne;

/// Values that a transaction found, for the audit and for comparisons between the ways of executing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// Customers with the last name that was looked up; `None` if the lookup was by number or its result
    /// stayed on the server.
    pub(crate) matched: Option<u64>,
    /// Districts without an order to deliver; `None` if the server did not report it.
    pub(crate) skipped: Option<u64>,
    /// New-Order: the order's number. Order-Status: the number of the order found, 0 for none.
    pub(crate) order: i64,
    /// New-Order: the order's total. Payment and Order-Status: the customer's balance. In cents.
    pub(crate) cents: i64,
    /// New-Order: number of "brand" lines. Order-Status: lines of the order. Stock-Level: items below the
    /// threshold.
    pub(crate) count: i64,
}

/// How a transaction ended.
pub(crate) type Ended = Result<TransactionOutcome>;

/// A way of executing the transactions over one connection.
///
/// A transaction may be open after an error ([`Session::in_transaction`]); the caller rolls it back.
pub(crate) trait Execute: Send {
    /// Prepares the statements; called again on a new connection.
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()>;
    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended;
    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended;
    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended;
    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended;
    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended;

    /// Whether the server draws the lines of orders, so that the client knows only their number.
    fn server_draws_lines(&self) -> bool {
        false
    }

    fn execute(&mut self, session: &mut dyn Session, transaction: &Transaction, done: &mut Details) -> Ended {
        *done = Details::default();
        match transaction {
            Transaction::NewOrder(order) => self.new_order(session, order, done),
            Transaction::Payment(payment) => self.payment(session, payment, done),
            Transaction::Delivery(delivery) => self.delivery(session, delivery, done),
            Transaction::StockLevel(level) => self.stock_level(session, level, done),
            Transaction::OrderStatus(status) => self.order_status(session, status, done),
        }
    }
}

/// How a database is driven, as chosen by [`choose_calls`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driven {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) calls: Calls,
    /// The server loses rows in updates that join anything other than tables.
    pub(crate) joins_lose_rows: bool,
    /// No New-Order is rolled back: HammerDB's functions never do.
    pub(crate) never_rolls_back: bool,
}

impl Driven {
    /// With Kelvin's own statements or routines, on a server without known faults.
    pub(crate) fn new(dialect: &'static dyn Dialect, calls: Calls) -> Self {
        Self { dialect, calls, joins_lose_rows: false, never_rolls_back: false }
    }
}

/// Chooses how transactions are executed, and returns sentences for the result about the consequences. Fails
/// if the engine does not support the requested way, or requested functions are not in the database.
pub(crate) fn choose_calls(
    options: &Options,
    dialect: &'static dyn Dialect,
    capabilities: Capabilities,
    session: &mut dyn Session,
) -> Result<(Driven, Vec<String>)> {
    let mut driven = Driven::new(dialect, possible(options, dialect, session.engine(), capabilities)?);
    driven.joins_lose_rows = dialect.joins_lose_rows(session)?;
    if driven.calls != Calls::Functions {
        return Ok((driven, Vec::new()));
    }
    let (there, notes, whose) = match options.profile {
        Profile::Spec => (dialect.missing_routines(session)?.is_empty(), Vec::new(), "kelvin's"),
        Profile::Hammerdb => {
            let found = dialect.hammerdbs_routines(session)?;
            driven.never_rolls_back = found.is_some_and(|routines| !routines.roll_back);
            (found.is_some(), found.iter().flat_map(Routines::notes).collect(), "HammerDB's")
        }
    };
    if there {
        return Ok((driven, notes));
    }
    if options.calls.is_some() {
        return Err(Error::usage(format!("{whose} stored functions are not in this database"))
            .with_help("build the data with kelvin, or choose --calls pipelined"));
    }
    let note = format!(
        "{whose} stored functions are not in this database: the run uses pipelined client SQL instead"
    );
    Ok((Driven { calls: Calls::Pipelined, ..driven }, vec![note]))
}

/// The requested or the fastest way of calling that the engine supports, regardless of the database's
/// content.
pub(crate) fn possible(
    options: &Options,
    dialect: &dyn Dialect,
    engine: EngineKind,
    capabilities: Capabilities,
) -> Result<Calls> {
    let ways = dialect.ways(capabilities);
    match options.calls {
        None => ways.first().copied().ok_or_else(|| not_there(engine, "statements", "statements")),
        Some(calls) if ways.contains(&calls) => Ok(calls),
        Some(Calls::Functions) => Err(not_there(engine, "functions", "stored functions")),
        Some(Calls::Pipelined) => Err(not_there(engine, "pipelined", "statement batches in one round trip")),
        Some(Calls::Statements) => Err(not_there(engine, "statements", "statements")),
    }
}

fn not_there(engine: EngineKind, calls: &str, what: &str) -> Error {
    Error::usage(format!("--calls {calls} is not possible: {engine} does not support {what}"))
        .with_help("use --calls statements, or leave out the option")
}

/// The error for executing before preparing; the driver prepares a user on every new connection.
pub(super) fn not_prepared() -> Error {
    Error::usage("transactions were executed before they were prepared")
}

/// Creates the executor of one user.
pub(crate) fn executor(profile: Profile, driven: Driven, warehouses: u32) -> Box<dyn Execute> {
    driven.dialect.executor(driven, profile, warehouses)
}

/// The result of one statement of a batch.
fn batch_result(results: &[Rows], index: usize) -> Result<&Rows> {
    results.get(index).ok_or_else(|| Error::protocol(format!("a batch returned {} results", results.len())))
}

/// Ends a transaction that was begun by [`Session::control`].
fn end(session: &mut dyn Session, outcome: TransactionOutcome) -> Ended {
    session.control(if outcome == TransactionOutcome::Committed {
        TransactionControl::Commit
    } else {
        TransactionControl::Rollback
    })?;
    Ok(outcome)
}

/// The outcome of a New-Order if a line's item does not exist: a rollback if its inputs are meant to roll
/// back, else an error in the data.
fn unused_item(order: &NewOrder) -> Ended {
    if order.rolls_back {
        Ok(TransactionOutcome::RolledBack)
    } else {
        Err(missing("an item, or its stock row,"))
    }
}

/// The outcome of a Payment that was one statement. Its row has the number of customers with the name (NULL
/// by number) and the balance.
fn paid(rows: &Rows, customer: Customer, done: &mut Details) -> Ended {
    if customer.by_name() {
        let matched = customers_of_name(rows)?;
        done.matched = Some(matched);
        if matched == 0 {
            return Ok(TransactionOutcome::RolledBack);
        }
    }
    if rows.is_empty() || rows.is_null(0, 1)? {
        return Err(missing("the customer, district or warehouse of a payment"));
    }
    done.cents = rows.decimal(0, 1, 2)?;
    Ok(TransactionOutcome::Committed)
}

fn customers_of_name(rows: &Rows) -> Result<u64> {
    count(rows.int(0, 0)?, CUSTOMERS.into(), "customers with one last name")
}

/// The outcome of an Order-Status that was one statement. It has a row per line, or one row if the customer
/// has no order: number of customers with the name (NULL by number), balance, order, and other values to
/// display.
fn status_found(rows: &Rows, customer: Customer, done: &mut Details) -> Ended {
    if rows.is_empty() {
        if customer.by_name() {
            done.matched = Some(0);
            return Ok(TransactionOutcome::RolledBack);
        }
        return Err(missing("a customer"));
    }
    if customer.by_name() {
        done.matched = Some(customers_of_name(rows)?);
    }
    done.cents = rows.decimal(0, 1, 2)?;
    if !rows.is_null(0, 2)? {
        done.order = rows.int(0, 2)?;
        done.count = rows.len() as i64;
    }
    Ok(TransactionOutcome::Committed)
}

/// The error for a row that complete data must have.
fn missing(what: &str) -> Error {
    Error::new(ErrorClass::Statement, format!("{what} is missing from the database"))
        .with_help("check the data with `kelvin check tproc-c`, or rebuild them")
}

/// Checks a count sent by the server. An impossible value comes from a broken connection, and must neither
/// overflow nor reach the audit.
pub(crate) fn count(reported: i64, most: i64, what: &str) -> Result<u64> {
    u64::try_from(reported).ok().filter(|_| reported <= most).ok_or_else(|| {
        Error::protocol(format!("the server reports {reported} {what}; at most {most} are possible"))
    })
}

/// An order's total in cents: amounts in cents, rates in units of 10^-4 (clause 2.4.2.2).
fn order_total(cents: i64, discount: i64, warehouse_tax: i64, district_tax: i64) -> i64 {
    // At most 15 × 10 × 100.00 in cents, times two factors below 2×10^4: far from overflow of an i64, unless
    // a broken connection changed a value.
    let [cents, discount, warehouse_tax, district_tax] =
        [cents, discount, warehouse_tax, district_tax].map(i128::from);
    let factors = (10_000 - discount).saturating_mul(10_000 + warehouse_tax + district_tax);
    let total = cents.saturating_mul(factors).saturating_add(50_000_000) / 100_000_000;
    i64::try_from(total).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod round_trips;
#[cfg(test)]
mod tests;
