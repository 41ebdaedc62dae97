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
use super::dialect::Dialect;
use super::schema::metadata::{Build, BuiltBy, begin_build, loaded_parts, present_tables};
use super::schema::{self, Name, Table};
use crate::{BuildProgress, Stop};

pub(crate) use pool::stopped;
pub(crate) use pool::{Job, Setup, Shared, Unit, run, run_each};
pub(crate) use steps::{checkpoint, connections_of_the_host, interruptible};

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

/// Builds the data or resumes an interrupted build. Complete data are left unchanged; data of a build with
/// other options are refused.
pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    progress: &dyn BuildProgress,
    stop: &Stop,
) -> Result<()> {
    engine.capabilities().need_session_state("building the data")?;
    let options = &match Build::read(engine.connect()?.as_mut(), dialect)? {
        Some(build) => build.complete(options),
        None => options.clone(),
    };
    dialect.build(engine, options, progress, stop).map_err(|error| {
        let build_again = "completely loaded warehouses are kept; run the same build again to continue";
        let help = match (resumable(engine, dialect), error.help()) {
            (false, _) => return error,
            (true, None) => build_again.to_string(),
            (true, Some(help)) => format!("{help}\n{build_again}"),
        };
        error.with_help(help)
    })
}

/// Whether the database holds an incomplete build that can be resumed.
fn resumable(engine: &dyn Engine, dialect: &dyn Dialect) -> bool {
    let read = || Build::read(engine.connect()?.as_mut(), dialect);
    matches!(read(), Ok(Some(build)) if !build.complete)
}

/// Inspects the database, creates missing tables, and returns the missing parts; `None` for a complete build.
pub(crate) fn prepare(
    engine: &dyn Engine,
    session: &mut dyn Session,
    dialect: &dyn Dialect,
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
                .filter(|&one| build.loaded_of(one) < number.max(1))
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
    dialect: &dyn Dialect,
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
    dialect: &dyn Dialect,
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

/// Drops everything that a build created, complete or not. Missing objects are not an error.
pub(crate) fn drop_data(engine: &dyn Engine, dialect: &dyn Dialect) -> Result<()> {
    let mut session = engine.connect()?;
    let present = present_tables(session.as_mut(), dialect)?;
    if !present.iter().any(|name| name == "kelvin_tproc_c") {
        let hammerdb = Build::read(session.as_mut(), dialect)?
            .is_some_and(|build| build.metadata.built_by == BuiltBy::Hammerdb);
        return match (present.is_empty(), hammerdb) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::usage("HammerDB built these data, and kelvin does not remove them")
                .with_help("drop them with HammerDB, or drop the database")),
            (false, false) => Err(Error::usage(format!(
                "Kelvin did not create these tables and does not remove them: {}",
                present.join(", ")
            ))),
        };
    }
    dialect.drop_routines(session.as_mut())?;
    // Referencing tables before referenced ones, and the description last.
    let names = schema::TABLES
        .iter()
        .rev()
        .map(|table| table.name)
        .chain(["kelvin_tproc_c_loaded", "kelvin_tproc_c"]);
    let drop = |session: &mut dyn Session| {
        names.into_iter().try_for_each(|name| session.run(&format!("drop table if exists {name}")))
    };
    change_tables(engine, session.as_mut(), drop).map_err(|error| error.context("removing the tables"))
}
