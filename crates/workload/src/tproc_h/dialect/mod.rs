//! Engine-specific parts of TPROC-H, beyond the SQL that all engines share.

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
use crate::tproc_c::dialect::{Dialect as Common, for_engine as common_of};
use crate::tproc_c::load::connections_of_the_host;

/// The dialect of an engine.
///
/// # Errors
/// TPROC-H has no dialect for this engine.
pub(crate) fn for_engine(kind: EngineKind) -> Result<&'static dyn Dialect> {
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
/// The queries are the specification's with three general changes, all of which it allows: the client
/// computes dates, query 15 has its view in the statement (`with`), and results of decimal arithmetic are
/// rounded in the statement, so that all engines return the same digits.
pub(crate) trait Dialect: Debug + Send + Sync {
    /// The parts that this engine's TPROC-C tables share with these.
    fn common(&self) -> Result<&'static dyn Common>;

    /// Whether table names are case-sensitive, at least on some servers.
    fn has_case_sensitive_tables(&self) -> bool {
        false
    }

    /// The statement that creates a table.
    fn create_table(&self, table: &Table) -> String;

    /// The statements that create a table partitioned by the year of its date; `None` if the table has no
    /// such date or the engine's tables are not partitioned.
    fn create_partitioned(&self, _table: &Table) -> Option<Vec<String>> {
        None
    }

    /// The statements that create a columnstore table; `None` if the engine does not support it.
    fn create_by_columns(&self, _table: &Table) -> Option<Vec<String>> {
        None
    }

    /// Whether an existing table is a columnstore.
    fn is_by_columns(&self, _session: &mut dyn Session, _table: &Table) -> Result<bool> {
        Ok(false)
    }

    /// The column by which an existing table is partitioned, if it is.
    fn partition_key(&self, _session: &mut dyn Session, _table: &Table) -> Result<Option<String>> {
        Ok(None)
    }

    /// The statement that creates an index of a table; number 0 is the primary key. `None` if the index is
    /// created with the table.
    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String>;

    /// A query for the number of a table's indexes with this name.
    fn count_indexes(&self, table: &str, name: &str) -> String;

    /// Applies the settings of one of `loaders` loading connections.
    fn set_up_load(&self, session: &mut dyn Session, loaders: usize) -> Result<()>;

    /// The number of loading connections; `asked` is the requested number.
    fn loaders(&self, asked: Option<u32>) -> Result<usize> {
        Ok(asked.map_or_else(connections_of_the_host, |loaders| loaders as usize))
    }

    /// Refuses a target that cannot hold the tables, and takes a lock that prevents other builds until the
    /// session ends.
    fn begin_build(&self, session: &mut dyn Session, stop: &Stop) -> Result<()>;

    /// The statement that gathers a table's statistics.
    fn analyze(&self, table: &Table) -> String;

    /// Syncs everything to disk before the data are marked as complete.
    fn end_build(&self, _engine: &dyn Engine) -> Result<()> {
        Ok(())
    }

    /// Whether the error means that this user may not request a checkpoint.
    fn refuses_checkpoint(&self, _error: &Error) -> bool {
        false
    }

    /// Applies the settings of a session that runs queries.
    fn set_up_queries(&self, _session: &mut dyn Session) -> Result<()> {
        Ok(())
    }

    /// Whether the engine has neither decimals nor dates: decimals are integers in units of their last
    /// decimal place, dates are texts.
    fn has_only_integers(&self) -> bool {
        false
    }

    /// An amount in hundredths as a literal of a decimal column.
    fn hundredths(&self, amount: i64) -> String {
        if self.has_only_integers() {
            return amount.to_string();
        }
        format!("{}.{:02}", amount / 100, amount % 100)
    }

    /// The SQL for a sum of decimals, rounded to two decimal places if the engine has decimals.
    fn sum(&self, x: &str) -> String {
        self.rounded(&format!("sum({x})"), 2)
    }

    /// The SQL for an average of decimals with two decimal places, rounded to two.
    fn average(&self, x: &str) -> String {
        self.rounded(&format!("avg({x})"), 2)
    }

    /// The SQL that rounds a decimal half away from zero.
    fn rounded(&self, x: &str, places: u8) -> String {
        format!("round({x}, {places})")
    }

    /// The SQL for the year of a date, as an integer.
    fn year(&self, date: &str) -> String {
        format!("extract(year from {date})")
    }

    /// The text after `select` that limits the rows, if the engine limits them there.
    fn top(&self, _rows: u32) -> String {
        String::new()
    }

    /// The text at the end of a statement that limits the rows, if the engine limits them there.
    fn limit(&self, rows: u32) -> String {
        format!(" limit {rows}")
    }

    /// The plan of a query; `None` if Kelvin does not read the engine's plans.
    fn plan(&self, _session: &mut dyn Session, _sql: &str) -> Result<Option<QueryPlan>> {
        Ok(None)
    }

    /// Whether [`Dialect::analyze_query`] is supported.
    fn can_analyze(&self) -> bool {
        false
    }

    /// Executes a query with analysis of its plan, and samples its waits over the watcher's session, if there
    /// is one. `None` if the engine does not support it.
    fn analyze_query(
        &self,
        _session: &mut dyn Session,
        _watcher: Option<&mut (dyn Session + 'static)>,
        _sql: &str,
    ) -> Result<Option<QueryAnalysis>> {
        Ok(None)
    }
}

/// The common dialect of a known engine.
fn common(kind: EngineKind) -> Result<&'static dyn Common> {
    common_of(kind)
}
