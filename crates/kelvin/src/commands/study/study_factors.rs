//! Sets and restores a study's factors, within the user's consent.

use std::path::Path;

use anyhow::Result;
use kelvin_database::managed::Manager;
use kelvin_lab::directories;
use kelvin_lab::factor::{Access, Applier, Consent, recover as put_back};

use super::StudyStatus;
use crate::args::StudyRunArgs;

/// Makes what sets the factors; nothing is changed yet.
pub(super) fn make_applier(situation: &StudyStatus, args: &StudyRunArgs, quiet: bool) -> Result<Applier> {
    let consent = Consent { commands: args.allow_commands, settings: args.allow_settings };
    let factors = situation.study.factors.clone();
    let applier = Applier::new(factors, &situation.folder.undo_path(), access()?, consent)?;
    Ok(if quiet { applier } else { applier.with_progress(crate::out::note) })
}

/// Restores the changes in the journal of a killed session, and returns their descriptions.
pub(super) fn recover(journal: &Path) -> Result<Vec<String>> {
    let undone = put_back(journal, &access()?, &mut |text| crate::out::note(text))?;
    let left = undone.left.into_iter().map(|left| format!("to be done by you: {left}"));
    Ok(undone.changes.into_iter().chain(left).collect())
}

fn access() -> Result<Access> {
    Ok(Access::new(Manager::new(directories::servers()?)))
}
