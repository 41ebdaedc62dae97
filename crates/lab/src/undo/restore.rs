//! Putting back what a journal holds.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kelvin_database::managed::Manager;
use kelvin_database::postgres::settings::{self, PreviousSettings};
use kelvin_database::target::Target;

use super::{Journal, JournalError, Pending, ReversibleChange};
use crate::factor::{Access, cpus, kernel, memory, mount, shell};

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredChanges {
    /// Each change, as text.
    pub changes: Vec<String>,
    /// What is left to the user: restarts of servers that are not Kelvin's own.
    pub left: Vec<String>,
}

/// Why not everything was restored.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// These could not be restored; the journal keeps them.
    #[error("some changes could not be reverted; {} keeps the rest:\n  {}", .path.display(), .why.join("\n  "))]
    Left {
        /// The journal.
        path: PathBuf,
        /// What and why.
        why: Vec<String>,
    },
}

/// Puts back what a process left that was killed, in reverse order, and removes its journal. Nothing when there is no
/// journal. Refused while the process lives. What cannot be restored stays in the journal and is named in the error, after
/// everything else was restored.
///
/// The journal's commands are run: it is believed only when it belongs to this user and nobody else can write it.
pub fn recover(
    path: &Path,
    access: &Access,
    tell: &mut dyn FnMut(&str),
) -> Result<RestoredChanges, UndoError> {
    let Some(mut journal) = Journal::open_left_over(path)? else { return Ok(RestoredChanges::default()) };
    let undone = restore_changes(&mut journal, access, &|_| true, tell)?;
    journal.end()?;
    Ok(undone)
}

/// A server of Kelvin that waits for a restart.
type Waiting = (PathBuf, u32);

/// Puts back the pending changes that `which` chooses, the last one first. A server is restarted once.
pub(crate) fn restore_changes(
    journal: &mut Journal,
    access: &Access,
    which: &dyn Fn(&ReversibleChange) -> bool,
    tell: &mut dyn FnMut(&str),
) -> Result<RestoredChanges, UndoError> {
    let mut chosen: Vec<Pending> =
        journal.pending().iter().filter(|pending| which(&pending.change)).cloned().collect();
    chosen.reverse();
    let mut undone = RestoredChanges::default();
    let mut failed = Vec::new();
    let mut waiting: BTreeSet<Waiting> = BTreeSet::new();
    let mut settings_done = Vec::new();
    let is_settings = |pending: &Pending| matches!(pending.change, ReversibleChange::Settings { .. });
    // The server's restart comes last: one that takes huge pages where it finds them must find none of ours any more.
    let (first, then): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_settings);
    for Pending { number, change } in first {
        let ReversibleChange::Settings { target, servers, before } = &change else { continue };
        match put_settings_back(target, servers.as_deref(), before, access, &mut undone) {
            Ok(restart) => {
                waiting.extend(restart.clone());
                settings_done.push((number, change, restart));
            }
            Err(why) => failed.push(format!("{change}: {why}")),
        }
    }
    for Pending { number, change } in then {
        match put_one_back(&change) {
            Ok(()) => {
                journal.undone(number)?;
                undone.changes.push(change.to_string());
            }
            Err(why) => failed.push(format!("{change}: {why}")),
        }
    }
    let mut not_restarted = BTreeSet::new();
    for one in waiting {
        let (servers, version) = &one;
        if let Err(error) = Manager::new(servers).restart(*version, tell) {
            failed.push(format!("the restart of PostgreSQL {version}: {error}"));
            not_restarted.insert(one);
        }
    }
    for (number, change, restart) in settings_done {
        // A server that may still run with them is asked again.
        if restart.is_some_and(|server| not_restarted.contains(&server)) {
            continue;
        }
        journal.undone(number)?;
        undone.changes.push(change.to_string());
    }
    if failed.is_empty() {
        return Ok(undone);
    }
    Err(UndoError::Left { path: journal.path().to_owned(), why: failed })
}

/// Returns the server that has to be restarted for it.
fn put_settings_back(
    target: &str,
    servers: Option<&Path>,
    before: &PreviousSettings,
    access: &Access,
    undone: &mut RestoredChanges,
) -> Result<Option<Waiting>, String> {
    let told = |error: kelvin_database::Error| error.to_string();
    let parsed = Target::parse(target).map_err(told)?;
    if let (Target::ManagedPostgres { version: Some(version) }, Some(base)) = (&parsed, servers) {
        let manager = Manager::new(base);
        let Ok(instance) = manager.running(*version) else {
            // Stopped or crashed: its file is put right, and its next start reads that.
            manager.put_back_stopped(*version, before).map_err(told)?;
            return Ok(None);
        };
        let engine = kelvin_database::postgres::PostgresEngine::new(instance.config());
        let mut session = kelvin_database::Engine::connect(&engine).map_err(told)?;
        let waiting = settings::put_back(&mut *session, before).map_err(told)?;
        return Ok((!waiting.is_empty()).then(|| (base.to_owned(), *version)));
    }
    let mut session =
        access.server(&parsed, &mut |_| ()).and_then(|server| server.session()).map_err(told)?;
    let waiting = settings::put_back(&mut *session, before).map_err(told)?;
    if !waiting.is_empty() {
        undone.left.push(format!("{target} must be restarted to restore {}", waiting.join(", ")));
    }
    Ok(None)
}

fn put_one_back(change: &ReversibleChange) -> Result<(), String> {
    match change {
        ReversibleChange::Settings { .. } => Ok(()),
        ReversibleChange::Affinity { process, cpus } => {
            if process.lives() {
                cpus::bind_tree(process.pid, cpus)
            } else {
                Ok(())
            }
        }
        ReversibleChange::MemoryNodes { group, from } => memory::Cpusets::release(group, from),
        ReversibleChange::Kernel { file, before } => {
            if !kernel::is_of_kernel(file) {
                return Err("it is not a file of kernel settings".into());
            }
            if kernel::read(file).is_ok_and(|now| kernel::same(&now, before)) {
                return Ok(());
            }
            kernel::write(file, before.trim())
        }
        ReversibleChange::Mount { directory, options } => match mount::options(directory) {
            Ok(now) if now == *options => Ok(()),
            Ok(_) => mount::remount(directory, options),
            // After a reboot it may not be mounted; it has the old options when it is.
            Err(_) => Ok(()),
        },
        ReversibleChange::Command { undo } => shell::run(undo),
    }
}
