//! HammerDB's procedures on MySQL and MariaDB.

use kelvin_database::{Result, Session};

use super::driver::{Answers, Call, MOST, OrderAnswer, Prepared, Takes};
use super::{Driver, NAMES, Routines, unknown};
use crate::tproc_c::calls::sql::mysql::USER_SETTINGS;
use crate::tproc_c::schema::TABLES;
use crate::tproc_c::schema::metadata::Build;

const PROCEDURES: &str = include_str!("procedures.sql");

/// The comment that marks procedures created by Kelvin.
const OURS: &str = "made by kelvin";

/// The values that the first parameters of each procedure take; the others are output parameters or the time.
const MEANT: [&[&str]; 5] = [
    &["home", "warehouses", "district", "customer", "lines"],
    &["home", "district", "c_w", "c_d", "customer", "by_name", "amount", "last"],
    &["home", "carrier"],
    &["home", "district", "threshold"],
    &["home", "district", "customer", "by_name", "last"],
];

/// Types of the parameters that [`MEANT`] names.
const TYPES: [&[&str]; 5] = [
    &["int"; 5],
    &["int", "int", "int", "int", "int", "int", "decimal", "varchar"],
    &["int"; 2],
    &["int"; 3],
    &["int", "int", "int", "int", "varchar"],
];

/// Position of the order's number among the parameters of `neword`.
const NUMBER: usize = 10;

/// How HammerDB's procedures differ from the specification (version 6.0).
const DEVIATIONS: &str = "items are chosen uniformly instead of by NURand, the stock's counters of orders are not \
    updated, amounts are stored as integers, Payment adds the amount to the customer's balance and updates neither \
    c_ytd_payment nor c_payment_cnt, Delivery does not lock the order that it delivers and does not update \
    c_delivery_cnt, and half of the customers were loaded without an order";

/// Detects whether HammerDB's `neword` has rolled back, which it does not report. It rolls back after a query
/// that found no item; in an order that it commits, every query finds a row.
const LAST_FOUND: &str = "SELECT found_rows()";

/// Creates procedures with HammerDB's interface on top of Kelvin's procedures, which must exist.
pub(crate) fn create(session: &mut dyn Session) -> Result<()> {
    session.run(PROCEDURES).map_err(|error| error.context("creating routines with HammerDB's interface"))
}

/// Drops the procedures that [`create`] created; HammerDB's own procedures are not dropped.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    for procedure in read_all(session)?.iter().filter(|procedure| procedure.ours) {
        session.run(&format!("DROP PROCEDURE {}", procedure.name))?;
    }
    Ok(())
}

/// Finds the procedures in the database. It is an error if some are missing or have other parameters: the
/// database was then not built as its routines suggest.
pub(crate) fn find(session: &mut dyn Session) -> Result<Option<Routines>> {
    let Some(procedures) = find_all(session)? else { return Ok(None) };
    let ours = procedures.iter().all(|procedure| procedure.ours);
    let deviations = (!ours).then_some(DEVIATIONS);
    Ok(Some(Routines { kind: "procedures", deviations, roll_back: true }))
}

/// Creates the executor that calls them.
pub(crate) fn executor(warehouses: u32) -> Driver {
    Driver::new(warehouses, prepare)
}

/// A procedure as described by the catalog.
#[derive(Debug)]
struct Procedure {
    name: &'static str,
    ours: bool,
    parameters: Vec<Parameter>,
}

#[derive(Debug)]
struct Parameter {
    kind: String,
    comes_out: bool,
}

/// Those of the five procedures that exist, in the order of [`NAMES`].
fn read_all(session: &mut dyn Session) -> Result<Vec<Procedure>> {
    let names = NAMES.map(|name| format!("'{name}'")).join(", ");
    let rows = session.query(&format!(
        "SELECT lower(r.routine_name), r.routine_comment, p.data_type, p.parameter_mode \
         FROM information_schema.routines r JOIN information_schema.parameters p \
              ON p.specific_schema = r.routine_schema AND p.specific_name = r.specific_name \
                 AND p.routine_type = r.routine_type \
         WHERE r.routine_schema = database() AND r.routine_type = 'PROCEDURE' AND lower(r.routine_name) IN ({names}) \
         ORDER BY p.ordinal_position"
    ))?;
    let mut found = NAMES.map(|name| Procedure { name, ours: false, parameters: Vec::new() });
    for row in 0..rows.len() {
        let name = rows.text(row, 0)?;
        if let Some(procedure) = found.iter_mut().find(|procedure| procedure.name == name) {
            procedure.ours = rows.text(row, 1)? == OURS;
            let comes_out = rows.text(row, 3)? != "IN";
            procedure.parameters.push(Parameter { kind: rows.text(row, 2)?.to_lowercase(), comes_out });
        }
    }
    Ok(found.into_iter().filter(|procedure| !procedure.parameters.is_empty()).collect())
}

