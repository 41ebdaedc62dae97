//! What TPROC-C has to know of an engine beyond the SQL that all of them share.

mod mysql;
mod postgres;
mod sqlite;
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
/// When TPROC-C has none for it.
pub(crate) fn of_engine(kind: EngineKind) -> Result<&'static dyn Dialect> {
    match kind {
        EngineKind::Postgres => Ok(&postgres::Postgres),
        EngineKind::Sqlite => Ok(&sqlite::Sqlite),
        EngineKind::Mysql => Ok(&mysql::Mysql),
        EngineKind::SqlServer | EngineKind::Other(_) => {
            Err(Error::usage(format!("TPROC-C has no dialect for {kind}")))
        }
    }
}

/// The number of bytes that this query returns; none if it returns no row, or null.
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
    /// Statements that make a table, with what has to be there before the rows.
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String>;

    /// Type of a column that holds a short text and can be a primary key.
    fn key_type(&self) -> &'static str {
        "text"
    }

    /// A query of the names, sorted, of those tables that exist where an unqualified name looks. `names` are quoted texts
    /// with commas between them.
    fn present_tables(&self, names: &str) -> String;

    /// Names and columns of the indexes that a table has beside what it is made with.
    fn indexes(&self, table: &Table, profile: Profile) -> Vec<(String, &'static [&'static str])>;

    /// Whether a table has one of these indexes.
    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool>;

    /// Makes the tables and loads them, or goes on with a build that was interrupted.
    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()>;

    /// The ways of calling that it has on an engine that can do this, the fastest first.
    fn ways(&self, _can: Capabilities) -> Vec<Calls> {
        vec![Calls::Statements]
    }

    /// Makes the executor of one user, for one of these ways.
    fn executor(&self, driven: Driven, profile: Profile, warehouses: u32) -> Box<dyn Execute>;

    /// Settings of a session that checks the consistency conditions: each query joins or aggregates whole tables, and
    /// `||` joins texts.
    fn check_settings(&self) -> &'static str;

    /// Whether two tables can be joined so that the rows of both stay that match none of the other.
    fn has_full_join(&self) -> bool {
        true
    }

    /// Other words for where the rows of a condition come from, where they are needed.
    fn condition_source(&self, _number: u32) -> Option<&'static str> {
        None
    }

    /// An amount of money as the column holds it.
    fn money(&self, cents: i64) -> String {
        format!("{}.{:02}", cents / 100, cents % 100)
    }

    /// The SQL that makes a text of the money `x`, which is not null.
    fn money_as_text(&self, x: &str) -> String {
        self.number_as_text(x)
    }

    /// The SQL that makes a text of the number `x`, which is not null.
    fn number_as_text(&self, x: &str) -> String {
        format!("cast({x} as text)")
    }

    /// Bytes that a scan of a table of ours reads, without its indexes; none where that is not known.
    fn table_bytes(&self, _session: &mut dyn Session, _table: &str) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether the server loses rows in updates that join something other than tables.
    fn joins_lose_rows(&self, _session: &mut dyn Session) -> Result<bool> {
        Ok(false)
    }

    /// Drops our stored routines, if they are there.
    fn drop_routines(&self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    /// Our stored routines that are not in the database, as text.
    fn missing_routines(&self, _session: &mut dyn Session) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// A database that HammerDB built, where one can be recognised. Asked when all nine tables are there.
    fn hammerdbs_build(&self, _session: &mut dyn Session) -> Result<Option<Build>> {
        Ok(None)
    }

    /// Routines of HammerDB's interface in the database.
    fn hammerdbs_routines(&self, _session: &mut dyn Session) -> Result<Option<Routines>> {
        Ok(None)
    }
}
