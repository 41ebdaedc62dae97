//! Builds the database: tables, rows in parts over several connections, keys and indexes, statistics. Resumes
//! an interrupted build. Rows go from the generator directly into the load, without files on the client.

use kelvin_database::{BulkTable, Engine, Error, Result, Session};

use super::data::{RowWriter, Slice};
use super::dialect::Dialect;
use super::schema::{Name, TABLES, Table, table};
use super::state::{self, BUILD, LOADED, State};
use super::{Options, Scale};
use crate::tproc_c::load::{Job, Shared, Unit, change_tables, checkpoint, in_transaction, run};
use crate::{BuildProgress, Stop};

/// Rows between checks for a stop request and updates of the progress.
const STRIDE: u64 = 512;

/// A part to load.
struct TablePart {
    table: &'static Table,
    slice: Slice,
}

/// Builds the data or resumes an interrupted build. Complete data are left unchanged.
pub(crate) fn build(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    options: &Options,
    (progress, stop): (&dyn BuildProgress, &Stop),
) -> Result<()> {
    engine.capabilities().need_session_state("building the data")?;
    if options.partition && dialect.create_partitioned(table(Name::Orders)).is_none() {
        return Err(Error::usage(format!("TPROC-H's tables are not partitioned on {}", engine.kind()))
            .with_help("leave out --partition"));
    }
    if options.colstore && dialect.create_by_columns(table(Name::Orders)).is_none() {
        return Err(Error::usage(format!("TPROC-H has no columnstore tables on {}", engine.kind()))
            .with_help("leave out --colstore"));
    }
    let loaders = dialect.loaders(options.loaders)?;
    let mut session = engine.connect()?;
    dialect.begin_build(session.as_mut(), stop)?;
    let Some((scale, parts)) = prepare(engine, session.as_mut(), dialect, options)? else { return Ok(()) };
    // An embedded database has one writer, and this connection must not be it.
    let session = Some(session).filter(|_| engine.capabilities().concurrent_writers);
    let job = |what, unit| Job { what, before: 0, unit, progress, stop };
    let set_up = |session: &mut dyn Session| dialect.set_up_load(session, loaders);
    let rows = parts.iter().map(TablePart::rows_of(scale)).sum();
    let unit = Unit::Rows { rows, parts: parts.len() as u64 };
    run(engine, loaders, &set_up, job("parts loaded", unit), &parts, &|session, part, shared| {
        load(session, dialect, scale, part, shared).map_err(|error| {
            error.context(&format!("loading part {} of {}", part.slice.number, part.table.name))
        })
    })
    .map_err(|error| match error.help() {
        Some(_) => error,
        None => error.with_help("completely loaded parts are kept; run the same build again to continue"),
    })?;
    let tables: Vec<&Table> = TABLES.iter().rev().collect();
    run(engine, loaders, &set_up, job("tables indexed", Unit::Task), &tables, &|session, table, shared| {
        make_indexes(session, dialect, table, shared)
    })?;
    run(engine, loaders, &set_up, job("tables analyzed", Unit::Task), &tables, &|session, table, _| {
        let analyze = dialect.analyze(table);
        // MySQL returns a row.
        let done = if analyze.starts_with("analyze table") {
            session.query(&analyze).map(drop)
        } else {
            session.run(&analyze)
        };
        done.map_err(|error| error.context(&format!("analyzing table {}", table.name)))
    })?;
    dialect.end_build(engine)?;
    let mut session = session.map_or_else(|| engine.connect(), Ok)?;
    session.run(&state::complete())?;
    checkpoint(
        engine,
        session.as_mut(),
        |error| dialect.refuses_checkpoint(error),
        job("checkpoint", Unit::Task),
    )
}

impl TablePart {
    fn rows_of(scale: Scale) -> impl Fn(&Self) -> u64 {
        move |part| part.table.rows(scale.factor()) as u64 / part.slice.of as u64
    }
}

