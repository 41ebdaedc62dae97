//! HammerDB's procedures on SQL Server. They return rows, also for an error.

use kelvin_database::{Result, Session};

use super::driver::{Answers, Call, OrderAnswer, Prepared, Takes};
use super::{Driver, NAMES, Routines, unknown};
use crate::tproc_c::schema::TABLES;
use crate::tproc_c::schema::metadata::Build;

/// Marks the text of procedures created by Kelvin.
macro_rules! ours {
    () => {
        "-- made by kelvin\n"
    };
}

/// Procedures with HammerDB's interface around Kelvin's own texts.
const PROCEDURES: [&str; 5] = [
    concat!(
        "CREATE PROCEDURE neword @no_w_id int, @no_max_w_id int, @no_d_id int, @no_c_id int, @no_o_ol_cnt int, \
         @TIMESTAMP datetime2(0) AS\n",
        ours!(),
        include_str!("new_order_inputs.sql"),
        include_str!("../../calls/tsql/new_order.sql"),
        "SELECT CONVERT(char(8), c_discount), c_last, c_credit, CONVERT(char(8), d_tax), CONVERT(char(8), w_tax), \
         @order_number + 1 FROM customer, district, warehouse WHERE c_w_id = @home AND c_d_id = @district_number \
         AND c_id = @customer_number AND d_w_id = @home AND d_id = @district_number AND w_id = @home;\n"
    ),
    concat!(
        "CREATE PROCEDURE payment @p_w_id int, @p_d_id int, @p_c_w_id int, @p_c_d_id int, @p_c_id int, @byname int, \
         @p_h_amount numeric(6,2), @p_c_last char(16), @TIMESTAMP datetime2(0) AS\n",
        ours!(),
        "DECLARE @home int = @p_w_id, @district_number int = @p_d_id, @customer_home int = @p_c_w_id, \
         @customer_district int = @p_c_d_id, @customer_number int = CASE WHEN @byname = 1 THEN NULL ELSE @p_c_id END, \
         @last_name varchar(16) = CASE WHEN @byname = 1 THEN RTRIM(@p_c_last) END, @amount decimal(6,2) = @p_h_amount;\n",
        include_str!("../../calls/tsql/payment.sql"),
        "SELECT c_id, c_last, w_street_1, w_street_2, w_city, w_state, w_zip, d_street_1, d_street_2, d_city, d_state, \
         d_zip, c_first, c_middle, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_since, c_credit, \
         c_credit_lim, c_discount, c_balance, c_data FROM warehouse JOIN district ON d_w_id = w_id AND d_id = \
         @district_number LEFT JOIN customer ON c_w_id = @customer_home AND c_d_id = @customer_district \
         AND c_id = @chosen WHERE w_id = @home;\n"
    ),
    concat!(
        "CREATE PROCEDURE delivery @d_w_id int, @d_o_carrier_id int, @timestamp datetime2(0) AS\n",
        ours!(),
        "DECLARE @home int = @d_w_id, @carrier int = @d_o_carrier_id;\n",
        include_str!("../../calls/tsql/delivery.sql"),
        "SELECT @d_w_id, @d_o_carrier_id, @timestamp;\n"
    ),
    concat!(
        "CREATE PROCEDURE slev @st_w_id int, @st_d_id int, @threshold int AS\n",
        ours!(),
        "DECLARE @home int = @st_w_id, @district_number int = @st_d_id;\n",
        include_str!("../../calls/tsql/stock_level.sql"),
        "SELECT @low;\n"
    ),
    concat!(
        "CREATE PROCEDURE ostat @os_w_id int, @os_d_id int, @os_c_id int, @byname int, @os_c_last char(20) AS\n",
        ours!(),
        "DECLARE @home int = @os_w_id, @district_number int = @os_d_id, \
         @customer_number int = CASE WHEN @byname = 1 THEN NULL ELSE @os_c_id END, \
         @last_name varchar(16) = CASE WHEN @byname = 1 THEN RTRIM(@os_c_last) END;\n",
        include_str!("../../calls/tsql/order_status.sql"),
        "SELECT c_id, c_last, c_first, c_middle, c_balance, o_id, o_entry_d, o_carrier_id FROM customer LEFT JOIN orders \
         ON o_w_id = @home AND o_d_id = @district_number AND o_id = @newest \
         WHERE c_w_id = @home AND c_d_id = @district_number AND c_id = @chosen;\nCOMMIT TRANSACTION;\n"
    ),
];

/// The values that each procedure's parameters take, in the order of [`NAMES`].
const PARAMETERS: [&[(&str, Takes)]; 5] = [
    &[
        ("@no_w_id", Takes::Meant("home")),
        ("@no_max_w_id", Takes::Meant("warehouses")),
        ("@no_d_id", Takes::Meant("district")),
        ("@no_c_id", Takes::Meant("customer")),
        ("@no_o_ol_cnt", Takes::Meant("lines")),
        ("@timestamp", Takes::Now),
    ],
    &[
        ("@p_w_id", Takes::Meant("home")),
        ("@p_d_id", Takes::Meant("district")),
        ("@p_c_w_id", Takes::Meant("c_w")),
        ("@p_c_d_id", Takes::Meant("c_d")),
        ("@p_c_id", Takes::Meant("customer")),
        ("@byname", Takes::Meant("by_name")),
        ("@p_h_amount", Takes::Meant("amount")),
        ("@p_c_last", Takes::Meant("last")),
        ("@timestamp", Takes::Now),
    ],
    &[
        ("@d_w_id", Takes::Meant("home")),
        ("@d_o_carrier_id", Takes::Meant("carrier")),
        ("@timestamp", Takes::Now),
    ],
    &[
        ("@st_w_id", Takes::Meant("home")),
        ("@st_d_id", Takes::Meant("district")),
        ("@threshold", Takes::Meant("threshold")),
    ],
    &[
        ("@os_w_id", Takes::Meant("home")),
        ("@os_d_id", Takes::Meant("district")),
        ("@os_c_id", Takes::Meant("customer")),
        ("@byname", Takes::Meant("by_name")),
        ("@os_c_last", Takes::Meant("last")),
    ],
];

