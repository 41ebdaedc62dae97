//! The upkeep of a MySQL or MariaDB database.

use std::time::{Duration, Instant};

use super::{MysqlEngine, Product, encode};
use crate::{Engine, Error, Home, Result, Session};

/// Counts what there is for the optimizer, in every table of the database: no statement of the server's does that for all.
const ANALYZE: &str = "SET SESSION group_concat_max_len = 1048576; \
    SET @kelvin = (SELECT CONCAT('ANALYZE TABLE ', \
      GROUP_CONCAT(CONCAT('`', REPLACE(table_name, '`', '``'), '`') ORDER BY table_name)) \
      FROM information_schema.tables WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'); \
    SET @kelvin = COALESCE(@kelvin, 'DO 0'); \
    PREPARE kelvin FROM @kelvin; EXECUTE kelvin; DEALLOCATE PREPARE kelvin";

/// How long the purge of what deletes and updates left is waited for before a snapshot.
const PURGE_LIMIT: Duration = Duration::from_mins(2);
/// Transactions whose rests a quiet server keeps.
const PURGED: i64 = 50;

impl Home for MysqlEngine {
    fn product(&self) -> Result<String> {
        let (version, product) = super::engine::version(self.connect()?.as_mut())?;
        Ok(format!("{product} {}", super::engine::number(&version)))
    }

    fn unlimited(&self) -> Result<Box<dyn Session>> {
        let mut session = self.connect()?;
        let (_, product) = super::engine::version(session.as_mut())?;
        session.run(match product {
            Product::Mariadb => "SET SESSION max_statement_time = 0, wait_timeout = 2147483",
            Product::Mysql => "SET SESSION max_execution_time = 0, wait_timeout = 2147483",
        })?;
        Ok(session)
    }

    fn tables(&self) -> Result<Vec<String>> {
        self.connect()?
            .query(
                "SELECT table_name FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' ORDER BY 1",
            )?
            .texts(0)
    }

    fn upkeep(&self, _vacuum: bool, analyze: bool) -> Vec<(&'static str, &'static str)> {
        // What deleted rows took is freed by the server's own purge threads, all the time.
        if analyze { vec![("analyze", ANALYZE)] } else { Vec::new() }
    }

    fn ready_for_a_snapshot(&self) -> Result<()> {
        let mut session = self.unlimited()?;
        session.run(ANALYZE)?;
        let until = Instant::now() + PURGE_LIMIT;
        while history(session.as_mut())?.is_some_and(|length| length > PURGED) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(())
    }

    fn prewarm(&self) -> Result<String> {
        let mut session = self.unlimited()?;
        let rows = session.query(
            "SELECT DISTINCT s.table_name, s.index_name FROM information_schema.statistics s \
             JOIN information_schema.tables t USING (table_schema, table_name) \
             WHERE s.table_schema = DATABASE() AND t.table_type = 'BASE TABLE' AND s.index_type = 'BTREE' \
             ORDER BY 1, 2",
        )?;
        for row in 0..rows.len() {
            let (table, index) = (encode::name(rows.text(row, 0)?), encode::name(rows.text(row, 1)?));
            session.query(&format!("SELECT COUNT(*) FROM {table} FORCE INDEX ({index})"))?;
        }
        // Tables without a key have no index to name.
        let tables = self.tables()?;
        for table in &tables {
            if !(0..rows.len()).any(|row| rows.text(row, 0).is_ok_and(|found| found == table)) {
                session.query(&format!("SELECT COUNT(*) FROM {}", encode::name(table)))?;
            }
        }
        Ok(format!("{} tables read through their {} indexes", tables.len(), rows.len()))
    }

    fn files_are_of_a_version(&self) -> bool {
        true
    }
}

/// How many transactions' undo records wait for the purge; none where the user may not know.
fn history(session: &mut dyn Session) -> Result<Option<i64>> {
    const ASK: &str =
        "SELECT `count` FROM information_schema.innodb_metrics WHERE name = 'trx_rseg_history_len'";
    match session.query(ASK) {
        Ok(rows) if rows.is_empty() => Ok(None),
        Ok(rows) => rows.int(0, 0).map(Some),
        Err(error) if error.class() == crate::ErrorClass::ConnectionLost => Err(error),
        Err(_) => Ok::<_, Error>(None),
    }
}
