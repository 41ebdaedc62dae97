//! Client SQL in as few round trips as the data dependencies allow, for engines with batches and arrays:
//! New-Order 2, all others 1.
//!
//! What is one statement, or one batch with one Sync, is a transaction without BEGIN and COMMIT around it.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Timestamp, Value};
use kelvin_measure::Outcome;

use super::{Done, Execute, missing, not_prepared, order_total, paid, sql, status_found, unused_item};
use crate::tproc_c::inputs::{Customer, Delivery, MAX_LINES, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// The prepared statements and their results' memory.
pub(super) struct Pipelined {
    prepared: Option<Prepared>,
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
}

impl Pipelined {
    pub(super) fn new() -> Self {
        Self { prepared: None, first: Vec::new(), second: Vec::new(), rows: Rows::new() }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }
}

/// The result of one statement of a batch.
fn result(results: &[Rows], index: usize) -> Result<&Rows> {
    results.get(index).ok_or_else(|| {
        kelvin_database::Error::protocol(format!("a batch returned {} results", results.len()))
    })
}

/// Which of two statements a customer needs, and the number or name that it takes.
fn by(customer: Customer, number: Statement, name: Statement) -> (Statement, Value<'static>) {
    match customer {
        Customer::Id(id) => (number, id.into()),
        Customer::Name(text) => (name, text.into()),
    }
}

impl Execute for Pipelined {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let mut prepare = |text| sql::prepare(session, text);
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
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Done) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(order.warehouse), Value::Int(order.district));
        session.queue(Statement::BEGIN, &[])?;
        session.queue(prepared.next_order, &[home, district, order.customer.into()])?;
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
        session.flush(&mut self.first)?;
        let terms = result(&self.first, 1)?;
        if terms.is_empty() {
            return Err(missing("the district or customer of an order"));
        }
        done.order = terms.int(0, 0)?;

        // What came back is put where its line stands, since the database may return it in any order.
        let mut amounts = [Decimal::new(0, 2); MAX_LINES];
        let mut texts = [""; MAX_LINES];
        let (mut found, mut total) = (0, 0_i64);
        for taken in self.first.iter().skip(2) {
            for row in 0..taken.len() {
                let number = taken.int(row, 0)?;
                let line = order.number[..order.len].iter().position(|&n| n == number);
                let line =
                    line.ok_or_else(|| kelvin_database::Error::protocol("a line came back changed"))?;
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
        // The unused item is the last: the lines before it are written, then all is rolled back.
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
            (Statement::COMMIT, Outcome::Committed)
        } else {
            (Statement::ROLLBACK, Outcome::RolledBack)
        };
        session.queue(end, &[])?;
        session.flush(&mut self.second)?;
        Ok(outcome)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Done) -> Result<Outcome> {
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

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        delivery: &Delivery,
        done: &mut Done,
    ) -> Result<Outcome> {
        let params = [delivery.warehouse.into(), delivery.carrier.into(), Timestamp::now().into()];
        session.execute(self.prepared()?.deliver, &params, &mut self.rows)?;
        let (found, delivered) = (self.rows.int(0, 0)?, self.rows.int(0, 1)?);
        if delivered != found {
            return Err(missing("an order to deliver, its lines or its customer"));
        }
        done.skipped = Some((DISTRICTS - found) as u64);
        Ok(Outcome::Committed)
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        level: &StockLevel,
        done: &mut Done,
    ) -> Result<Outcome> {
        let params = [level.warehouse.into(), level.district.into(), level.threshold.into()];
        session.execute(self.prepared()?.low_stock, &params, &mut self.rows)?;
        done.count = self.rows.int(0, 0)?;
        Ok(Outcome::Committed)
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        status: &OrderStatus,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let (statement, customer) = by(status.customer, prepared.status_by_number, prepared.status_by_name);
        let params = [status.warehouse.into(), status.district.into(), customer];
        session.execute(statement, &params, &mut self.rows)?;
        status_found(&self.rows, status.customer, done)
    }
}
