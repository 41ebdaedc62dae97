//! The stored procedures (MySQL and MariaDB). A call begins and ends its own transaction, in one round trip, and
//! returns its output parameters; Order-Status returns rows.

use kelvin_database::{Result, Session};

use super::routines::{LineParameters, RoutineCalls, Routines};
use super::sql;
use crate::tproc_c::hammerdb;
use crate::tproc_c::options::Profile;

/// Names, numbers of parameters, and texts.
const PROCEDURES: [(&str, i64, &str); 5] = [
    ("kelvin_new_order", 10, include_str!("new_order.sql")),
    ("kelvin_payment", 10, include_str!("payment.sql")),
    ("kelvin_delivery", 3, include_str!("delivery.sql")),
    ("kelvin_stock_level", 4, include_str!("stock_level.sql")),
    ("kelvin_order_status", 4, include_str!("order_status.sql")),
];

/// Creates the procedures, replacing older ones; for the `hammerdb` profile also those with HammerDB's names.
pub(crate) fn create(session: &mut dyn Session, profile: Profile) -> Result<()> {
    drop(session)?;
    PROCEDURES.into_iter().try_for_each(|(_, _, text)| session.run(text))?;
    match profile {
        Profile::Spec => Ok(()),
        Profile::Hammerdb => hammerdb::mysql::create(session),
    }
}

/// Drops the procedures that [`create`] created for either profile, if they exist. HammerDB's own procedures are not
/// dropped.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    hammerdb::mysql::drop(session)?;
    PROCEDURES.into_iter().try_for_each(|(name, ..)| session.run(&format!("DROP PROCEDURE IF EXISTS {name}")))
}

/// Procedures that are not in the database with the expected number of parameters, as text.
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

/// The calls of the procedures. The input values of output parameters are ignored.
const CALLS: RoutineCalls = RoutineCalls {
    settings: Some(sql::mysql::USER_SETTINGS),
    new_order: "CALL kelvin_new_order($1, $2, $3, $4, $5, $6, $7, $1, $1, $1)",
    payment: "CALL kelvin_payment($1, $2, $3, $4, $5, $6, $7, $1, $1, $1)",
    delivery: "CALL kelvin_delivery($1, $2, $1)",
    stock_level: "CALL kelvin_stock_level($1, $2, $3, $1)",
    order_status: "CALL kelvin_order_status($1, $2, $3, $4)",
    lines: LineParameters::Json,
};

/// Creates the executor that calls them.
pub(crate) fn executor() -> Routines {
    Routines::new(&CALLS)
}
