//! The build on SQLite, which has a single writer: one connection.
//!
//! During the load the file has a rollback journal and is not synced. New pages at the end of the file are
//! then written once (a WAL would write them twice). The journal is a file and not in memory, so a killed
//! build is rolled back to the last complete warehouse when the file is next opened. Only a power failure or
//! a crash of the operating system during the load can damage the file. Before the build is marked complete,
//! everything is synced and the file is back in WAL mode.

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use super::pool::{self, Job, Unit};
use super::prepare;
use crate::tproc_c::Options;
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::{TABLES, metadata, sqlite as ddl};
use crate::{BuildProgress, Stop};

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    if options.partitions.is_some() {
        return Err(Error::usage("SQLite does not support partitions").with_help("leave out the partitions"));
    }
    if options.loaders.is_some_and(|loaders| loaders > 1) {
        return Err(one_loader());
    }
    let Some(missing) = prepare(engine, engine.connect()?.as_mut(), dialect, options)? else {
        return Ok(());
    };
    let job = |what, before| Job { what, before, unit: Unit::Task, progress, stop };
    missing.load(engine, (1, &set_up), options.seed_to_build(), (progress, stop))?;
    let indexes: Vec<(String, String)> = TABLES.iter().flat_map(ddl::indexes).collect();
    pool::run(engine, 1, &set_up, job("indexes created", 0), &indexes, &|session, (name, sql), _| {
        session.run(sql).map_err(|error| error.context(&format!("creating index {name}")))
    })?;
    if options.foreign_keys {
        pool::run(engine, 1, &set_up, job("foreign keys checked", 0), &[()], &|session, (), _| {
            check_foreign_keys(session)
        })?;
    }
    pool::run(engine, 1, &set_up, job("tables analyzed", 0), &[()], &|session, (), _| {
        // A sample of each index suffices for the planner.
        session.run("pragma analysis_limit = 1000; analyze")
    })?;
    progress.update("checkpoint", 0, 1, 0);
    let mut session = engine.connect()?;
    sync(session.as_mut())?;
    session.run("pragma synchronous = full")?;
    session.run(metadata::COMPLETE)?;
    engine.checkpoint(session.as_mut())?;
    progress.update("checkpoint", 1, 1, 0);
    Ok(())
}

/// The error for several loaders.
pub(crate) fn one_loader() -> Error {
    Error::usage("SQLite allows one writer and therefore one loader").with_help("leave out the loaders")
}

/// Restores the journal mode and syncs everything that was written without syncing, before any mark says that
/// it is stored.
pub(crate) fn sync(session: &mut dyn Session) -> Result<()> {
    session.query("pragma journal_mode = wal")?;
    if let Some(file) = database_file(session)? {
        std::fs::File::open(&file).and_then(|opened| opened.sync_all()).map_err(|error| {
            Error::new(ErrorClass::Server, format!("{file} cannot be synced to disk: {error}"))
        })?;
    }
    Ok(())
}

/// The path of the database file; `None` for a database in memory.
fn database_file(session: &mut dyn Session) -> Result<Option<String>> {
    let rows = session.query("select file from pragma_database_list where name = 'main'")?;
    let file = if rows.is_empty() || rows.is_null(0, 0)? { "" } else { rows.text(0, 0)? };
    Ok((!file.is_empty()).then(|| file.to_owned()))
}

/// Settings of the loading connection. Only the journal mode is persistent; the end of the build restores it.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    let mode = session.query("pragma journal_mode = truncate")?;
    if mode.text(0, 0)? != "truncate" {
        return Err(Error::usage("the database file is in use by another connection")
            .with_help("close it: a build needs exclusive access to the file"));
    }
    session.query("pragma locking_mode = exclusive")?;
    // Checking references at each row would double the work; they are checked together at the end.
    session.run("pragma synchronous = off; pragma foreign_keys = off; pragma cache_size = -65536; pragma mmap_size = 0")
}

fn check_foreign_keys(session: &mut dyn Session) -> Result<()> {
    let rows = session.query("pragma foreign_key_check")?;
    if rows.is_empty() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} rows refer to rows that do not exist; the first is in table {}",
        rows.len(),
        rows.text(0, 0)?
    )))
}
