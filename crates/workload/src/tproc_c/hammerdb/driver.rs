//! Calls HammerDB's routines. The last name travels as a parameter of the call.

use std::fmt::Write;

use kelvin_database::{Decimal, Error, Result, Rows, Session, Statement, Timestamp, Value};
use kelvin_measure::TransactionOutcome;

use super::catalog::{Procedure, Routines, find};
use crate::tproc_c::calls::{Details, Ended, Execute, count, not_prepared};
use crate::tproc_c::inputs::{
    Customer, DELIVERY, Delivery, NEW_ORDER, NewOrder, ORDER_STATUS, OrderStatus, PAYMENT, Payment,
    STOCK_LEVEL, StockLevel,
};
use crate::tproc_c::schema::DISTRICTS;

/// The parameters that we give a procedure, by the positions of its arguments.
const MEANT: [&[&str]; 5] = [
    &["home", "warehouses", "district", "customer", "lines"],
    &["home", "district", "c_w", "c_d", "by_name", "amount", "", "last", "customer"],
    &["home", "carrier"],
    &["home", "district", "threshold"],
    &["home", "district", "customer", "by_name", "last"],
];

/// Calls the routines of one variant, which it finds when it prepares.
pub(crate) struct Driver {
    warehouses: i64,
    prepared: Option<Prepared>,
    rows: Rows,
}

struct Prepared {
    calls: [Call; 5],
    procedures: bool,
    /// Whether we made the functions: then what they return is known to the last detail.
    ours: bool,
}

/// One prepared call, and for each of its parameters which of the values of a transaction it takes.
#[derive(Debug)]
struct Call {
    statement: Statement,
    takes: Vec<Takes>,
}

/// What a parameter takes: a value by its name in [`MEANT`], or the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Meant(&'static str),
    Now,
}

/// The values of a transaction by name; the names of [`MEANT`].
type Values<'a> = [(&'static str, Value<'a>)];

/// Most parameters that a call has: the names of the longest list in [`MEANT`], and the time twice.
const MOST: usize = 12;

impl Driver {
    pub(crate) fn new(warehouses: u32) -> Self {
        Self { warehouses: i64::from(warehouses), prepared: None, rows: Rows::new() }
    }

    fn call(&mut self, session: &mut dyn Session, kind: u16, values: &Values<'_>) -> Result<(bool, bool)> {
        let prepared = self.prepared.as_ref().ok_or_else(not_prepared)?;
        let call = &prepared.calls[usize::from(kind)];
        let mut params = [Value::Null; MOST];
        for (param, takes) in params.iter_mut().zip(&call.takes) {
            *param = match takes {
                Takes::Now => Timestamp::now().into(),
                Takes::Meant(name) => {
                    values.iter().find(|(of, _)| of == name).map_or(Value::Null, |(_, value)| *value)
                }
            };
        }
        session.execute(call.statement, &params[..call.takes.len()], &mut self.rows)?;
        Ok((prepared.procedures, prepared.ours))
    }
}

/// Number, name and flag. HammerDB's routines expect a number and a name in any case.
fn customer_values(customer: Customer) -> [(&'static str, Value<'static>); 3] {
    match customer {
        Customer::Id(id) => [("customer", id.into()), ("last", "".into()), ("by_name", 0.into())],
        Customer::Name(name) => [("customer", 0.into()), ("last", name.into()), ("by_name", 1.into())],
    }
}

fn prepare_functions(session: &mut dyn Session) -> Result<[Call; 5]> {
    let mut prepare = |sql: &str, names: &[&'static str]| -> Result<Call> {
        let takes = names.iter().map(|&name| Takes::Meant(name)).collect();
        Ok(Call { statement: session.prepare(sql)?, takes })
    };
    Ok([
        prepare(
            "SELECT neword($1::int, $2::int, $3::int, $4::int, $5::int, 0)",
            &["home", "warehouses", "district", "customer", "lines"],
        )?,
        prepare(
            "SELECT payment($1::int, $2::int, $3::int, $4::int, $5::int, $6::int, $7::numeric, $8::varchar, \
             ''::varchar, 0::numeric)",
            &["home", "district", "c_w", "c_d", "customer", "by_name", "amount", "last"],
        )?,
        prepare("SELECT delivery($1::int, $2::int)", &["home", "carrier"])?,
        prepare("SELECT slev($1::int, $2::int, $3::int)", &["home", "district", "threshold"])?,
        prepare(
            "SELECT * FROM ostat($1::int, $2::int, $3::int, $4::int, $5::varchar) AS (ol_i_id int, \
             ol_supply_w_id int, ol_quantity smallint, ol_amount numeric, ol_delivery_d timestamptz, \
             c_id int, c_last varchar, c_first varchar, c_middle varchar, c_balance numeric, o_id int, \
             entdate timestamp, carrier int)",
            &["home", "district", "customer", "by_name", "last"],
        )?,
    ])
}

