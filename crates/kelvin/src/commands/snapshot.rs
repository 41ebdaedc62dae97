//! `kelvin snapshot`: manual use of the snapshots that resets save and restore automatically.

use anyhow::{Result, anyhow, bail};
use kelvin_database::snapshot::{SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore};
use kelvin_database::{DataLocation, Engine, Home};
use kelvin_lab::live::{Live, show_progress};
use kelvin_lab::open::{Opened, Purpose};
use kelvin_lab::reset::{self, ResetOptions};
use kelvin_lab::selected_workload::SelectedWorkload;
use kelvin_measure::text::whole;
use kelvin_run::Spec;
use kelvin_run::spec::{ResetMethod, WorkloadName};
use kelvin_workload::Stop;

use crate::args::{Global, SnapshotCommand, SnapshotTarget};
use crate::exit::{Code, Stopped};
use crate::measure::open;
use crate::{out, signal};

/// Saves, restores, lists or removes snapshots.
pub(crate) fn snapshot(command: &SnapshotCommand, global: &Global) -> Result<Code> {
    match command {
        SnapshotCommand::Save { name, target, how } => save(name, target, *how, global),
        SnapshotCommand::Restore { name, target, yes } => restore(name, target, *yes, global),
        SnapshotCommand::List { target } => list(target),
        SnapshotCommand::Drop { name, target, yes } => drop_snapshot(name, target, *yes, global),
    }
}

fn save(name: &str, target: &SnapshotTarget, how: Option<SnapshotMethod>, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    let opened = opened(target, &mut *live)?;
    let asked = match how {
        None => ResetMethod::Auto,
        Some(SnapshotMethod::Template) => ResetMethod::Template,
        Some(SnapshotMethod::Files) => ResetMethod::Files,
        Some(SnapshotMethod::Dump) => ResetMethod::Dump,
    };
    let (about, why) = save_present(&opened, name, asked, &mut *live, &stop)?;
    live.message(&format!(
        "saved {} by {} ({why}): {:.0} MB, {}",
        about.name,
        about.way,
        about.bytes as f64 / 1e6,
        reset::describe_contents(&about.contents)
    ));
    Ok(Code::Success)
}

/// Saves the present data. Returns the snapshot, and the reason for its method.
pub(super) fn save_present(
    opened: &Opened,
    name: &str,
    asked: ResetMethod,
    live: &mut dyn Live,
    stop: &Stop,
) -> Result<(SnapshotInfo, String)> {
    let engine = &*opened.engine;
    if opened.place.snapshots()?.iter().any(|about| about.name == name) {
        bail!(
            "snapshot {name} already exists; give another name, or remove it first: kelvin snapshot drop \
             {name}"
        );
    }
    let found = find_workload(engine);
    let data = found.as_ref().map(|chosen| chosen.get().data(engine)).transpose()?.flatten();
    // Nothing is built here: data that cannot be saved is refused.
    let options = ResetOptions {
        can_be_built: None,
        ..ResetOptions::read(opened.place.as_ref(), engine, data.as_ref())?
    };
    let (chosen, why) = reset::choose_method(asked, &options).map_err(|why| anyhow!(why))?;
    let reset::ChosenReset::Snapshot(way) = chosen else { bail!("a reload saves no snapshot") };
    let store = snapshot_store(opened.place.as_ref(), way)?;
    let workload = found.as_ref().map_or("script", |chosen| chosen.get().name());
    let mut fresh = false;
    if let (Some(chosen), true) = (&found, data.is_some()) {
        fresh = chosen.get().is_fresh(engine.connect()?.as_mut())?;
    }
    let contents = reset::contents(engine, workload, data.as_ref(), fresh)?;
    let about = with_job(live, stop, |job| store.save(name, &contents, job))?;
    Ok((about, why))
}

/// Restores a snapshot, which a stop request does not interrupt, and removes it.
pub(super) fn restore_and_remove(opened: &Opened, about: &SnapshotInfo, live: &mut dyn Live) -> Result<()> {
    let store = snapshot_store(opened.place.as_ref(), about.way)?;
    with_job(live, &Stop::default(), |job| store.restore(about, job))?;
    store.remove(about)?;
    Ok(())
}

