//! Reset between runs: every run starts from the same data, in the same state, on an idle machine.
//!
//! The first time, the data is built, checked, and saved as a snapshot; the snapshot's name is derived from
//! everything that determines the data. From then on the snapshot is restored. The run right after the save restores
//! it, too: otherwise it would start with warm caches, and all others with cold ones.

mod method;
mod quiesce;
mod steps;

use std::time::Instant;

use kelvin_database::snapshot::{
    Contents, SnapshotInfo, SnapshotJob, SnapshotMethod, SnapshotStore, new_name,
};
use kelvin_database::{DataLocation, Engine, Error, Home};
use kelvin_workload::{Stop, Workload, WorkloadData};

pub use method::{ChosenReset, ResetOptions, choose_method};
use steps::Needs;

use kelvin_run::spec::{Build, Reset, ResetMethod};

/// Any error of the caller's code.
pub type OtherError = Box<dyn std::error::Error + Send + Sync>;

/// The context of a reset: its progress view, and the builder of the data.
pub trait ResetContext {
    /// Reports a sentence to the user.
    fn report(&mut self, text: &str);

    /// Reports the progress of a long step.
    fn progress(&mut self, what: &str, done: u64, total: u64);

    /// Reports the end of a long step.
    fn end(&mut self);

    /// Builds the workload's data and checks it.
    ///
    /// # Errors
    /// When the data cannot be built, or fails the check.
    fn build(&mut self) -> Result<(), OtherError>;
}

/// Why the reset failed.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// The database returned an error.
    #[error(transparent)]
    Database(#[from] Error),
    /// The requested reset is not possible.
    #[error("cannot reset the database: {0}")]
    Refused(String),
    /// The data could not be built.
    #[error(transparent)]
    Build(OtherError),
    /// A stop was requested.
    #[error("interrupted during the reset: {0}")]
    Interrupted(String),
}

/// The parameters of a reset.
pub struct Task<'a> {
    /// The database; no session may be open.
    pub engine: &'a dyn Engine,
    /// Its location.
    pub place: &'a dyn DataLocation,
    /// The workload.
    pub workload: &'a dyn Workload,
    /// The requested reset.
    pub reset: &'a Reset,
    /// Whether data may be built.
    pub build: Build,
    /// The request for an early end.
    pub stop: &'a Stop,
}

/// Brings the database into the state that every run starts from. Returns notes for the reader of the result.
///
/// # Errors
/// When that is not possible. The text describes the state of the database if it has changed.
pub fn reset(task: &Task<'_>, around: &mut dyn ResetContext) -> Result<Vec<String>, ResetError> {
    let mut notes = Vec::new();
    let needs = if task.reset.how == ResetMethod::None {
        make_if_missing(task, around)?;
        Needs::default()
    } else if task.place.is_temporary() {
        make_if_missing(task, around)?;
        notes.push("reset: the data were built for this run in a temporary file".into());
        Needs::default()
    } else {
        let (needs, note) = restore_data(task, around)?;
        notes.push(note);
        needs
    };
    let done = steps::run(task.engine, task.reset, needs, &mut |name| {
        if matches!(name, "vacuum" | "vacuum and analyze" | "prewarm") {
            around.report(&format!("{name} before the run"));
        }
    })?;
    if !done.is_empty() {
        notes.push(format!("before the run: {}", done.join(", ")));
    }
    go_on(task, "the database is ready for the run")?;
    if !task.reset.idle_wait().is_zero() {
        let limit = task.reset.idle_wait().duration();
        let since = Instant::now();
        let rested = quiesce::wait_until_quiet(limit, &|| task.stop.requested(), &mut || {
            let passed = since.elapsed().as_secs().min(limit.as_secs());
            around.progress("seconds of waiting for a quiet machine", passed, limit.as_secs());
        });
        around.end();
        notes.push(rested.describe());
        go_on(task, "the database is ready for the run")?;
    }
    for note in &notes {
        around.report(note);
    }
    Ok(notes)
}

fn go_on(task: &Task<'_>, state: &str) -> Result<(), ResetError> {
    if task.stop.requested() { Err(ResetError::Interrupted(state.into())) } else { Ok(()) }
}

fn make_if_missing(task: &Task<'_>, around: &mut dyn ResetContext) -> Result<(), ResetError> {
    if task.workload.is_built(task.engine)? {
        return Ok(());
    }
    may_build(task)?;
    around.build().map_err(ResetError::Build)
}

