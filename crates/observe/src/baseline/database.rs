//! The database: what it is set to, and how long an empty statement takes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kelvin_database::{Engine, EngineKind, Result, Rows, Session};

use super::Baseline;
use super::directory::beside;

const MOST: usize = 20_000;
const WARM_UP: usize = 100;
const LIMIT: Duration = Duration::from_millis(800);

/// A server that does not answer for so long is not measured.
const PATIENCE: Duration = Duration::from_secs(10);

/// PostgreSQL's settings that decide a run's figures, in the order in which they are shown.
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

/// Measures, and returns the directory beside its files when they are on this host.
pub(super) fn measure(baseline: &mut Baseline, engine: &dyn Engine) -> Option<PathBuf> {
    baseline.say("database.target", "database", engine.describe());
    let mut session = match engine.connect().and_then(|mut session| {
        session.set_timeout(Some(PATIENCE))?;
        Ok(session)
    }) {
        Ok(session) => session,
        Err(error) => {
            baseline.miss("database", error.to_string());
            return None;
        }
    };
    let session = &mut *session;
    if let Err(error) = settings(baseline, engine, session) {
        baseline.miss("settings of the database", error.to_string());
    }
    match round_trips(session) {
        Ok(mut times) => baseline.put_latency("database.round-trip", "round trip of select 1", &mut times),
        Err(error) => baseline.miss("round trip of select 1", error.to_string()),
    }
    engine.data_directory(session).filter(|path| path.is_dir()).map(|path| beside(&path))
}

fn settings(baseline: &mut Baseline, engine: &dyn Engine, session: &mut dyn Session) -> Result<()> {
    if engine.kind() != EngineKind::Postgres {
        let fingerprint = engine.fingerprint(session)?;
        baseline.say("database.version", "version", fingerprint.version);
        for one in fingerprint.settings {
            baseline.say(&format!("database.{}", one.name), &one.name, one.value);
        }
        return Ok(());
    }
    let rows = session.query("SELECT version()")?;
    let version = rows.text(0, 0)?;
    baseline.say("database.version", "version", version.split(", compiled").next().unwrap_or(version));
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
            baseline.say(&format!("database.{name}"), name, value);
        }
    }
    let rows = session.query(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() \
         AND backend_type = 'client backend'",
    )?;
    baseline.say("database.active", "other active sessions", rows.int(0, 0)?.to_string());
    Ok(())
}

fn round_trips(session: &mut dyn Session) -> Result<Vec<u64>> {
    let statement = session.prepare("SELECT 1")?;
    let mut rows = Rows::new();
    for _ in 0..WARM_UP {
        session.execute(statement, &[], &mut rows)?;
    }
    let (mut times, since) = (Vec::with_capacity(MOST), Instant::now());
    while times.len() < MOST && since.elapsed() < LIMIT {
        let before = Instant::now();
        session.execute(statement, &[], &mut rows)?;
        times.push(before.elapsed().as_nanos() as u64);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use kelvin_database::sqlite::SqliteEngine;

    use super::*;

    #[test]
    fn an_embedded_database_has_its_settings_and_its_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let engine = SqliteEngine::open(directory.path().join("a.db")).unwrap();
        let mut baseline = Baseline::new();
        measure(&mut baseline, &engine);
        assert!(baseline.absent.is_empty(), "{:?}", baseline.absent);
        assert!(baseline.fact("database.version").is_some_and(|v| v.contains("SQLite")), "{baseline:?}");
        assert!(baseline.facts.len() > 3);
        let trip = baseline.figure("database.round-trip.p50").unwrap();
        assert!((0.01..10_000.0).contains(&trip), "{trip} µs");
    }
}
