//! Client SQL in as few round trips as the data dependencies allow, for engines with batches and arrays:
//! New-Order 2, Payment and Order-Status 1 by number and 2 by name, Stock-Level 1, Delivery 2.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Timestamp, Value};
use kelvin_measure::Outcome;

use super::{Done, Execute, customer, missing, not_prepared, order_total, sql, unused_item};
use crate::tproc_c::inputs::{
    Customer, DISTRICTS, Delivery, MAX_LINES, NewOrder, OrderStatus, Payment, StockLevel,
};

/// The prepared statements and their results' memory.
pub(super) struct Pipelined {
    prepared: Option<Prepared>,
    /// Results of the first round trip, whose texts may be parameters of the second.
    first: Vec<Rows>,
    second: Vec<Rows>,
    text: String,
}

#[derive(Clone, Copy)]
struct Prepared {
    next_order: Statement,
    terms: Statement,
    take_stock: Statement,
    insert_order: Statement,
    namesakes: Statement,
    pay_customer: Statement,
    pay_district: Statement,
    pay_warehouse: Statement,
    customer: Statement,
    newest_order: Statement,
    newest_lines: Statement,
    oldest_new_order: Statement,
    deliver: Statement,
    low_stock: Statement,
}

impl Pipelined {
    pub(super) fn new() -> Self {
        Self { prepared: None, first: Vec::new(), second: Vec::new(), text: String::with_capacity(128) }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }

    /// Begins, looks the name up, and finds the middle one: number and row in the second result of `first`.
    fn look_up(
        &mut self,
        session: &mut dyn Session,
        begin: Statement,
        home: (i64, i64),
        name: &str,
        done: &mut Done,
    ) -> Result<Option<(i64, usize)>> {
        session.queue(begin, &[])?;
        session.queue(self.prepared()?.namesakes, &[home.0.into(), home.1.into(), name.into()])?;
        session.flush(&mut self.first)?;
        let rows = result(&self.first, 1)?;
        done.matched = Some(rows.len() as u64);
        match customer::middle(rows)? {
            Some(row) => Ok(Some((rows.int(row, 0)?, row))),
            None => Ok(None),
        }
    }

    fn roll_back(&mut self, session: &mut dyn Session) -> Result<Outcome> {
        session.queue(Statement::ROLLBACK, &[])?;
        session.flush(&mut self.second)?;
        Ok(Outcome::RolledBack)
    }
}

/// The result of one statement of a batch.
fn result(results: &[Rows], index: usize) -> Result<&Rows> {
    results.get(index).ok_or_else(|| {
        kelvin_database::Error::protocol(format!("a batch returned {} results", results.len()))
    })
}

impl Execute for Pipelined {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let oldest = sql::oldest_new_order(session.engine());
        let mut prepare = |text| sql::prepare(session, text);
        self.prepared = Some(Prepared {
            next_order: prepare(sql::NEXT_ORDER)?,
            terms: prepare(sql::TERMS)?,
            take_stock: prepare(sql::TAKE_STOCK_AT_ONCE)?,
            insert_order: prepare(sql::INSERT_ORDER_AT_ONCE)?,
            namesakes: prepare(sql::NAMESAKES)?,
            pay_customer: prepare(sql::PAY_CUSTOMER)?,
            pay_district: prepare(sql::PAY_DISTRICT)?,
            pay_warehouse: prepare(sql::PAY_WAREHOUSE_AT_ONCE)?,
            customer: prepare(sql::CUSTOMER)?,
            newest_order: prepare(sql::NEWEST_ORDER)?,
            newest_lines: prepare(sql::NEWEST_LINES)?,
            oldest_new_order: prepare(oldest)?,
            deliver: prepare(sql::DELIVER_AT_ONCE)?,
            low_stock: prepare(sql::LOW_STOCK_AT_ONCE)?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Done) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(order.warehouse), Value::Int(order.district));
        session.queue(Statement::BEGIN, &[])?;
        session.queue(prepared.next_order, &[home, district])?;
        session.queue(prepared.terms, &[home, district, order.customer.into()])?;
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
        let (number, terms) = (result(&self.first, 1)?, result(&self.first, 2)?);
        if number.is_empty() || terms.is_empty() {
            return Err(missing("the district or customer of an order"));
        }
        done.order = number.int(0, 0)?;