fn may_build(task: &Task<'_>) -> Result<(), ResetError> {
    if task.build == Build::Never {
        return Err(ResetError::Refused(format!(
            "{} contains no unmodified {} data, there is no snapshot of them, and --no-build prevents a \
             build; omit --no-build, or name a snapshot: --snapshot NAME",
            task.engine.describe(),
            task.workload.name()
        )));
    }
    Ok(())
}

/// Restores the data; saves the snapshot first when there is none. Returns the remaining steps, and a note.
fn restore_data(task: &Task<'_>, around: &mut dyn ResetContext) -> Result<(Needs, String), ResetError> {
    let data = task.workload.data(task.engine)?;
    let options = ResetOptions::read(task.place, task.engine, data.as_ref())?;
    let named = task.reset.snapshot.as_deref().filter(|_| task.reset.how == ResetMethod::Auto);
    if let Some(methods) = &options.methods
        && data.is_none()
        && named.is_none()
        && task.reset.how == ResetMethod::Auto
        && !options.managed
    {
        return Err(ResetError::Refused(format!(
            "kelvin did not create the tables of {}, and a reset before each later run would discard \
             everything written since the first; to accept that, save the tables in the state you want \
             (kelvin snapshot save NAME) and use --snapshot NAME, or name the method: {}",
            task.engine.describe(),
            methods.naming().next().unwrap_or_default()
        )));
    }
    let (chosen, why) = if let Some(name) = named {
        let all = task.place.snapshots()?;
        let about = all.iter().find(|about| about.name == name).ok_or_else(|| {
            let why = format!("there is no snapshot {name}; `kelvin snapshot list` lists the snapshots");
            ResetError::Refused(why)
        })?;
        (ChosenReset::Snapshot(about.way), "as it was saved".to_owned())
    } else {
        choose_method(task.reset.how, &options).map_err(ResetError::Refused)?
    };
    let ChosenReset::Snapshot(way) = chosen else { return reload(task, around, &why) };
    let keeper = task.place.snapshot_store(way)?.ok_or_else(|| {
        ResetError::Refused(format!("reset method {way} is not available for {}", task.engine.describe()))
    })?;
    let keeper = keeper.as_ref();
    let wanted = wanted_contents(task, data.as_ref())?;
    let (about, saved) = match find(task, keeper, &wanted, around)? {
        Some(about) => (about, false),
        None => (save(task, keeper, &wanted, data.as_ref(), around)?, true),
    };
    let since = Instant::now();
    let restored = with_job(task, around, |job| keeper.restore(&about, job))?;
    if data.is_some() && !task.workload.is_built(task.engine)? {
        return Err(ResetError::Refused(format!(
            "the snapshot {:?} was restored, but its data are not what the run needs; remove it: kelvin \
            snapshot drop {0}",
            about.name
        )));
    }
    let first = if saved { ", saved for this run," } else { "" };
    let note = format!(
        "reset by {way} ({why}): {:.0} MB by {} in {:.1} s from the snapshot {}{first} of {}",
        restored.bytes as f64 / 1e6,
        restored.how,
        since.elapsed().as_secs_f64(),
        about.name,
        describe_contents(&about.contents),
    );
    let needs = if way == SnapshotMethod::Dump { Needs::ALL } else { Needs::default() };
    Ok((needs, note))
}

/// The maintenance interface of a database.
///
/// # Errors
/// When its engine has none.
fn home(engine: &dyn Engine) -> kelvin_database::Result<&dyn Home> {
    engine
        .home()
        .ok_or_else(|| Error::usage(format!("{} cannot be reset or saved as a snapshot", engine.kind())))
}

/// "tproc-c, 10 warehouses, seed 1, as built".
pub fn describe_contents(contents: &Contents) -> String {
    let state = if contents.fresh { "as built" } else { "as they were when saved" };
    format!("{}, {}, {state}", contents.workload, contents.data)
}

/// The contents of a snapshot for this run.
fn wanted_contents(task: &Task<'_>, data: Option<&WorkloadData>) -> Result<Contents, ResetError> {
    Ok(contents(task.engine, task.workload.name(), data, data.is_some())?)
}

/// The contents of a snapshot of this workload's data, or of user-defined tables.
///
/// # Errors
/// When the database does not answer.
pub fn contents(
    engine: &dyn Engine,
    workload: &str,
    data: Option<&WorkloadData>,
    fresh: bool,
) -> kelvin_database::Result<Contents> {
    Ok(Contents {
        workload: workload.to_owned(),
        data: data.map_or_else(|| "the tables of the database".to_owned(), |data| data.words.clone()),
        engine: home(engine)?.product()?,
        fresh,
    })
}

