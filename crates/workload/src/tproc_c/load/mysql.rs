//! The build on MySQL and MariaDB: warehouses over several connections, second indexes after the rows.
//!
//! The rows of a warehouse come in the order of the primary keys, which are the tables: each page is filled once. No
//! statement that makes something is undone by a rollback here: each step looks first whether an earlier build has done it.

use kelvin_database::{Engine, Error, Result, Session};

use super::pool::{self, Job, Unit};
use super::prepare;
use super::steps::{BY_SIZE, checkpoint, loaders, lock};
use crate::tproc_c::Options;
use crate::tproc_c::calls::procedures;
use crate::tproc_c::dialect::Dialect;
use crate::tproc_c::schema::{TABLES, Table, metadata, mysql as ddl, table};
use crate::{BuildProgress, Stop};

/// Held by the one build that is under way in a database. Such locks are the server's: the name has the database's in it,
/// in no more than the 64 characters that there may be.
const LOCK: &str = "select get_lock(concat('kelvin build ', md5(database())), 0)";

/// The code of a refused checkpoint.
pub(crate) const ACCESS_DENIED: &str = "1227/42000";

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    if options.partitions.is_some() && options.foreign_keys {
        return Err(Error::usage("MySQL and MariaDB do not support foreign keys on partitioned tables")
            .with_help("leave out the partitions or the foreign keys"));
    }
    let mut session = engine.connect()?;
    keep_others_out(session.as_mut(), stop)?;
    let Some(missing) = prepare(engine, session.as_mut(), dialect, options)? else { return Ok(()) };
    let loaders = loaders(options);
    let job = |what| Job { what, before: 0, unit: Unit::Task, progress, stop };
    missing.load(engine, (loaders, &set_up), options.seed_to_build(), (progress, stop))?;
    let tables = BY_SIZE.map(table);
    let indexed: Vec<&Table> = tables.into_iter().filter(|table| table.second.is_some()).collect();
    pool::run(engine, loaders, &set_up, job("tables indexed"), &indexed, &|session, table, _| {
        let Some(index) = &table.second else { return Ok(()) };
        if has_index(session, table.name, index.columns)? {
            return Ok(());
        }
        session
            .run(&ddl::create_index(table, index))
            .map_err(|error| error.context(&format!("creating index {}", index.name)))
    })?;
    if options.foreign_keys {
        let keyed: Vec<&Table> = TABLES.iter().filter(|table| !table.foreign_keys.is_empty()).collect();
        // One connection: two keys that touch the same tables would wait for each other's locks.
        pool::run(engine, 1, &set_up, job("foreign keys checked"), &keyed, &|session, table, shared| {
            make_foreign_keys(session, table, shared)
        })?;
    }
    procedures::create(session.as_mut(), options.profile)
        .map_err(|error| error.context("creating the routines"))?;
    pool::run(engine, loaders, &set_up, job("tables analyzed"), &tables, &|session, table, _| {
        // What it has to say comes as a row, and not as an error.
        session.query(&format!("analyze table {}", table.name)).map(drop)
    })?;
    session.run(metadata::COMPLETE)?;
    let refused = |error: &Error| error.code().0 == ACCESS_DENIED;
    checkpoint(engine, session.as_mut(), refused, job("checkpoint"))
}

/// Takes the lock of a build, as long as the session lasts.
pub(crate) fn keep_others_out(session: &mut dyn Session, stop: &Stop) -> Result<()> {
    must_name_a_database(session)?;
    lock(session, LOCK, stop)
}

/// Without one the tables would have nowhere to be, and the server's error does not say what to do about it.
fn must_name_a_database(session: &mut dyn Session) -> Result<()> {
    if session.query("select database()")?.is_null(0, 0)? {
        return Err(Error::usage("the target names no database")
            .with_help("add its name after the host, as in mysql://user@host/name"));
    }
    Ok(())
}

/// Settings of a loading connection. None of them outlives it.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    // Another loader's warehouse is never waited for; the tables' own locks may take as long as an index takes. MySQL's
    // indexes are sorted by several threads; MariaDB takes the rest for a comment.
    session.run(
        "set session lock_wait_timeout = 86400 \
         /*!80027 , innodb_ddl_threads = 4, innodb_ddl_buffer_size = 268435456 */",
    )
}

/// Whether a table has an index of exactly these columns, whatever its name. InnoDB adds those of the primary key to each:
/// the indexes that HammerDB makes leave them out.
pub(crate) fn has_index(session: &mut dyn Session, table: &str, columns: &[&str]) -> Result<bool> {
    let rows = session.query(&format!(
        "select index_name, lower(column_name) from information_schema.statistics \
         where table_schema = database() and table_name = '{table}' \
         order by index_name <> 'PRIMARY', index_name, seq_in_index"
    ))?;
    let mut indexes: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in 0..rows.len() {
        let (name, column) = (rows.text(row, 0)?, rows.text(row, 1)?);
        match indexes.last_mut() {
            Some((last, its)) if *last == name => its.push(column),
            _ => indexes.push((name, vec![column])),
        }
    }
    let key = indexes.first().filter(|(name, _)| *name == "PRIMARY").map_or(vec![], |(_, key)| key.clone());
    Ok(indexes.into_iter().any(|(_, mut its)| {
        let added = key.iter().filter(|column| !its.contains(column)).copied().collect::<Vec<_>>();
        its.extend(added);
        its == columns
    }))
}

fn make_foreign_keys(session: &mut dyn Session, table: &Table, shared: &pool::Shared<'_>) -> Result<()> {
    for key in table.foreign_keys {
        shared.go_on()?;
        let found = session.query(&format!(
            "select count(*) from information_schema.table_constraints where constraint_schema = database() \
             and table_name = '{}' and constraint_name = '{}'",
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
