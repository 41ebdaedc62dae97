//! TPROC-C on PostgreSQL.

use kelvin_database::postgres::faults;
use kelvin_database::{Capabilities, Engine, Result, Session};

use super::Dialect;
use crate::tproc_c::calls::{Driven, Execute, OneByOne, functions, pipelined, sql};
use crate::tproc_c::hammerdb::{Routines, postgres as hammerdb};
use crate::tproc_c::load;
use crate::tproc_c::schema::metadata::Build;
use crate::tproc_c::schema::{self, Table, item_first};
use crate::tproc_c::{Calls, Options, Profile};
use crate::{BuildProgress, Stop};

#[derive(Debug)]
pub(super) struct Postgres;

impl Dialect for Postgres {
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String> {
        schema::postgres::create_table(table, options.partitions)
    }

    fn present_tables(&self, names: &str) -> String {
        format!(
            "select relname::text from pg_catalog.pg_class where relname in ({names}) \
             and relkind in ('r', 'p', 'v', 'm', 'f') and pg_catalog.pg_table_is_visible(oid) order by 1"
        )
    }

    fn indexes(&self, table: &Table, profile: Profile) -> Vec<(String, &'static [&'static str])> {
        table.key_and_index(item_first(profile))
    }

    /// Whether a valid unique index has exactly these columns, whatever its name.
    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool> {
        let found = session.query(&format!(
            "select count(*) from pg_catalog.pg_index where indrelid = to_regclass('{table}') and indisunique \
             and indisvalid and '{}' = (select string_agg(attname, ',' order by k.position) \
                 from unnest(indkey::int2[]) with ordinality as k(number, position) \
                 join pg_catalog.pg_attribute on attrelid = indrelid and attnum = k.number)",
            index.1.join(",")
        ))?;
        Ok(found.int(0, 0)? > 0)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        load::postgres::build(engine, self, options, progress, stop)
    }

    fn ways(&self, can: Capabilities) -> Vec<Calls> {
        let functions = can.stored_functions.then_some(Calls::Functions);
        let pipelined = (can.one_round_trip_batch && can.arrays).then_some(Calls::Pipelined);
        [functions, pipelined, Some(Calls::Statements)].into_iter().flatten().collect()
    }

    fn executor(&self, driven: Driven, profile: Profile, warehouses: u32) -> Box<dyn Execute> {
        match (driven.calls, profile) {
            (Calls::Statements, _) => {
                Box::new(OneByOne::new(|| sql::returning(sql::postgres::OLDEST_NEW_ORDER)))
            }
            (Calls::Pipelined, _) => Box::new(pipelined::Pipelined::new(driven.joins_lose_rows)),
            (Calls::Functions, Profile::Spec) => Box::new(functions::executor()),
            (Calls::Functions, Profile::Hammerdb) => Box::new(hammerdb::executor(warehouses)),
        }
    }

    /// Sorts and hashes are in memory if they fit, without JIT. A range of warehouses is found by the key,
    /// whose order is nearly that of the rows; the connections already run in parallel. Nested loops are
    /// disabled because the planner underestimates the rows of a range and would look up every order.
    fn check_settings(&self) -> &'static str {
        "set work_mem = '256MB'; set jit = off; set statement_timeout = 0; set random_page_cost = 1.1; \
         set enable_nestloop = off; set max_parallel_workers_per_gather = 0"
    }

    /// Includes the partitions of a partitioned table.
    fn table_bytes(&self, session: &mut dyn Session, table: &str) -> Result<Option<u64>> {
        let query = format!(
            "select (pg_catalog.pg_relation_size('{table}') + coalesce((select sum(pg_catalog.pg_relation_size(relid)) \
             from pg_catalog.pg_partition_tree('{table}') where relid <> '{table}'::regclass), 0))::bigint"
        );
        super::bytes(session, &query)
    }

    fn joins_lose_rows(&self, session: &mut dyn Session) -> Result<bool> {
        faults::loses_rows_in_joins(session)
    }

    fn drop_routines(&self, session: &mut dyn Session) -> Result<()> {
        functions::drop(session)
    }

    fn missing_routines(&self, session: &mut dyn Session) -> Result<Vec<String>> {
        functions::missing(session)
    }

    fn hammerdbs_build(&self, session: &mut dyn Session) -> Result<Option<Build>> {
        hammerdb::read_build(session)
    }

    fn hammerdbs_routines(&self, session: &mut dyn Session) -> Result<Option<Routines>> {
        hammerdb::find(session)
    }
}
