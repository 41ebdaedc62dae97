//! Client SQL in as few round trips as the data dependencies allow, for engines with batches and arrays:
//! New-Order 2, all others 1.
//!
//! On a server that loses rows in updates with joins (`kelvin_database::postgres::faults`), lines and
//! customers are updated by separate statements: New-Order still takes two round trips, Delivery takes two.
//!
//! A single statement, or a batch with one Sync, is a transaction without BEGIN and COMMIT.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Timestamp, TransactionControl, Value};
use kelvin_measure::TransactionOutcome;

use super::{
    Details, Ended, Execute, batch_result, missing, not_prepared, order_total, paid, sql, status_found,
    unused_item,
};
use crate::tproc_c::inputs::{Customer, Delivery, MAX_LINES, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// The prepared statements and the reused memory of their results.
pub(crate) struct Pipelined {
    prepared: Option<Prepared>,
    joins_lose_rows: bool,
    /// Results of New-Order's first round trip, whose texts are parameters of the second.
    first: Vec<Rows>,
    second: Vec<Rows>,
    rows: Rows,
}

#[derive(Clone, Copy)]
struct Prepared {
    next_order: Statement,
    take_stock: Statement,
    insert_order: Statement,
    pay_by_number: Statement,
    pay_by_name: Statement,
    status_by_number: Statement,
    status_by_name: Statement,
    deliver: Statement,
    low_stock: Statement,
    one_by_one: Option<OneByOne>,
}

/// Replaces `take_stock` and `deliver` where joins lose rows.
#[derive(Clone, Copy)]
struct OneByOne {
    line: Statement,
    orders: Statement,
    customer: Statement,
}

impl Pipelined {
    pub(crate) fn new(joins_lose_rows: bool) -> Self {
        Self { prepared: None, joins_lose_rows, first: Vec::new(), second: Vec::new(), rows: Rows::new() }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }

    /// A Delivery in two round trips: the orders in the first, each customer's row separately in the second.
    fn deliver_one_by_one(
        &mut self,
        session: &mut dyn Session,
        (orders, params): (Statement, &[Value<'_>; 3]),
        customer: Statement,
        done: &mut Details,
    ) -> Ended {
        session.queue_control(TransactionControl::Begin)?;
        session.queue(orders, params)?;
        session.flush(&mut self.first)?;
        let found = batch_result(&self.first, 1)?;
        for row in 0..found.len() {
            if found.is_null(row, 1)? {
                return Err(missing("an order to deliver, or its lines"));
            }
            let (district, id) = (found.int(row, 0)?, found.int(row, 1)?);
            let amount = Decimal::new(found.decimal(row, 2, 2)?, 2);
            session.queue(customer, &[params[0], district.into(), id.into(), amount.into()])?;
        }
        let count = found.len();
        session.queue_control(TransactionControl::Commit)?;
        session.flush(&mut self.second)?;
        if self.second.iter().take(count).any(|updated| updated.affected() == 0) {
            return Err(missing("the customer of an order"));
        }
        done.skipped = Some(DISTRICTS as u64 - super::count(count as i64, DISTRICTS, "orders to deliver")?);
        Ok(TransactionOutcome::Committed)
    }
}

/// The statement for a customer, by number or by name, and its parameter.
fn by(customer: Customer, number: Statement, name: Statement) -> (Statement, Value<'static>) {
    match customer {
        Customer::Id(id) => (number, id.into()),
        Customer::Name(text) => (name, text.into()),
    }
}

impl Execute for Pipelined {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let lossy = self.joins_lose_rows;
        let mut prepare = |text| session.prepare(text);
        self.prepared = Some(Prepared {
            next_order: prepare(sql::NEXT_ORDER_AND_TERMS)?,
            take_stock: prepare(sql::TAKE_STOCK_AT_ONCE)?,
            insert_order: prepare(sql::INSERT_ORDER_AT_ONCE)?,
            pay_by_number: prepare(sql::PAY_BY_NUMBER)?,
            pay_by_name: prepare(sql::PAY_BY_NAME)?,
            status_by_number: prepare(sql::STATUS_BY_NUMBER)?,
            status_by_name: prepare(sql::STATUS_BY_NAME)?,
            deliver: prepare(sql::DELIVER_AT_ONCE)?,
            low_stock: prepare(sql::LOW_STOCK_AT_ONCE)?,
            one_by_one: if lossy {
                let (line, orders) = (prepare(sql::TAKE_STOCK_OF_LINE)?, prepare(sql::DELIVER_ORDERS)?);
                Some(OneByOne { line, orders, customer: prepare(sql::DELIVER_CUSTOMER)? })
            } else {
                None
            },
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(order.warehouse), Value::Int(order.district));
        session.queue_control(TransactionControl::Begin)?;
        session.queue(prepared.next_order, &[home, district, order.customer.into()])?;
        if let Some(OneByOne { line, .. }) = prepared.one_by_one {
            for at in 0..order.len {
                let (number, item) = (order.number[at].into(), order.item[at].into());
                let (supply, quantity) = (order.supply[at].into(), order.quantity[at].into());
                session.queue(line, &[home, district, number, item, supply, quantity])?;
            }
        } else {
            for round in order.each_round() {
                let params = [
                    home,
                    district,
                    Value::IntArray(&order.number[round.clone()]),
                    Value::IntArray(&order.item[round.clone()]),
                    Value::IntArray(&order.supply[round.clone()]),
                    Value::IntArray(&order.quantity[round]),
                ];
                session.queue(prepared.take_stock, &params)?;
            }
        }
        session.flush(&mut self.first)?;
        let terms = batch_result(&self.first, 1)?;
        if terms.is_empty() {
            return Err(missing("the district or customer of an order"));
        }
        done.order = terms.int(0, 0)?;

        // Results are stored at the position of their line, since the server may return them in any order.
        let mut amounts = [Decimal::new(0, 2); MAX_LINES];
        let mut texts = [""; MAX_LINES];
        let (mut found, mut total) = (0, 0_i64);
        for taken in self.first.iter().skip(2) {
            for row in 0..taken.len() {
                let number = taken.int(row, 0)?;
                let line = order.number[..order.len].iter().position(|&n| n == number);
                let line = line.ok_or_else(|| {
                    kelvin_database::Error::protocol(
                        "the server returned an order line with different values",
                    )
                })?;
                let cents = order.quantity[line].saturating_mul(taken.decimal(row, 1, 2)?);
                amounts[line] = Decimal::new(cents, 2);
                texts[line] = taken.text(row, 2)?;
                done.count = done.count.saturating_add(taken.int(row, 3)?);
                total = total.saturating_add(cents);
                found += 1;
            }
        }
        done.cents =
            order_total(total, terms.decimal(0, 2, 4)?, terms.decimal(0, 3, 4)?, terms.decimal(0, 1, 4)?);
        if found < order.len {
            unused_item(order)?;
        }
        // The unused item is the last line: the lines before it are written, and then everything is rolled
        // back.
        let params = [
            home,
            district,
            done.order.into(),
            order.customer.into(),
            Timestamp::now().into(),
            Value::Int(order.len as i64),
            order.all_local().into(),
            Value::IntArray(&order.number[..found]),
            Value::IntArray(&order.item[..found]),
            Value::IntArray(&order.supply[..found]),
            Value::IntArray(&order.quantity[..found]),
            Value::DecimalArray(&amounts[..found]),
            Value::TextArray(&texts[..found]),
        ];
        session.queue(prepared.insert_order, &params)?;
        let (end, outcome) = if found == order.len {
            (TransactionControl::Commit, TransactionOutcome::Committed)
        } else {
            (TransactionControl::Rollback, TransactionOutcome::RolledBack)
        };
        session.queue_control(end)?;
        session.flush(&mut self.second)?;
        Ok(outcome)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (statement, customer) = by(payment.customer, prepared.pay_by_number, prepared.pay_by_name);
        let params = [
            payment.customer_warehouse.into(),
            payment.customer_district.into(),
            customer,
            payment.warehouse.into(),
            payment.district.into(),
            Timestamp::now().into(),
            Decimal::new(payment.amount, 2).into(),
        ];
        session.execute(statement, &params, &mut self.rows)?;
        paid(&self.rows, payment.customer, done)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let params = [delivery.warehouse.into(), delivery.carrier.into(), Timestamp::now().into()];
        if let Some(OneByOne { orders, customer, .. }) = prepared.one_by_one {
            return self.deliver_one_by_one(session, (orders, &params), customer, done);
        }
        session.execute(prepared.deliver, &params, &mut self.rows)?;
        let (found, delivered) = (self.rows.int(0, 0)?, self.rows.int(0, 1)?);
        if delivered != found {
            return Err(missing("an order to deliver, its lines or its customer"));
        }
        done.skipped = Some((DISTRICTS - found) as u64);
        Ok(TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        session.execute(self.prepared()?.low_stock, &level.values(), &mut self.rows)?;
        done.count = self.rows.int(0, 0)?;
        Ok(TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (statement, customer) = by(status.customer, prepared.status_by_number, prepared.status_by_name);
        let params = [status.warehouse.into(), status.district.into(), customer];
        session.execute(statement, &params, &mut self.rows)?;
        status_found(&self.rows, status.customer, done)
    }
}
