//! The upkeep of a PostgreSQL database.

use super::PostgresEngine;
use crate::{Engine, Home, Result, Session};

/// Relations that are not the server's own.
const RELATIONS: &str =
    "relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname ~ '^(pg_|information_schema$)')";

impl Home for PostgresEngine {
    fn product(&self) -> Result<String> {
        let rows = self
            .connect()?
            .query("SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)")?;
        rows.text(0, 0).map(str::to_owned)
    }

    fn unlimited(&self) -> Result<Box<dyn Session>> {
        let mut session = self.connect()?;
        session.run("SET statement_timeout = 0; SET lock_timeout = 0; SET maintenance_work_mem = '256MB'")?;
        Ok(session)
    }

    fn tables(&self) -> Result<Vec<String>> {
        self.connect()?
            .query(&format!(
                "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition \
                 AND {RELATIONS} ORDER BY 1"
            ))?
            .texts(0)
    }

    fn upkeep(&self, vacuum: bool, analyze: bool) -> Vec<(&'static str, &'static str)> {
        match (vacuum, analyze) {
            // One pass over the tables instead of two.
            (true, true) => vec![("vacuum and analyze", "VACUUM (FREEZE, ANALYZE)")],
            (true, false) => vec![("vacuum", "VACUUM (FREEZE)")],
            (false, true) => vec![("analyze", "ANALYZE")],
            (false, false) => Vec::new(),
        }
    }

    fn ready_for_a_snapshot(&self) -> Result<()> {
        self.unlimited()?.run("VACUUM (FREEZE, ANALYZE)")
    }

    fn prewarm(&self) -> Result<String> {
        let mut session = self.unlimited()?;
        if session.run("CREATE EXTENSION IF NOT EXISTS pg_prewarm").is_ok() {
            let rows = session.query(&format!(
                "SELECT coalesce(sum(pg_prewarm(oid)), 0)::bigint FROM pg_class \
                 WHERE relkind IN ('r', 'i', 'm') AND {RELATIONS}"
            ))?;
            return Ok(format!("pg_prewarm, {} pages", rows.int(0, 0)?));
        }
        let tables = session
            .query(&format!(
                "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm') AND {RELATIONS}"
            ))?
            .texts(0)?;
        for table in &tables {
            session.run(&format!("SELECT count(*) FROM {table}"))?;
        }
        Ok(format!(
            "pg_prewarm is not available: {} tables were read; tables larger than a quarter of \
             shared_buffers do not stay cached, and no index was read",
            tables.len()
        ))
    }

    fn files_are_of_a_version(&self) -> bool {
        true
    }
}
