//! `kelvin study run`.

use kelvin_measure::text::duration;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kelvin_lab::BenchError;
use kelvin_lab::open::Purpose;
use kelvin_lab::study::{
    EnvironmentFacts, Execution, Folder, Ledger, MOST_TRIES, Opening, State, StudyEnd, StudyEnvironment,
    StudyError, begin, execute, facts, notebook::NotebookPart,
};
use kelvin_run::Spec;
use kelvin_store::{GroupId, GroupKind, NewGroup, RunId, Store};
use kelvin_workload::Stop;
use serde_json::json;

use super::study_factors;
use super::{StudyStatus, find, plan, registry, show};
use crate::args::{Global, StudyRunArgs};
use crate::exit::Code;
use crate::measure::{bench, open};
use crate::{out, paths, signal};

/// How long a server may take to recover from a crash before it is considered down.
const COMES_BACK: Duration = Duration::from_mins(5);

/// Makes the remaining runs.
pub(super) fn run(args: &StudyRunArgs, global: &Global) -> Result<Code> {
    let folder = find(&args.study)?;
    // The ledger is locked from here on, so it stays valid.
    let (mut ledger, entries) = Ledger::open(&folder.ledger_path())?;
    let mut situation = StudyStatus::with_state(folder, |plan| State::from_entries(plan, &entries))?;
    consent(args, &situation)?;
    let budget = args.replacements.unwrap_or(situation.plan.replacements);
    registry::remember(&situation.folder);

    let stop = signal::listen()?;
    let mut live = kelvin_live::for_run(global.quiet, false);
    for one in restore_factors(&situation.folder)? {
        live.message(&format!("restored, because an earlier session was killed: {one}"));
    }
    let store_path = paths::store(global.store.as_deref())?;
    let store_path = std::path::absolute(&store_path).unwrap_or(store_path);
    let store = Store::open(&store_path)?;
    let group = group(&store, &store_path, &situation)?;
    forsake(&store, group, &situation)?;
    let facts = surroundings(&situation.study.run, &mut |text| live.message(text))?;

    let opening = Opening {
        study: &situation.study,
        plan: &situation.plan,
        lock: situation.lock.as_ref(),
        facts,
        store: &store_path,
        group,
    };
    let deviations = begin(&mut ledger, &mut situation.state, &opening)?;
    live.message(&greeting(&situation));
    for deviation in &deviations {
        live.message(&format!("deviation: {}", deviation.describe()));
    }

    let mut conditions = study_factors::make_applier(&situation, args, global.quiet)?;
    let mut database = Database { spec: &situation.study.run, store: &store, stop: stop.clone() };
    let mut bench = bench(&store, &mut *live, &stop).destroying(&args.i_know_it_destroys);
    let execution = Execution {
        study: &situation.study,
        plan: &situation.plan,
        group,
        budget,
        ledger: &mut ledger,
        state: &mut situation.state,
    };
    let ended = execute(execution, &mut bench, &mut conditions, &mut database);
    drop(bench);
    drop(conditions);

    situation.folder.note(NotebookPart::Plan, &fenced(&plan::notebook_text(&situation)))?;
    situation.folder.note(NotebookPart::Runs, &fenced(&show::happened(&situation)))?;
    out::write(&show::render(&situation))?;
    print_end(&situation, ended)
}

/// A file may come from anyone: the user who runs it decides which actions besides measuring are allowed.
fn consent(args: &StudyRunArgs, situation: &StudyStatus) -> Result<()> {
    if args.allow_commands {
        return Ok(());
    }
    let study = &situation.study;
    let commands: Vec<&str> = study
        .factors
        .iter()
        .filter(|factor| factor.runs_commands())
        .map(kelvin_lab::factor::Factor::name)
        .collect();
    if !commands.is_empty() {
        bail!(
            "{} runs commands from {} on this machine: read them, and add --allow-commands to permit them",
            commands.join(", "),
            situation.folder.study_path().display()
        );
    }
    if study.run.work.allows_shell() {
        bail!(
            "the study allows its scripts to run shell commands on this machine (allow-shell = true): read \
             its scripts, and add --allow-commands to permit it"
        );
    }
    Ok(())
}

/// Restores the changes that an earlier session left; returns their descriptions.
pub(super) fn restore_factors(folder: &Folder) -> Result<Vec<String>> {
    study_factors::recover(&folder.undo_path())
        .with_context(|| format!("the changes listed in {} cannot be restored", folder.undo_path().display()))
}

