//! The engines that support pgbench's tables.

use kelvin_database::{EngineKind, Error, Result};

use super::initialize::Postgres;
use super::mysql::Mysql;
use super::sqlserver::SqlServer;
use super::tables::Tables;

/// The tables of an engine; `None` if it does not support them.
pub(super) fn of_engine(kind: EngineKind) -> Option<&'static dyn Tables> {
    match kind {
        EngineKind::Postgres => Some(&Postgres),
        EngineKind::Mysql => Some(&Mysql),
        EngineKind::SqlServer => Some(&SqlServer),
        EngineKind::Sqlite | EngineKind::Other(_) => None,
    }
}

/// The same, or an error that names the engines that support them.
pub(super) fn needed(kind: EngineKind) -> Result<&'static dyn Tables> {
    of_engine(kind).ok_or_else(|| {
        Error::usage(format!("pgbench's workloads need PostgreSQL, MySQL, MariaDB or SQL Server, not {kind}"))
            .with_help("specify one with --target postgres or --target postgres://user@host/database")
    })
}