fn find_all(session: &mut dyn Session) -> Result<Option<Vec<Procedure>>> {
    let found = read_all(session)?;
    if found.is_empty() {
        return Ok(None);
    }
    for (name, types) in NAMES.into_iter().zip(TYPES) {
        let fits = found.iter().find(|procedure| procedure.name == name).is_some_and(|procedure| {
            let have = procedure.parameters.iter().map(|parameter| parameter.kind.as_str());
            procedure.parameters.len() >= types.len() && have.zip(types).all(|(have, &wanted)| have == wanted)
        });
        if !fits {
            return Err(unknown(name, "is missing, or has different parameters from HammerDB's procedure"));
        }
    }
    Ok(Some(found))
}

fn prepare(session: &mut dyn Session) -> Result<Option<Prepared>> {
    let Some(procedures) = find_all(session)? else { return Ok(None) };
    let mut calls = Vec::with_capacity(NAMES.len());
    for (procedure, meant) in procedures.iter().zip(MEANT) {
        calls.push(prepare_call(session, procedure, meant)?);
    }
    let Ok(calls) = calls.try_into() else { return Ok(None) };
    let neword = &procedures[0];
    let order = if neword.ours {
        session.run(USER_SETTINGS)?;
        let outputs = neword.parameters.iter().take(NUMBER).filter(|parameter| parameter.comes_out);
        OrderAnswer::Number(outputs.count())
    } else {
        OrderAnswer::Asked(session.prepare(LAST_FOUND)?)
    };
    let answers = Answers { order, chosen: neword.ours, delivered: false, lines: false, errors: false };
    Ok(Some(Prepared { calls, answers }))
}

/// Builds a call from the parameters: the value for their position, the time for a further input parameter,
/// and NULL for pure output parameters.
fn prepare_call(session: &mut dyn Session, procedure: &Procedure, meant: &[&'static str]) -> Result<Call> {
    let mut takes: Vec<Takes> = Vec::new();
    let mut places = Vec::new();
    for (position, parameter) in procedure.parameters.iter().enumerate() {
        let value = match meant.get(position) {
            Some(&name) => Takes::Meant(name),
            None if !parameter.comes_out && parameter.kind == "datetime" => Takes::Now,
            None => Takes::Null,
        };
        let at = takes.iter().position(|&one| one == value).unwrap_or_else(|| {
            takes.push(value);
            takes.len() - 1
        });
        places.push(format!("${}", at + 1));
    }
    if takes.len() > MOST {
        return Err(unknown(procedure.name, "has different parameters from HammerDB's procedure"));
    }
    let sql = format!("CALL {}({})", procedure.name, places.join(", "));
    let statement = session.prepare(&sql).map_err(|e| e.context(&format!("preparing `{sql}`")))?;
    Ok(Call { statement, takes })
}

/// A database without Kelvin's metadata table but with all columns of the nine tables is assumed to be
/// HammerDB's.
pub(crate) fn read_build(session: &mut dyn Session) -> Result<Option<Build>> {
    let rows = session.query(
        "SELECT lower(concat(table_name, '.', column_name)) FROM information_schema.columns \
         WHERE table_schema = database()",
    )?;
    let present = rows.texts(0)?;
    let mut wanted =
        TABLES.iter().flat_map(|table| table.columns.iter().map(|c| format!("{}.{}", table.name, c.name)));
    if !wanted.all(|column| present.contains(&column)) {
        return Ok(None);
    }
    let rows = session.query("SELECT coalesce(max(w_id), 0), count(*) FROM warehouse")?;
    Ok(Build::by_hammerdb(rows.int(0, 0)?, rows.int(0, 1)?))
}
