//! Restores the changes recorded in a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kelvin_database::managed::{ManagedServer, Manager};
use kelvin_database::settings::PreviousSettings;
use kelvin_database::target::Target;

use super::{Access, cpus, kernel, mount, shell, statements};
use crate::control_group;
use crate::undo::{Journal, JournalError, Pending, ReversibleChange};

/// The changes that were restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoredChanges {
    /// Each change, as text.
    pub changes: Vec<String>,
    /// Steps left to the user: restarts of servers that Kelvin does not manage.
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
        /// Each change and the reason.
        why: Vec<String>,
    },
}

/// Restores the changes that a killed process left, in reverse order, and removes its journal. Does nothing when
/// there is no journal. Refused while that process is alive. Changes that cannot be restored stay in the journal and
/// are listed in the error, after everything else was restored.
///
/// The commands in the journal are executed, so it is trusted only if it belongs to this user and no other user can
/// write it.
pub fn recover(
    path: &Path,
    access: &Access,
    report: &mut dyn FnMut(&str),
) -> Result<RestoredChanges, UndoError> {
    let Some(mut journal) = Journal::open_left_over(path)? else { return Ok(RestoredChanges::default()) };
    let undone = restore_changes(&mut journal, access, &|_| true, report)?;
    journal.end()?;
    Ok(undone)
}

/// A managed server that waits for a restart: the directory of all managed servers, and its target.
type Waiting = (PathBuf, String);

/// Restores the pending changes that `which` selects, the last one first. Each server is restarted once.
pub(crate) fn restore_changes(
    journal: &mut Journal,
    access: &Access,
    which: &dyn Fn(&ReversibleChange) -> bool,
    report: &mut dyn FnMut(&str),
) -> Result<RestoredChanges, UndoError> {
    let mut chosen: Vec<Pending> =
        journal.pending().iter().filter(|pending| which(&pending.change)).cloned().collect();
    chosen.reverse();
    let mut undone = RestoredChanges::default();
    let mut failed = Vec::new();
    let mut waiting: BTreeSet<Waiting> = BTreeSet::new();
    let mut settings_done = Vec::new();
    let is_settings = |pending: &Pending| matches!(pending.change, ReversibleChange::Settings { .. });
    // The server is restarted last: one that uses huge pages if available must not find those of Kelvin any more.
    let (first, then): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_settings);
    for Pending { number, change } in first {
        let ReversibleChange::Settings { target, servers, before } = &change else { continue };
        match restore_settings(target, servers.as_deref(), before, access, &mut undone) {
            Ok(restart) => {
                waiting.extend(restart.clone());
                settings_done.push((number, change, restart));
            }
            Err(why) => failed.push(format!("{change}: {why}")),
        }
    }
    for Pending { number, change } in then {
        match restore_change(&change, access) {
            Ok(()) => {
                journal.undone(number)?;
                undone.changes.push(change.to_string());
            }
            Err(why) => failed.push(format!("{change}: {why}")),
        }
    }
    let mut not_restarted = BTreeSet::new();
    for one in waiting {
        let (servers, target) = &one;
        let restarted = own_server(servers, target).and_then(|server| match server {
            Some(server) => server.restart(report).map_err(|error| format!("of {}: {error}", server.label())),
            None => Ok(()),
        });
        if let Err(why) = restarted {
            failed.push(format!("the restart {why}"));
            not_restarted.insert(one);
        }
    }
    for (number, change, restart) in settings_done {
        // A server that may still run with the changed settings is tried again.
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

/// Restores settings. Returns the server that has to be restarted for them.
fn restore_settings(
    target: &str,
    servers: Option<&Path>,
    before: &PreviousSettings,
    access: &Access,
    undone: &mut RestoredChanges,
) -> Result<Option<Waiting>, String> {
    let as_text = |error: kelvin_database::Error| error.to_string();
    if let Some(base) = servers
        && let Some(server) = own_server(base, target)?
    {
        let Ok(engine) = server.running() else {
            // The server is stopped or has crashed: its file is restored, and its next start reads it.
            server.put_back_stopped(before).map_err(as_text)?;
            return Ok(None);
        };
        let mut session = engine.connect().map_err(as_text)?;
        let settings = server.settings().map_err(as_text)?;
        let waiting = settings.put_back(&mut *session, before).map_err(as_text)?;
        return Ok((!waiting.is_empty()).then(|| (base.to_owned(), target.to_owned())));
    }
    let parsed = Target::parse(target).map_err(as_text)?;
    let server = access.server(&parsed, &mut |_| ()).map_err(as_text)?;
    let waiting = server.settings(|settings, session| settings.put_back(session, before)).map_err(as_text)?;
    if !waiting.is_empty() {
        undone.left.push(format!("{target} must be restarted to restore {}", waiting.join(", ")));
    }
    Ok(None)
}

/// The managed server of a target.
fn own_server(base: &Path, target: &str) -> Result<Option<Box<dyn ManagedServer>>, String> {
    let target = Target::parse(target).map_err(|error| error.to_string())?;
    target.managed_server(&Manager::new(base)).map_err(|error| error.to_string())
}

fn restore_change(change: &ReversibleChange, access: &Access) -> Result<(), String> {
    match change {
        ReversibleChange::Settings { .. } => Ok(()),
        ReversibleChange::Instruments { target, before } => {
            let as_text = |error: kelvin_database::Error| error.to_string();
            let parsed = Target::parse(target).map_err(as_text)?;
            let engine = match parsed.managed_server(access.manager()).map_err(as_text)? {
                // A stopped server has the previous settings after its next start.
                Some(server) => match server.running() {
                    Ok(engine) => engine,
                    Err(_stopped) => return Ok(()),
                },
                None => access.server(&parsed, &mut |_| ()).map_err(as_text)?.engine,
            };
            kelvin_observe::engine::switch_instruments(engine.as_ref(), before, true).map_err(as_text)
        }
        ReversibleChange::Affinity { process, cpus } => {
            if process.lives() {
                cpus::bind_tree(process.pid, cpus)
            } else {
                Ok(())
            }
        }
        ReversibleChange::MemoryNodes { group, from } | ReversibleChange::ControlGroup { group, from } => {
            control_group::release(group, from, &BTreeMap::new())
        }
        ReversibleChange::Controller { file, name } => {
            control_group::switch_off(file, name);
            Ok(())
        }
        ReversibleChange::Kernel { file, before } => {
            if !kernel::is_of_kernel(file) {
                return Err("it is not a file of kernel settings".into());
            }
            if kernel::read(file).is_ok_and(|now| kernel::same(&now, before)) {
                return Ok(());
            }
            kernel::write(file, kelvin_host::chosen(before).trim())
        }
        ReversibleChange::Mount { directory, options } => match mount::options(directory) {
            Ok(now) if now == *options => Ok(()),
            Ok(_) => mount::remount(directory, options),
            // After a reboot it may not be mounted; when it is mounted, it has the old options.
            Err(_) => Ok(()),
        },
        ReversibleChange::Statements { target, undo } => statements::run(access, target, undo),
        ReversibleChange::Command { undo } => shell::run(undo),
    }
}
