//! What a PostgreSQL server is set to, for the doctor.

use kelvin_database::postgres::faults;
use kelvin_database::{Result, Session};

use crate::baseline_fact::BaselineFact;

/// The settings that decide a run's figures, in the order in which they are shown.
const SETTINGS: [&str; 24] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "wal_compression",
    "wal_sync_method",
    "shared_buffers",
    "effective_cache_size",
    "work_mem",
    "huge_pages",
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "wal_buffers",
    "autovacuum",
    "max_connections",
    "random_page_cost",
    "effective_io_concurrency",
    "io_method",
    "jit",
    "track_io_timing",
    "track_wal_io_timing",
    "log_checkpoints",
    "shared_preload_libraries",
];

/// Puts version, known faults and settings among the facts.
pub(crate) fn settings(facts: &mut Vec<BaselineFact>, session: &mut dyn Session) -> Result<()> {
    let rows = session.query("SELECT version()")?;
    let version = rows.text(0, 0)?;
    facts.push(BaselineFact::new(
        "database.version",
        "version",
        version.split(", compiled").next().unwrap_or(version),
    ));
    let number = session.query("SELECT current_setting('server_version_num')::int")?.int(0, 0)?;
    facts.extend(faults::known(number).iter().map(BaselineFact::from_fault));
    let names = SETTINGS.map(|name| format!("'{name}'")).join(", ");
    let rows = session.query(&format!(
        "SELECT name, coalesce(current_setting(name, true), '') FROM pg_settings WHERE name IN ({names})"
    ))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        found.push((rows.text(row, 0)?.to_owned(), rows.text(row, 1)?.to_owned()));
    }
    for wanted in SETTINGS {
        // Which there are depends on the version.
        if let Some((name, value)) = found.iter().find(|(name, _)| name == wanted) {
            let value = if value.is_empty() { "(empty)" } else { value };
            facts.push(BaselineFact::new(&format!("database.{name}"), name, value));
        }
    }
    let rows = session.query(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() \
         AND backend_type = 'client backend'",
    )?;
    facts.push(BaselineFact::new("database.active", "other active sessions", rows.int(0, 0)?.to_string()));
    Ok(())
}
