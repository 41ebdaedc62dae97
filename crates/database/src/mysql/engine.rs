//! MySQL and MariaDB as an engine.

use std::path::{Path, PathBuf};

use super::profile::MysqlProfiles;
use super::settings::SessionSettings;
use super::{Config, Product, encode, startup};
use crate::profile::Profiles;
use crate::settings::ServerSettings;
use crate::{
    Capabilities, Engine, EngineKind, Error, Fingerprint, Home, Result, ServerCounters, ServerSetting,
    Session,
};

/// Settings that decide speed or durability; stored with a run even at their defaults.
const ALWAYS: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "log_bin",
    "binlog_format",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_log_files_in_group",
    "innodb_log_buffer_size",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_adaptive_hash_index",
    "innodb_page_size",
    "innodb_file_per_table",
    "innodb_checksum_algorithm",
    "innodb_use_native_aio",
    "innodb_lock_wait_timeout",
    "innodb_deadlock_detect",
    "innodb_autoinc_lock_mode",
    "innodb_snapshot_isolation",
    "transaction_isolation",
    "tx_isolation",
    "max_connections",
    "thread_handling",
    "performance_schema",
    "query_cache_type",
    "default_storage_engine",
    "sql_mode",
];

/// Settings of the location or the session, which are irrelevant to a comparison of runs, and settings that may contain
/// secrets.
const NEVER: &[&str] = &[
    "hostname",
    "pid_file",
    "port",
    "socket",
    "report_host",
    "server_uuid",
    "timestamp",
    "character_set_client",
    "character_set_connection",
    "character_set_results",
    "collation_connection",
    "time_zone",
    "pseudo_thread_id",
    "gtid_executed",
    "gtid_purged",
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_slave_pos",
    "wsrep_sst_auth",
];

/// A MySQL or MariaDB server and how to enter it.
#[derive(Debug, Clone)]
pub struct MysqlEngine {
    config: Config,
}

