//! `kelvin study new`.

use std::path::Path;

use anyhow::{Context, Result};
use kelvin_lab::study::{Folder, Template, study_toml};

use super::registry;
use crate::args::NewArgs;
use crate::exit::Code;
use crate::out;

/// Creates the folder of a new study.
pub(super) fn new(args: &NewArgs) -> Result<Code> {
    let name = name_of(&args.folder)?;
    let template = if args.example { Template::Factorial } else { Template::Ab };
    let (folder, _) = Folder::create(&args.folder, &study_toml(template, name))?;
    registry::remember(&folder);
    let shown = folder.path().display();
    out::write(&format!(
        "created {shown}/study.toml and {shown}/notebook.md\n\
        \n\
        Edit study.toml, then:\n\
        \x20 kelvin study plan {shown}    show the runs, their time, and the detectable effect\n\
        \x20 kelvin study lock {shown}    lock the hypothesis\n\
        \x20 kelvin study run {shown}     start the runs\n"
    ))?;
    Ok(Code::Success)
}

/// The name of a new study: the last component of its folder's path.
pub(super) fn name_of(folder: &Path) -> Result<&str> {
    let last = folder.file_name().and_then(|name| name.to_str());
    last.with_context(|| {
        format!("the last component of {} cannot be used as the name of a study", folder.display())
    })
}