/// The group of the study's runs: that of earlier sessions, or a new one.
fn group(store: &Store, path: &Path, situation: &StudyStatus) -> Result<GroupId> {
    if let Some(session) = &situation.state.session {
        let id = GroupId(session.group);
        let known = store.group(id)?.filter(|group| {
            group.info.kind == GroupKind::Study && group.info.name.as_ref() == Some(&situation.study.name)
        });
        if known.is_none() || session.store != path {
            bail!(
                "the runs of this study are group {id} in {}, not in {}; give that file with --store",
                session.store.display(),
                path.display()
            );
        }
        return Ok(id);
    }
    let study = &situation.study;
    let body = json!({
        "folder": std::path::absolute(situation.folder.path()).unwrap_or_else(|_| situation.folder.path().to_owned()),
        "question": study.question,
        "seed": study.design.seed,
        "blocks": study.design.blocks,
        "treatments": situation.plan.treatments.iter().map(|one| &one.name).collect::<Vec<_>>(),
        "lock": situation.lock.as_ref().map(|lock| &lock.sha256),
    });
    let group = NewGroup {
        kind: GroupKind::Study,
        name: Some(study.name.clone()),
        created: jiff::Timestamp::now(),
        body,
    };
    Ok(store.begin_group(&group)?)
}

/// A run that is in the store but not in the ledger was made by a session that was killed before it could record the
/// run. The run is repeated and must not count twice.
fn forsake(store: &Store, group: GroupId, situation: &StudyStatus) -> Result<()> {
    let known = situation.state.known_runs();
    for member in store.members(group)? {
        if member.void.is_none() && !known.contains(&member.run) {
            store
                .set_void(member.run, "kelvin was killed before it recorded the run in the study's ledger")?;
        }
    }
    Ok(())
}

/// The environment of this session.
fn surroundings(spec: &Spec, report: &mut dyn FnMut(&str)) -> Result<EnvironmentFacts> {
    let mut facts = facts(env!("CARGO_PKG_VERSION"));
    if spec.is_io() {
        return Ok(facts);
    }
    let opened = open(&spec.target, Purpose::Run, report)?;
    let mut session = opened.engine.connect()?;
    facts.insert("database".into(), opened.engine.fingerprint(&mut *session)?.version);
    Ok(facts)
}

fn greeting(situation: &StudyStatus) -> String {
    let (plan, state) = (&situation.plan, &situation.state);
    let estimate = situation.estimate();
    let mark = if situation.lock.is_some() { "" } else { " · EXPLORATORY: hypothesis not locked" };
    let goes_on = if state.begun_runs() > 0 {
        format!(", {} of them done", state.counted_runs())
    } else {
        String::new()
    };
    format!(
        "study {}: {} runs{goes_on} · about {} left{mark}",
        situation.study.name,
        plan.runs.len(),
        duration(estimate.seconds(state.missing()))
    )
}

fn fenced(text: &str) -> String {
    format!("```\n{}\n```", text.trim())
}

fn print_end(situation: &StudyStatus, ended: Result<StudyEnd, StudyError>) -> Result<Code> {
    let again = format!("kelvin study run {}", situation.folder.path().display());
    match ended {
        Ok(StudyEnd::Complete) => {
            out::line(&format!("\nAnalysis: kelvin study analyze {}", situation.folder.path().display()))?;
            Ok(Code::Success)
        }
        Ok(StudyEnd::Missing(missing)) => {
            eprintln!(
                "kelvin: {missing} planned runs have no counted result: the replacements are used up, or a run did \
                 not count in {MOST_TRIES} tries (kelvin study analyze lists the reasons); for more replacements: \
                 {again} --replacements N"
            );
            Ok(Code::NotValid)
        }
        Ok(StudyEnd::Interrupted) => {
            out::note(&format!("kelvin: stopped; all settings are restored, and {again} resumes the study"));
            Ok(Code::Interrupted)
        }
        Err(error) if situation.state.counted_runs() > 0 => {
            out::note(&format!("kelvin: {error}"));
            Ok(Code::Aborted)
        }
        Err(error) => Err(error.into()),
    }
}

/// The database of the study's runs, checked after a run failed.
struct Database<'a> {
    spec: &'a Spec,
    store: &'a Store,
    stop: Stop,
}

impl StudyEnvironment for Database<'_> {
    fn revive(&mut self) -> Result<(), BenchError> {
        // I/O jobs need no database: each run checks its files and reports errors.
        if self.spec.is_io() {
            return Ok(());
        }
        let since = Instant::now();
        loop {
            if self.stop.requested() {
                return Err(BenchError::Interrupted);
            }
            match open(&self.spec.target, Purpose::Run, &mut |_| {}) {
                Ok(_) => return Ok(()),
                Err(error) if since.elapsed() > COMES_BACK => return Err(BenchError::Failed(error.into())),
                Err(_) => std::thread::sleep(Duration::from_millis(500)),
            }
        }
    }

    fn set_void(&mut self, run: RunId, why: &str) -> Result<(), BenchError> {
        self.store.set_void(run, why).map_err(|error| BenchError::Failed(error.into()))
    }
}
