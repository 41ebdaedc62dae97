//! Client SQL, one statement per round trip, the same on every engine.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Timestamp, TransactionControl, Value};
use kelvin_measure::TransactionOutcome;

use super::{Details, Ended, Execute, customer, end, missing, not_prepared, order_total, sql, unused_item};
use crate::tproc_c::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// The prepared statements and the reused memory of their results.
pub(crate) struct OneByOne {
    texts: fn() -> sql::Statements,
    prepared: Option<Prepared>,
    rows: Rows,
    /// A second result, for statements with texts of the first result as parameters.
    other: Rows,
    text: String,
}

#[derive(Clone, Copy)]
struct Prepared {
    next_order: Step,
    terms: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    item: Statement,
    take_stock: Step,
    insert_line: Statement,
    namesakes: Statement,
    pay_customer: Step,
    pay_district: Step,
    pay_warehouse: Step,
    insert_history: Statement,
    customer: Statement,
    newest_order: Statement,
    order_lines: Statement,
    oldest_new_order: Statement,
    /// Deletes the row that the previous statement found, where that statement only finds it.
    delete_new_order: Option<Statement>,
    deliver_order: Step,
    deliver_lines: Step,
    deliver_customer: Statement,
    next_number: Statement,
    low_stock: Statement,
}

/// A change of rows, and the query that reads their values.
#[derive(Clone, Copy)]
struct Step {
    /// Finds and locks the rows, with this many of the first parameters, where the change itself returns
    /// nothing.
    find: Option<(Statement, usize)>,
    change: Statement,
}

impl Step {
    fn prepare(session: &mut dyn Session, change: &sql::Change) -> Result<Self> {
        Ok(match change {
            sql::Change::Returning(change) => Self { find: None, change: session.prepare(change)? },
            sql::Change::Locking { find, parameters, change } => {
                Self { find: Some((session.prepare(find)?, *parameters)), change: session.prepare(change)? }
            }
        })
    }

    /// Changes the rows. `rows` receives the values, and is empty if no row was found.
    fn execute(self, session: &mut dyn Session, params: &[Value<'_>], rows: &mut Rows) -> Result<()> {
        let Some((find, parameters)) = self.find else {
            return session.execute(self.change, params, rows);
        };
        session.execute(find, &params[..parameters], rows)?;
        if rows.is_empty() {
            return Ok(());
        }
        session.execute(self.change, params, &mut Rows::new())
    }
}

impl OneByOne {
    pub(crate) fn new(texts: fn() -> sql::Statements) -> Self {
        Self {
            texts,
            prepared: None,
            rows: Rows::new(),
            other: Rows::new(),
            text: String::with_capacity(128),
        }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }

    /// The customer's number; `None` if no customer has the name. If the lookup is by name, leaves the
    /// customer's row (number, first name, middle name, balance) in `rows`.
    fn customer(
        &mut self,
        session: &mut dyn Session,
        home: (i64, i64),
        customer: Customer,
        done: &mut Details,
    ) -> Result<Option<(i64, usize)>> {
        let name = match customer {
            Customer::Id(id) => return Ok(Some((id, 0))),
            Customer::Name(name) => name,
        };
        let params = [home.0.into(), home.1.into(), name.into()];
        session.execute(self.prepared()?.namesakes, &params, &mut self.rows)?;
        done.matched = Some(self.rows.len() as u64);
        match customer::middle(&self.rows)? {
            Some(row) => Ok(Some((self.rows.int(row, 0)?, row))),
            None => Ok(None),
        }
    }

