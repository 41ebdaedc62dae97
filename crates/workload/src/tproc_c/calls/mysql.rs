//! Client SQL on MySQL and MariaDB: each statement in a separate round trip, or as many as possible in one.
//!
//! The server executes statements after a failed one, so COMMIT is sent only after the results of all
//! preceding statements have arrived. A transaction therefore takes at least two round trips.
//!
//! A value that one statement finds and the next one needs stays in a session variable.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Timestamp, TransactionControl, Value};
use kelvin_measure::TransactionOutcome;

use super::sql::mysql as sql;
use super::{
    Details, Ended, Execute, batch_result, end, lines, missing, not_prepared, order_total, paid,
    status_found, unused_item,
};
use crate::tproc_c::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// The prepared statements and the reused memory of their results.
pub(crate) struct ClientSql {
    prepared: Option<Prepared>,
    transaction: Transaction,
    lines: String,
}

/// Sends the statements of a transaction to the server, and holds their results in order, starting with that
/// of BEGIN.
struct Transaction {
    batch: bool,
    results: Vec<Rows>,
    count: usize,
}

impl Transaction {
    fn begin(&mut self, session: &mut dyn Session, control: TransactionControl) -> Result<()> {
        if self.batch {
            return session.queue_control(control);
        }
        self.count = 1;
        session.control(control)
    }

