//! The stored functions (PostgreSQL). A call is a transaction: one statement in one round trip.

use kelvin_database::postgres::faults;
use kelvin_database::{Result, Session};

use super::routines::{LineParameters, RoutineCalls, Routines};
use crate::tproc_c::hammerdb;
use crate::tproc_c::options::Profile;

const TEXTS: [&str; 5] = [
    include_str!("new_order.sql"),
    include_str!("payment.sql"),
    include_str!("delivery.sql"),
    include_str!("stock_level.sql"),
    include_str!("order_status.sql"),
];

/// Names with argument types, which identify a function.
const SIGNATURES: [&str; 5] = [
    "kelvin_new_order(int, int, int, int, int, int[], int[], int[], int[], int[])",
    "kelvin_payment(int, int, int, int, int, varchar, numeric)",
    "kelvin_delivery(int, int)",
    "kelvin_stock_level(int, int, int)",
    "kelvin_order_status(int, int, int, varchar)",
];

/// Creates the functions, replacing older ones; for the `hammerdb` profile also those with HammerDB's names.
pub(crate) fn create(session: &mut dyn Session, profile: Profile) -> Result<()> {
    create_for(session, profile, &faults::loses_rows_in_joins_sql())
}

/// The same with another condition in SQL for whether joins lose rows.
pub(super) fn create_for(session: &mut dyn Session, profile: Profile, joins_lose_rows: &str) -> Result<()> {
    // Not "create or replace", which cannot change the result type of an older function.
    drop(session)?;
    for text in TEXTS {
        let text = text.replace("/*joins lose rows*/", joins_lose_rows);
        session.run(&text).map_err(|error| error.context("creating the stored functions"))?;
    }
    match profile {
        Profile::Spec => Ok(()),
        Profile::Hammerdb => hammerdb::postgres::create(session),
    }
}

/// Drops the functions that [`create`] created for either profile, if they exist. HammerDB's own routines are not
/// dropped.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    hammerdb::postgres::drop(session)?;
    // PostgreSQL sends a notice for each function that does not exist.
    for signature in SIGNATURES {
        session.run(&format!("DROP FUNCTION IF EXISTS {signature}"))?;
    }
    Ok(())
}

/// Functions that are not in the database with the expected parameters, as text.
pub(crate) fn missing(session: &mut dyn Session) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for signature in SIGNATURES {
        let rows = session.query(&format!("SELECT 1 WHERE to_regprocedure('{signature}') IS NOT NULL"))?;
        if rows.is_empty() {
            missing.push(format!("function {signature} is missing"));
        }
    }
    Ok(missing)
}

/// The calls of the functions.
const CALLS: RoutineCalls = RoutineCalls {
    settings: None,
    new_order: "SELECT order_number, total, branded FROM kelvin_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    payment: "SELECT matched, balance FROM kelvin_payment($1, $2, $3, $4, $5, $6, $7)",
    delivery: "SELECT kelvin_delivery($1, $2)",
    stock_level: "SELECT kelvin_stock_level($1, $2, $3)",
    order_status: "SELECT matched, balance, order_number, entered, carrier, item, supply, quantity, amount, delivered \
                   FROM kelvin_order_status($1, $2, $3, $4)",
    lines: LineParameters::Arrays,
};

/// Creates the executor that calls them.
pub(crate) fn executor() -> Routines {
    Routines::new(&CALLS)
}
