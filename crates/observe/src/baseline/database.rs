//! The database: what it is set to, and how long an empty statement takes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use kelvin_database::{Engine, Result, Rows, Session};

use super::Baseline;
use super::directory::beside;
use crate::engine;

const MOST: usize = 20_000;
const WARM_UP: usize = 100;
const LIMIT: Duration = Duration::from_millis(800);

/// A server that does not answer for so long is not measured.
const PATIENCE: Duration = Duration::from_secs(10);

/// Measures, and returns the directory beside its files when they are on this host.
pub(super) fn measure(baseline: &mut Baseline, engine: &dyn Engine) -> Option<PathBuf> {
    baseline.add_fact("database.target", "database", engine.describe());
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
    if let Err(error) = engine::settings(&mut baseline.facts, engine, session) {
        baseline.miss("database settings", error.to_string());
    }
    match round_trips(session) {
        Ok(mut times) => baseline.put_latency("database.round-trip", "round trip of select 1", &mut times),
        Err(error) => baseline.miss("round trip of select 1", error.to_string()),
    }
    engine.data_directory(session).filter(|path| path.is_dir()).map(|path| beside(&path))
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
