//! TPROC-H on MySQL and MariaDB.

use kelvin_database::{EngineKind, Error, Result, Session};

use super::{Common, Dialect, common};
use crate::Stop;
use crate::tproc_c::load::mysql as load;
use crate::tproc_c::schema::mysql::TEXTS;
use crate::tproc_h::schema::{Table, standard_type};

#[derive(Debug)]
pub(super) struct Mysql;

impl Dialect for Mysql {
    fn common(&self) -> Result<&'static dyn Common> {
        common(EngineKind::Mysql)
    }

    fn has_case_sensitive_tables(&self) -> bool {
        true
    }

    /// InnoDB clusters a table by its primary key, in whose order the rows are loaded.
    fn create_table(&self, table: &Table) -> String {
        table.create(|kind| standard_type(kind, ""), true, &format!(" engine = InnoDB {TEXTS}"))
    }

    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String> {
        (number > 0).then(|| format!("create index {name} on {} ({})", table.name, columns.join(", ")))
    }

    fn count_indexes(&self, table: &str, name: &str) -> String {
        format!(
            "select count(*) from information_schema.statistics \
             where table_schema = database() and table_name = '{table}' and index_name = '{name}'"
        )
    }

    fn set_up_load(&self, session: &mut dyn Session, _loaders: usize) -> Result<()> {
        load::set_up(session)
    }

    fn begin_build(&self, session: &mut dyn Session, stop: &Stop) -> Result<()> {
        load::keep_others_out(session, stop)
    }

    fn analyze(&self, table: &Table) -> String {
        format!("analyze table {}", table.name)
    }

    fn refuses_checkpoint(&self, error: &Error) -> bool {
        error.code().0 == load::ACCESS_DENIED
    }

    /// By default a quotient has only four decimal places more than its dividend, too few to round it like
    /// other engines.
    fn set_up_queries(&self, session: &mut dyn Session) -> Result<()> {
        session.run("set session div_precision_increment = 16")
    }
}
