//! Transactions in one round trip on SQL Server: as a stored procedure, or as its text in one parameterised
//! batch sent by the client. Both begin and end their own transaction and return rows. Any error rolls the
//! transaction back (`XACT_ABORT`).

#[cfg(test)]
mod tests;

use kelvin_database::{Result, Session};

use super::routines::{LineParameters, RoutineCalls, Routines};
use crate::tproc_c::hammerdb;
use crate::tproc_c::options::Profile;

/// The text of one transaction in three forms.
struct Texts {
    name: &'static str,
    /// Creates the procedure.
    procedure: &'static str,
    /// Calls the procedure.
    call: &'static str,
    /// The same without the procedure, as a batch.
    batch: &'static str,
}

/// Generates the forms of a text from its name, its file, its results, and the parameters with their types
/// and positions.
macro_rules! texts {
    ($name:literal, $file:literal, $answer:expr, $first:literal $first_type:literal
     $(, $parameter:literal $type:literal $place:literal)*) => {
        Texts {
            name: $name,
            procedure: concat!(
                "CREATE PROCEDURE ", $name, " @", $first, " ", $first_type $(, ", @", $parameter, " ", $type)*, " AS\n",
                include_str!($file), $answer
            ),
            call: concat!("EXEC ", $name, " $1" $(, ", ", $place)*),
            batch: concat!(
                "DECLARE @", $first, " ", $first_type, " = $1" $(, ", @", $parameter, " ", $type, " = ", $place)*, ";\n",
                include_str!($file), $answer
            ),
        }
    };
}

const NEW_ORDER: Texts = texts!(
    "kelvin_new_order", "new_order.sql", "SELECT @order_number, @total, @branded;\n",
    "home" "int", "district_number" "int" "$2", "customer_number" "int" "$3", "local_only" "int" "$4", "rounds" "int" "$5",
    "line_count" "int" "$6", "all_lines" "nvarchar(4000)" "$7"
);
const PAYMENT: Texts = texts!(
    "kelvin_payment", "payment.sql", "SELECT @matched, @balance;\n",
    "home" "int", "district_number" "int" "$2", "customer_home" "int" "$3", "customer_district" "int" "$4",
    "customer_number" "int" "$5", "last_name" "varchar(16)" "$6", "amount" "decimal(6,2)" "$7"
);
const DELIVERY: Texts = texts!(
    "kelvin_delivery", "delivery.sql", "SELECT @delivered;\n",
    "home" "int", "carrier" "int" "$2"
);
const STOCK_LEVEL: Texts = texts!(
    "kelvin_stock_level", "stock_level.sql", "SELECT @low;\n",
    "home" "int", "district_number" "int" "$2", "threshold" "int" "$3"
);
const ORDER_STATUS: Texts = texts!(
    "kelvin_order_status", "order_status.sql", include_str!("status_rows.sql"),
    "home" "int", "district_number" "int" "$2", "customer_number" "int" "$3", "last_name" "varchar(16)" "$4"
);

const ALL: [Texts; 5] = [NEW_ORDER, PAYMENT, DELIVERY, STOCK_LEVEL, ORDER_STATUS];

/// Creates the procedures, replacing older ones; for the `hammerdb` profile also those with HammerDB's names.
pub(crate) fn create(session: &mut dyn Session, profile: Profile) -> Result<()> {
    drop(session)?;
    ALL.iter().try_for_each(|texts| {
        session.run(texts.procedure).map_err(|error| error.context(&format!("procedure {}", texts.name)))
    })?;
    match profile {
        Profile::Spec => Ok(()),
        Profile::Hammerdb => hammerdb::sqlserver::create(session),
    }
}

/// Drops the procedures that [`create`] created for either profile, if they exist. HammerDB's own procedures
/// are not dropped.
pub(crate) fn drop(session: &mut dyn Session) -> Result<()> {
    hammerdb::sqlserver::drop(session)?;
    ALL.iter().try_for_each(|texts| session.run(&format!("DROP PROCEDURE IF EXISTS {}", texts.name)))
}

/// Procedures that are not in the database with the expected number of parameters, as text.
pub(crate) fn missing(session: &mut dyn Session) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for Texts { name, call, .. } in &ALL {
        let parameters = call.split(',').count() as i64;
        let found = session.query(&format!(
            "SELECT COUNT(*) FROM sys.all_parameters WHERE object_id = OBJECT_ID('{name}') AND parameter_id > 0"
        ))?;
        if found.int(0, 0)? != parameters {
            missing.push(format!("procedure {name} with {parameters} parameters is missing"));
        }
    }
    Ok(missing)
}

/// The isolation level is PostgreSQL's default, too.
const SETTINGS: Option<&str> = Some("SET TRANSACTION ISOLATION LEVEL READ COMMITTED");

const PROCEDURES: RoutineCalls = RoutineCalls {
    settings: SETTINGS,
    new_order: NEW_ORDER.call,
    payment: PAYMENT.call,
    delivery: DELIVERY.call,
    stock_level: STOCK_LEVEL.call,
    order_status: ORDER_STATUS.call,
    lines: LineParameters::Json,
};

const BATCHES: RoutineCalls = RoutineCalls {
    settings: SETTINGS,
    new_order: NEW_ORDER.batch,
    payment: PAYMENT.batch,
    delivery: DELIVERY.batch,
    stock_level: STOCK_LEVEL.batch,
    order_status: ORDER_STATUS.batch,
    lines: LineParameters::Json,
};

/// Creates the executor that calls the procedures.
pub(crate) fn procedures() -> Routines {
    Routines::new(&PROCEDURES)
}

/// Creates the executor that sends their texts as batches.
pub(crate) fn batches() -> Routines {
    Routines::new(&BATCHES)
}
