//! TPROC-C on SQL Server.

use kelvin_database::{Capabilities, Engine, Result, Session};

use super::Dialect;
use crate::tproc_c::calls::{Driven, Execute, OneByOne, sql, tsql};
use crate::tproc_c::hammerdb::{Routines, sqlserver as hammerdb};
use crate::tproc_c::load;
use crate::tproc_c::schema::metadata::Build;
use crate::tproc_c::schema::{self, Table};
use crate::tproc_c::{Calls, Options, Profile};
use crate::{BuildProgress, Stop};

#[derive(Debug)]
pub(super) struct SqlServer;

impl Dialect for SqlServer {
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String> {
        vec![schema::sqlserver::create_table(table, load::sqlserver::fills_pages(options))]
    }

    fn key_type(&self) -> &'static str {
        "varchar(64)"
    }

    fn present_tables(&self, names: &str) -> String {
        format!(
            "select lower(name) from sys.objects where type in ('U', 'V') and schema_name(schema_id) = schema_name() \
             and lower(name) in ({names}) order by 1"
        )
    }

    fn indexes(&self, table: &Table, _profile: Profile) -> Vec<(String, &'static [&'static str])> {
        table.key_and_index(false)
    }

    fn has_index(&self, session: &mut dyn Session, table: &str, index: &(String, &[&str])) -> Result<bool> {
        load::sqlserver::has_index(session, table, index.1)
    }

    fn build(
        &self,
        engine: &dyn Engine,
        options: &Options,
        progress: &dyn BuildProgress,
        stop: &Stop,
    ) -> Result<()> {
        load::sqlserver::build(engine, self, options, progress, stop)
    }

    fn can_fill_pages(&self) -> bool {
        true
    }

    fn ways(&self, _can: Capabilities) -> Vec<Calls> {
        vec![Calls::Functions, Calls::Pipelined, Calls::Statements]
    }

    fn executor(&self, driven: Driven, profile: Profile, warehouses: u32) -> Box<dyn Execute> {
        match (driven.calls, profile) {
            (Calls::Statements, _) => Box::new(OneByOne::new(sql::sqlserver::statements)),
            (Calls::Pipelined, _) => Box::new(tsql::batches()),
            (Calls::Functions, Profile::Spec) => Box::new(tsql::procedures()),
            (Calls::Functions, Profile::Hammerdb) => Box::new(hammerdb::executor(warehouses)),
        }
    }

    fn check_settings(&self) -> &'static str {
        "set lock_timeout -1"
    }

    /// `||` concatenates texts only since SQL Server 2025.
    fn joined(&self, texts: &str) -> String {
        format!("concat({})", texts.replace(" || ", ", "))
    }

    fn number_as_text(&self, x: &str) -> String {
        format!("cast({x} as varchar(50))")
    }

    /// The sum of `int` is an `int` and may overflow.
    fn large(&self, x: &str) -> String {
        format!("cast({x} as bigint)")
    }

    fn drop_routines(&self, session: &mut dyn Session) -> Result<()> {
        tsql::drop(session)
    }

    fn missing_routines(&self, session: &mut dyn Session) -> Result<Vec<String>> {
        tsql::missing(session)
    }

    fn hammerdbs_build(&self, session: &mut dyn Session) -> Result<Option<Build>> {
        hammerdb::read_build(session)
    }

    fn hammerdbs_routines(&self, session: &mut dyn Session) -> Result<Option<Routines>> {
        hammerdb::find(session)
    }
}
