//! Finds HammerDB's routines and their parameters in the catalog.

use kelvin_database::{Result, Session};

use super::super::{NAMES, Routines, unknown_routine};
use crate::tproc_c::schema::TABLES;
use crate::tproc_c::schema::metadata::Build;

/// The parameters of the functions, which distinguish HammerDB's `payment` from an unrelated one.
const FUNCTIONS: [&[&str]; 5] = [
    &["integer"; 6],
    &[
        "integer",
        "integer",
        "integer",
        "integer",
        "integer",
        "integer",
        "numeric",
        "character varying",
        "character varying",
        "numeric",
    ],
    &["integer"; 2],
    &["integer"; 3],
    &["integer", "integer", "integer", "integer", "character varying"],
];

/// The five routines, as functions or as procedures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoutineSet {
    /// Functions, `SELECT neword(…)`.
    Functions {
        /// Whether Kelvin created them.
        ours: bool,
    },
    /// Procedures, `CALL neword(…)`, in the order of the transaction types. Kelvin's own procedures never
    /// come alone: functions exist too, and are called instead.
    Procedures([Procedure; 5]),
}

/// The arguments of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Procedure {
    pub(super) name: &'static str,
    pub(super) arguments: Vec<Argument>,
}

/// One argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Argument {
    pub(super) name: String,
    /// The type as PostgreSQL writes it.
    pub(super) kind: String,
    pub(super) inout: bool,
}

/// How HammerDB's routines deviate from the specification (measured with versions 4.12 and 6.0).
const DEVIATIONS: &str = "no New-Order is rolled back (specification: 1 %; such an order is committed with a line for \
    item 100001 without an amount), items are chosen uniformly instead of by NURand, a remote line may use the \
    home warehouse, Delivery does not update c_delivery_cnt, and half of the customers were loaded without \
    an order";

/// Finds the routines in the database.
pub(crate) fn find(session: &mut dyn Session) -> Result<Option<Routines>> {
    Ok(read_all(session)?.map(|found| {
        let ours = matches!(found, RoutineSet::Functions { ours: true });
        let kind = if matches!(found, RoutineSet::Functions { .. }) { "functions" } else { "procedures" };
        Routines { kind, deviations: (!ours).then_some(DEVIATIONS), roll_back: ours }
    }))
}

/// A routine as described by the catalog.
struct Routine {
    procedure: bool,
    ours: bool,
    arguments: Vec<Argument>,
}

/// Looks up the five routines in the catalog; `None` if no routine has one of these names. It is an error if
/// some are missing or have other parameters: the database was then not built as its routines suggest.
pub(super) fn read_all(session: &mut dyn Session) -> Result<Option<RoutineSet>> {
    let mut all = Vec::with_capacity(NAMES.len());
    for name in NAMES {
        all.push(read(session, name)?);
    }
    if all.iter().all(Vec::is_empty) {
        return Ok(None);
    }
    let functions = all.iter().zip(FUNCTIONS).all(|(found, wanted)| {
        found
            .iter()
            .any(|f| !f.procedure && f.arguments.iter().map(|a| a.kind.as_str()).eq(wanted.iter().copied()))
    });
    if functions {
        let ours = all.iter().flatten().all(|found| found.ours);
        return Ok(Some(RoutineSet::Functions { ours }));
    }
    let mut procedures = Vec::with_capacity(NAMES.len());
    for (name, found) in NAMES.into_iter().zip(all) {
        let mut of_kind = found.into_iter().filter(|found| found.procedure);
        match (of_kind.next(), of_kind.next()) {
            (Some(found), None) => procedures.push(Procedure { name, arguments: found.arguments }),
            (Some(_), Some(_)) => return Err(unknown_routine(name, "exists several times as a procedure")),
            (None, _) => {
                return Err(unknown_routine(
                    name,
                    "is missing, or has different parameters from HammerDB's routine",
                ));
            }
        }
    }
    for (procedure, start) in procedures.iter().zip(STARTS) {
        check_start(procedure, start)?;
    }
    match procedures.try_into() {
        Ok(procedures) => Ok(Some(RoutineSet::Procedures(procedures))),
        Err(_) => Ok(None),
    }
}

/// Known types of the first arguments of each procedure; more arguments may follow.
const STARTS: [&[&str]; 5] = [
    &["integer"; 5],
    &["integer", "integer", "integer", "integer", "integer", "numeric", "character", "character", "integer"],
    &["integer"; 2],
    &["integer"; 4],
    &["integer", "integer", "integer", "integer", "character"],
];

fn check_start(procedure: &Procedure, start: &[&str]) -> Result<()> {
    let fits = start.len() <= procedure.arguments.len()
        && start.iter().zip(&procedure.arguments).all(|(&wanted, have)| match wanted {
            // Lengths and kinds of character types differ between versions.
            "character" => have.kind.starts_with("character") || have.kind == "text",
            "integer" => matches!(have.kind.as_str(), "integer" | "smallint" | "bigint"),
            wanted => have.kind == wanted,
        });
    if fits {
        Ok(())
    } else {
        Err(unknown_routine(procedure.name, "has different parameters from HammerDB's procedure"))
    }
}

fn read(session: &mut dyn Session, name: &str) -> Result<Vec<Routine>> {
    let rows = session.query(&format!(
        "SELECT p.oid::bigint, p.prokind::text, (p.prosrc LIKE '%made by kelvin%')::int, \
         coalesce(p.proargnames[a.position], '')::text, format_type(a.kind, NULL)::text, \
         coalesce(p.proargmodes[a.position]::text, 'i') \
         FROM pg_proc p, unnest(coalesce(p.proallargtypes, p.proargtypes::oid[])) \
             WITH ORDINALITY AS a(kind, position) \
         WHERE p.proname = '{name}' AND p.prokind IN ('f', 'p') AND pg_function_is_visible(p.oid) \
         AND coalesce(p.proargmodes[a.position]::text, 'i') <> 't' \
         ORDER BY p.oid, a.position"
    ))?;
    let mut found: Vec<Routine> = Vec::new();
    let mut last = None;
    for row in 0..rows.len() {
        let oid = rows.int(row, 0)?;
        if last != Some(oid) {
            last = Some(oid);
            let procedure = rows.text(row, 1)? == "p";
            found.push(Routine { procedure, ours: rows.int(row, 2)? == 1, arguments: Vec::new() });
        }
        if let Some(routine) = found.last_mut() {
            routine.arguments.push(Argument {
                name: rows.text(row, 3)?.to_owned(),
                kind: rows.text(row, 4)?.to_owned(),
                inout: rows.text(row, 5)? != "i",
            });
        }
    }
    Ok(found)
}

/// A database without Kelvin's metadata table but with all columns of the nine tables is assumed to be
/// HammerDB's.
pub(crate) fn read_build(session: &mut dyn Session) -> Result<Option<Build>> {
    let wanted: Vec<String> = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|c| format!("('{}', '{}')", table.name, c.name)))
        .collect();
    let missing = session.query(&format!(
        "select count(*) from (values {}) as wanted(t, c) where not exists (select from \
         pg_catalog.pg_attribute where attrelid = to_regclass(t) and attname = c and not attisdropped)",
        wanted.join(", ")
    ))?;
    if missing.int(0, 0)? != 0 {
        return Ok(None);
    }
    let rows = session.query("select coalesce(max(w_id), 0)::bigint, count(*) from warehouse")?;
    Ok(Build::by_hammerdb(rows.int(0, 0)?, rows.int(0, 1)?))
}
