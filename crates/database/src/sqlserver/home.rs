//! The upkeep of a SQL Server database, and its data, which are built again.

use std::sync::Arc;

use super::SqlServerEngine;
use super::engine::{is_babelfish, property};
use super::wire::quote;
use crate::{DataLocation, Engine, Home, Result, Session};

/// Counts what there is for the optimizer, in every table of the database.
const ANALYZE: &str = "EXEC sp_updatestats";

impl Home for SqlServerEngine {
    fn product(&self) -> Result<String> {
        let version = property(self.connect()?.as_mut(), "ProductVersion")?;
        Ok(format!("{} {}", self.kind(), version.unwrap_or_default()))
    }

    fn unlimited(&self) -> Result<Box<dyn Session>> {
        // Nothing limits a statement but its client; locks are waited for.
        self.connect()
    }

    fn tables(&self) -> Result<Vec<String>> {
        self.connect()?
            .query(
                "SELECT CASE WHEN SCHEMA_NAME(schema_id) = SCHEMA_NAME() THEN name \
                 ELSE SCHEMA_NAME(schema_id) + '.' + name END FROM sys.tables WHERE is_ms_shipped = 0 ORDER BY 1",
            )?
            .texts(0)
    }

    fn upkeep(&self, _vacuum: bool, analyze: bool) -> Vec<(&'static str, &'static str)> {
        // What deleted rows took is freed by the server's own task, all the time.
        if analyze { vec![("analyze", ANALYZE)] } else { Vec::new() }
    }

    fn ready_for_a_snapshot(&self) -> Result<()> {
        let mut session = self.unlimited()?;
        session.run(ANALYZE)?;
        self.checkpoint(session.as_mut())
    }

    fn prewarm(&self) -> Result<String> {
        let mut session = self.unlimited()?;
        if is_babelfish(session.as_mut())? {
            let tables = self.tables()?;
            for table in &tables {
                let name: Vec<String> = table.split('.').map(quote).collect();
                session.query(&format!("SELECT COUNT_BIG(*) FROM {}", name.join(".")))?;
            }
            return Ok(format!("{} tables read", tables.len()));
        }
        let rows = session.query(
            "SELECT SCHEMA_NAME(t.schema_id), t.name, i.index_id FROM sys.tables t \
             JOIN sys.indexes i ON i.object_id = t.object_id \
             WHERE t.is_ms_shipped = 0 AND i.type IN (0, 1, 2) AND i.is_disabled = 0 ORDER BY 1, 2, 3",
        )?;
        for row in 0..rows.len() {
            let (schema, table) = (quote(rows.text(row, 0)?), quote(rows.text(row, 1)?));
            let index = rows.int(row, 2)?;
            session.query(&format!("SELECT COUNT_BIG(*) FROM {schema}.{table} WITH (INDEX({index}))"))?;
        }
        Ok(format!("{} indexes and heaps read", rows.len()))
    }

    fn files_are_of_a_version(&self) -> bool {
        true
    }
}

impl DataLocation for SqlServerEngine {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.clone())
    }
}