    /// Delivery in one district; returns whether there was an order to deliver.
    fn deliver(
        &mut self,
        session: &mut dyn Session,
        delivery: &Delivery,
        district: i64,
        now: Timestamp,
    ) -> Result<bool> {
        let prepared = self.prepared()?;
        let home = Value::Int(delivery.warehouse);
        let district = Value::Int(district);
        session.execute(prepared.oldest_new_order, &[home, district], &mut self.rows)?;
        if self.rows.is_empty() {
            return Ok(false);
        }
        let order = Value::Int(self.rows.int(0, 0)?);
        if let Some(delete) = prepared.delete_new_order {
            session.execute(delete, &[home, district, order], &mut self.rows)?;
            if self.rows.affected() == 0 {
                return Err(missing(
                    "an order that was found and locked, and which no other session can deliver,",
                ));
            }
        }
        let params = [home, district, order, delivery.carrier.into()];
        prepared.deliver_order.execute(session, &params, &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("an order to deliver"));
        }
        let customer = Value::Int(self.rows.int(0, 0)?);
        prepared.deliver_lines.execute(session, &[home, district, order, now.into()], &mut self.rows)?;
        let mut cents = 0_i64;
        for row in 0..self.rows.len() {
            // HammerDB's routines write lines without an amount. NULL adds nothing, as in SQL's sum.
            if !self.rows.is_null(row, 0)? {
                cents = cents.saturating_add(self.rows.decimal(row, 0, 2)?);
            }
        }
        let params = [home, district, customer, Decimal::new(cents, 2).into()];
        session.execute(prepared.deliver_customer, &params, &mut self.rows)?;
        if self.rows.affected() == 0 {
            return Err(missing("the customer of an order"));
        }
        Ok(true)
    }
}

