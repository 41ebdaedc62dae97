//! One call of a stored procedure a transaction (MySQL and MariaDB). The procedures are ours and correct; their texts stand
//! beside this file. A call begins and ends its own transaction, in one round trip, and answers with rows.

use kelvin_database::{Decimal, Result, Rows, Session, Statement, Value};
use kelvin_measure::Outcome;

use super::functions::{classified, customer_values};
use super::{Done, Execute, count, lines, not_prepared, paid, sql, status_found, unused_item};
use crate::tproc_c::inputs::{Delivery, NewOrder, OrderStatus, Payment, StockLevel};
use crate::tproc_c::schema::DISTRICTS;

/// Names, numbers of parameters, and texts.
const PROCEDURES: [(&str, i64, &str); 5] = [
    ("kelvin_new_order", 7, include_str!("new_order.sql")),
    ("kelvin_payment", 7, include_str!("payment.sql")),
    ("kelvin_delivery", 2, include_str!("delivery.sql")),
    ("kelvin_stock_level", 3, include_str!("stock_level.sql")),
    ("kelvin_order_status", 4, include_str!("order_status.sql")),
];

/// Creates the procedures, in place of older ones.
pub(crate) fn create(session: &mut dyn Session) -> Result<()> {
    drop(session)?;
    PROCEDURES.into_iter().try_for_each(|(_, _, text)| session.run(text))
}

/// Drops the procedures, if they are there.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    PROCEDURES.into_iter().try_for_each(|(name, ..)| session.run(&format!("DROP PROCEDURE IF EXISTS {name}")))
}

/// Procedures that are not in the database with as many parameters as we give them, in words.
pub(crate) fn missing(session: &mut dyn Session) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for (name, parameters, _) in PROCEDURES {
        let found = session.query(&format!(
            "SELECT count(*) FROM information_schema.parameters \
             WHERE specific_schema = database() AND specific_name = '{name}' AND routine_type = 'PROCEDURE'"
        ))?;
        if found.int(0, 0)? != parameters {
            missing.push(format!("procedure {name} with {parameters} parameters is missing"));
        }
    }
    Ok(missing)
}

/// The prepared calls and the memory of their results.
pub(crate) struct Procedures {
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

impl Procedures {
    pub(crate) fn new() -> Self {
        Self { prepared: None, rows: Rows::new(), lines: String::with_capacity(512) }
    }

    fn prepared(&self) -> Result<Prepared> {
        self.prepared.ok_or_else(not_prepared)
    }
}

impl Execute for Procedures {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        session.run(sql::mysql::USER_SETTINGS)?;
        self.prepared = Some(Prepared {
            new_order: session.prepare("CALL kelvin_new_order($1, $2, $3, $4, $5, $6, $7)")?,
            payment: session.prepare("CALL kelvin_payment($1, $2, $3, $4, $5, $6, $7)")?,
            delivery: session.prepare("CALL kelvin_delivery($1, $2)")?,
            stock_level: session.prepare("CALL kelvin_stock_level($1, $2, $3)")?,
            order_status: session.prepare("CALL kelvin_order_status($1, $2, $3, $4)")?,
        });
        Ok(())
    }

    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Done) -> Result<Outcome> {
        let statement = self.prepared()?.new_order;
        lines::as_json(order, &mut self.lines);
        let params = [
            order.warehouse.into(),
            order.district.into(),
            order.customer.into(),
            order.all_local().into(),
            order.rounds().into(),
            Value::Int(order.len as i64),
            self.lines.as_str().into(),
        ];
        session.execute(statement, &params, &mut self.rows).map_err(classified)?;
        if self.rows.is_null(0, 0)? {
            return unused_item(order);
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
