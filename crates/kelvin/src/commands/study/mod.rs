//! `kelvin study`: the subcommands, one per file.

mod analyze;
mod fork;
mod list;
mod lock;
mod new;
mod page;
mod plan;
mod recover;
mod registry;
mod report;
mod run;
mod show;
mod study_factors;
mod study_status;

use anyhow::Result;
use kelvin_lab::study::Folder;

use crate::args::{Global, StudyCommand, StudyFolder};
use crate::exit::Code;

pub(crate) use study_status::StudyStatus;

/// Runs a subcommand.
pub(crate) fn study(command: &StudyCommand, global: &Global) -> Result<Code> {
    match command {
        StudyCommand::New(args) => new::new(args),
        StudyCommand::Plan(args) => plan::plan(args),
        StudyCommand::Lock(args) => lock::lock(args),
        StudyCommand::Run(args) => run::run(args, global),
        StudyCommand::Analyze(args) => analyze::analyze(args, global),
        StudyCommand::Report(args) => report::report(args, global),
        StudyCommand::List(args) => list::list(args),
        StudyCommand::Show(args) => show::show(args),
        StudyCommand::Fork(args) => fork::fork(args),
        StudyCommand::Recover(args) => recover::recover(args),
    }
}

/// The study's folder: the given folder, or the known study of this name.
pub(crate) fn find(study: &StudyFolder) -> Result<Folder> {
    let named = Folder::open(&study.folder);
    if named.is_ok() || study.folder.exists() {
        return Ok(named?);
    }
    let known = study.folder.to_str().map(registry::find_by_name).transpose()?.flatten();
    known.map_or_else(|| Ok(named?), Ok)
}

#[cfg(test)]
mod tests;
