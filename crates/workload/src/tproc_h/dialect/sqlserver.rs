//! TPROC-H on SQL Server.

use kelvin_database::{EngineKind, Error, ErrorClass, Result, Session};

use super::{Common, Dialect, common};
use crate::Stop;
use crate::tproc_c::load::sqlserver as load;
use crate::tproc_c::schema::sqlserver::BY_BYTES;
use crate::tproc_h::schema::{Table, standard_type};

#[derive(Debug)]
pub(super) struct SqlServer;

impl Dialect for SqlServer {
    fn common(&self) -> Result<&'static dyn Common> {
        common(EngineKind::SqlServer)
    }

    fn create_table(&self, table: &Table) -> String {
        table.create(|kind| standard_type(kind, BY_BYTES), false, "")
    }

    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String> {
        let (table, columns) = (table.name, columns.join(", "));
        Some(match number {
            0 => format!("alter table {table} add constraint {name} primary key clustered ({columns})"),
            _ => format!("create index {name} on {table} ({columns})"),
        })
    }

    fn count_indexes(&self, table: &str, name: &str) -> String {
        format!("select count(*) from sys.indexes where object_id = object_id('{table}') and name = '{name}'")
    }

    fn set_up_load(&self, session: &mut dyn Session, _loaders: usize) -> Result<()> {
        load::set_up(session)
    }

    fn begin_build(&self, session: &mut dyn Session, stop: &Stop) -> Result<()> {
        load::keep_others_out(session, stop)
    }

    fn analyze(&self, table: &Table) -> String {
        format!("update statistics {}", table.name)
    }

    /// Only owners of the database may ask for one.
    fn refuses_checkpoint(&self, error: &Error) -> bool {
        error.class() == ErrorClass::Statement
    }

    /// A decimal of the longest type: `round` keeps the type, in which a sum has six places.
    fn rounded(&self, x: &str, places: u8) -> String {
        format!("cast({x} as decimal(38, {places}))")
    }

    fn year(&self, date: &str) -> String {
        format!("year({date})")
    }

    fn top(&self, rows: u32) -> String {
        format!(" top ({rows})")
    }

    fn limit(&self, _rows: u32) -> String {
        String::new()
    }
}