    fn add(&mut self, session: &mut dyn Session, statement: Statement, params: &[Value<'_>]) -> Result<()> {
        if self.batch {
            return session.queue(statement, params);
        }
        if self.results.len() <= self.count {
            self.results.resize_with(self.count + 1, Rows::new);
        }
        session.execute(statement, params, &mut self.results[self.count])?;
        self.count += 1;
        Ok(())
    }

    /// Waits for the results.
    fn flush(&mut self, session: &mut dyn Session) -> Result<()> {
        if self.batch { session.flush(&mut self.results) } else { Ok(()) }
    }

    /// The result of one statement.
    fn result(&self, index: usize) -> Result<&Rows> {
        batch_result(&self.results, index)
    }

    /// Adds the statement that finds a customer by name, if needed; returns the number if it is known.
    fn add_customer(
        &mut self,
        session: &mut dyn Session,
        prepared: Prepared,
        home: [Value<'_>; 2],
        customer: Customer,
    ) -> Result<Value<'static>> {
        match customer {
            Customer::Id(id) => Ok(id.into()),
            Customer::Name(name) => {
                self.add(session, prepared.find_customer, &[home[0], home[1], name.into()])?;
                Ok(Value::Null)
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Prepared {
    next_order: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    take_stock: Statement,
    insert_lines: Statement,
    totals: Statement,
    find_customer: Statement,
    pay: Statement,
    balance: Statement,
    insert_history: Statement,
    pay_warehouse: Statement,
    find_newest: Statement,
    status: Statement,
    find_oldest: Statement,
    delete_oldest: Statement,
    deliver_orders: Statement,
    deliver_lines: Statement,
    deliver_customers: Statement,
    find_next: Statement,
    low_stock: Statement,
}

impl ClientSql {
    /// With `batch`, sends as many statements as possible in one round trip.
    pub(crate) fn new(batch: bool) -> Self {
        Self {
            prepared: None,
            transaction: Transaction { batch, results: Vec::new(), count: 0 },
            lines: String::with_capacity(512),
        }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }
}

impl Execute for ClientSql {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        session.run(sql::USER_SETTINGS)?;
        let mut prepare = |text| session.prepare(text);
        self.prepared = Some(Prepared {
            next_order: prepare(sql::NEXT_ORDER)?,
            insert_order: prepare(sql::INSERT_ORDER)?,
            insert_new_order: prepare(sql::INSERT_NEW_ORDER)?,
            take_stock: prepare(sql::TAKE_STOCK)?,
            insert_lines: prepare(sql::INSERT_LINES)?,
            totals: prepare(sql::TOTALS)?,
            find_customer: prepare(sql::FIND_CUSTOMER)?,
            pay: prepare(sql::PAY)?,
            balance: prepare(sql::BALANCE)?,
            insert_history: prepare(sql::INSERT_HISTORY)?,
            pay_warehouse: prepare(sql::PAY_WAREHOUSE)?,
            find_newest: prepare(sql::FIND_NEWEST)?,
            status: prepare(sql::STATUS)?,
            find_oldest: prepare(sql::FIND_OLDEST)?,
            delete_oldest: prepare(sql::DELETE_OLDEST)?,
            deliver_orders: prepare(sql::DELIVER_ORDERS)?,
            deliver_lines: prepare(sql::DELIVER_LINES)?,
            deliver_customers: prepare(sql::DELIVER_CUSTOMERS)?,
            find_next: prepare(sql::FIND_NEXT)?,
            low_stock: prepare(sql::LOW_STOCK)?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        lines::as_json(order, &mut self.lines);
        let (home, district, lines) =
            (order.warehouse.into(), order.district.into(), Value::Text(&self.lines));
        let customer = order.customer.into();
        self.transaction.begin(session, TransactionControl::Begin)?;
        self.transaction.add(session, prepared.next_order, &[home, district])?;
        let (now, count) = (Timestamp::now().into(), Value::Int(order.len as i64));
        self.transaction.add(
            session,
            prepared.insert_order,
            &[home, district, customer, now, count, order.all_local().into()],
        )?;
        self.transaction.add(session, prepared.insert_new_order, &[home, district])?;
        for round in 1..=order.rounds() {
            self.transaction.add(session, prepared.take_stock, &[home, lines, round.into()])?;
        }
        self.transaction.add(session, prepared.insert_lines, &[home, district, lines])?;
        self.transaction.add(session, prepared.totals, &[home, district, customer])?;
        self.transaction.flush(session)?;
        let rounds = order.rounds() as usize;
        let (written, totals) =
            (self.transaction.result(4 + rounds)?.affected(), self.transaction.result(5 + rounds)?);
        if totals.is_null(0, 0)? {
            return Err(missing("the customer, district or warehouse of an order"));
        }
        done.order = totals.int(0, 0)?;
        done.count = totals.int(0, 5)?;
        let (district_tax, discount, warehouse_tax) =
            (totals.decimal(0, 1, 4)?, totals.decimal(0, 2, 4)?, totals.decimal(0, 3, 4)?);
        done.cents = order_total(totals.decimal(0, 4, 2)?, discount, warehouse_tax, district_tax);
        let outcome =
            if written < order.len as u64 { unused_item(order)? } else { TransactionOutcome::Committed };
        end(session, outcome)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let theirs = [payment.customer_warehouse.into(), payment.customer_district.into()];
        let (home, district) = (payment.warehouse.into(), payment.district.into());
        let amount = Decimal::new(payment.amount, 2).into();
        self.transaction.begin(session, TransactionControl::Begin)?;
        let customer = self.transaction.add_customer(session, prepared, theirs, payment.customer)?;
        let params = [theirs[0], theirs[1], amount, home, district, customer];
        self.transaction.add(session, prepared.pay, &params)?;
        self.transaction.add(session, prepared.balance, &[theirs[0], theirs[1], customer])?;
        let now = Timestamp::now().into();
        self.transaction.add(
            session,
            prepared.insert_history,
            &[theirs[0], theirs[1], home, district, now, amount, customer],
        )?;
        self.transaction.add(session, prepared.pay_warehouse, &[home, amount])?;
        self.transaction.flush(session)?;
        let first = 1 + usize::from(payment.customer.by_name());
        let outcome = paid(self.transaction.result(first + 1)?, payment.customer, done)?;
        if outcome == TransactionOutcome::Committed && self.transaction.result(first + 2)?.affected() == 0 {
            return Err(missing("the district or warehouse of a payment"));
        }
        end(session, outcome)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (home, carrier, now) =
            (delivery.warehouse.into(), delivery.carrier.into(), Timestamp::now().into());
        self.transaction.begin(session, TransactionControl::Begin)?;
        self.transaction.add(session, prepared.find_oldest, &[home])?;
        self.transaction.add(session, prepared.delete_oldest, &[home])?;
        self.transaction.add(session, prepared.deliver_orders, &[home, carrier])?;
        self.transaction.add(session, prepared.deliver_lines, &[home, now])?;
        self.transaction.add(session, prepared.deliver_customers, &[home])?;
        self.transaction.flush(session)?;
        let affected = |at| self.transaction.result(at).map(Rows::affected);
        let (found, orders, customers) = (affected(2)?, affected(3)?, affected(5)?);
        if orders != found || customers != found {
            return Err(missing("an order to deliver, its lines or its customer"));
        }
        done.skipped = Some((DISTRICTS as u64).saturating_sub(found));
        end(session, TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let params = level.values();
        self.transaction.begin(session, TransactionControl::BeginReadOnly)?;
        self.transaction.add(session, prepared.find_next, &params[..2])?;
        self.transaction.add(session, prepared.low_stock, &params)?;
        self.transaction.flush(session)?;
        done.count = self.transaction.result(2)?.int(0, 0)?;
        end(session, TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let home = [status.warehouse.into(), status.district.into()];
        self.transaction.begin(session, TransactionControl::BeginReadOnly)?;
        let customer = self.transaction.add_customer(session, prepared, home, status.customer)?;
        let params = [home[0], home[1], customer];
        self.transaction.add(session, prepared.find_newest, &params)?;
        self.transaction.add(session, prepared.status, &params)?;
        self.transaction.flush(session)?;
        let last = 2 + usize::from(status.customer.by_name());
        let outcome = status_found(self.transaction.result(last)?, status.customer, done)?;
        end(session, outcome)
    }
}
