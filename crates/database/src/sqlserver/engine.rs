//! SQL Server as an engine.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use super::statement::{Call, Known};
use super::{Config, startup};
use crate::{
    Capabilities, Engine, EngineKind, Error, ErrorClass, Fingerprint, Home, Result, Rows, ServerCounters,
    ServerSetting, Session,
};

/// Settings of the server that affect performance; a server has many more.
const CONFIGURED: &str = "SELECT name, CAST(value_in_use AS nvarchar(100)) FROM sys.configurations WHERE name IN (\
    'max degree of parallelism', 'cost threshold for parallelism', 'max server memory (MB)', \
    'min server memory (MB)', 'max worker threads', 'recovery interval (min)', 'network packet size (B)', \
    'optimize for ad hoc workloads', 'lightweight pooling', 'priority boost', 'affinity mask', \
    'affinity64 mask', 'fill factor (%)', 'locks', 'min memory per query (KB)', 'query wait (s)', \
    'tempdb metadata memory-optimized', 'ADR cleaner retry timeout (min)', 'blocked process threshold (s)')";
/// Database-scoped settings that are not at their default, according to the server's own list.
const SCOPED: &str = "SELECT name, CAST(value AS nvarchar(100)), CAST(is_value_default AS int) \
    FROM sys.database_scoped_configurations \
    WHERE is_value_default = 0 OR name IN ('MAXDOP', 'LEGACY_CARDINALITY_ESTIMATION', 'PARAMETER_SNIFFING')";
/// Further settings of the database, each a column of `sys.databases`.
const OF_THE_DATABASE: &[&str] = &[
    "compatibility_level",
    "recovery_model_desc",
    "is_read_committed_snapshot_on",
    "snapshot_isolation_state_desc",
    "delayed_durability_desc",
    "target_recovery_time_in_seconds",
    "page_verify_option_desc",
    "is_auto_create_stats_on",
    "is_auto_update_stats_on",
    "is_auto_update_stats_async_on",
    "is_query_store_on",
    "is_parameterization_forced",
    "is_accelerated_database_recovery_on",
    "is_encrypted",
    "collation_name",
];
/// Settings of this session, each a column of `sys.dm_exec_sessions`: most of them affect the choice of plans.
const OF_THE_SESSION: &[&str] = &[
    "quoted_identifier",
    "arithabort",
    "ansi_nulls",
    "ansi_padding",
    "ansi_warnings",
    "concat_null_yields_null",
    "transaction_isolation_level",
    "lock_timeout",
];

/// State of the server that all sessions of an engine share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The port of the named instance.
    pub(crate) instance_port: OnceLock<u16>,
    /// The types of statements' parameters.
    pub(crate) types: Mutex<HashMap<String, Option<Vec<Known>>>>,
    /// Calls whose types have been looked up.
    pub(crate) calls: Mutex<HashMap<String, Call>>,
}

/// A SQL Server and how to enter it.
#[derive(Debug, Clone)]
pub struct SqlServerEngine {
    config: Config,
    shared: Arc<Shared>,
}

impl SqlServerEngine {
    /// The server that `config` names; nothing is connected yet.
    pub fn new(config: Config) -> Self {
        Self { config, shared: Arc::default() }
    }

    /// How to connect to the server.
    pub fn config(&self) -> &Config {
        &self.config
    }
}

/// The result of a query that not every server of this protocol supports; `None` where it is unsupported or not
/// permitted.
fn if_known(session: &mut dyn Session, sql: &str) -> Result<Option<Rows>> {
    match session.query(sql) {
        Ok(rows) => Ok(Some(rows)),
        Err(error) if session.is_broken() || error.class() == ErrorClass::ConnectionLost => Err(error),
        Err(_) => Ok(None),
    }
}

/// The columns of these names that a view has. Versions differ.
fn present(session: &mut dyn Session, view: &str, wanted: &[&str]) -> Result<Vec<String>> {
    let names: Vec<String> = wanted.iter().map(|name| format!("'{name}'")).collect();
    let sql = format!(
        "SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID('sys.{view}') AND name IN ({})",
        names.join(", ")
    );
    Ok(if_known(session, &sql)?.map(|rows| rows.texts(0)).transpose()?.unwrap_or_default())
}

