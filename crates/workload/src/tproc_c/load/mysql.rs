//! The build on MySQL and MariaDB: warehouses over several connections, second indexes after the rows.
//!
//! A warehouse's rows are loaded in the order of the primary keys, by which the tables are clustered, so that
//! each page is filled once. DDL cannot be rolled back here: each step first checks whether an earlier build
//! has done it.

use kelvin_database::{Engine, Error, Result, Session};

use super::pool::{self, Job, Unit};
use super::steps::{BY_SIZE, checkpoint, loaders, lock};
use super::{make_foreign_keys, prepare};
use crate::tproc_c::Options;
use crate::tproc_c::hammerdb;
use crate::tproc_c::schema::{SchemaDialect, TABLES, Table, metadata, mysql as ddl, table};
use crate::{BuildProgress, Stop};

/// Held by the build that is running in a database. These locks are global to the server, so the name
/// includes the database's, within the limit of 64 characters.
const LOCK: &str = "select get_lock(concat('kelvin build ', md5(database())), 0)";

/// Error code of a checkpoint that is not permitted.
pub(crate) const ACCESS_DENIED: &str = "1227/42000";

pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn SchemaDialect,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    if options.partitions.is_some() && options.foreign_keys {
        return Err(Error::usage("MySQL and MariaDB do not support foreign keys on partitioned tables")
            .with_help("leave out the partitions or the foreign keys"));
    }
    let mut session = engine.connect()?;
    take_build_lock(session.as_mut(), stop)?;
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
        // One connection: checks of two keys on the same tables would wait for each other's locks.
        pool::run(engine, 1, &set_up, job("foreign keys checked"), &keyed, &|session, table, shared| {
            make_foreign_keys(session, table, shared, foreign_keys_query)
        })?;
    }
    hammerdb::mysql::create_routines(session.as_mut(), options.profile)
        .map_err(|error| error.context("creating the routines"))?;
    pool::run(engine, loaders, &set_up, job("tables analyzed"), &tables, &|session, table, _| {
        // Errors are reported as a row, not as an error.
        session.query(&format!("analyze table {}", table.name)).map(drop)
    })?;
    session.run(metadata::COMPLETE)?;
    let refused = |error: &Error| error.code().0 == ACCESS_DENIED;
    checkpoint(engine, session.as_mut(), refused, job("checkpoint"))
}

/// Takes the build lock, which is held until the session ends.
pub(crate) fn take_build_lock(session: &mut dyn Session, stop: &Stop) -> Result<()> {
    must_name_a_database(session)?;
    lock(session, LOCK, stop)
}

/// Without a database the tables could not be created, and the server's error does not say what to do.
fn must_name_a_database(session: &mut dyn Session) -> Result<()> {
    if session.query("select database()")?.is_null(0, 0)? {
        return Err(Error::usage("the target names no database")
            .with_help("add its name after the host, as in mysql://user@host/name"));
    }
    Ok(())
}

/// Settings of a loading connection; all are local to the session.
pub(crate) fn set_up(session: &mut dyn Session) -> Result<()> {
    // Rows of another loader's warehouse are never waited for; a table lock may take as long as building an
    // index. MySQL sorts indexes with several threads; MariaDB reads that part as a comment.
    session.run(
        "set session lock_wait_timeout = 86400 \
         /*!80027 , innodb_ddl_threads = 4, innodb_ddl_buffer_size = 268435456 */",
    )
}

/// Whether a table has an index with exactly these columns, whatever its name. InnoDB appends the primary
/// key's columns to every index, and HammerDB's indexes omit them.
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

/// The query that counts the foreign keys of a name that a table has.
fn foreign_keys_query(table: &str, key: &str) -> String {
    format!(
        "select count(*) from information_schema.table_constraints where constraint_schema = database() \
         and table_name = '{table}' and constraint_name = '{key}'"
    )
}
