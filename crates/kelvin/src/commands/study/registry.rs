//! The studies that this user has created or run: their folders, in a file of the data directory. It is only a
//! convenience: everything about a study is in its folder.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use kelvin_lab::directories;
use kelvin_lab::study::Folder;

/// Maximum number of folders; the oldest are removed.
const MOST: usize = 1000;

fn file() -> Result<PathBuf> {
    Ok(directories::data()?.join("studies.json"))
}

/// The folders, the newest last. Folders that no longer exist are left out.
pub(super) fn known_folders() -> Result<Vec<Folder>> {
    Ok(read()?.iter().filter_map(|path| Folder::open(path).ok()).collect())
}

/// The newest folder whose study, or whose own last path component, has this name.
pub(super) fn find_by_name(name: &str) -> Result<Option<Folder>> {
    let is_named = |folder: &Folder| {
        folder.path().file_name().is_some_and(|last| last == name)
            || folder.study().is_ok_and(|study| study.name == name)
    };
    Ok(known_folders()?.into_iter().rev().find(is_named))
}

/// Remembers a folder. A failure is reported but does not stop the command.
pub(super) fn remember(folder: &Folder) {
    if let Err(error) = add(folder) {
        crate::out::note(&format!("kelvin: `kelvin study list` will not list this study: {error:#}"));
    }
}

fn add(folder: &Folder) -> Result<()> {
    let path = folder.path().canonicalize().context("cannot find the folder")?;
    let mut paths = read()?;
    if paths.last() == Some(&path) {
        return Ok(());
    }
    paths.retain(|known| *known != path);
    paths.push(path);
    paths.drain(..paths.len().saturating_sub(MOST));
    let file = file()?;
    let directory = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let mut new = tempfile::NamedTempFile::new_in(directory).context("cannot write the list of studies")?;
    new.write_all(serde_json::to_string_pretty(&paths)?.as_bytes())?;
    new.persist(&file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

fn read() -> Result<Vec<PathBuf>> {
    let file = file()?;
    match std::fs::read(&file) {
        Ok(text) => serde_json::from_slice(&text)
            .with_context(|| format!("{} is not a list of studies", file.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}
