//! TPROC-H on SQLite, which has neither decimals nor dates. Decimals are integers in hundredths, so sums are
//! exact. Dates are texts, which sort like dates. Sums that exceed 64 bits are an error; those of query 1 do
//! from scale factor 80 on.

use kelvin_database::{Engine, EngineKind, Result, Session};

use super::{Common, Dialect, common};
use crate::Stop;
use crate::tproc_c::load::sqlite as load;
use crate::tproc_h::schema::{ColumnKind, Table};

#[derive(Debug)]
pub(super) struct Sqlite;

impl Dialect for Sqlite {
    fn common(&self) -> Result<&'static dyn Common> {
        common(EngineKind::Sqlite)
    }

    /// Rows are loaded in the order of the primary key. With a key of several columns, only a table `without
    /// rowid` is clustered by it.
    fn create_table(&self, table: &Table) -> String {
        table.create(type_name, true, if table.key.len() > 1 { " without rowid" } else { "" })
    }

    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String> {
        (number > 0).then(|| format!("create index {name} on {} ({})", table.name, columns.join(", ")))
    }

    fn count_indexes(&self, _table: &str, name: &str) -> String {
        format!("select count(*) from sqlite_master where type = 'index' and name = '{name}'")
    }

    fn set_up_load(&self, session: &mut dyn Session, _loaders: usize) -> Result<()> {
        load::set_up(session)
    }

    fn loaders(&self, asked: Option<u32>) -> Result<usize> {
        if asked.is_some_and(|loaders| loaders > 1) {
            return Err(load::one_loader());
        }
        Ok(1)
    }

    fn begin_build(&self, _session: &mut dyn Session, _stop: &Stop) -> Result<()> {
        Ok(())
    }

    fn analyze(&self, table: &Table) -> String {
        format!("pragma analysis_limit = 0; analyze {}", table.name)
    }

    fn end_build(&self, engine: &dyn Engine) -> Result<()> {
        load::sync(engine.connect()?.as_mut())
    }

    /// LIKE is case-sensitive, as on the other engines.
    fn set_up_queries(&self, session: &mut dyn Session) -> Result<()> {
        session.run("pragma case_sensitive_like = on")
    }

    fn has_only_integers(&self) -> bool {
        true
    }

    fn sum(&self, x: &str) -> String {
        format!("sum({x})")
    }

    fn average(&self, x: &str) -> String {
        format!("cast(sum({x}) as real) / (100 * count(*))")
    }

    fn rounded(&self, x: &str, _places: u8) -> String {
        x.to_owned()
    }

    fn year(&self, date: &str) -> String {
        format!("cast(substr({date}, 1, 4) as integer)")
    }
}

fn type_name(kind: ColumnKind) -> String {
    match kind {
        ColumnKind::Key | ColumnKind::Int | ColumnKind::Decimal => "integer".into(),
        ColumnKind::Char(_) | ColumnKind::VarChar(_) | ColumnKind::Date => "text".into(),
    }
}