/// The columns of one row of a view, as settings from `source`.
fn row_of(
    session: &mut dyn Session,
    view: &str,
    wanted: &[&str],
    which: &str,
    source: &str,
    settings: &mut Vec<ServerSetting>,
) -> Result<()> {
    for name in present(session, view, wanted)? {
        let sql = format!("SELECT CAST({name} AS nvarchar(100)) FROM sys.{view} WHERE {which}");
        let Some(rows) = if_known(session, &sql)? else { continue };
        if !rows.is_empty() && !rows.is_null(0, 0)? {
            settings.push(ServerSetting {
                name: name.clone(),
                value: rows.text(0, 0)?.into(),
                source: source.into(),
            });
        }
    }
    Ok(())
}

/// A property of the server; `None` where it has none of this name.
pub(crate) fn property(session: &mut dyn Session, name: &str) -> Result<Option<String>> {
    let rows = session.query(&format!("SELECT CAST(SERVERPROPERTY('{name}') AS nvarchar(200))"))?;
    rows.optional(0, 0, |rows, row, column| rows.text(row, column).map(str::to_owned))
}

/// Whether the server is Babelfish, which lacks many views of SQL Server.
pub(crate) fn is_babelfish(session: &mut dyn Session) -> Result<bool> {
    Ok(property(session, "babelfish")?.as_deref() == Some("1"))
}

impl Engine for SqlServerEngine {
    fn kind(&self) -> EngineKind {
        EngineKind::SqlServer
    }

    fn home(&self) -> Option<&dyn Home> {
        Some(self)
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
            transactional_ddl: true,
            session_state: true,
            executed_plans: false,
        }
    }

    fn connect(&self) -> Result<Box<dyn Session>> {
        Ok(Box::new(startup::connect(&self.config, &self.shared)?))
    }

    fn fingerprint(&self, session: &mut dyn Session) -> Result<Fingerprint> {
        let number = property(session, "ProductVersion")?.unwrap_or_default();
        let edition = property(session, "Edition")?.unwrap_or_default();
        let product = if is_babelfish(session)? { "Babelfish" } else { "SQL Server" };
        let mut settings = Vec::new();
        for (sql, source) in [(CONFIGURED, "server"), (SCOPED, "database")] {
            let Some(rows) = if_known(session, sql)? else { continue };
            for row in 0..rows.len() {
                let at_default = rows.columns() > 2 && rows.optional(row, 2, Rows::int)? == Some(1);
                settings.push(ServerSetting {
                    name: rows.text(row, 0)?.into(),
                    value: rows.optional(row, 1, Rows::text)?.unwrap_or_default().into(),
                    source: if at_default { "default" } else { source }.into(),
                });
            }
        }
        row_of(session, "databases", OF_THE_DATABASE, "name = DB_NAME()", "database", &mut settings)?;
        row_of(session, "dm_exec_sessions", OF_THE_SESSION, "session_id = @@SPID", "session", &mut settings)?;
        // Number, status, global, session.
        if let Some(flags) = if_known(session, "DBCC TRACESTATUS(-1) WITH NO_INFOMSGS")? {
            for row in 0..flags.len() {
                settings.push(ServerSetting {
                    name: format!("trace flag {}", flags.int(row, 0)?),
                    value: "on".into(),
                    source: "server".into(),
                });
            }
        }
        settings.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Fingerprint { version: format!("{product} {number} ({edition})"), settings, faults: Vec::new() })
    }

    fn counters(&self, _session: &mut dyn Session) -> Result<Option<ServerCounters>> {
        // The server counts transactions that began, not how they ended.
        Ok(None)
    }

    fn size(&self, session: &mut dyn Session) -> Result<u64> {
        let rows = if is_babelfish(session)? {
            session.query("SELECT CAST(pg_database_size(current_database()) AS bigint)")?
        } else {
            session
                .query("SELECT CAST(SUM(CAST(size AS bigint)) * 8192 AS bigint) FROM sys.database_files")?
        };
        u64::try_from(rows.int(0, 0)?).map_err(|_| Error::protocol("the server reports a negative size"))
    }

    fn data_directory(&self, session: &mut dyn Session) -> Option<PathBuf> {
        if !self.config.is_local() {
            return None;
        }
        let rows = session.query("SELECT physical_name FROM sys.database_files WHERE file_id = 1").ok()?;
        let path = PathBuf::from(rows.text(0, 0).ok()?);
        path.is_absolute().then(|| path.parent().map(PathBuf::from)).flatten()
    }

    fn checkpoint(&self, session: &mut dyn Session) -> Result<()> {
        session.run("CHECKPOINT")
    }
}
