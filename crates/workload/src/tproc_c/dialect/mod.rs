//! Engine-specific parts of TPROC-C, beyond the SQL that all engines share.

mod mysql;
mod postgres;
mod sqlite;
mod sqlserver;
#[cfg(test)]
mod unknown_engine;

use kelvin_database::{Capabilities, Engine, EngineKind, Error, Result, Session};

use super::calls::{Execute, ExecutorOptions};
use super::hammerdb::Routines;
use super::schema::SchemaDialect;
use super::{Calls, Options};
use crate::{BuildProgress, Stop};

/// The dialect of an engine.
///
/// # Errors
/// TPROC-C has no dialect for this engine.
pub(crate) fn for_engine(kind: EngineKind) -> Result<&'static dyn Dialect> {
    match kind {
        EngineKind::Postgres => Ok(&postgres::Postgres),
        EngineKind::Sqlite => Ok(&sqlite::Sqlite),
        EngineKind::Mysql => Ok(&mysql::Mysql),
        EngineKind::SqlServer => Ok(&sqlserver::SqlServer),
        EngineKind::Other(_) => Err(Error::usage(format!("TPROC-C has no dialect for {kind}"))),
    }
}

/// The number of bytes that a query returns; `None` if it returns no row or NULL.
fn bytes(session: &mut dyn Session, query: &str) -> Result<Option<u64>> {
    let rows = session.query(query)?;
    if rows.is_empty() || rows.is_null(0, 0)? {
        return Ok(None);
    }
    let bytes = rows.int(0, 0)?;
    u64::try_from(bytes).map(Some).map_err(|_| Error::protocol(format!("a table has {bytes} bytes")))
}

/// One engine's part of the workload.
pub(crate) trait Dialect: SchemaDialect {
    /// Creates the tables and loads them, or resumes an interrupted build.
    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()>;

    /// Whether rows that all transactions change can each have a page ([`Options::fill_page`]).
    fn can_fill_pages(&self) -> bool {
        false
    }

    /// The ways of calling that it supports with these capabilities, the fastest first.
    fn ways(&self, _can: Capabilities) -> Vec<Calls> {
        vec![Calls::Statements]
    }

    /// Creates the executor of one user, for one of these ways.
    fn executor(&self, options: ExecutorOptions) -> Box<dyn Execute>;

    /// Statement with the settings of a session that checks the consistency conditions. Each query joins or
    /// aggregates whole tables; `||` must concatenate texts, unless [`Dialect::concatenate`] replaces it.
    fn check_settings(&self) -> &'static str;

    /// Whether the engine supports FULL JOIN.
    fn has_full_join(&self) -> bool {
        true
    }

    /// Replaces the source of a condition's rows, where the engine needs another.
    fn condition_source(&self, _number: u32) -> Option<&'static str> {
        None
    }

    /// An amount of money as a literal of the column's type.
    fn money(&self, cents: i64) -> String {
        format!("{}.{:02}", cents / 100, cents % 100)
    }

    /// The SQL that concatenates texts and numbers, which are given separated by ` || `.
    fn concatenate(&self, texts: &str) -> String {
        texts.to_owned()
    }

    /// The SQL for an integer `x` whose sum may need more than 32 bits.
    fn as_bigint(&self, x: &str) -> String {
        x.to_owned()
    }

    /// The SQL that converts the money `x`, which is not NULL, to text.
    fn money_as_text(&self, x: &str) -> String {
        self.number_as_text(x)
    }

    /// The SQL that converts the number `x`, which is not NULL, to text.
    fn number_as_text(&self, x: &str) -> String {
        format!("cast({x} as text)")
    }

    /// Bytes that a scan of a table reads, without its indexes; `None` if unknown.
    fn table_bytes(&self, _session: &mut dyn Session, _table: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether the server loses rows in updates that join anything other than tables.
    fn joins_lose_rows(&self, _session: &mut dyn Session) -> Result<bool> {
        Ok(false)
    }

    /// Drops Kelvin's stored routines, if they exist.
    fn drop_routines(&self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    /// Kelvin's stored routines that are not in the database, as text.
    fn missing_routines(&self, _session: &mut dyn Session) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Routines with HammerDB's interface in the database.
    fn hammerdbs_routines(&self, _session: &mut dyn Session) -> Result<Option<Routines>> {
        Ok(None)
    }
}
