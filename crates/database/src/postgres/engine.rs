//! PostgreSQL as an engine.

use std::path::{Path, PathBuf};

use super::profile::PostgresProfiles;
use super::settings::PostgresSettings;
use super::{Config, MARK, faults, startup};
use crate::profile::Profiles;
use crate::settings::ServerSettings;
use crate::{
    Capabilities, Engine, EngineKind, Error, Fingerprint, Home, Result, ServerCounters, ServerSetting,
    Session,
};

/// Settings that decide speed or durability; stored with a run even at their defaults, and though they were
/// chosen by initdb or when the server was built.
const ALWAYS: &str = "'fsync','synchronous_commit','full_page_writes','wal_level','shared_buffers','max_wal_size',\
                      'checkpoint_timeout','checkpoint_completion_target','autovacuum','huge_pages',\
                      'wal_sync_method','io_method','data_checksums','wal_segment_size','block_size','default_transaction_isolation','max_connections'";

/// A PostgreSQL server and how to enter it.
#[derive(Debug, Clone)]
pub struct PostgresEngine {
    config: Config,
}

impl PostgresEngine {
    /// The server that `config` names; nothing is connected yet.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// How the server is entered.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The server's version as a number: 180001 is 18.1.
fn version_number(session: &mut dyn Session) -> Result<i64> {
    session.query(&format!("SELECT {MARK} current_setting('server_version_num')::int"))?.int(0, 0)
}

impl Engine for PostgresEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::Postgres
    }

    fn home(&self) -> Option<&dyn Home> {
        Some(self)
    }

    fn settings(&self) -> Option<&dyn ServerSettings> {
        Some(&PostgresSettings)
    }

    fn profiles(&self, _session: &mut dyn Session) -> Result<Option<Box<dyn Profiles>>> {
        Ok(Some(Box::new(PostgresProfiles)))
    }

    fn describe(&self) -> String {
        self.config.to_string()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            one_round_trip_batch: true,
            batch_stops_at_error: true,
            stored_functions: true,
            arrays: true,
            concurrent_writers: true,
            embedded: false,
            waits_in_fibers: true,
            transactional_ddl: true,
            session_state: self.config.prepared_statements,
            executed_plans: true,
        }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(startup::connect(&self.config)?))
    }

    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint> {
        let version = session.query(&format!("SELECT {MARK} version()"))?.text(0, 0)?.to_owned();
        // Commands, connection strings and pass phrases can hold secrets: they stay out.
        let rows = session.query(&format!(
            "SELECT {MARK} name, coalesce(current_setting(name, true), ''), source FROM pg_settings \
             WHERE (name IN ({ALWAYS}) OR source NOT IN ('default', 'override')) \
             AND name !~ '(password|passphrase|conninfo|secret|_command$)' \
             AND name NOT IN ('application_name', 'client_encoding', 'DateStyle') ORDER BY name"
        ))?;
        let settings = (0..rows.len())
            .map(|row| {
                Ok(ServerSetting {
                    name: rows.text(row, 0)?.to_owned(),
                    value: rows.text(row, 1)?.to_owned(),
                    source: rows.text(row, 2)?.to_owned(),
                })
            })
            .collect::<Result<_>>()?;
        let faults = faults::known(version_number(session)?);
        Ok(Fingerprint { version, settings, faults })
    }

    fn counters(&self, session: &mut dyn Session) -> Result<Option<ServerCounters>> {
        // Servers from 15 can publish what this session did; others do so within a second. The
        // snapshot is kept for the length of a transaction unless it is dropped.
        let version = version_number(session)?;
        if version >= 150_000 {
            session.run(&format!("SELECT {MARK} pg_stat_force_next_flush()"))?;
        }
        session.run(&format!("SELECT {MARK} pg_stat_clear_snapshot()"))?;
        let rows = session.query(&format!(
            "SELECT {MARK} xact_commit, xact_rollback FROM pg_stat_database WHERE datname = current_database()"
        ))?;
        let count = |column| {
            u64::try_from(rows.int(0, column)?)
                .map_err(|_| Error::protocol("the server reports a negative count"))
        };
        Ok(Some(ServerCounters { commits: count(0)?, rollbacks: count(1)? }))
    }

    fn size(&self, session: &mut dyn Session) -> Result<u64> {
        let size =
            session.query(&format!("SELECT {MARK} pg_database_size(current_database())"))?.int(0, 0)?;
        u64::try_from(size).map_err(|_| Error::protocol("the server reports a negative size"))
    }

    fn data_directory(&self, session: &mut dyn Session) -> Option<PathBuf> {
        if !self.config.host.is_local() {
            return None;
        }
        // No row, rather than an error, for users who may not know it.
        let rows = session
            .query(&format!("SELECT {MARK} setting FROM pg_settings WHERE name = 'data_directory'"))
            .ok()?;
        let path = PathBuf::from(rows.text(0, 0).ok()?);
        path.is_absolute().then_some(path)
    }

    fn further_directories(&self, _session: &mut dyn Session, data: &Path) -> Vec<PathBuf> {
        let tablespaces = std::fs::read_dir(data.join("pg_tblspc")).into_iter().flatten().flatten();
        tablespaces.map(|entry| entry.path()).collect()
    }

    fn checkpoint(&self, session: &mut dyn Session) -> Result<()> {
        session.run("CHECKPOINT")
    }
}