impl Execute for OneByOne {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let texts = (self.texts)();
        let (oldest, delete) = match &texts.oldest_new_order {
            sql::OldestNewOrder::Returning(oldest) => (*oldest, None),
            sql::OldestNewOrder::Locking { find, delete } => (find.as_str(), Some(*delete)),
        };
        self.prepared = Some(Prepared {
            next_order: Step::prepare(session, &texts.next_order)?,
            terms: session.prepare(texts.terms)?,
            insert_order: session.prepare(texts.insert_order)?,
            insert_new_order: session.prepare(texts.insert_new_order)?,
            item: session.prepare(texts.item)?,
            take_stock: Step::prepare(session, &texts.take_stock)?,
            insert_line: session.prepare(texts.insert_line)?,
            namesakes: session.prepare(texts.namesakes)?,
            pay_customer: Step::prepare(session, &texts.pay_customer)?,
            pay_district: Step::prepare(session, &texts.pay_district)?,
            pay_warehouse: Step::prepare(session, &texts.pay_warehouse)?,
            insert_history: session.prepare(texts.insert_history)?,
            customer: session.prepare(texts.customer)?,
            newest_order: session.prepare(texts.newest_order)?,
            order_lines: session.prepare(texts.order_lines)?,
            oldest_new_order: session.prepare(oldest)?,
            delete_new_order: delete.map(|delete| session.prepare(delete)).transpose()?,
            deliver_order: Step::prepare(session, &texts.deliver_order)?,
            deliver_lines: Step::prepare(session, &texts.deliver_lines)?,
            deliver_customer: session.prepare(texts.deliver_customer)?,
            next_number: session.prepare(texts.next_number)?,
            low_stock: session.prepare(texts.low_stock)?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(order.warehouse), Value::Int(order.district));
        session.control(TransactionControl::Begin)?;
        prepared.next_order.execute(session, &[home, district], &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("the district of an order"));
        }
        done.order = self.rows.int(0, 0)?;
        let district_tax = self.rows.decimal(0, 1, 4)?;
        session.execute(prepared.terms, &[home, district, order.customer.into()], &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("the customer of an order"));
        }
        let (discount, warehouse_tax) = (self.rows.decimal(0, 0, 4)?, self.rows.decimal(0, 3, 4)?);
        let number = Value::Int(done.order);
        let params = [
            home,
            district,
            number,
            order.customer.into(),
            Timestamp::now().into(),
            Value::Int(order.len as i64),
            order.all_local().into(),
        ];
        session.execute(prepared.insert_order, &params, &mut self.rows)?;
        session.execute(prepared.insert_new_order, &[home, district, number], &mut self.rows)?;
        let mut total = 0_i64;
        for line in 0..order.len {
            let (item, supply) = (Value::Int(order.item[line]), Value::Int(order.supply[line]));
            let quantity = Value::Int(order.quantity[line]);
            session.execute(prepared.item, &[item], &mut self.rows)?;
            if self.rows.is_empty() {
                unused_item(order)?;
                return end(session, TransactionOutcome::RolledBack);
            }
            let cents = order.quantity[line].saturating_mul(self.rows.decimal(0, 0, 2)?);
            let item_is_original = self.rows.text(0, 1)?.contains("ORIGINAL");
            let remote = Value::Int(i64::from(order.supply[line] != order.warehouse));
            prepared.take_stock.execute(
                session,
                &[quantity, remote, district, supply, item],
                &mut self.rows,
            )?;
            if self.rows.is_empty() {
                return Err(missing("the stock row of an item"));
            }
            done.count += i64::from(item_is_original && self.rows.text(0, 1)?.contains("ORIGINAL"));
            let params = [
                home,
                district,
                number,
                order.number[line].into(),
                item,
                supply,
                quantity,
                Decimal::new(cents, 2).into(),
                self.rows.text(0, 0)?.into(),
            ];
            session.execute(prepared.insert_line, &params, &mut self.other)?;
            total = total.saturating_add(cents);
        }
        done.cents = order_total(total, discount, warehouse_tax, district_tax);
        end(session, TransactionOutcome::Committed)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        session.control(TransactionControl::Begin)?;
        let home = (payment.customer_warehouse, payment.customer_district);
        let Some((id, _)) = self.customer(session, home, payment.customer, done)? else {
            return end(session, TransactionOutcome::RolledBack);
        };
        customer::bad_credit_text(payment, id, &mut self.text);
        let amount = Value::Decimal(Decimal::new(payment.amount, 2));
        let params = [home.0.into(), home.1.into(), id.into(), amount, self.text.as_str().into()];
        prepared.pay_customer.execute(session, &params, &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("the customer of a payment"));
        }
        done.cents = self.rows.decimal(0, 0, 2)?;
        let (warehouse, district) = (Value::Int(payment.warehouse), Value::Int(payment.district));
        prepared.pay_district.execute(session, &[warehouse, district, amount], &mut self.rows)?;
        prepared.pay_warehouse.execute(session, &[warehouse, amount], &mut self.other)?;
        if self.rows.is_empty() || self.other.is_empty() {
            return Err(missing("the district or warehouse of a payment"));
        }
        self.text.clear();
        self.text.push_str(self.other.text(0, 0)?);
        self.text.push_str("    ");
        self.text.push_str(self.rows.text(0, 0)?);
        let params = [
            home.0.into(),
            home.1.into(),
            id.into(),
            warehouse,
            district,
            Timestamp::now().into(),
            amount,
            self.text.as_str().into(),
        ];
        session.execute(prepared.insert_history, &params, &mut self.rows)?;
        end(session, TransactionOutcome::Committed)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let now = Timestamp::now();
        let mut skipped = 0;
        session.control(TransactionControl::Begin)?;
        for district in 1..=DISTRICTS {
            skipped += u64::from(!self.deliver(session, delivery, district, now)?);
        }
        done.skipped = Some(skipped);
        end(session, TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(level.warehouse), Value::Int(level.district));
        session.control(TransactionControl::BeginReadOnly)?;
        session.execute(prepared.next_number, &[home, district], &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("a district"));
        }
        let next = Value::Int(self.rows.int(0, 0)?);
        session.execute(
            prepared.low_stock,
            &[home, district, level.threshold.into(), next],
            &mut self.rows,
        )?;
        done.count = self.rows.int(0, 0)?;
        end(session, TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let prepared = self.prepared()?;
        let home = (status.warehouse, status.district);
        session.control(TransactionControl::BeginReadOnly)?;
        let Some((id, row)) = self.customer(session, home, status.customer, done)? else {
            return end(session, TransactionOutcome::RolledBack);
        };
        let params = [home.0.into(), home.1.into(), id.into()];
        if !status.customer.by_name() {
            session.execute(prepared.customer, &params, &mut self.rows)?;
            if self.rows.is_empty() {
                return Err(missing("a customer"));
            }
        }
        done.cents = self.rows.decimal(row, 3, 2)?;
        session.execute(prepared.newest_order, &params, &mut self.rows)?;
        if !self.rows.is_empty() {
            done.order = self.rows.int(0, 0)?;
            let params = [home.0.into(), home.1.into(), done.order.into()];
            session.execute(prepared.order_lines, &params, &mut self.rows)?;
            done.count = self.rows.len() as i64;
        }
        end(session, TransactionOutcome::Committed)
    }
}
