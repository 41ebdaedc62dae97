//! The build on SQL Server: warehouses over several connections into tables without indexes; keys and indexes
//! after the rows.
//!
//! Bulk loads of several connections can share the table's lock only while it has no index. Unless the
//! recovery model is FULL, they are minimally logged, by extents. Building the clustered index sorts the
//! table once and temporarily needs its size again. Work of an interrupted build is rolled back or found:
//! each step checks first.

use kelvin_database::{Engine, Error, ErrorClass, Result, Session};

use super::pool::{self, Job, Unit};
use super::steps::{BY_SIZE, checkpoint, loaders, lock};
use super::{make_foreign_keys, prepare};
use crate::tproc_c::hammerdb;
use crate::tproc_c::schema::{SchemaDialect, TABLES, Table, metadata, sqlserver as ddl, table};
use crate::tproc_c::{Options, Profile};
use crate::{BuildProgress, Stop};

/// Held by the build that is running in a database. The name includes the database's. The lock is requested
/// only if it is free: Babelfish has one such lock for all databases and fails with an unrelated error if it
/// is taken.
const LOCK: &str = "declare @taken int = -1, @name nvarchar(255) = concat('kelvin build ', db_name()); \
    if applock_test('public', @name, 'Exclusive', 'Session') = 1 \
        exec @taken = sp_getapplock @Resource = @name, @LockMode = 'Exclusive', @LockOwner = 'Session', @LockTimeout = 0; \
    select case when @taken >= 0 then 1 else 0 end";

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn SchemaDialect,
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
    take_build_lock(session.as_mut(), stop)?;
    let Some(missing) = prepare(engine, session.as_mut(), dialect, options)? else { return Ok(()) };
    let loaders = loaders(options);
    let job = |what| Job { what, before: 0, unit: Unit::Task, progress, stop };
    missing.load(engine, (loaders, &set_up), options.seed_to_build(), (progress, stop))?;
    let tables = BY_SIZE.map(table);
    pool::run(engine, loaders, &set_up, job("tables indexed"), &tables, &|session, table, shared| {
        if !babelfish {
            // The row locks of one large transaction must not escalate to a table lock.
            session.run(&format!("alter table {} set (lock_escalation = disable)", table.name))?;
        }
        for (name, columns, sql) in ddl::indexes(table) {
            shared.check_stop()?;
            if !has_index(session, table.name, columns)? {
                session.run(&sql).map_err(|error| error.context(&format!("creating index {name}")))?;
            }
        }
        Ok(())
    })?;
    if options.foreign_keys {
        let keyed: Vec<&Table> = TABLES.iter().filter(|table| !table.foreign_keys.is_empty()).collect();
        // One connection: checks of two keys on the same tables would wait for each other's locks.
        pool::run(engine, 1, &set_up, job("foreign keys checked"), &keyed, &|session, table, shared| {
            make_foreign_keys(session, table, shared, foreign_keys_query)
        })?;
    }
    hammerdb::sqlserver::create_routines(session.as_mut(), options.profile)
        .map_err(|error| error.context("creating the routines"))?;
    pool::run(engine, 1, &set_up, job("tables analyzed"), &[()], &|session, (), _| {
        session.run("exec sp_updatestats")
    })?;
    session.run(metadata::COMPLETE)?;
    // Only owners of the database may request a checkpoint.
    let refused = |error: &Error| error.class() == ErrorClass::Statement;
    checkpoint(engine, session.as_mut(), refused, job("checkpoint"))
}

/// Whether rows of warehouse and district fill a page; in HammerDB's schema they always do.
pub(crate) fn fills_pages(options: &Options) -> bool {
    options.fill_page || options.profile == Profile::Hammerdb
}

/// Whether the server is Babelfish, which lacks some of SQL Server's statements.
fn is_babelfish(session: &mut dyn Session) -> Result<bool> {
    let rows = session.query("select cast(serverproperty('babelfish') as int)")?;
    Ok(!rows.is_null(0, 0)? && rows.int(0, 0)? == 1)
}

/// Takes the build lock, which is held until the session ends.
pub(crate) fn take_build_lock(session: &mut dyn Session, stop: &Stop) -> Result<()> {
    must_name_a_database(session)?;
    lock(session, LOCK, stop)
}

/// Without a database in the target, the tables would be created in a system database.
fn must_name_a_database(session: &mut dyn Session) -> Result<()> {
    let rows = session.query("select db_name(), case when db_id() <= 4 then 1 else 0 end")?;
    if rows.int(0, 1)? == 0 {
        return Ok(());
    }
    Err(Error::usage(format!("the target's database is {}, one of the server's own", rows.text(0, 0)?))
        .with_help("name yours after the host, as in sqlserver://user@host/name"))
}

/// Settings of a loading connection; all are local to the session.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    // Rows of another loader's warehouse are never waited for; a table lock may take as long as building an
    // index.
    session.run("set lock_timeout -1")
}

/// Whether a table has an index with exactly these columns, whatever its name.
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

/// The query that counts the foreign keys of a name that a table has.
fn foreign_keys_query(table: &str, key: &str) -> String {
    format!(
        "select count(*) from sys.foreign_keys where parent_object_id = object_id('{table}') and name = '{key}'"
    )
}
