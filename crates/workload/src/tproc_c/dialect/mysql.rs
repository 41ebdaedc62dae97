//! TPROC-C on MySQL and MariaDB.

use kelvin_database::{Capabilities, Engine, Result, Session};

use super::Dialect;
use crate::tproc_c::calls::mysql::ClientSql;
use crate::tproc_c::calls::{Driven, Execute, procedures};
use crate::tproc_c::hammerdb::{Routines, mysql as hammerdb};
use crate::tproc_c::load;
use crate::tproc_c::schema::metadata::Build;
use crate::tproc_c::schema::{self, Table};
use crate::tproc_c::{Calls, Options, Profile};
use crate::{BuildProgress, Stop};

#[derive(Debug)]
pub(super) struct Mysql;

impl Dialect for Mysql {
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String> {
        vec![schema::mysql::create_table(table, options.partitions)]
    }

    fn key_type(&self) -> &'static str {
        "varchar(64)"
    }

    fn present_tables(&self, names: &str) -> String {
        format!(
            "select table_name from information_schema.tables \
             where table_schema = database() and table_name in ({names}) order by 1"
        )
    }

    /// The primary key is the table itself.
    fn indexes(&self, table: &Table, _profile: Profile) -> Vec<(String, &'static [&'static str])> {
        table.key_and_index(false)
    }

    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool> {
        load::mysql::has_index(session, table, index.1)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        load::mysql::build(engine, self, options, progress, stop)
    }

    fn ways(&self, can: Capabilities) -> Vec<Calls> {
        let functions = can.stored_functions.then_some(Calls::Functions);
        let pipelined = can.one_round_trip_batch.then_some(Calls::Pipelined);
        [functions, pipelined, Some(Calls::Statements)].into_iter().flatten().collect()
    }

    fn executor(&self, driven: Driven, profile: Profile, warehouses: u32) -> Box<dyn Execute> {
        match (driven.calls, profile) {
            (Calls::Statements, _) => Box::new(ClientSql::new(false)),
            (Calls::Pipelined, _) => Box::new(ClientSql::new(true)),
            (Calls::Functions, Profile::Spec) => Box::new(procedures::executor()),
            (Calls::Functions, Profile::Hammerdb) => Box::new(hammerdb::executor(warehouses)),
        }
    }

    /// Derived tables are in memory if they fit, and `||` concatenates as on other engines. MariaDB would
    /// otherwise count the lines again for each order, which takes ten times as long; MySQL reads that part
    /// as a comment.
    fn check_settings(&self) -> &'static str {
        "set session tmp_table_size = 268435456, max_heap_table_size = 268435456, \
         sql_mode = concat(@@sql_mode, ',PIPES_AS_CONCAT') \
         /*M!100304 , optimizer_switch = 'split_materialized=off' */"
    }

    fn has_full_join(&self) -> bool {
        false
    }

    fn number_as_text(&self, x: &str) -> String {
        format!("cast({x} as char)")
    }

    /// From InnoDB's statistics, which MySQL otherwise caches for a day.
    fn table_bytes(&self, session: &mut dyn Session, table: &str) -> Result<Option<u64>> {
        session.run("set session sql_mode = @@sql_mode /*!80003 , information_schema_stats_expiry = 0 */")?;
        let query = format!(
            "select cast(data_length as signed) from information_schema.tables \
             where table_schema = database() and table_name = '{table}'"
        );
        super::bytes(session, &query)
    }

    fn drop_routines(&self, session: &mut dyn Session) -> Result<()> {
        procedures::drop(session)
    }

    fn missing_routines(&self, session: &mut dyn Session) -> Result<Vec<String>> {
        procedures::missing(session)
    }

    fn hammerdbs_build(&self, session: &mut dyn Session) -> Result<Option<Build>> {
        hammerdb::read_build(session)
    }

    fn hammerdbs_routines(&self, session: &mut dyn Session) -> Result<Option<Routines>> {
        hammerdb::find(session)
    }
}
