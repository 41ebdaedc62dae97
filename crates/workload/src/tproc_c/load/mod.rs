//! Builds the database: tables, rows, indexes, routines, statistics; goes on where an earlier build stopped.

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

/// What is missing of a build that is not complete: perhaps no part, and only what follows them.
pub(crate) struct Missing {
    parts: Vec<MissingPart>,
    /// Warehouses that are there.
    loaded: u64,
    /// The number of warehouses that there are to be.
    warehouses: u32,
    /// The time of the rows; none in a build that an older version began, where each part has its own.
    time: Option<Timestamp>,
}

/// A part that is not complete.
struct MissingPart {
    /// 0 for the items, w for warehouse w.
    number: u32,
    /// Its tables that have none of its rows: not all of them where tables were loaded as a whole.
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

    /// The tables that have no row of any warehouse: those that can be loaded as a whole.
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

/// Builds the data, or goes on with a build that was interrupted. Data that are already complete are left
/// alone; data of other options are refused.
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

/// Whether there is a half-built database that a build would go on with.
fn resumable(engine: &dyn Engine, dialect: &dyn Dialect) -> bool {
    let read = || Build::read(engine.connect()?.as_mut(), dialect);
    matches!(read(), Ok(Some(build)) if !build.complete)
}

/// Looks at what is there, makes the tables that are not, and says which parts are missing; none of a complete build.
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
            // Rows that were loaded are gone with their table.
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
    // The items are not a warehouse: they do not count in "warehouses loaded".
    let loaded = loaded.iter().filter(|&&part| part != 0).count() as u64;
    Ok(Some(Missing { parts, loaded, warehouses, time: build.time() }))
}

/// Makes all tables. The description comes first: where they are not made at once ([`change_tables`]), the next build knows
/// that it has to make the rest.
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

/// Makes or drops tables, all or none of them where the engine can.
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

/// Does `work` in a transaction, which is rolled back when it fails.
pub(crate) fn in_transaction(
    session: &mut dyn Session,
    work: impl FnOnce(&mut dyn Session) -> Result<()>,
) -> Result<()> {
    session.control(TransactionControl::Begin)?;
    let outcome = work(session).and_then(|()| session.control(TransactionControl::Commit));
    if outcome.is_err() && session.in_transaction() && !session.is_broken() {
        // The error at hand says more than a failed rollback would.
        let _ = session.control(TransactionControl::Rollback);
    }
    outcome
}

/// Removes everything that a build made, complete or not; what is not there is no error.
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
    // Referring tables before those they refer to, and what describes them last.
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
