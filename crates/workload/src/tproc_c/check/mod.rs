//! The twelve consistency conditions (TPC-C clause 3.3.2), one query each.

mod conditions;

use kelvin_database::{Engine, EngineKind, Error, Result, Rows, Session};
use kelvin_measure::event::CheckLine;

use super::load::{interruptible, stopped};
use crate::Stop;
use conditions::{CONDITIONS, Condition};

/// Checks all conditions and hands out each outcome as it is known. A query that fails is a condition that
/// does not hold, and so is one that found no rows to look at.
pub(crate) fn check(engine: &dyn Engine, stop: &Stop, each: &mut dyn FnMut(CheckLine)) -> Result<()> {
    let mut session = open(engine)?;
    for condition in &CONDITIONS {
        if stop.requested() {
            return Err(stopped());
        }
        if session.is_broken() {
            // When this fails too, the conditions left are reported as failed, by the broken session.
            if let Ok(again) = open(engine) {
                session = again;
            }
        }
        let sql = condition.sql(engine.kind());
        let outcome = interruptible(session.as_mut(), stop, |session| session.query(&sql));
        if stop.requested() && outcome.is_err() {
            return Err(stopped());
        }
        each(judge(condition, outcome));
    }
    Ok(())
}

fn open(engine: &dyn Engine) -> Result<Box<dyn Session>> {
    let mut session = engine.connect()?;
    session.run(match engine.kind() {
        // Each query joins or aggregates whole tables: in memory where they fit, and without compiling.
        EngineKind::Postgres => "set work_mem = '256MB'; set jit = off; set statement_timeout = 0",
        EngineKind::Sqlite => "pragma cache_size = -65536; pragma mmap_size = 0",
    })?;
    Ok(session)
}

fn judge(condition: &Condition, outcome: Result<Rows>) -> CheckLine {
    let (holds, detail) = match outcome.and_then(|rows| read(condition, &rows)) {
        Ok(outcome) => outcome,
        Err(error) => (false, format!("the query failed: {error}")),
    };
    CheckLine { number: condition.number, name: condition.name.into(), holds, detail }
}

fn read(condition: &Condition, rows: &Rows) -> Result<(bool, String)> {
    if rows.len() != 1 {
        return Err(Error::protocol(format!("{} rows came back instead of one", rows.len())));
    }
    let (examined, violations) = (rows.int(0, 0)?, rows.int(0, 1)?);
    let what = condition.what;
    Ok(match (examined, violations) {
        (0, _) => (false, format!("there are no {what} to look at")),
        (_, 0) => (true, format!("{examined} {what} looked at")),
        _ => (false, format!("{violations} of {examined} {what} violate it; {}", rows.text(0, 2)?)),
    })
}
