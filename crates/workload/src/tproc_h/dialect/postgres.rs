//! TPROC-H on PostgreSQL.

use kelvin_database::postgres::explain::Plan;
use kelvin_database::{EngineKind, Error, Result, Session};
use kelvin_measure::query::QueryPlan;
use kelvin_measure::query_analysis::QueryAnalysis;

use super::{Common, Dialect, common, postgres_analysis as analysis, postgres_waits as waits};
use crate::Stop;
use crate::tproc_c::load::postgres as load;
use crate::tproc_h::schema::{Table, standard_type};

#[derive(Debug)]
pub(super) struct Postgres;

/// The years of the dates of orders and lines (TPC-H clause 4.2.2.12).
const YEARS: std::ops::RangeInclusive<i32> = 1992..=1998;

impl Dialect for Postgres {
    fn common(&self) -> Result<&'static dyn Common> {
        common(EngineKind::Postgres)
    }

    fn create_table(&self, table: &Table) -> String {
        table.create(|kind| standard_type(kind, ""), false, "")
    }

    fn create_partitioned(&self, table: &Table) -> Option<Vec<String>> {
        let (name, date) = (table.name, table.partition_date()?);
        let parent =
            table.create(|kind| standard_type(kind, ""), false, &format!(" partition by range ({date})"));
        let years = YEARS.map(|year| {
            let next = year + 1;
            format!("create table {name}_{year} partition of {name} for values from ('{year}-01-01') to ('{next}-01-01')")
        });
        Some(std::iter::once(parent).chain(years).collect())
    }

    fn partition_key(&self, session: &mut dyn Session, table: &Table) -> Result<Option<String>> {
        let rows = session.query(&format!(
            "select attname::text from pg_catalog.pg_partitioned_table join pg_catalog.pg_attribute \
             on attrelid = partrelid and attnum = partattrs[0] where partrelid = to_regclass('{}')",
            table.name
        ))?;
        Ok(rows.texts(0)?.pop())
    }

    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String> {
        let (table, columns) = (table.name, columns.join(", "));
        Some(match number {
            0 => format!("alter table {table} add constraint {name} primary key ({columns})"),
            _ => format!("create index {name} on {table} ({columns})"),
        })
    }

    fn count_indexes(&self, _table: &str, name: &str) -> String {
        format!("select count(*) from pg_catalog.pg_class where oid = to_regclass('{name}')")
    }

    fn set_up_load(&self, session: &mut dyn Session, loaders: usize) -> Result<()> {
        load::set_up(session, loaders)
    }

    fn begin_build(&self, session: &mut dyn Session, stop: &Stop) -> Result<()> {
        load::keep_others_out(session, stop)
    }

    /// Also sets the visibility map for index-only scans, and leaves no work for autovacuum during the run.
    fn analyze(&self, table: &Table) -> String {
        format!("vacuum (analyze, freeze) {}", table.name)
    }

    fn refuses_checkpoint(&self, error: &Error) -> bool {
        error.code().0 == load::INSUFFICIENT_PRIVILEGE
    }

    /// The type of `extract` differs between versions.
    fn year(&self, date: &str) -> String {
        format!("cast(extract(year from {date}) as integer)")
    }

    fn plan(&self, session: &mut dyn Session, sql: &str) -> Result<Option<QueryPlan>> {
        let mut explain = |options: &str| -> Result<String> {
            Ok(session.query(&format!("explain ({options}) {sql}"))?.texts(0)?.join("\n"))
        };
        let (text, json) = (explain("costs off")?, explain("verbose, format json")?);
        Ok(Plan::parse(&json).map(|plan| QueryPlan { digest: analysis::hash(&plan), text }))
    }

    fn can_analyze(&self) -> bool {
        true
    }

    fn analyze_query(
        &self,
        session: &mut dyn Session,
        watcher: Option<&mut (dyn Session + 'static)>,
        sql: &str,
    ) -> Result<Option<QueryAnalysis>> {
        let (found, waits) = waits::sampled(session, watcher, |session| analysis::analyze(session, sql))?;
        Ok(Some(QueryAnalysis { waits, ..found }))
    }
}
