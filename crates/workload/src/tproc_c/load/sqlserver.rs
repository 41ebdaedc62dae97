//! The build on SQL Server: warehouses over several connections into tables without indexes, keys and indexes after the rows.
//!
//! The bulk loads of several connections into one table share its lock as long as it has no index, and are logged by extents
//! where the recovery model is not FULL. Making a table a tree of its key sorts it once, and needs its size once more
//! meanwhile. What an interrupted build has made is rolled back or found: each step looks first.

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use super::pool::{self, Job, Unit};
use super::prepare;
use super::steps::{BY_SIZE, checkpoint, loaders, lock};
use crate::tproc_c::calls::tsql;
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::{TABLES, Table, metadata, sqlserver as ddl, table};
use crate::tproc_c::{Options, Profile};
use crate::{BuildProgress, Stop};

/// Held by the one build that is under way in a database. The name has the database's in it, and is asked for only when it is
/// free: Babelfish has one such lock for all databases, and ends with an error of its own where it is taken.
const LOCK: &str = "declare @taken int = -1, @name nvarchar(255) = concat('kelvin build ', db_name()); \
    if applock_test('public', @name, 'Exclusive', 'Session') = 1 \
        exec @taken = sp_getapplock @Resource = @name, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0; \
    select case when @taken >= 0 then 1 else 0 end";

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    if options.partitions.is_some() {
        return Err(Error::usage("partitions of order_line are not supported on SQL Server")
            .with_help("leave out the partitions"));
    }
    let mut session = engine.connect()?;
    let babelfish = is_babelfish(session.as_mut())?;
    if babelfish && options.fill_page {
        return Err(Error::usage("--fill-page is not possible: the pages of Babelfish are PostgreSQL's")
            .with_help("leave out --fill-page"));
    }
    keep_others_out(session.as_mut(), stop)?;
    let Some(missing) = prepare(engine, session.as_mut(), dialect, options)? else { return Ok(()) };
    let loaders = loaders(options);
    let job = |what| Job { what, before: 0, unit: Unit::Task, progress, stop };
    missing.load(engine, (loaders, &set_up), options.seed_to_build(), (progress, stop))?;
    let tables = BY_SIZE.map(table);
    pool::run(engine, loaders, &set_up, job("tables indexed"), &tables, &|session, table, shared| {
        if !babelfish {
            // Thousands of rows that one transaction locks shall not become the lock of a table.
            session.run(&format!("alter table {} set (lock_escalation = disable)", table.name))?;
        }
        for (name, columns, sql) in ddl::indexes(table) {
            shared.go_on()?;
            if !has_index(session, table.name, columns)? {
                session.run(&sql).map_err(|error| error.context(&format!("creating index {name}")))?;
            }
        }
        Ok(())
    })?;
    if options.foreign_keys {
        let keyed: Vec<&Table> = TABLES.iter().filter(|table| !table.foreign_keys.is_empty()).collect();
        // One connection: two keys that touch the same tables would wait for each other's locks.
        pool::run(engine, 1, &set_up, job("foreign keys checked"), &keyed, &|session, table, shared| {
            make_foreign_keys(session, table, shared)
        })?;
    }
    tsql::create(session.as_mut(), options.profile)
        .map_err(|error| error.context("creating the routines"))?;
    pool::run(engine, 1, &set_up, job("tables analyzed"), &[()], &|session, (), _| {
        session.run("exec sp_updatestats")
    })?;
    session.run(metadata::COMPLETE)?;
    // Only owners of the database may ask for one.
    let refused = |error: &Error| error.class() == ErrorClass::Statement;
    checkpoint(engine, session.as_mut(), refused, job("checkpoint"))
}

/// Whether rows of warehouses and districts are widened: HammerDB's always are.
pub(crate) fn fills_pages(options: &Options) -> bool {
    options.fill_page || options.profile == Profile::Hammerdb
}

/// Whether the server is Babelfish, which lacks some of SQL Server's statements.
fn is_babelfish(session: &mut dyn Session) -> Result<bool> {
    let rows = session.query("select cast(serverproperty('babelfish') as int)")?;
    Ok(!rows.is_null(0, 0)? && rows.int(0, 0)? == 1)
}

/// Takes the lock of a build, as long as the session lasts.
pub(crate) fn keep_others_out(session: &mut dyn Session, stop: &Stop) -> Result<()> {
    must_name_a_database(session)?;
    lock(session, LOCK, stop)
}

/// Without one, the tables would be made in the server's own.
fn must_name_a_database(session: &mut dyn Session) -> Result<()> {
    let rows = session.query("select db_name(), case when db_id() <= 4 then 1 else 0 end")?;
    if rows.int(0, 1)? == 0 {
        return Ok(());
    }
    Err(Error::usage(format!("the target's database is {}, one of the server's own", rows.text(0, 0)?))
        .with_help("name yours after the host, as in sqlserver://user@host/name"))
}

/// Settings of a loading connection. None of them outlives it.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    // Another loader's warehouse is never waited for; a table's own lock may take as long as an index takes.
    session.run("set lock_timeout -1")
}

/// Whether a table has an index of exactly these columns, whatever its name.
pub(crate) fn has_index(session: &mut dyn Session, table: &str, columns: &[&str]) -> Result<bool> {
    let rows = session.query(&format!(
        "select i.index_id, lower(c.name) from sys.indexes i \
         join sys.index_columns k on k.object_id = i.object_id and k.index_id = i.index_id \
         join sys.columns c on c.object_id = k.object_id and c.column_id = k.column_id \
         where i.object_id = object_id('{table}') and k.key_ordinal > 0 order by i.index_id, k.key_ordinal"
    ))?;
    let mut indexes: Vec<(i64, Vec<&str>)> = Vec::new();
    for row in 0..rows.len() {
        let (number, column) = (rows.int(row, 0)?, rows.text(row, 1)?);
        match indexes.last_mut() {
            Some((last, its)) if *last == number => its.push(column),
            _ => indexes.push((number, vec![column])),
        }
    }
    Ok(indexes.iter().any(|(_, its)| its == columns))
}

fn make_foreign_keys(session: &mut dyn Session, table: &Table, shared: &pool::Shared<'_>) -> Result<()> {
    for key in table.foreign_keys {
        shared.go_on()?;
        let found = session.query(&format!(
            "select count(*) from sys.foreign_keys where parent_object_id = object_id('{}') and name = '{}'",
            table.name, key.name
        ))?;
        if found.int(0, 0)? == 0 {
            session
                .run(&ddl::create_foreign_key(table, key))
                .map_err(|error| error.context(&format!("creating foreign key {}", key.name)))?;
        }
    }
    Ok(())
}
