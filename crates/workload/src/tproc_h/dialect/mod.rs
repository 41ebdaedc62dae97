//! What TPROC-H has to know of an engine beyond the SQL that all of them share.

mod mysql;
mod postgres;
mod postgres_analysis;
mod postgres_waits;
mod sqlite;
mod sqlserver;

use std::fmt::Debug;

use kelvin_database::{Engine, EngineKind, Error, Result, Session};
use kelvin_measure::query::QueryPlan;
use kelvin_measure::query_analysis::QueryAnalysis;

use super::schema::Table;
use crate::Stop;
use crate::tproc_c::dialect::{Dialect as Common, of_engine as common_of};
use crate::tproc_c::load::connections_of_the_host;

/// The dialect of an engine.
///
/// # Errors
/// When TPROC-H has none for it.
pub(crate) fn of_engine(kind: EngineKind) -> Result<&'static dyn Dialect> {
    match kind {
        EngineKind::Postgres => Ok(&postgres::Postgres),
        EngineKind::Sqlite => Ok(&sqlite::Sqlite),
        EngineKind::Mysql => Ok(&mysql::Mysql),
        EngineKind::SqlServer => Ok(&sqlserver::SqlServer),
        EngineKind::Other(_) => Err(Error::usage(format!("TPROC-H has no dialect for {kind}"))),
    }
}

/// One engine's part of the workload.
///
/// The queries are the specification's with three general changes, which it allows: dates are computed by the client, query 15
/// has its view in the statement (`with`), and results of decimal arithmetic are rounded in the statement, so that all engines
/// return the same digits.
pub(crate) trait Dialect: Debug + Send + Sync {
    /// What this engine's tables of TPROC-C have in common with these.
    fn common(&self) -> Result<&'static dyn Common>;

    /// Whether tables whose names differ in their letters' case are others, at least on some servers.
    fn has_case_sensitive_tables(&self) -> bool {
        false
    }

    /// The statement that makes a table.
    fn create_table(&self, table: &Table) -> String;

    /// The statements that make a table with partitions by the year of its date; none where it has no date or the engine's tables
    /// are not partitioned.
    fn create_partitioned(&self, _table: &Table) -> Option<Vec<String>> {
        None
    }

    /// The statements that make a table stored by columns; none where the engine does not do that.
    fn create_by_columns(&self, _table: &Table) -> Option<Vec<String>> {
        None
    }

    /// Whether an existing table is stored by columns.
    fn is_by_columns(&self, _session: &mut dyn Session, _table: &Table) -> Result<bool> {
        Ok(false)
    }

    /// The column by which an existing table is partitioned.
    fn partition_key(&self, _session: &mut dyn Session, _table: &Table) -> Result<Option<String>> {
        Ok(None)
    }

    /// The statement that makes an index of a table; the first one is the primary key. None where the table is made with it.
    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String>;

    /// A query of how many indexes of a table have this name.
    fn count_indexes(&self, table: &str, name: &str) -> String;

    /// Settings of a loading connection, of which there are `loaders`.
    fn set_up_load(&self, session: &mut dyn Session, loaders: usize) -> Result<()>;

    /// Connections that load, where so many are asked for.
    fn loaders(&self, asked: Option<u32>) -> Result<usize> {
        Ok(asked.map_or_else(connections_of_the_host, |loaders| loaders as usize))
    }

    /// Refuses a target that cannot hold the tables, and keeps other builds out as long as the session lasts.
    fn begin_build(&self, session: &mut dyn Session, stop: &Stop) -> Result<()>;

    /// The statement that computes a table's statistics.
    fn analyze(&self, table: &Table) -> String;

    /// Brings everything to disk before the data are marked as complete.
    fn end_build(&self, _engine: &dyn Engine) -> Result<()> {
        Ok(())
    }

    /// Whether an error is that of a checkpoint that this user may not ask for.
    fn refuses_checkpoint(&self, _error: &Error) -> bool {
        false
    }

    /// Settings of a session that runs queries.
    fn set_up_queries(&self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    /// Whether decimals are integers of their last place, and dates texts: the engine has neither type.
    fn has_only_integers(&self) -> bool {
        false
    }

    /// An amount of hundredths as a decimal column holds it.
    fn hundredths(&self, amount: i64) -> String {
        if self.has_only_integers() {
            return amount.to_string();
        }
        format!("{}.{:02}", amount / 100, amount % 100)
    }

    /// A sum of decimals, rounded to two places where the engine has decimals.
    fn sum(&self, x: &str) -> String {
        self.rounded(&format!("sum({x})"), 2)
    }

    /// An average of decimals with two places, rounded to two places.
    fn average(&self, x: &str) -> String {
        self.rounded(&format!("avg({x})"), 2)
    }

    /// The SQL that rounds a decimal, half away from zero.
    fn rounded(&self, x: &str, places: u8) -> String {
        format!("round({x}, {places})")
    }

    /// The year of a date, as an integer.
    fn year(&self, date: &str) -> String {
        format!("extract(year from {date})")
    }

    /// What stands after `select` for so many rows at most.
    fn top(&self, _rows: u32) -> String {
        String::new()
    }

    /// What stands at the end of a statement for so many rows at most.
    fn limit(&self, rows: u32) -> String {
        format!(" limit {rows}")
    }

    /// Why the engine cannot carry a query; none if it can.
    fn refused(&self, _query: u8) -> Option<&'static str> {
        None
    }

    /// The plan of a query; none where the engine's plans are not read.
    fn plan(&self, _session: &mut dyn Session, _sql: &str) -> Result<Option<QueryPlan>> {
        Ok(None)
    }

    /// Whether [`Dialect::analyze_query`] says anything.
    fn can_analyze(&self) -> bool {
        false
    }

    /// Executes a query for what its plan does, and samples it meanwhile in the session of the watcher, if there is one; none where the
    /// engine cannot be asked.
    fn analyze_query(
        &self,
        _session: &mut dyn Session,
        _watcher: Option<&mut (dyn Session + 'static)>,
        _sql: &str,
    ) -> Result<Option<QueryAnalysis>> {
        Ok(None)
    }
}

/// The common dialect of an engine of which there is one.
fn common(kind: EngineKind) -> Result<&'static dyn Common> {
    common_of(kind)
}
