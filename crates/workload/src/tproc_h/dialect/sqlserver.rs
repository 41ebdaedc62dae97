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

    /// A clustered columnstore index; its keys and other indexes are B-trees.
    fn create_by_columns(&self, table: &Table) -> Option<Vec<String>> {
        let index = format!("create clustered columnstore index {name}_cs on {name}", name = table.name);
        Some(vec![self.create_table(table), index])
    }

    fn is_by_columns(&self, session: &mut dyn Session, table: &Table) -> Result<bool> {
        Ok(session.query(&columnstores(table.name))?.int(0, 0)? > 0)
    }

    /// The primary key becomes the clustered index, unless the table is a columnstore.
    fn create_index(&self, table: &Table, number: usize, name: &str, columns: &[&str]) -> Option<String> {
        let (table, columns) = (table.name, columns.join(", "));
        Some(match number {
            0 => {
                let key = |kind: &str| {
                    format!("alter table {table} add constraint {name} primary key {kind} ({columns})")
                };
                format!("if ({}) > 0 {} else {}", columnstores(table), key("nonclustered"), key("clustered"))
            }
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
        load::take_build_lock(session, stop)
    }

    fn analyze(&self, table: &Table) -> String {
        // Babelfish rejects the statement even where it is not executed, hence `exec`.
        format!("if serverproperty('babelfish') is null exec('update statistics {}')", table.name)
    }

    /// Only owners of the database may request a checkpoint.
    fn refuses_checkpoint(&self, error: &Error) -> bool {
        error.class() == ErrorClass::Statement
    }

    /// Casts to the longest decimal type: `round` would keep the type, in which a sum has six decimal places.
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

/// A query for the number of clustered columnstore indexes of a table: 0 or 1.
fn columnstores(table: &str) -> String {
    format!("select count(*) from sys.indexes where object_id = object_id('{table}') and type = 5")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tproc_h::query::{self, Parameters, QUERIES};
    use crate::tproc_h::schema::{Name, TABLES, table};

    /// Query 1 to 22 with the parameters of the validation run.
    fn sql(number: u8) -> String {
        query::sql(number, &SqlServer, &Parameters::for_validation(number, 1.0))
    }

    /// Words that T-SQL spells differently or lacks.
    const FOREIGN: [&str; 11] = [
        " limit ",
        "extract(",
        "interval ",
        "date '",
        "round(",
        "substr(",
        "::",
        "||",
        " nulls ",
        "create view",
        "fetch first",
    ];

    #[test]
    fn the_statements_have_no_words_that_t_sql_does_not_have() {
        for number in 1..=QUERIES {
            let sql = sql(number);
            for words in FOREIGN {
                assert!(!sql.contains(words), "query {number} has {words:?}: {sql}");
            }
            // Each derived table has a name, and no placeholder is left.
            assert!(!sql.contains('{') && !sql.contains(":1") && !sql.contains("''"), "{sql}");
            for (at, _) in sql.match_indices("from (select") {
                let rest = &sql[at + "from ".len()..];
                let mut depth = 0_i32;
                let end = rest.find(|c: char| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    depth == 0
                });
                assert!(rest[end.unwrap() + 1..].starts_with(" as "), "query {number}: {sql}");
            }
        }
    }

    #[test]
    fn first_rows_years_and_rounded_sums_are_t_sqls() {
        for (number, rows) in [(2, 100), (3, 10), (10, 20), (18, 100), (21, 100)] {
            assert!(sql(number).starts_with(&format!("select top ({rows}) ")), "{}", sql(number));
        }
        assert!(
            sql(7).contains("year(l_shipdate) as l_year") && sql(9).contains("year(o_orderdate) as o_year")
        );
        assert!(sql(6).contains(
            "select cast(sum(l_extendedprice * l_discount) as decimal(38, 2)) as revenue from lineitem \
             where l_shipdate >= '1994-01-01' and l_shipdate < '1995-01-01' \
             and l_discount between 0.05 and 0.07 and l_quantity < 24.00"
        ));
        assert!(sql(22).contains("substring(c_phone, 1, 2)"));
        // The view is in the statement.
        assert!(sql(15).starts_with("with revenue (supplier_no, total_revenue) as (select "));
    }

    #[test]
    fn tables_by_rows_and_by_columns_are_made() {
        let region = SqlServer.create_table(table(Name::Region));
        assert_eq!(
            region,
            "create table region (r_regionkey integer not null, r_name char(25) collate Latin1_General_BIN2 not null, \
             r_comment varchar(152) collate Latin1_General_BIN2 not null)"
        );
        let columns = SqlServer.create_by_columns(table(Name::Region)).unwrap();
        assert_eq!(columns, [region, "create clustered columnstore index region_cs on region".to_owned()]);
        let key = SqlServer.create_index(&TABLES[0], 0, "region_pk", &["r_regionkey"]).unwrap();
        assert_eq!(
            key,
            "if (select count(*) from sys.indexes where object_id = object_id('region') and type = 5) > 0 \
             alter table region add constraint region_pk primary key nonclustered (r_regionkey) \
             else alter table region add constraint region_pk primary key clustered (r_regionkey)"
        );
        let index = SqlServer.create_index(&TABLES[1], 1, "nation_i2", &["n_regionkey"]);
        assert_eq!(index.as_deref(), Some("create index nation_i2 on nation (n_regionkey)"));
    }
}
