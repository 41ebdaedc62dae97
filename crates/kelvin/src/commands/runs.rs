//! `kelvin runs`: the stored runs.

use anyhow::Result;
use kelvin_measure::event::Status;
use kelvin_store::{Liveness, RunSummary, Store};

use crate::args::{Global, RunsArgs};
use crate::exit::Code;
use crate::live::grouped;
use crate::out;
use crate::place;

/// Lists them, the newest last.
pub(crate) fn runs(args: &RunsArgs, global: &Global) -> Result<Code> {
    let path = place::store(global.store.as_deref())?;
    let runs = if path.exists() { Store::open_read_only(&path)?.runs()? } else { Vec::new() };
    if args.json {
        for run in &runs {
            out::line(&serde_json::to_string(run)?)?;
        }
    } else if runs.is_empty() {
        out::line(&format!("no runs yet in {}; start with: kelvin run tproc-c", path.display()))?;
    } else {
        out::write(&table(&runs))?;
    }
    Ok(Code::Success)
}

/// The list, for people. The figure is that of the best point.
fn table(runs: &[RunSummary]) -> String {
    let mut text = format!(
        "{:>5}  {:<16}  {:<8}  {:>5}  {:>12}  {:<11}  {}\n",
        "run", "started (UTC)", "workload", "users", "figure", "state", "target"
    );
    for run in runs {
        let (users, figure) = run.best().map_or(("–".into(), "–".into()), |best| {
            (best.users.to_string(), format!("{} {}", figure(best.rate(run.headline_per)), run.headline))
        });
        let label = run.label.as_ref().map_or(String::new(), |label| format!("  \"{label}\""));
        text.push_str(&format!(
            "{:>5}  {:<16}  {:<8}  {users:>5}  {figure:>12}  {:<11}  {}{label}\n",
            run.id.0,
            run.started.strftime("%Y-%m-%d %H:%M").to_string(),
            run.workload,
            state(run),
            run.target,
        ));
    }
    text
}

/// A whole number; a small one, such as a few transactions a second, keeps a decimal.
fn figure(rate: f64) -> String {
    if rate < 100.0 && rate.fract() != 0.0 { format!("{rate:.1}") } else { grouped(rate.round() as u64) }
}

fn state(run: &RunSummary) -> &'static str {
    match (run.status, run.liveness, run.valid) {
        (Status::Partial, Liveness::Running, _) => "running",
        (Status::Partial, ..) => "partial",
        (Status::Interrupted, ..) => "interrupted",
        (Status::Failed, ..) => "failed",
        (Status::Complete, _, Some(false)) => "NOT VALID",
        (Status::Complete, _, None) => "not judged",
        (Status::Complete, ..) if run.errors > 0 => "with errors",
        (Status::Complete, ..) => "valid",
    }
}