impl MysqlEngine {
    /// The server that `config` names; nothing is connected yet.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// How to connect to the server.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The server's `@@version` and which product it is.
pub(crate) fn version(session: &mut dyn Session) -> Result<(String, Product)> {
    let version = session.query("SELECT @@version")?.text(0, 0)?.to_owned();
    let product = if version.contains("MariaDB") { Product::Mariadb } else { Product::Mysql };
    Ok((version, product))
}

/// The digits of a version: "10.11.19" of "5.5.5-10.11.19-MariaDB-0+deb12u1".
pub(crate) fn number(version: &str) -> String {
    let version = version.strip_prefix("5.5.5-").unwrap_or(version);
    version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect()
}

/// Whether a setting may hold a secret.
fn is_secret(name: &str) -> bool {
    ["password", "secret", "_key", "auth", "credential"].iter().any(|part| name.contains(part))
        && !["innodb_autoinc", "key_", "authentication_policy"].iter().any(|part| name.starts_with(part))
}

impl Engine for MysqlEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Mysql
    }

    fn home(&self) -> Option<&dyn Home> {
        Some(self)
    }

    fn settings(&self) -> Option<&dyn ServerSettings> {
        Some(&SessionSettings)
    }

    fn profiles(&self, session: &mut dyn Session) -> Result<Option<Box<dyn Profiles>>> {
        let (version, product) = version(session)?;
        let number = number(&version);
        let mut parts = number.split('.').map(|part| part.parse().unwrap_or(0));
        let series = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        Ok(Some(Box::new(MysqlProfiles { product, series })))
    }

    fn describe(&self) -> String {
        self.config.to_string()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_round_trip_batch: true,
            batch_stops_at_error: false,
            stored_functions: true,
            arrays: false,
            concurrent_writers: true,
            embedded: false,
            waits_in_fibers: true,
            transactional_ddl: false,
            session_state: true,
            executed_plans: true,
        }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(startup::connect(&self.config)?))
    }

    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint> {
        let (version, product) = version(session)?;
        let comment = session.query("SELECT @@version_comment")?.text(0, 0)?.to_owned();
        // Both list every setting with where its value comes from; only MariaDB shows the default.
        let rows = session.query(match product {
            Product::Mariadb => {
                "SELECT lower(variable_name), coalesce(global_value, ''), lower(global_value_origin) \
                 FROM information_schema.system_variables WHERE global_value IS NOT NULL"
            }
            Product::Mysql => {
                "SELECT v.variable_name, v.variable_value, lower(i.variable_source) \
                 FROM performance_schema.global_variables v \
                 JOIN performance_schema.variables_info i USING (variable_name)"
            }
        })?;
        let mut settings = Vec::new();
        for row in 0..rows.len() {
            let (name, value, source) = (rows.text(row, 0)?, rows.text(row, 1)?, rows.text(row, 2)?);
            let at_default = matches!(source, "compiled" | "compile-time" | "auto");
            let wanted = ALWAYS.contains(&name) || !at_default && !NEVER.contains(&name);
            if wanted && !is_secret(name) {
                let source = if at_default { "default" } else { source };
                settings.push(ServerSetting {
                    name: name.into(),
                    value: value.into(),
                    source: source.into(),
                });
            }
        }
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        let version = format!("{product} {} ({comment})", number(&version));
        Ok(Fingerprint { version, settings, faults: Vec::new() })
    }

    fn counters(&self, session: &mut dyn Session) -> Result<Option<ServerCounters>> {
        let rows = session.query(
            "SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_commit', 'Com_commit', 'Com_rollback')",
        )?;
        let count = |wanted: &str| {
            (0..rows.len())
                .find(|&row| rows.text(row, 0).is_ok_and(|name| name.eq_ignore_ascii_case(wanted)))
                .and_then(|row| rows.text(row, 1).ok()?.parse().ok())
                .ok_or_else(|| Error::protocol(format!("the server does not report {wanted}")))
        };
        Ok(Some(ServerCounters { commits: count("Com_commit")?, rollbacks: count("Com_rollback")? }))
    }

    fn size(&self, session: &mut dyn Session) -> Result<u64> {
        let (_, product) = version(session)?;
        let files = session.query(match product {
            Product::Mariadb => {
                "SELECT CAST(sum(file_size) AS SIGNED) FROM information_schema.innodb_sys_tablespaces \
                 WHERE name LIKE concat(replace(database(), '_', '\\_'), '/%')"
            }
            Product::Mysql => {
                "SELECT CAST(sum(file_size) AS SIGNED) FROM information_schema.innodb_tablespaces \
                 WHERE name LIKE concat(replace(database(), '_', '\\_'), '/%')"
            }
        });
        // Without access to the file sizes, the sizes are those of the table statistics.
        let rows = match files {
            Ok(rows) if !rows.is_null(0, 0)? => rows,
            _ => session.query(
                "SELECT CAST(coalesce(sum(data_length + index_length), 0) AS SIGNED) \
                 FROM information_schema.tables WHERE table_schema = database()",
            )?,
        };
        u64::try_from(rows.int(0, 0)?).map_err(|_| Error::protocol("the server reports a negative size"))
    }

    fn data_directory(&self, session: &mut dyn Session) -> Option<PathBuf> {
        if !self.config.host.is_local() {
            return None;
        }
        let rows = session.query("SELECT @@datadir").ok()?;
        let path = PathBuf::from(rows.text(0, 0).ok()?);
        path.is_absolute().then_some(path)
    }

    fn further_directories(&self, session: &mut dyn Session, data: &Path) -> Vec<PathBuf> {
        let undo = session.query("SELECT @@innodb_undo_directory").and_then(|rows| rows.texts(0));
        // A relative one is relative to the data directory.
        undo.unwrap_or_default().into_iter().map(|undo| data.join(undo)).collect()
    }

    fn checkpoint(&self, session: &mut dyn Session) -> Result<()> {
        // MariaDB only; MySQL has it only in debug builds.
        if session.run("SET GLOBAL innodb_log_checkpoint_now = 1").is_ok() {
            return Ok(());
        }
        let tables = session
            .query(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = database() \
                 AND table_type = 'BASE TABLE' AND engine = 'InnoDB'",
            )?
            .texts(0)?;
        if tables.is_empty() {
            return Ok(());
        }
        // Writes every page of these tables to its place before it returns.
        let names: Vec<String> = tables.iter().map(|name| encode::name(name)).collect();
        session.run(&format!("FLUSH TABLES {} FOR EXPORT", names.join(", ")))?;
        session.run("UNLOCK TABLES")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers() {
        assert_eq!(number("5.5.5-10.11.19-MariaDB-0+deb12u1"), "10.11.19");
        assert_eq!(number("8.0.31"), "8.0.31");
        assert_eq!(number("8.4.0-debug"), "8.4.0");
    }

    #[test]
    fn what_may_be_secret_is_left_out_and_nothing_else() {
        for name in ["ssl_key", "caching_sha2_password_private_key_path", "wsrep_sst_auth"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["key_buffer_size", "innodb_flush_log_at_trx_commit", "max_connections"] {
            assert!(!is_secret(name), "{name}");
        }
        assert!(ALWAYS.iter().all(|name| !is_secret(name)));
    }
}
