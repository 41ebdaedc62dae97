//! HammerDB's functions and procedures on PostgreSQL.

mod catalog;

use std::fmt::Write;

use kelvin_database::{Result, Session};

use self::catalog::{Procedure, RoutineSet};
pub(crate) use self::catalog::{find, read_build};
use super::driver::{Answers, Call, MOST, OrderAnswer, Prepared, Takes};
use super::{Driver, NAMES};
use crate::tproc_c::Profile;
use crate::tproc_c::calls::functions;

const ROUTINES: [&str; 2] = [include_str!("functions.sql"), include_str!("procedures.sql")];

/// The values of a procedure's arguments, by position.
const MEANT: [&[&str]; 5] = [
    &["home", "warehouses", "district", "customer", "lines"],
    &["home", "district", "c_w", "c_d", "by_name", "amount", "", "last", "customer"],
    &["home", "carrier"],
    &["home", "district", "threshold"],
    &["home", "district", "customer", "by_name", "last"],
];

/// Creates Kelvin's functions, replacing older ones; for the `hammerdb` profile also those with HammerDB's names.
pub(crate) fn create_routines(session: &mut dyn Session, profile: Profile) -> Result<()> {
    drop(session)?;
    functions::create(session)?;
    match profile {
        Profile::Spec => Ok(()),
        Profile::Hammerdb => create(session),
    }
}

/// Drops what [`create_routines`] created for either profile, if it exists. HammerDB's own routines are not dropped.
pub(crate) fn drop_routines(session: &mut dyn Session) -> Result<()> {
    drop(session)?;
    functions::drop(session)
}

/// Creates functions and procedures with HammerDB's interface on top of Kelvin's functions, which must exist.
fn create(session: &mut dyn Session) -> Result<()> {
    let create = |text| session.run(text);
    let created: Result<()> = ROUTINES.into_iter().try_for_each(create);
    created.map_err(|error| error.context("creating routines with HammerDB's interface"))
}

/// Drops the routines that [`create`] created; HammerDB's own routines are not dropped.
fn drop(session: &mut dyn Session) -> Result<()> {
    let names = NAMES.map(|name| format!("'{name}'")).join(", ");
    let rows = session.query(&format!(
        "SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.proname IN ({names}, 'dbms_random') \
         AND p.prokind IN ('f', 'p') AND pg_function_is_visible(p.oid) AND p.prosrc LIKE '%made by kelvin%'"
    ))?;
    for row in 0..rows.len() {
        session.run(&format!("DROP ROUTINE {}", rows.text(row, 0)?))?;
    }
    Ok(())
}

/// Creates the executor that calls them.
pub(crate) fn executor(warehouses: u32) -> Driver {
    Driver::new(warehouses, prepare)
}

/// Kelvin's `neword` returns 0 for an order that it rolled back; HammerDB's never rolls back. Kelvin's
/// `payment` returns the customer.
fn prepare(session: &mut dyn Session) -> Result<Option<Prepared>> {
    let theirs = Answers {
        order: OrderAnswer::Committed,
        chosen: false,
        delivered: false,
        lines: true,
        errors: false,
    };
    let ours =
        Answers { order: OrderAnswer::Total, chosen: true, delivered: true, lines: true, errors: false };
    Ok(match catalog::read_all(session)? {
        None => None,
        Some(RoutineSet::Functions { ours: made_here }) => Some(Prepared {
            calls: prepare_functions(session)?,
            answers: if made_here { ours } else { theirs },
        }),
        Some(RoutineSet::Procedures([neword, payment, delivery, slev, ostat])) => Some(Prepared {
            calls: [
                prepare_procedure(session, &neword, MEANT[0])?,
                prepare_procedure(session, &payment, MEANT[1])?,
                prepare_procedure(session, &delivery, MEANT[2])?,
                prepare_procedure(session, &slev, MEANT[3])?,
                prepare_procedure(session, &ostat, MEANT[4])?,
            ],
            answers: Answers { lines: false, ..theirs },
        }),
    })
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

/// Builds a procedure's call from its arguments: a parameter where a value belongs to the position, the time
/// for a timestamp that is an input, and NULL of the argument's type for pure output arguments.
fn prepare_procedure(
    session: &mut dyn Session,
    procedure: &Procedure,
    meant: &[&'static str],
) -> Result<Call> {
    let mut sql = format!("CALL {}(", procedure.name);
    let mut takes = Vec::new();
    for (position, argument) in procedure.arguments.iter().enumerate() {
        let comma = if position == 0 { "" } else { ", " };
        // A cast to "character" would truncate the value to one character.
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