/// The snapshot to restore: the named one, or the one of exactly this data; none when it has yet to be saved.
fn find(
    task: &Task<'_>,
    keeper: &dyn SnapshotStore,
    wanted: &Contents,
    around: &mut dyn ResetContext,
) -> Result<Option<SnapshotInfo>, ResetError> {
    let all = keeper.list()?;
    let name = task.reset.snapshot.clone().unwrap_or_else(|| new_name(wanted, keeper.way()));
    let found = all.iter().find(|about| about.name == name);
    match (found, &task.reset.snapshot) {
        (Some(about), _) => match about.contents.difference(wanted) {
            None => Ok(Some(about.clone())),
            Some(other) => Err(ResetError::Refused(format!(
                "the snapshot {name} contains other data than the run needs: {other}; choose another, or \
                 remove it: kelvin snapshot drop {name}"
            ))),
        },
        (None, Some(_)) => Err(ResetError::Refused(format!(
            "there is no snapshot {name} for reset method {}; `kelvin snapshot list` lists the snapshots",
            keeper.way()
        ))),
        (None, None) => {
            for other in all.iter().filter(|about| about.contents.workload == wanted.workload) {
                let what = other
                    .contents
                    .difference(wanted)
                    .unwrap_or_else(|| "data that runs have modified".into());
                around.report(&format!("the snapshot {} is not used: it contains {what}", other.name));
            }
            Ok(None)
        }
    }
}

/// Makes sure that the data is as built, and saves a snapshot.
fn save(
    task: &Task<'_>,
    keeper: &dyn SnapshotStore,
    wanted: &Contents,
    data: Option<&WorkloadData>,
    around: &mut dyn ResetContext,
) -> Result<SnapshotInfo, ResetError> {
    match data {
        Some(data) => make_fresh(task, data, around)?,
        None => around.report(
            "there is no snapshot of these tables yet: they are saved in their current state, and later runs \
            start from it",
        ),
    }
    go_on(task, "nothing was saved")?;
    around.report(&format!(
        "saving the data as snapshot {} ({})",
        new_name(wanted, keeper.way()),
        keeper.way()
    ));
    home(task.engine)?.ready_for_a_snapshot()?;
    let name = new_name(wanted, keeper.way());
    with_job(task, around, |job| keeper.save(&name, wanted, job))
}

/// Builds the data again unless no run has changed it.
fn make_fresh(task: &Task<'_>, data: &WorkloadData, around: &mut dyn ResetContext) -> Result<(), ResetError> {
    let built = task.workload.is_built(task.engine)?;
    if built {
        let mut session = task.engine.connect()?;
        if task.workload.is_fresh(session.as_mut())? {
            return Ok(());
        }
    }
    if !data.can_be_built {
        return Err(ResetError::Refused(format!(
            "there is no snapshot of these data ({}), runs have changed them, and kelvin cannot rebuild \
             them; restore them yourself, or save them in their current state (kelvin snapshot save NAME) \
             and start from it (--snapshot NAME)",
            data.words
        )));
    }
    may_build(task)?;
    if built {
        around.report("runs have changed the data, and there is no snapshot of them yet: rebuilding them");
        task.workload.drop_data(task.engine)?;
    }
    around.build().map_err(ResetError::Build)
}

fn reload(task: &Task<'_>, around: &mut dyn ResetContext, why: &str) -> Result<(Needs, String), ResetError> {
    let since = Instant::now();
    let built = task.workload.is_built(task.engine)?;
    may_build(task)?;
    if built {
        task.workload.drop_data(task.engine)?;
    }
    around.build().map_err(ResetError::Build)?;
    let note = format!("reset by reload ({why}): rebuilt in {:.1} s", since.elapsed().as_secs_f64());
    // The build has already vacuumed and analyzed.
    Ok((Needs { checkpoint: true, ..Needs::default() }, note))
}

fn with_job<T>(
    task: &Task<'_>,
    around: &mut dyn ResetContext,
    work: impl FnOnce(&mut SnapshotJob<'_>) -> kelvin_database::Result<T>,
) -> Result<T, ResetError> {
    let outcome = work(&mut SnapshotJob {
        progress: &mut |what, done, total| around.progress(what, done, total),
        stop: &|| task.stop.requested(),
    });
    around.end();
    outcome.map_err(|error| {
        if task.stop.requested() {
            ResetError::Interrupted(error.message().trim_start_matches("interrupted; ").to_owned())
        } else {
            ResetError::Database(error)
        }
    })
}