/// The column of `neword`'s result with the number that the next order will have.
const NEXT: usize = 5;

/// How HammerDB's procedures differ from the specification (version 6.0).
const DEVIATIONS: &str = "items are chosen uniformly instead of by NURand, the stock's counters of orders are not \
    updated and it is refilled too late, Payment updates neither c_ytd_payment nor c_payment_cnt, Delivery does not update \
    c_delivery_cnt and adds an amount to a customer's balance in a district without an order to deliver, too, and half of \
    the customers were loaded without an order";

/// Whether an order exists. HammerDB's `neword` returns the same result after a rollback.
const KEPT: &str =
    "SELECT COUNT(*) FROM orders WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 AND o_c_id = $4";

/// Creates procedures with HammerDB's interface.
pub(crate) fn create(session: &mut dyn Session) -> Result<()> {
    PROCEDURES
        .iter()
        .try_for_each(|text| session.run(text))
        .map_err(|error| error.context("creating routines with HammerDB's interface"))
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
    let Some(ours) = find_all(session)? else { return Ok(None) };
    Ok(Some(Routines { kind: "procedures", deviations: (!ours).then_some(DEVIATIONS), roll_back: true }))
}

/// Creates the executor that calls them.
pub(crate) fn executor(warehouses: u32) -> Driver {
    Driver::new(warehouses, prepare)
}

struct Procedure {
    name: &'static str,
    ours: bool,
    parameters: Vec<String>,
}

/// Those of the five procedures that exist, in the order of [`NAMES`].
fn read_all(session: &mut dyn Session) -> Result<Vec<Procedure>> {
    let mut found = Vec::new();
    for name in NAMES {
        let rows = session.query(&format!(
            "SELECT LOWER(p.name), CASE WHEN m.definition LIKE '%made by kelvin%' THEN 1 ELSE 0 END \
             FROM sys.all_parameters p LEFT JOIN sys.sql_modules m ON m.object_id = p.object_id \
             WHERE p.object_id = OBJECT_ID('{name}') AND p.parameter_id > 0 ORDER BY p.parameter_id"
        ))?;
        if !rows.is_empty() {
            found.push(Procedure { name, ours: rows.int(0, 1)? == 1, parameters: rows.texts(0)? });
        }
    }
    Ok(found)
}

/// Whether Kelvin created the five procedures; `None` if none of them exists.
fn find_all(session: &mut dyn Session) -> Result<Option<bool>> {
    let found = read_all(session)?;
    if found.is_empty() {
        return Ok(None);
    }
    for (name, wanted) in NAMES.into_iter().zip(PARAMETERS) {
        let fits = found.iter().any(|procedure| {
            let have = procedure.parameters.iter().map(String::as_str);
            procedure.name == name && have.eq(wanted.iter().map(|(parameter, _)| *parameter))
        });
        if !fits {
            return Err(unknown(name, "is missing, or has different parameters from HammerDB's procedure"));
        }
    }
    Ok(Some(found.iter().all(|procedure| procedure.ours)))
}

fn prepare(session: &mut dyn Session) -> Result<Option<Prepared>> {
    let Some(ours) = find_all(session)? else { return Ok(None) };
    let mut calls = Vec::with_capacity(NAMES.len());
    for (name, parameters) in NAMES.into_iter().zip(PARAMETERS) {
        let arguments: Vec<String> = parameters
            .iter()
            .zip(1..)
            .map(|((parameter, _), place)| format!("{parameter} = ${place}"))
            .collect();
        let statement = session.prepare(&format!("EXEC {name} {}", arguments.join(", ")))?;
        calls.push(Call { statement, takes: parameters.iter().map(|(_, takes)| *takes).collect() });
    }
    let Ok(calls) = calls.try_into() else { return Ok(None) };
    let order =
        if ours { OrderAnswer::Number(NEXT) } else { OrderAnswer::Kept(session.prepare(KEPT)?, NEXT) };
    let answers = Answers { order, chosen: ours, delivered: false, lines: false, errors: !ours };
    Ok(Some(Prepared { calls, answers }))
}

/// A database without Kelvin's metadata table but with all columns of the nine tables is assumed to be
/// HammerDB's.
pub(crate) fn read_build(session: &mut dyn Session) -> Result<Option<Build>> {
    let rows = session.query(
        "SELECT LOWER(CONCAT(t.name, '.', c.name)) FROM sys.columns c JOIN sys.tables t ON t.object_id = c.object_id \
         WHERE SCHEMA_NAME(t.schema_id) = SCHEMA_NAME()",
    )?;
    let present = rows.texts(0)?;
    let mut wanted =
        TABLES.iter().flat_map(|table| table.columns.iter().map(|c| format!("{}.{}", table.name, c.name)));
    if !wanted.all(|column| present.contains(&column)) {
        return Ok(None);
    }
    let rows = session.query("SELECT COALESCE(MAX(w_id), 0), COUNT(*) FROM warehouse")?;
    Ok(Build::by_hammerdb(rows.int(0, 0)?, rows.int(0, 1)?))
}
