//! The build on PostgreSQL: COPY over several connections, keys and indexes after the rows.
//!
//! Keys are made after the load although the workload's rules name them first: the state at the end is the
//! same, and sorting once is cheaper than descending a tree five million times. Ten warehouses took PostgreSQL
//! 15 about 12 s of CPU this way and 15 s with the keys first (November 2026, two cores, example `load`). A part
//! that is rolled back leaves no rows, so no key is needed to resume.

use std::time::{Duration, Instant};

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use super::pool::{self, Job};
use super::{prepare, stopped};
use crate::tproc_c::Options;
use crate::tproc_c::calls::functions;
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::{Name, TABLES, Table, item_first, metadata, postgres as ddl, table};
use crate::{Progress, Stop};

/// Held by the one build that is under way in a database.
const LOCK: i64 = 0x006b_656c_7669_6e43;

/// Connections at the most when the user gave no number: more would only queue at the server's disks.
const MAX_LOADERS: usize = 8;

/// Large tables first, so that the connections end at about the same time.
const BY_SIZE: [Name; 9] = [
    Name::OrderLine,
    Name::Stock,
    Name::Customer,
    Name::Orders,
    Name::History,
    Name::Item,
    Name::NewOrder,
    Name::District,
    Name::Warehouse,
];

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    progress: &dyn Progress,
    stop: &Stop,
) -> Result<()> {
    let mut session = engine.connect()?;
    lock(session.as_mut(), stop)?;
    let Some(missing) = prepare(engine, session.as_mut(), dialect, options)? else { return Ok(()) };
    let loaders = options.loaders.map_or_else(default_loaders, |loaders| loaders as usize);
    let job = |what, before| Job { what, before, progress, stop };
    missing.load(engine, (loaders, &set_up), options.seed_to_build(), (progress, stop))?;
    let tables = BY_SIZE.map(table);
    let item_first = item_first(options.profile);
    pool::run(engine, loaders, &set_up, job("tables indexed", 0), &tables, &|session, table, shared| {
        for (name, sql) in ddl::indexes(table, item_first) {
            shared.go_on()?;
            if !exists(session, &format!("pg_catalog.pg_class where oid = to_regclass('{name}')"))? {
                session.run(&sql).map_err(|error| error.context(&format!("making index {name}")))?;
            }
        }
        Ok(())
    })?;
    if options.foreign_keys {
        let keyed: Vec<&Table> = TABLES.iter().filter(|table| !table.foreign_keys.is_empty()).collect();
        // One connection: two keys that touch the same tables would wait for each other's locks.
        pool::run(engine, 1, &set_up, job("foreign keys checked", 0), &keyed, &|session, table, shared| {
            make_foreign_keys(session, table, shared)
        })?;
    }
    functions::create(session.as_mut(), options.profile)
        .map_err(|error| error.context("making the routines"))?;
    pool::run(engine, loaders, &set_up, job("tables analyzed", 0), &tables, &|session, table, _| {
        session.run(&ddl::vacuum(table)).map_err(|e| e.context(&format!("analyzing table {}", table.name)))
    })?;
    session.run(metadata::COMPLETE)?;
    checkpoint(engine, session.as_mut(), job("checkpoint", 0))
}

fn default_loaders() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_LOADERS)
}

/// Settings of a loading connection. None of them outlives it.
fn set_up(session: &mut dyn Session) -> Result<()> {
    // An index of three million lines is sorted within this much memory; there is one sort a connection.
    session
        .run("set maintenance_work_mem = '256MB'; set synchronous_commit = off; set statement_timeout = 0")?;
    session.run("set max_parallel_maintenance_workers = 2; set lock_timeout = 0")?;
    session.run("set idle_in_transaction_session_timeout = 0")
}

fn exists(session: &mut dyn Session, from: &str) -> Result<bool> {
    Ok(session.query(&format!("select count(*) from {from}"))?.int(0, 0)? != 0)
}

fn make_foreign_keys(session: &mut dyn Session, table: &Table, shared: &pool::Shared<'_>) -> Result<()> {
    for (name, sql) in ddl::foreign_keys(table) {
        shared.go_on()?;
        let from = format!(
            "pg_catalog.pg_constraint where conname = '{name}' and conrelid = to_regclass('{}')",
            table.name
        );
        if !exists(session, &from)? {
            session.run(&sql).map_err(|error| error.context(&format!("making foreign key {name}")))?;
        }
    }
    Ok(())
}

/// Keeps a second build out of the database. A build that was killed may hold the lock until the server has
/// noticed, hence the patience.
fn lock(session: &mut dyn Session, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let got =
            session.query(&format!("select case when pg_try_advisory_lock({LOCK}) then 1 else 0 end"))?;
        if got.int(0, 0)? == 1 {
            return Ok(());
        }
        if stop.requested() {
            return Err(stopped());
        }
        if Instant::now() >= deadline {
            return Err(Error::new(
                ErrorClass::LockNotAvailable,
                "another build is under way in this database",
            )
            .with_help("wait for it to end, or end it"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Runs `work` on its own thread's behalf and interrupts its statement when a stop is requested.
pub(crate) fn interruptible<T>(
    session: &mut dyn Session,
    stop: &Stop,
    work: impl FnOnce(&mut dyn Session) -> Result<T>,
) -> Result<T> {
    let cancel = session.cancel();
    let (ended, wait) = std::sync::mpsc::channel::<()>();
    let outcome = std::thread::scope(|scope| {
        scope.spawn(move || {
            while wait.recv_timeout(Duration::from_millis(200))
                == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                if stop.requested() {
                    // Best effort, repeated until the work has ended.
                    let _ = cancel.cancel();
                }
            }
        });
        let outcome = work(session);
        drop(ended);
        outcome
    });
    match outcome {
        Err(_) if stop.requested() => Err(stopped()),
        other => other,
    }
}

/// A checkpoint, where the user may ask for one: managed databases often do not let him.
fn checkpoint(engine: &dyn Engine, session: &mut dyn Session, job: Job<'_>) -> Result<()> {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    job.progress.update(job.what, 0, 1, 0);
    match interruptible(session, job.stop, |session| engine.checkpoint(session)) {
        Err(error) if error.code().0 == INSUFFICIENT_PRIVILEGE => {}
        other => other?,
    }
    job.progress.update(job.what, 1, 1, 0);
    Ok(())
}