/// Builds a procedure's call from its arguments: what is meant for a position as a parameter, timestamps that
/// go in as the time, and null of its type for everything else, which only comes out.
fn prepare_procedure(
    session: &mut dyn Session,
    procedure: &Procedure,
    meant: &[&'static str],
) -> Result<Call> {
    let mut sql = format!("CALL {}(", procedure.name);
    let mut takes = Vec::new();
    for (position, argument) in procedure.arguments.iter().enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        // As a cast, "character" alone would cut the value to one.
        let kind = if argument.kind == "character" { "bpchar" } else { argument.kind.as_str() };
        let takes_now = !argument.inout && argument.kind.starts_with("timestamp");
        let value = match meant.get(position) {
            Some(&name) if !name.is_empty() => Some(Takes::Meant(name)),
            _ if takes_now && takes.len() < MOST => Some(Takes::Now),
            _ => None,
        };
        // Writing to a string cannot fail.
        let _ = match value {
            Some(value) => {
                takes.push(value);
                write!(sql, "{comma}${}::{}", takes.len(), kind)
            }
            None => write!(sql, "{comma}NULL::{kind}"),
        };
    }
    sql.push(')');
    let statement = session.prepare(&sql).map_err(|e| e.context(&format!("preparing `{sql}`")))?;
    Ok(Call { statement, takes })
}

impl Execute for Driver {
    fn prepare(&mut self, session: &mut dyn Session) -> Result<()> {
        let routines = find(session)?
            .ok_or_else(|| Error::usage("HammerDB's stored routines are no longer in the database"))?;
        self.prepared = Some(match routines {
            Routines::Functions { ours } => {
                Prepared { calls: prepare_functions(session)?, procedures: false, ours }
            }
            Routines::Procedures([neword, payment, delivery, slev, ostat]) => Prepared {
                calls: [
                    prepare_procedure(session, &neword, MEANT[0])?,
                    prepare_procedure(session, &payment, MEANT[1])?,
                    prepare_procedure(session, &delivery, MEANT[2])?,
                    prepare_procedure(session, &slev, MEANT[3])?,
                    prepare_procedure(session, &ostat, MEANT[4])?,
                ],
                procedures: true,
                ours: false,
            },
        });
        Ok(())
    }

    /// Our own `neword` returns 0 for an order that it rolled back. HammerDB's never rolls one back.
    fn new_order(&mut self, session: &mut dyn Session, order: &NewOrder, done: &mut Details) -> Ended {
        let values = [
            ("home", order.warehouse.into()),
            ("warehouses", self.warehouses.into()),
            ("district", order.district.into()),
            ("customer", order.customer.into()),
            ("lines", Value::Int(order.len as i64)),
        ];
        let (_, ours) = self.call(session, NEW_ORDER, &values)?;
        if ours {
            done.cents = self.rows.decimal(0, 0, 2)?;
            if done.cents == 0 {
                return Ok(TransactionOutcome::RolledBack);
            }
        }
        Ok(TransactionOutcome::Committed)
    }

    /// Our own `payment` returns the customer, or null when nobody has the name.
    fn payment(&mut self, session: &mut dyn Session, payment: &Payment, done: &mut Details) -> Ended {
        let [customer, last, by_name] = customer_values(payment.customer);
        let values = [
            ("home", payment.warehouse.into()),
            ("district", payment.district.into()),
            ("c_w", payment.customer_warehouse.into()),
            ("c_d", payment.customer_district.into()),
            customer,
            last,
            by_name,
            ("amount", Decimal::new(payment.amount, 2).into()),
        ];
        let (_, ours) = self.call(session, PAYMENT, &values)?;
        if ours && self.rows.is_null(0, 0)? {
            done.matched = Some(0);
            return Ok(TransactionOutcome::RolledBack);
        }
        Ok(TransactionOutcome::Committed)
    }

    fn delivery(&mut self, session: &mut dyn Session, delivery: &Delivery, done: &mut Details) -> Ended {
        let values = [("home", delivery.warehouse.into()), ("carrier", delivery.carrier.into())];
        let (_, ours) = self.call(session, DELIVERY, &values)?;
        if ours {
            done.skipped = Some(DISTRICTS as u64 - count(self.rows.int(0, 0)?, DISTRICTS, "deliveries")?);
        }
        Ok(TransactionOutcome::Committed)
    }

    fn stock_level(&mut self, session: &mut dyn Session, level: &StockLevel, done: &mut Details) -> Ended {
        let values = [
            ("home", level.warehouse.into()),
            ("district", level.district.into()),
            ("threshold", level.threshold.into()),
        ];
        self.call(session, STOCK_LEVEL, &values)?;
        if !self.rows.is_empty() && !self.rows.is_null(0, 0)? {
            done.count = self.rows.int(0, 0)?;
        }
        Ok(TransactionOutcome::Committed)
    }

    fn order_status(&mut self, session: &mut dyn Session, status: &OrderStatus, done: &mut Details) -> Ended {
        let [customer, last, by_name] = customer_values(status.customer);
        let values = [
            ("home", status.warehouse.into()),
            ("district", status.district.into()),
            customer,
            last,
            by_name,
        ];
        let (procedures, _) = self.call(session, ORDER_STATUS, &values)?;
        if !procedures {
            done.count = self.rows.len() as i64;
        }
        Ok(TransactionOutcome::Committed)
    }

    fn server_draws_lines(&self) -> bool {
        true
    }
}
