//! pgbench's tables on the engines that have them.

use kelvin_database::{Engine, EngineKind, Error, Result, Session};

use super::history::Counter;
use super::initialize::{Postgres, Shape, TableState};
use super::mysql::Mysql;
use super::options::Options;
use super::sqlserver::SqlServer;
use crate::{BuildProgress, Stop};

/// The tables of an engine; none where it has none.
pub(super) fn of_engine(kind: EngineKind) -> Option<&'static dyn Tables> {
    match kind {
        EngineKind::Postgres => Some(&Postgres),
        EngineKind::Mysql => Some(&Mysql),
        EngineKind::SqlServer => Some(&SqlServer),
        EngineKind::Sqlite | EngineKind::Other(_) => None,
    }
}

/// The same, or an error that says who has them.
pub(super) fn needed(kind: EngineKind) -> Result<&'static dyn Tables> {
    of_engine(kind).ok_or_else(|| {
        Error::usage(format!("pgbench's workloads need PostgreSQL, MySQL, MariaDB or SQL Server, not {kind}"))
            .with_help("specify one with --target postgres or --target postgres://user@host/database")
    })
}

/// How one engine makes, finds and drops them.
pub(super) trait Tables: Sync {
    /// Refuses options that the engine has no words for.
    fn must_know(&self, options: &Options) -> Result<()>;

    /// Inspects the database.
    fn inspect(&self, session: &mut dyn Session) -> Result<TableState>;

    /// Makes and loads everything. What an earlier build left unfinished is made anew; anybody else's data is refused.
    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()>;

    /// How the complete tables that are in the database were made, if there are any.
    fn shape(&self, session: &mut dyn Session) -> Result<Option<Shape>>;

    /// Frees what replaced rows of the small tables took, or of all four; whether there was anything to do.
    fn vacuum(&self, session: &mut dyn Session, all: bool) -> Result<bool>;

    /// The number of rows in the history.
    fn history(&self, counter: &Counter, session: &mut dyn Session) -> Result<u64>;

    /// The server's cache of data: the name of its setting, and bytes where they are known.
    fn cache(&self, session: &mut dyn Session) -> Result<(&'static str, Option<u64>)>;
}
