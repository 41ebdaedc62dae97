//! `kelvin study lock`.

use anyhow::{Result, bail};
use kelvin_lab::study::{Lock, notebook::NotebookPart};

use super::page::locked;
use super::{StudyStatus, find, plan};
use crate::args::FolderArgs;
use crate::exit::Code;
use crate::out;

/// Fixes the hypothesis and the criteria for its answer.
pub(super) fn lock(args: &FolderArgs) -> Result<Code> {
    let situation = StudyStatus::read(find(&args.study)?)?;
    if let Some(lock) = &situation.lock {
        bail!(
            "already locked at {}; later changes are shown as deviations, and another hypothesis needs \
             another study: kelvin study fork {} NEW",
            lock.at.strftime("%Y-%m-%d %H:%M UTC"),
            situation.folder.path().display()
        );
    }
    let begun = situation.state.begun_runs();
    let lock = Lock::new(&situation.study, env!("CARGO_PKG_VERSION"), begun)?;
    lock.write(&situation.folder.lock_path())?;
    let words = locked(&lock);
    let shown = format!("Locked {words}, by kelvin {}.", lock.kelvin);
    situation.folder.note(NotebookPart::Lock, &shown)?;
    situation
        .folder
        .note(NotebookPart::Plan, &format!("```\n{}```", plan::notebook_text(&situation).trim_start()))?;
    out::line(&format!("locked {words}"))?;
    Ok(Code::Success)
}
