//! The twelve consistency conditions (TPC-C clause 3.3.2), one query each.

mod conditions;

use kelvin_database::{Engine, Error, Result, Rows, Session};
use kelvin_measure::event::CheckLine;

use super::load::{interruptible, stopped};
use crate::Stop;
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::metadata::{Build, BuiltBy};
use conditions::{CONDITIONS, Condition};

/// Checks all conditions and hands out each outcome as it is known. A query that fails is a condition that
/// does not hold, and so is one that found no rows to look at.
///
/// In data that HammerDB built, a violation of the conditions that its loader and routines do not keep is exempt.
pub(crate) fn check(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    stop: &Stop,
    each: &mut dyn FnMut(CheckLine),
) -> Result<()> {
    let mut session = open(engine, dialect)?;
    let build = Build::read(session.as_mut(), dialect)?;
    build.as_ref().map_or(Ok(()), Build::must_be_whole)?;
    let hammerdbs = build.is_some_and(|build| build.metadata.built_by == BuiltBy::Hammerdb);
    for condition in &CONDITIONS {
        if stop.requested() {
            return Err(stopped());
        }
        if session.is_broken() {
            // When this fails too, the conditions left are reported as failed, by the broken session.
            if let Ok(again) = open(engine, dialect) {
                session = again;
            }
        }
        let sql = condition.sql(dialect);
        let outcome = interruptible(session.as_mut(), stop, |session| session.query(&sql));
        if stop.requested() && outcome.is_err() {
            return Err(stopped());
        }
        let mut line = judge(condition, outcome);
        line.exempt = condition.not_kept_by_hammerdb.filter(|_| hammerdbs && !line.holds).map(str::to_owned);
        each(line);
    }
    Ok(())
}

fn open(engine: &dyn Engine, dialect: &dyn Dialect) -> Result<Box<dyn Session>> {
    let mut session = engine.connect()?;
    session.run(dialect.check_settings())?;
    Ok(session)
}

fn judge(condition: &Condition, outcome: Result<Rows>) -> CheckLine {
    let (holds, detail) = match outcome.and_then(|rows| read(condition, &rows)) {
        Ok(outcome) => outcome,
        Err(error) => (false, format!("the query failed: {error}")),
    };
    CheckLine { number: condition.number, name: condition.name.into(), holds, detail, exempt: None }
}

fn read(condition: &Condition, rows: &Rows) -> Result<(bool, String)> {
    if rows.len() != 1 {
        return Err(Error::protocol(format!("the query returned {} rows instead of one", rows.len())));
    }
    let (examined, violations) = (rows.int(0, 0)?, rows.int(0, 1)?);
    let what = condition.what;
    Ok(match (examined, violations) {
        (0, _) => (false, format!("there are no {what} to check")),
        (_, 0) => (true, format!("{examined} {what} checked")),
        _ => (false, format!("{violations} of {examined} {what} violate it; {}", rows.text(0, 2)?)),
    })
}
