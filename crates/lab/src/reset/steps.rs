//! The steps that make restored data ready for a run, depending on how it was restored.

use std::time::Instant;

use kelvin_database::{Engine, Result};

use super::home;
use kelvin_run::spec::Reset;

/// The steps that are still needed before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Needs {
    pub(super) vacuum: bool,
    pub(super) analyze: bool,
    pub(super) checkpoint: bool,
}

impl Needs {
    /// Rows were inserted through the server: no page is frozen, no table has statistics, and every page is still
    /// dirty.
    pub(super) const ALL: Self = Self { vacuum: true, analyze: true, checkpoint: true };
}

/// Executes the required and requested steps. Returns them as text, each with its duration.
pub(super) fn run(
    engine: &dyn Engine,
    reset: &Reset,
    needs: Needs,
    report: &mut dyn FnMut(&str),
) -> Result<Vec<String>> {
    let mut done = Vec::new();
    let mut step = |name: &str, work: &mut dyn FnMut() -> Result<String>| -> Result<()> {
        report(name);
        let since = Instant::now();
        let detail = work()?;
        done.push(format!("{name}{detail} {:.1} s", since.elapsed().as_secs_f64()));
        Ok(())
    };
    let (vacuum, analyze) = (reset.vacuum.is_done(needs.vacuum), reset.analyze.is_done(needs.analyze));
    if vacuum || analyze {
        for (name, sql) in home(engine)?.upkeep(vacuum, analyze) {
            step(name, &mut || home(engine)?.unlimited()?.run(sql).map(|()| String::new()))?;
        }
    }
    for sql in &reset.statements {
        let shown = format!("`{}`", kelvin_measure::text::statement(sql));
        step(&shown, &mut || home(engine)?.unlimited()?.run(sql).map(|()| String::new()))?;
    }
    if reset.prewarm {
        step("prewarm", &mut || Ok(format!(" ({})", home(engine)?.prewarm()?)))?;
    }
    // Last, so that the changes of the previous steps reach the disk, too.
    if reset.checkpoint.is_done(needs.checkpoint) {
        step("checkpoint", &mut || checkpoint(engine))?;
    }
    Ok(done)
}

/// Requests a checkpoint. Many hosted servers do not permit it.
fn checkpoint(engine: &dyn Engine) -> Result<String> {
    const INSUFFICIENT_PRIVILEGE: &str = "42501";
    match engine.checkpoint(home(engine)?.unlimited()?.as_mut()) {
        Err(error) if error.code().0 == INSUFFICIENT_PRIVILEGE => Ok(" (not permitted for this role)".into()),
        other => other.map(|()| String::new()),
    }
}
