//! Builds the database: tables, rows, indexes, routines, statistics. Resumes an interrupted build.

pub(crate) mod mysql;
mod part;
mod pool;
pub(crate) mod postgres;
pub(crate) mod sqlite;
pub(crate) mod sqlserver;
mod steps;
mod whole_table;

use kelvin_database::{Engine, Error, Result, Session, Timestamp, TransactionControl};

use super::Options;
use super::data;
use super::schema::metadata::{Build, begin_build, loaded_parts, present_tables};
use super::schema::{self, Name, SchemaDialect, Table};
use crate::{BuildProgress, Stop};

pub(crate) use pool::stopped;
pub(crate) use pool::{Job, Setup, Shared, Unit, run, run_each};
pub(crate) use steps::{checkpoint, connections_of_the_host, interruptible};

/// Creates the foreign keys of a table that it does not have; `query` counts those of a table by name.
fn make_foreign_keys(
    session: &mut dyn Session,
    table: &Table,
    shared: &Shared<'_>,
    query: fn(&str, &str) -> String,
) -> Result<()> {
    for key in table.foreign_keys {
        shared.check_stop()?;
        if session.query(&query(table.name, key.name))?.int(0, 0)? == 0 {
            session
                .run(&key.add_to(table))
                .map_err(|error| error.context(&format!("creating foreign key {}", key.name)))?;
        }
    }
    Ok(())
}

/// The missing parts of an incomplete build; there may be none if only later steps are missing.
pub(crate) struct Missing {
    parts: Vec<MissingPart>,
    /// Warehouses that are loaded.
    loaded: u64,
    /// Warehouses of the complete data.
    warehouses: u32,
    /// The time in the rows; `None` for a build that an older version began, in which each part has its own
    /// time.
    time: Option<Timestamp>,
}

/// A part that is not loaded completely.
struct MissingPart {
    /// 0 for the items, w for warehouse w.
    number: u32,
    /// The part's tables that have none of its rows: not all of them if some tables were loaded as a whole.
    tables: Vec<Name>,
}

impl Missing {
    /// Loads the items, then the warehouses over `loaders` connections, which `setup` prepares.
    pub(crate) fn load(
        &self,
        engine: &dyn Engine,
        (loaders, setup): (usize, &Setup<'_>),
        seed: u64,
        (progress, stop): (&dyn BuildProgress, &Stop),
    ) -> Result<()> {
        let items = self.parts.iter().filter(|part| part.number == 0).count();
        let (items, warehouses) = self.parts.split_at(items);
        for (what, before, loaders, parts) in
            [("items loaded", 0, 1, items), ("warehouses loaded", self.loaded, loaders, warehouses)]
        {
            pool::run(
                engine,
                loaders,
                setup,
                Job { what, before, unit: Unit::Task, progress, stop },
                parts,
                &|session, part, shared| part::load(session, seed, part, self.time, shared),
            )?;
        }
        Ok(())
    }

    /// The tables that have no row of any warehouse and can be loaded as a whole.
    fn whole_tables(&self) -> Vec<&'static Table> {
        let all_parts = self.parts.iter().filter(|part| part.number != 0);
        let lacking = |table: Name| all_parts.clone().filter(|part| part.tables.contains(&table)).count();
        steps::BY_SIZE
            .into_iter()
            .filter(|&table| self.warehouses > 0 && lacking(table) == self.warehouses as usize)
            .map(schema::table)
            .collect()
    }
}

/// Inspects the database, creates missing tables, and returns the missing parts; `None` for a complete build.
pub(crate) fn prepare(
    engine: &dyn Engine,
    session: &mut dyn Session,
    dialect: &dyn SchemaDialect,
    options: &Options,
) -> Result<Option<Missing>> {
    let found = Build::read(session, dialect)?;
    if let Some(build) = &found {
        build.must_match(options)?;
        build.must_be_whole()?;
        if build.complete {
            return Ok(None);
        }
        let loaded = build.has_loaded_tables() || !loaded_parts(session)?.is_empty();
        if !build.missing_tables().is_empty() && loaded {
            // The rows that were loaded into the table are lost.
            return Err(build.damaged());
        }
        create_tables(session, dialect, options, |table| build.missing_tables().contains(&table.name))?;
    } else {
        let present = present_tables(session, dialect)?;
        if !present.is_empty() {
            return Err(Error::usage(format!(
                "the database already has tables that Kelvin did not create: {}",
                present.join(", ")
            ))
            .with_help("remove them or use another database"));
        }
        begin(engine, session, dialect, options)?;
    }
    let build = match found {
        Some(build) => build,
        None => {
            Build::read(session, dialect)?.ok_or_else(|| Error::protocol("the tables made are not there"))?
        }
    };
    let loaded = loaded_parts(session)?;
    let warehouses = options.warehouses_to_build();
    let parts = (0..=warehouses)
        .filter(|part| loaded.binary_search(part).is_err())
        .map(|number| MissingPart {
            number,
            tables: part::tables(number)
                .iter()
                .copied()
                .filter(|&one| build.last_loaded_warehouse(one) < number.max(1))
                .collect(),
        })
        .collect();
    // The items are not counted in "warehouses loaded".
    let loaded = loaded.iter().filter(|&&part| part != 0).count() as u64;
    Ok(Some(Missing { parts, loaded, warehouses, time: build.time() }))
}

/// Creates all tables, after the description of the build: if they are not created atomically
/// ([`change_tables`]), the next build knows that it has to create the rest.
fn begin(
    engine: &dyn Engine,
    session: &mut dyn Session,
    dialect: &dyn SchemaDialect,
    options: &Options,
) -> Result<()> {
    let describe = begin_build(options, &data::constants(options.seed_to_build()), dialect);
    let make = |session: &mut dyn Session| {
        describe.iter().try_for_each(|statement| session.run(statement))?;
        create_tables(session, dialect, options, |_| true)
    };
    change_tables(engine, session, make).map_err(|error| error.context("creating the tables"))
}

/// Creates or drops tables; atomically if the engine supports it.
pub(crate) fn change_tables(
    engine: &dyn Engine,
    session: &mut dyn Session,
    work: impl FnOnce(&mut dyn Session) -> Result<()>,
) -> Result<()> {
    if engine.capabilities().transactional_ddl { in_transaction(session, work) } else { work(session) }
}

fn create_tables(
    session: &mut dyn Session,
    dialect: &dyn SchemaDialect,
    options: &Options,
    wanted: impl Fn(&Table) -> bool,
) -> Result<()> {
    let wanted = schema::TABLES.iter().filter(|table| wanted(table));
    wanted
        .flat_map(|table| dialect.create_table(table, options))
        .try_for_each(|statement| session.run(&statement))
}

/// Executes `work` in a transaction and rolls it back on an error.
pub(crate) fn in_transaction(
    session: &mut dyn Session,
    work: impl FnOnce(&mut dyn Session) -> Result<()>,
) -> Result<()> {
    session.control(TransactionControl::Begin)?;
    let outcome = work(session).and_then(|()| session.control(TransactionControl::Commit));
    if outcome.is_err() && session.in_transaction() && !session.is_broken() {
        // The original error is more specific than that of a failed rollback.
        let _ = session.control(TransactionControl::Rollback);
    }
    outcome
}