/// Inspects the database, creates missing tables, and returns the missing parts, large tables first; `None`
/// for a complete build.
fn prepare(
    engine: &dyn Engine,
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    options: &Options,
) -> Result<Option<(Scale, Vec<TablePart>)>> {
    let found = State::read(session, dialect)?;
    let scale = match &found {
        Some(state) => {
            state.must_match(options.scale)?;
            state.must_be_whole()?;
            if state.complete {
                return Ok(None);
            }
            state.scale
        }
        None => options.scale_to_build(),
    };
    if found.is_none() {
        let begin = |session: &mut dyn Session| {
            state::begin(scale).iter().try_for_each(|statement| session.run(statement))
        };
        change_tables(engine, session, begin)?;
    }
    let loaded = state::loaded_parts(session)?;
    let missing =
        found.map_or_else(|| TABLES.iter().map(|table| table.name).collect(), |state| state.missing);
    if let Some((table, _)) = loaded.iter().find(|(table, _)| missing.contains(&table.as_str())) {
        return Err(Error::usage(format!("the table {table} was loaded and no longer exists"))
            .with_help("drop the data and rebuild them"));
    }
    let make = |session: &mut dyn Session| {
        let wanted = TABLES.iter().filter(|table| missing.contains(&table.name));
        let statements = |table: &Table| {
            let partitioned = dialect.create_partitioned(table).filter(|_| options.partition);
            let by_columns = dialect.create_by_columns(table).filter(|_| options.colstore);
            partitioned.or(by_columns).unwrap_or_else(|| vec![dialect.create_table(table)])
        };
        wanted.flat_map(statements).try_for_each(|statement| session.run(&statement))
    };
    change_tables(engine, session, make).map_err(|error| error.context("creating the tables"))?;
    let parts_of = |table: &'static Table| {
        let of = table.parts(scale.factor());
        (1..=of).map(move |number| TablePart { table, slice: Slice { number, of } })
    };
    let is_loaded = |part: &TablePart| {
        loaded
            .iter()
            .any(|(table, number)| table == part.table.name && *number == i64::from(part.slice.number))
    };
    let parts = TABLES.iter().rev().flat_map(parts_of).filter(|part| !is_loaded(part)).collect();
    Ok(Some((scale, parts)))
}

/// Loads a part and commits it together with its row in [`LOADED`], so that it is loaded completely or not at
/// all.
fn load(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    scale: Scale,
    part: &TablePart,
    shared: &Shared<'_>,
) -> Result<()> {
    let dates_are_text = dialect.has_only_integers();
    let columns = part.table.bulk_columns(dates_are_text);
    in_transaction(session, |session| {
        let bulk = BulkTable { name: part.table.name, columns: &columns };
        let mut load = session.bulk_load(&bulk)?;
        let mut rows = 0_u64;
        let mut writer = RowWriter::new(scale.factor(), dates_are_text);
        writer.rows(part.table.id, part.slice, &mut |values| {
            load.row(values)?;
            rows += 1;
            if rows.is_multiple_of(STRIDE) {
                shared.add_rows(STRIDE);
                shared.check_stop()?;
            }
            Ok(())
        })?;
        let taken = load.finish()?;
        if taken != rows {
            return Err(Error::protocol(format!("{rows} rows were sent, but {taken} were loaded")));
        }
        shared.add_rows(rows % STRIDE);
        session.run(&state::loaded(part.table, part.slice.number, rows))
    })
}

fn make_indexes(
    session: &mut dyn Session,
    dialect: &dyn Dialect,
    table: &Table,
    shared: &Shared<'_>,
) -> Result<()> {
    let date = dialect.partition_key(session, table)?;
    for (number, (name, columns)) in table.index_names().enumerate() {
        shared.check_stop()?;
        // A key can be unique across partitions only if it includes the partitioning column.
        let date = date.as_deref().filter(|_| number == 0);
        let columns: Vec<&str> = columns.iter().copied().chain(date).collect();
        let Some(statement) = dialect.create_index(table, number, &name, &columns) else { continue };
        if !has_index(session, dialect, table, &name)? {
            session.run(&statement).map_err(|error| error.context(&format!("creating index {name}")))?;
        }
    }
    Ok(())
}

fn has_index(session: &mut dyn Session, dialect: &dyn Dialect, table: &Table, name: &str) -> Result<bool> {
    Ok(session.query(&dialect.count_indexes(table.name, name))?.int(0, 0)? > 0)
}

/// Indexes that the build creates but that do not exist, as text.
pub(crate) fn missing_indexes(session: &mut dyn Session, dialect: &dyn Dialect) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for table in &TABLES {
        for (number, (name, columns)) in table.index_names().enumerate() {
            if dialect.create_index(table, number, &name, columns).is_none() {
                continue;
            }
            if !has_index(session, dialect, table, &name)? {
                missing.push(format!("index {name} of {} ({})", table.name, columns.join(", ")));
            }
        }
    }
    Ok(missing)
}

/// Drops everything that a build created, complete or not. Missing objects are not an error.
pub(crate) fn drop_data(engine: &dyn Engine, dialect: &dyn Dialect) -> Result<()> {
    let mut session = engine.connect()?;
    let present = state::present_tables(session.as_mut(), dialect)?;
    if present.is_empty() {
        return Ok(());
    }
    if !present.iter().any(|name| name == BUILD) {
        return Err(Error::usage(format!(
            "Kelvin did not create these tables and does not remove them: {}",
            present.join(", ")
        )));
    }
    let names = TABLES.iter().rev().map(|table| table.name).chain([LOADED, BUILD]);
    let drop = |session: &mut dyn Session| {
        names.into_iter().try_for_each(|name| session.run(&format!("drop table if exists {name}")))
    };
    change_tables(engine, session.as_mut(), drop).map_err(|error| error.context("removing the tables"))
}
