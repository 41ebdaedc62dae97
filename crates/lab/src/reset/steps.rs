//! What makes restored data ready to run, where the way in which they came back has left it to be done.

use std::time::Instant;

use kelvin_database::{Engine, EngineKind, Result, Session};

use super::place::Place;
use crate::spec::Reset;

/// What is left to be done before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Needs {
    pub(super) vacuum: bool,
    pub(super) analyze: bool,
    pub(super) checkpoint: bool,
}

impl Needs {
    /// Rows came in through the server: no page is frozen, no table has statistics, and all of it is still to be
    /// written.
    pub(super) const ALL: Self = Self { vacuum: true, analyze: true, checkpoint: true };
}

/// Freezes and counts everything once, so that no copy of it ever has to: visibility, statistics and hint bits are in the
/// files that are copied.
pub(super) fn ready_for_a_snapshot(engine: &dyn Engine) -> Result<()> {
    match engine.kind() {
        EngineKind::Postgres => unlimited(engine)?.run("VACUUM (FREEZE, ANALYZE)"),
        // Its build has analyzed; nothing is to be frozen.
        EngineKind::Sqlite => Ok(()),
    }
}

/// Does what is asked for, and returns what was done, each with its time.
pub(super) fn run(
    engine: &dyn Engine,
    place: &Place,
    reset: &Reset,
    needs: Needs,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let mut step = |name: &str, work: &mut dyn FnMut() -> Result<String>| -> Result<()> {
        tell(name);
        let since = Instant::now();
        let detail = work()?;
        done.push(format!("{name}{detail} {:.1} s", since.elapsed().as_secs_f64()));
        Ok(())
    };
    let (vacuum, analyze) = (reset.vacuum.is_done(needs.vacuum), reset.analyze.is_done(needs.analyze));
    let postgres = engine.kind() == EngineKind::Postgres;
    if vacuum && analyze && postgres {
        // One pass over the tables instead of two.
        step("vacuum and analyze", &mut || {
            unlimited(engine)?.run("VACUUM (FREEZE, ANALYZE)").map(|()| String::new())
        })?;
    } else {
        if vacuum {
            let sql = if postgres { "VACUUM (FREEZE)" } else { "VACUUM" };
            step("vacuum", &mut || unlimited(engine)?.run(sql).map(|()| String::new()))?;
        }
        if analyze {
            step("analyze", &mut || unlimited(engine)?.run("ANALYZE").map(|()| String::new()))?;
        }
    }
    if reset.prewarm {
        step("prewarm", &mut || prewarm(engine, place))?;
    }
    // Last: what the steps before have changed is to be on the disk, too.
    if reset.checkpoint.is_done(needs.checkpoint) {
        step("checkpoint", &mut || checkpoint(engine))?;
    }
    Ok(done)
}

/// A session whose statements may take as long as they need.
fn unlimited(engine: &dyn Engine) -> Result<Box<dyn Session>> {
    let mut session = engine.connect()?;
    if engine.kind() == EngineKind::Postgres {
        session.run("SET statement_timeout = 0; SET lock_timeout = 0; SET maintenance_work_mem = '256MB'")?;
    }
    Ok(session)
}

/// Where the user may ask for one: servers that others keep often do not let him.
fn checkpoint(engine: &dyn Engine) -> Result<String> {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    match engine.checkpoint(unlimited(engine)?.as_mut()) {
        Err(error) if error.code().0 == INSUFFICIENT_PRIVILEGE => Ok(" (not allowed to this role)".into()),
        other => other.map(|()| String::new()),
    }
}

fn prewarm(engine: &dyn Engine, place: &Place) -> Result<String> {
    if let Place::Sqlite(file) = place {
        // No session is open: closing the file again takes nobody's lock away.
        let read =
            std::fs::File::open(file).and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
        return Ok(match read {
            Ok(bytes) => format!(" (read {:.0} MB into the system's cache)", bytes as f64 / 1e6),
            Err(error) => format!(" (the file cannot be read: {error})"),
        });
    }
    if engine.kind() == EngineKind::Sqlite {
        return Ok(" (nothing to do)".into());
    }
    let mut session = unlimited(engine)?;
    let session = session.as_mut();
    const RELATIONS: &str =
        "relnamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname ~ '^(pg_|information_schema$)')";
    if session.run("CREATE EXTENSION IF NOT EXISTS pg_prewarm").is_ok() {
        let rows = session.query(&format!(
            "SELECT coalesce(sum(pg_prewarm(oid)), 0)::bigint FROM pg_class WHERE relkind IN ('r', 'i', 'm') AND {RELATIONS}"
        ))?;
        return Ok(format!(" (pg_prewarm, {} pages)", rows.int(0, 0)?));
    }
    let rows = session.query(&format!(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'm') AND {RELATIONS}"
    ))?;
    let tables: Vec<String> =
        (0..rows.len()).map(|row| rows.text(row, 0).map(str::to_owned)).collect::<Result<_>>()?;
    for table in &tables {
        session.run(&format!("SELECT count(*) FROM {table}"))?;
    }
    Ok(format!(
        " (pg_prewarm is not to be had here: {} tables were read; those of more than a quarter of shared_buffers do not stay, \
         and no index was read)",
        tables.len()
    ))
}
