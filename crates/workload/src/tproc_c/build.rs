//! Building and removing the data, on whichever engine.

use kelvin_database::{Engine, Error, Result, Session};

use super::Options;
use super::dialect::Dialect;
use super::load::change_tables;
use super::schema;
use super::schema::metadata::{Build, BuiltBy, present_tables};
use crate::{BuildProgress, Stop};

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
