//! Engine-specific parts of TPROC-C, beyond the SQL that all engines share.

mod mysql;
mod postgres;
mod sqlite;
mod sqlserver;
#[cfg(test)]
mod unknown_engine;

use std::fmt::Debug;

use kelvin_database::{Capabilities, Engine, EngineKind, Error, Result, Session};

use super::calls::{Driven, Execute};
use super::hammerdb::Routines;
use super::schema::Table;
use super::schema::metadata::Build;
use super::{Calls, Options, Profile};
use crate::{BuildProgress, Stop};

/// The dialect of an engine.
///
/// # Errors
/// TPROC-C has no dialect for this engine.
pub(crate) fn of_engine(kind: EngineKind) -> Result<&'static dyn Dialect> {
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
pub(crate) trait Dialect: Debug + Send + Sync {
    /// Statements that create a table with everything that must exist before its rows.
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String>;

    /// Type of a column with a short text that can be a primary key.
    fn key_type(&self) -> &'static str {
        "text"
    }

    /// A query for the names, sorted, of the tables that exist where an unqualified name is looked up.
    /// `names` are quoted names separated by commas.
    fn present_tables(&self, names: &str) -> String;

    /// Names and columns of the indexes that are created after the table.
    fn indexes(&self, table: &Table, profile: Profile) -> Vec<(String, &'static [&'static str])>;

    /// Whether a table has one of these indexes.
    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool>;

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
    fn executor(&self, driven: Driven, profile: Profile, warehouses: u32) -> Box<dyn Execute>;

    /// Statement with the settings of a session that checks the consistency conditions. Each query joins or
    /// aggregates whole tables; `||` must concatenate texts, unless [`joined`](Self::joined) replaces it.
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
    fn joined(&self, texts: &str) -> String {
        texts.to_owned()
    }

    /// The SQL for an integer `x` whose sum may need more than 32 bits.
    fn large(&self, x: &str) -> String {
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

    /// A build of HammerDB's, if it can be recognised. Called if all nine tables exist.
    fn hammerdbs_build(&self, _session: &mut dyn Session) -> Result<Option<Build>> {
        Ok(None)
    }

    /// Routines with HammerDB's interface in the database.
    fn hammerdbs_routines(&self, _session: &mut dyn Session) -> Result<Option<Routines>> {
        Ok(None)
    }
}