fn restore(name: &str, target: &SnapshotTarget, yes: bool, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    let opened = opened(target, &mut *live)?;
    let (about, store) = find_snapshot(opened.place.as_ref(), name)?;
    let now = reset::contents(&*opened.engine, &about.contents.workload, None, false)?.engine;
    // Data files depend on the server's version; dumps do not.
    let of_a_version = opened.engine.home().is_some_and(Home::files_are_of_a_version);
    if about.way != SnapshotMethod::Dump && now != about.contents.engine && of_a_version {
        bail!(
            "the snapshot {name} is of {}, but this is {now}; remove it and save it again",
            about.contents.engine
        );
    }
    // No confirmation for a managed server: it has only data that was built for runs.
    if !yes && !opened.place.is_managed() {
        super::confirm(&format!(
            "replace everything in {} with the snapshot {name} ({})",
            opened.engine.describe(),
            reset::describe_contents(&about.contents)
        ))?;
    }
    let since = std::time::Instant::now();
    let restored = with_job(&mut *live, &stop, |job| store.restore(&about, job))?;
    live.message(&format!(
        "restored {name}: {:.0} MB by {} in {:.1} s; {}",
        restored.bytes as f64 / 1e6,
        restored.how,
        since.elapsed().as_secs_f64(),
        reset::describe_contents(&about.contents)
    ));
    if about.way == SnapshotMethod::Dump {
        live.message(
            "the rows were newly loaded: run VACUUM and ANALYZE before you measure (`kelvin run \
                      --reset` does)",
        );
    }
    Ok(Code::Success)
}

fn list(target: &SnapshotTarget) -> Result<Code> {
    let mut quiet = kelvin_live::for_run(true, false);
    let opened = opened(target, &mut *quiet)?;
    let all = opened.place.snapshots()?;
    if all.is_empty() {
        out::line("no snapshots; `kelvin run --reset auto` or `kelvin snapshot save NAME` makes one")?;
    } else {
        out::write(&table(&all))?;
    }
    Ok(Code::Success)
}

fn drop_snapshot(name: &str, target: &SnapshotTarget, yes: bool, global: &Global) -> Result<Code> {
    let mut live = kelvin_live::for_run(global.quiet, false);
    let opened = opened(target, &mut *live)?;
    let (about, store) = find_snapshot(opened.place.as_ref(), name)?;
    if !yes {
        super::confirm(&format!(
            "remove the snapshot {name} ({:.0} MB; {})",
            about.bytes as f64 / 1e6,
            reset::describe_contents(&about.contents)
        ))?;
    }
    store.remove(&about)?;
    live.message("removed");
    Ok(Code::Success)
}

fn opened(target: &SnapshotTarget, live: &mut dyn Live) -> Result<Opened> {
    open(&target.target, Purpose::Existing, &mut |text| live.message(text))
}

fn snapshot_store(place: &dyn DataLocation, way: SnapshotMethod) -> Result<Box<dyn SnapshotStore>> {
    place.snapshot_store(way)?.ok_or_else(|| anyhow!("this database has no snapshots by {way}"))
}

fn find_snapshot(place: &dyn DataLocation, name: &str) -> Result<(SnapshotInfo, Box<dyn SnapshotStore>)> {
    let all = place.snapshots()?;
    let Some(about) = all.iter().find(|about| about.name == name) else {
        let names: Vec<&str> = all.iter().map(|about| about.name.as_str()).collect();
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        bail!("there is no snapshot {name} of this database; existing snapshots: {there}");
    };
    Ok((about.clone(), snapshot_store(place, about.way)?))
}

/// The workload whose complete data is in the database, if any.
fn find_workload(engine: &dyn Engine) -> Option<SelectedWorkload> {
    for workload in [WorkloadName::TprocC, WorkloadName::TprocH, WorkloadName::Pgbench] {
        // Not every engine supports every workload, and other applications' tables may have the same names.
        let Ok(chosen) = SelectedWorkload::for_engine(engine, &mut Spec::new(workload)) else { continue };
        if chosen.get().is_built(engine).unwrap_or(false) {
            return Some(chosen);
        }
    }
    None
}

fn with_job<T>(
    live: &mut dyn Live,
    stop: &Stop,
    work: impl FnOnce(&mut SnapshotJob<'_>) -> kelvin_database::Result<T>,
) -> Result<T> {
    let outcome = work(&mut SnapshotJob {
        progress: &mut |what, done, total| show_progress(live, what, done, total),
        stop: &|| stop.requested(),
    });
    live.end();
    outcome.map_err(
        |error| {
            if stop.requested() { Stopped(error.message().to_owned()).into() } else { error.into() }
        },
    )
}

/// Name, method, size, time, and target.
fn table(all: &[SnapshotInfo]) -> String {
    let width = all.iter().map(|about| about.name.len()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<width$}  {:<8}  {:>9}  {:<16}  of\n", "name", "kept by", "MB", "saved");
    for about in all {
        let saved = jiff::Timestamp::from_second(about.created).map_or_else(
            |_| "–".to_owned(),
            |time| time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string(),
        );
        text.push_str(&format!(
            "{:<width$}  {:<8}  {:>9}  {saved:<16}  {} ({})\n",
            about.name,
            about.way.as_str(),
            whole(about.bytes / 1_000_000),
            reset::describe_contents(&about.contents),
            about.contents.engine,
        ));
    }
    text
}
