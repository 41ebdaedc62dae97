//! The build on SQLite: one connection, since there is one writer.
//!
//! While it loads, the file has a rollback journal and is not synchronised. New pages at the end of the file
//! are then written once (a write-ahead log would write them twice) and, since the journal is a file and not
//! memory, a build that is killed is rolled back to the last whole warehouse at the next opening. Only a power
//! failure or a crash of the operating system during the load can damage the file; before the build is marked
//! complete, everything is synchronised and the file is back in WAL mode.

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
        // A sample of each index is enough for the planner.
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

/// Why several loaders are refused.
pub(crate) fn one_loader() -> Error {
    Error::usage("SQLite allows one writer and therefore one loader").with_help("leave out the loaders")
}

/// Sets the journal back, and brings to disk what was written without waiting for it: before anything says that it is there.
pub(crate) fn sync(session: &mut dyn Session) -> Result<()> {
    session.query("pragma journal_mode = wal")?;
    if let Some(file) = database_file(session)? {
        std::fs::File::open(&file).and_then(|opened| opened.sync_all()).map_err(|error| {
            Error::new(ErrorClass::Server, format!("{file} cannot be synced to disk: {error}"))
        })?;
    }
    Ok(())
}

/// Path of the database's file; none for one in memory.
fn database_file(session: &mut dyn Session) -> Result<Option<String>> {
    let rows = session.query("select file from pragma_database_list where name = 'main'")?;
    let file = if rows.is_empty() || rows.is_null(0, 0)? { "" } else { rows.text(0, 0)? };
    Ok((!file.is_empty()).then(|| file.to_owned()))
}

/// Settings of the loading connection; only the journal mode outlives it, and the end of the build sets it
/// back.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    let mode = session.query("pragma journal_mode = truncate")?;
    if mode.text(0, 0)? != "truncate" {
        return Err(Error::usage("the database file is in use by another connection")
            .with_help("close it: a build needs exclusive access to the file"));
    }
    session.query("pragma locking_mode = exclusive")?;
    // Checking each row's references would double the work; they are checked at the end, all at once.
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
