//! TPROC-C on SQLite.

use kelvin_database::{Engine, Result, Session};

use super::Dialect;
use crate::tproc_c::calls::{Driven, Execute, OneByOne, sql};
use crate::tproc_c::load;
use crate::tproc_c::schema::{self, Table};
use crate::tproc_c::{Options, Profile};
use crate::{BuildProgress, Stop};

#[derive(Debug)]
pub(super) struct Sqlite;

impl Dialect for Sqlite {
    fn create_table(&self, table: &Table, options: &Options) -> Vec<String> {
        vec![schema::sqlite::create_table(table, options.foreign_keys)]
    }

    fn present_tables(&self, names: &str) -> String {
        format!("select name from sqlite_master where name in ({names}) order by 1")
    }

    /// The primary key is the table itself.
    fn indexes(&self, table: &Table, _profile: Profile) -> Vec<(String, &'static [&'static str])> {
        table.second.iter().map(|index| (index.name.to_owned(), index.columns)).collect()
    }

    fn has_index(&self, session: &mut dyn Session, _table: &str, index: &(String, &[&str])) -> Result<bool> {
        let found = session.query(&format!(
            "select count(*) from sqlite_master where type = 'index' and name = '{}'",
            index.0
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
        load::sqlite::build(engine, self, options, progress, stop)
    }

    fn executor(&self, _driven: Driven, _profile: Profile, _warehouses: u32) -> Box<dyn Execute> {
        Box::new(OneByOne::new(|| sql::returning(sql::sqlite::OLDEST_NEW_ORDER)))
    }

    fn table_bytes(&self, session: &mut dyn Session, table: &str) -> Result<Option<u64>> {
        super::bytes(
            session,
            &format!("select pgsize from dbstat where name = '{table}' and aggregate = true"),
        )
    }

    fn check_settings(&self) -> &'static str {
        "pragma cache_size = -65536; pragma mmap_size = 0"
    }

    fn condition_source(&self, number: u32) -> Option<&'static str> {
        // SQLite would otherwise scan the counts of lines again for each order. Probing the clustered key is
        // fast. Lines without an order, which this does not find, violate conditions 4 and 7.
        (number == 6).then_some(
            "(select o_w_id, o_d_id, o_id, o_ol_cnt, null as ol_w_id, null as ol_d_id, null as ol_o_id, \
             (select count(*) from order_line where ol_w_id = o_w_id and ol_d_id = o_d_id and ol_o_id = o_id) \
             as n from orders) as o",
        )
    }

    /// SQLite stores money in cents.
    fn money(&self, cents: i64) -> String {
        cents.to_string()
    }

    fn money_as_text(&self, x: &str) -> String {
        format!("printf('%.2f', ({x}) / 100.0)")
    }
}