        // What came back is put where its line stands, since the database may return it in any order.
        let mut amounts = [Decimal::new(0, 2); MAX_LINES];
        let mut texts = [""; MAX_LINES];
        let (mut found, mut total) = (0, 0_i64);
        for taken in self.first.iter().skip(3) {
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
            order_total(total, terms.decimal(0, 0, 4)?, terms.decimal(0, 3, 4)?, number.decimal(0, 1, 4)?);
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
        let home = (payment.customer_warehouse, payment.customer_district);
        let mut sent = 0;
        let id = match payment.customer {
            Customer::Id(id) => {
                session.queue(Statement::BEGIN, &[])?;
                sent = 1;
                id
            }
            Customer::Name(name) => match self.look_up(session, Statement::BEGIN, home, name, done)? {
                Some((id, _)) => id,
                None => return self.roll_back(session),
            },
        };
        customer::bad_credit_text(payment, id, &mut self.text);
        let amount = Value::Decimal(Decimal::new(payment.amount, 2));
        let (warehouse, district) = (Value::Int(payment.warehouse), Value::Int(payment.district));
        let params = [home.0.into(), home.1.into(), id.into(), amount, self.text.as_str().into()];
        session.queue(prepared.pay_customer, &params)?;
        session.queue(prepared.pay_district, &[warehouse, district, amount])?;
        let now = Timestamp::now().into();
        let params = [home.0.into(), home.1.into(), id.into(), warehouse, district, now, amount];
        session.queue(prepared.pay_warehouse, &params)?;
        session.queue(Statement::COMMIT, &[])?;
        session.flush(&mut self.second)?;
        let (paid, written) = (result(&self.second, sent)?, result(&self.second, sent + 2)?);
        if paid.is_empty() || written.affected() == 0 {
            return Err(missing("the customer, district or warehouse of a payment"));
        }
        done.cents = paid.decimal(0, 0, 2)?;
        Ok(Outcome::Committed)
    }

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        delivery: &Delivery,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let home = Value::Int(delivery.warehouse);
        session.queue(Statement::BEGIN, &[])?;
        for district in 1..=DISTRICTS {
            session.queue(prepared.oldest_new_order, &[home, district.into()])?;
        }
        session.flush(&mut self.first)?;
        let mut districts = [0; DISTRICTS as usize];
        let mut orders = [0; DISTRICTS as usize];
        let mut found = 0;
        for (district, rows) in (1..=DISTRICTS).zip(self.first.iter().skip(1)) {
            if !rows.is_empty() {
                districts[found] = district;
                orders[found] = rows.int(0, 0)?;
                found += 1;
            }
        }
        let params = [
            home,
            delivery.carrier.into(),
            Timestamp::now().into(),
            Value::IntArray(&districts[..found]),
            Value::IntArray(&orders[..found]),
        ];
        session.queue(prepared.deliver, &params)?;
        session.queue(Statement::COMMIT, &[])?;
        session.flush(&mut self.second)?;
        if result(&self.second, 0)?.affected() != found as u64 {
            return Err(missing("an order to deliver, its lines or its customer"));
        }
        done.skipped = Some(DISTRICTS as u64 - found as u64);
        Ok(Outcome::Committed)
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        level: &StockLevel,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let params = [level.warehouse.into(), level.district.into(), level.threshold.into()];
        session.queue(Statement::BEGIN_READ_ONLY, &[])?;
        session.queue(prepared.low_stock, &params)?;
        session.queue(Statement::COMMIT, &[])?;
        session.flush(&mut self.second)?;
        done.count = result(&self.second, 1)?.int(0, 0)?;
        Ok(Outcome::Committed)
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        status: &OrderStatus,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let home = (status.warehouse, status.district);
        let begin = Statement::BEGIN_READ_ONLY;
        let mut sent = 0;
        let mut params = [home.0.into(), home.1.into(), Value::Null];
        match status.customer {
            Customer::Id(id) => {
                params[2] = id.into();
                session.queue(begin, &[])?;
                session.queue(prepared.customer, &params)?;
                sent = 2;
            }
            Customer::Name(name) => match self.look_up(session, begin, home, name, done)? {
                Some((id, row)) => {
                    params[2] = id.into();
                    done.cents = result(&self.first, 1)?.decimal(row, 3, 2)?;
                }
                None => return self.roll_back(session),
            },
        }
        session.queue(prepared.newest_order, &params)?;
        session.queue(prepared.newest_lines, &params)?;
        session.queue(Statement::COMMIT, &[])?;
        session.flush(&mut self.second)?;
        if !status.customer.by_name() {
            let rows = result(&self.second, 1)?;
            if rows.is_empty() {
                return Err(missing("a customer"));
            }
            done.cents = rows.decimal(0, 3, 2)?;
        }
        let newest = result(&self.second, sent)?;
        if !newest.is_empty() {
            done.order = newest.int(0, 0)?;
            done.count = result(&self.second, sent + 1)?.len() as i64;
        }
        Ok(Outcome::Committed)
    }
}
