//! How the transactions are executed in the database at hand.

use kelvin_database::{Capabilities, EngineKind, Error, Result, Session};

use super::calls::{Execute, ExecutorOptions};
use super::dialect::Dialect;
use super::hammerdb::Routines;
use super::options::{Calls, Options, Profile};

/// How a database is driven, as chosen by [`choose_calls`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driven {
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) calls: Calls,
    /// The server loses rows in updates that join anything other than tables.
    pub(crate) joins_lose_rows: bool,
    /// No New-Order is rolled back: HammerDB's functions never do.
    pub(crate) never_rolls_back: bool,
}

impl Driven {
    /// With Kelvin's own statements or routines, on a server without known faults.
    pub(crate) fn new(dialect: &'static dyn Dialect, calls: Calls) -> Self {
        Self { dialect, calls, joins_lose_rows: false, never_rolls_back: false }
    }

    /// Creates the executor of one user.
    pub(crate) fn executor(&self, profile: Profile, warehouses: u32) -> Box<dyn Execute> {
        let Self { dialect, calls, joins_lose_rows, .. } = *self;
        dialect.executor(ExecutorOptions { calls, profile, warehouses, joins_lose_rows })
    }
}

/// Chooses how transactions are executed, and returns sentences for the result about the consequences. Fails
/// if the engine does not support the requested way, or requested functions are not in the database.
pub(crate) fn choose_calls(
    options: &Options,
    dialect: &'static dyn Dialect,
    capabilities: Capabilities,
    session: &mut dyn Session,
) -> Result<(Driven, Vec<String>)> {
    let mut driven = Driven::new(dialect, supported_calls(options, dialect, session.engine(), capabilities)?);
    driven.joins_lose_rows = dialect.joins_lose_rows(session)?;
    if driven.calls != Calls::Functions {
        return Ok((driven, Vec::new()));
    }
    let (there, notes, whose) = match options.profile {
        Profile::Spec => (dialect.missing_routines(session)?.is_empty(), Vec::new(), "kelvin's"),
        Profile::Hammerdb => {
            let found = dialect.hammerdbs_routines(session)?;
            driven.never_rolls_back = found.is_some_and(|routines| !routines.roll_back);
            (found.is_some(), found.iter().flat_map(Routines::notes).collect(), "HammerDB's")
        }
    };
    if there {
        return Ok((driven, notes));
    }
    if options.calls.is_some() {
        return Err(Error::usage(format!("{whose} stored functions are not in this database"))
            .with_help("build the data with kelvin, or choose --calls pipelined"));
    }
    let note = format!(
        "{whose} stored functions are not in this database: the run uses pipelined client SQL instead"
    );
    Ok((Driven { calls: Calls::Pipelined, ..driven }, vec![note]))
}

/// The requested or the fastest way of calling that the engine supports, regardless of the database's
/// content.
pub(crate) fn supported_calls(
    options: &Options,
    dialect: &dyn Dialect,
    engine: EngineKind,
    capabilities: Capabilities,
) -> Result<Calls> {
    let ways = dialect.ways(capabilities);
    match options.calls {
        None => ways.first().copied().ok_or_else(|| unsupported_calls(engine, "statements", "statements")),
        Some(calls) if ways.contains(&calls) => Ok(calls),
        Some(Calls::Functions) => Err(unsupported_calls(engine, "functions", "stored functions")),
        Some(Calls::Pipelined) => {
            Err(unsupported_calls(engine, "pipelined", "statement batches in one round trip"))
        }
        Some(Calls::Statements) => Err(unsupported_calls(engine, "statements", "statements")),
    }
}

fn unsupported_calls(engine: EngineKind, calls: &str, what: &str) -> Error {
    Error::usage(format!("--calls {calls} is not possible: {engine} does not support {what}"))
        .with_help("use --calls statements, or leave out the option")
}
