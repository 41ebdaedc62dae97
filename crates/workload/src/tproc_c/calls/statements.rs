//! Client SQL, one statement a round trip, the same on every engine.

use kelvin_database::{Decimal, EngineKind, Result, Rows, Session, Statement, Timestamp, Value};
use kelvin_measure::Outcome;

use super::{Done, Execute, customer, missing, not_prepared, order_total, sql, unused_item};
use crate::tproc_c::inputs::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// The prepared statements and their results' memory.
pub(super) struct Statements {
    engine: EngineKind,
    prepared: Option<Prepared>,
    rows: Rows,
    /// A second result, for statements whose parameters are texts of the first.
    other: Rows,
    text: String,
}

#[derive(Clone, Copy)]
struct Prepared {
    next_order: Statement,
    terms: Statement,
    insert_order: Statement,
    insert_new_order: Statement,
    item: Statement,
    take_stock: Statement,
    insert_line: Statement,
    namesakes: Statement,
    pay_customer: Statement,
    pay_district: Statement,
    pay_warehouse: Statement,
    insert_history: Statement,
    customer: Statement,
    newest_order: Statement,
    order_lines: Statement,
    oldest_new_order: Statement,
    deliver_order: Statement,
    deliver_lines: Statement,
    deliver_customer: Statement,
    next_number: Statement,
    low_stock: Statement,
}

impl Statements {
    pub(super) fn new(engine: EngineKind) -> Self {
        Self {
            engine,
            prepared: None,
            rows: Rows::new(),
            other: Rows::new(),
            text: String::with_capacity(128),
        }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }

    /// The customer's number; none when nobody has the name. Leaves the customer's row (number, first name,
    /// middle name, balance) in `rows` when it was by name.
    fn customer(
        &mut self,
        session: &mut dyn Session,
        home: (i64, i64),
        customer: Customer,
        done: &mut Done,
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

    fn roll_back(&mut self, session: &mut dyn Session) -> Result<Outcome> {
        session.execute(Statement::ROLLBACK, &[], &mut self.rows)?;
        Ok(Outcome::RolledBack)
    }

    fn commit(&mut self, session: &mut dyn Session) -> Result<Outcome> {
        session.execute(Statement::COMMIT, &[], &mut self.rows)?;
        Ok(Outcome::Committed)
    }

    /// One district's part of Delivery; whether there was an order to deliver.
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
        let params = [home, district, order, delivery.carrier.into()];
        session.execute(prepared.deliver_order, &params, &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("an order to deliver"));
        }
        let customer = Value::Int(self.rows.int(0, 0)?);
        session.execute(prepared.deliver_lines, &[home, district, order, now.into()], &mut self.rows)?;
        let mut cents = 0_i64;
        for row in 0..self.rows.len() {
            cents = cents.saturating_add(self.rows.decimal(row, 0, 2)?);
        }
        let params = [home, district, customer, Decimal::new(cents, 2).into()];
        session.execute(prepared.deliver_customer, &params, &mut self.rows)?;
        if self.rows.affected() == 0 {
            return Err(missing("the customer of an order"));
        }
        Ok(true)
    }
}

impl Execute for Statements {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let oldest = sql::oldest_new_order(self.engine);
        let mut prepare = |text| sql::prepare(session, text);
        self.prepared = Some(Prepared {
            next_order: prepare(sql::NEXT_ORDER)?,
            terms: prepare(sql::TERMS)?,
            insert_order: prepare(sql::INSERT_ORDER)?,
            insert_new_order: prepare(sql::INSERT_NEW_ORDER)?,
            item: prepare(sql::ITEM)?,
            take_stock: prepare(sql::TAKE_STOCK)?,
            insert_line: prepare(sql::INSERT_LINE)?,
            namesakes: prepare(sql::NAMESAKES)?,
            pay_customer: prepare(sql::PAY_CUSTOMER)?,
            pay_district: prepare(sql::PAY_DISTRICT)?,
            pay_warehouse: prepare(sql::PAY_WAREHOUSE)?,
            insert_history: prepare(sql::INSERT_HISTORY)?,
            customer: prepare(sql::CUSTOMER)?,
            newest_order: prepare(sql::NEWEST_ORDER)?,
            order_lines: prepare(sql::ORDER_LINES)?,
            oldest_new_order: prepare(oldest)?,
            deliver_order: prepare(sql::DELIVER_ORDER)?,
            deliver_lines: prepare(sql::DELIVER_LINES)?,
            deliver_customer: prepare(sql::DELIVER_CUSTOMER)?,
            next_number: prepare(sql::NEXT_NUMBER)?,
            low_stock: prepare(sql::LOW_STOCK)?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Done) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(order.warehouse), Value::Int(order.district));
        session.execute(Statement::BEGIN, &[], &mut self.rows)?;
        session.execute(prepared.next_order, &[home, district], &mut self.rows)?;
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
                return self.roll_back(session);
            }
            let cents = order.quantity[line].saturating_mul(self.rows.decimal(0, 0, 2)?);
            let item_is_original = self.rows.text(0, 1)?.contains("ORIGINAL");
            let remote = Value::Int(i64::from(order.supply[line] != order.warehouse));
            session.execute(
                prepared.take_stock,
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
        self.commit(session)
    }

    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Done) -> Result<Outcome> {
        let prepared = self.prepared()?;
        session.execute(Statement::BEGIN, &[], &mut self.rows)?;
        let home = (payment.customer_warehouse, payment.customer_district);
        let Some((id, _)) = self.customer(session, home, payment.customer, done)? else {
            return self.roll_back(session);
        };
        customer::bad_credit_text(payment, id, &mut self.text);
        let amount = Value::Decimal(Decimal::new(payment.amount, 2));
        let params = [home.0.into(), home.1.into(), id.into(), amount, self.text.as_str().into()];
        session.execute(prepared.pay_customer, &params, &mut self.rows)?;
        if self.rows.is_empty() {
            return Err(missing("the customer of a payment"));
        }
        done.cents = self.rows.decimal(0, 0, 2)?;
        let (warehouse, district) = (Value::Int(payment.warehouse), Value::Int(payment.district));
        session.execute(prepared.pay_district, &[warehouse, district, amount], &mut self.rows)?;
        session.execute(prepared.pay_warehouse, &[warehouse, amount], &mut self.other)?;
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
        self.commit(session)
    }

    fn delivery(
        &mut self,
        session: &mut dyn Session,
        delivery: &Delivery,
        done: &mut Done,
    ) -> Result<Outcome> {
        let now = Timestamp::now();
        let mut skipped = 0;
        session.execute(Statement::BEGIN, &[], &mut self.rows)?;
        for district in 1..=DISTRICTS {
            skipped += u64::from(!self.deliver(session, delivery, district, now)?);
        }
        done.skipped = Some(skipped);
        self.commit(session)
    }

    fn stock_level(
        &mut self,
        session: &mut dyn Session,
        level: &StockLevel,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let (home, district) = (Value::Int(level.warehouse), Value::Int(level.district));
        session.execute(Statement::BEGIN_READ_ONLY, &[], &mut self.rows)?;
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
        self.commit(session)
    }

    fn order_status(
        &mut self,
        session: &mut dyn Session,
        status: &OrderStatus,
        done: &mut Done,
    ) -> Result<Outcome> {
        let prepared = self.prepared()?;
        let home = (status.warehouse, status.district);
        session.execute(Statement::BEGIN_READ_ONLY, &[], &mut self.rows)?;
        let Some((id, row)) = self.customer(session, home, status.customer, done)? else {
            return self.roll_back(session);
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
        self.commit(session)
    }
}
