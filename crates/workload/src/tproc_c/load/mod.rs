//! Builds the database: tables, rows, indexes, routines, statistics; goes on where an earlier build stopped.

mod part;
mod pool;
mod postgres;
mod sqlite;

use kelvin_database::{Engine, EngineKind, Error, Result, Session};

use super::data;
use super::schema;
use super::schema::metadata::{Build, BuiltBy, begin_build, loaded_parts, present_tables};
use super::{Options, Profile};
use crate::{Progress, Stop};

pub(crate) use pool::stopped;
pub(crate) use postgres::interruptible;

/// Run once all rows and indexes are there: makes the routines.
pub(crate) type AfterLoad = dyn Fn(&mut dyn Session, Profile) -> Result<()> + Sync;

/// How far a database is.
enum Found {
    /// Nothing is to be done.
    Complete,
    /// These parts are missing (0 for the items, w for warehouse w); perhaps none, and only what follows them.
    Missing { parts: Vec<u32>, loaded: u64 },
}

/// Builds the data, or goes on with a build that was interrupted. Data that are already complete are left
/// alone; data of other options are refused.
pub(crate) fn build(
    engine: &dyn Engine,
    options: &Options,
    after_load: &AfterLoad,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<()> {
    engine.capabilities().need_session_state("building the data")?;
    let options = &match Build::read(engine.connect()?.as_mut())? {
        Some(build) => build.complete(options),
        None => options.clone(),
    };
    let outcome = match engine.kind() {
        EngineKind::Postgres => postgres::build(engine, options, after_load, progress, stop),
        EngineKind::Sqlite => sqlite::build(engine, options, after_load, progress, stop),
    };
    outcome.map_err(|error| {
        let build_again = "whole warehouses that were loaded stay; the same build goes on with the rest";
        let help = match (resumable(engine), error.help()) {
            (false, _) => return error,
            (true, None) => build_again.to_string(),
            (true, Some(help)) => format!("{help}\n{build_again}"),
        };
        error.with_help(help)
    })
}

/// Whether there is a half-built database that a build would go on with.
fn resumable(engine: &dyn Engine) -> bool {
    let read = || Build::read(engine.connect()?.as_mut());
    matches!(read(), Ok(Some(build)) if !build.complete)
}

/// Looks at what is there, makes the tables when there is nothing, and says which parts are missing.
fn prepare(session: &mut dyn Session, options: &Options) -> Result<Found> {
    if let Some(build) = Build::read(session)? {
        build.must_match(options)?;
        if build.complete {
            return Ok(Found::Complete);
        }
    } else {
        let present = present_tables(session)?;
        if !present.is_empty() {
            return Err(Error::usage(format!(
                "the database already has tables that this program did not make: {}",
                present.join(", ")
            ))
            .with_help("remove them or use another database"));
        }
        create_tables(session, options)?;
    }
    let loaded = loaded_parts(session)?;
    let parts =
        (0..=options.warehouses_to_build()).filter(|part| loaded.binary_search(part).is_err()).collect();
    // The items are not a warehouse: they do not count in "warehouses loaded".
    let loaded = loaded.iter().filter(|&&part| part != 0).count() as u64;
    Ok(Found::Missing { parts, loaded })
}

/// All tables in one transaction: either the whole schema is there afterwards, described, or nothing.
fn create_tables(session: &mut dyn Session, options: &Options) -> Result<()> {
    let mut statements = vec!["begin".to_string()];
    statements.extend(match session.engine() {
        EngineKind::Postgres => schema::postgres::create_tables(options.partitions),
        EngineKind::Sqlite => schema::sqlite::create_tables(options.foreign_keys),
    });
    statements.extend(begin_build(options, &data::constants(options.seed_to_build())));
    statements.push("commit".into());
    session.run(&statements.join(";\n")).map_err(|error| {
        if session.in_transaction() && !session.is_broken() {
            // The error at hand says more than a failed rollback would.
            let _ = session.run("rollback");
        }
        error.context("making the tables")
    })
}

/// Removes everything that a build made, complete or not; what is not there is no error.
pub(crate) fn drop_data(
    engine: &dyn Engine,
    drop_routines: &dyn Fn(&mut dyn Session) -> Result<()>,
) -> Result<()> {
    let mut session = engine.connect()?;
    let present = present_tables(session.as_mut())?;
    if !present.iter().any(|name| name == "kelvin_tproc_c") {
        let hammerdb =
            Build::read(session.as_mut())?.is_some_and(|build| build.metadata.built_by == BuiltBy::Hammerdb);
        return match (present.is_empty(), hammerdb) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::usage("these data were built by HammerDB and are not removed")
                .with_help("drop them with HammerDB, or drop the database")),
            (false, false) => Err(Error::usage(format!(
                "these tables were not made by this program and are not removed: {}",
                present.join(", ")
            ))),
        };
    }
    drop_routines(session.as_mut())?;
    let mut statements = vec!["begin".to_string()];
    // Referring tables before those they refer to.
    statements
        .extend(schema::TABLES.iter().rev().map(|table| format!("drop table if exists {}", table.name)));
    statements.push("drop table if exists kelvin_tproc_c_loaded".into());
    statements.push("drop table kelvin_tproc_c".into());
    statements.push("commit".into());
    session.run(&statements.join(";\n")).map_err(|error| error.context("removing the tables"))
}
