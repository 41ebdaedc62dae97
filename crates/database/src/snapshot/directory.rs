//! A directory that holds snapshots as files: each one's data, and beside it the description that makes it a snapshot.

use std::path::{Path, PathBuf};

use super::files::{self, list, remove_both};
use super::{Seal, SnapshotInfo, check_name, exists_already};
use crate::Result;

/// The snapshots in one directory.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotDirectory {
    path: PathBuf,
    /// Of the files of data, without the dot.
    extension: &'static str,
}

impl SnapshotDirectory {
    /// At `path`, which need not exist, with data in files of this extension.
    pub(crate) fn new(path: PathBuf, extension: &'static str) -> Self {
        Self { path, extension }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.{}", self.extension))
    }

    fn description(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.toml"))
    }

    /// The complete snapshots, by name.
    pub(crate) fn list(&self) -> Result<Vec<SnapshotInfo>> {
        list(&self.path, "", ".toml")
    }

    /// Rejects a name that is none, or that a snapshot has.
    pub(crate) fn check_new(&self, name: &str) -> Result<()> {
        check_name(name)?;
        if self.description(name).exists() { Err(exists_already(name)) } else { Ok(()) }
    }

    /// Describes data that are in place: from now on they are a snapshot.
    pub(crate) fn complete(&self, mut about: SnapshotInfo, seal: Seal) -> Result<SnapshotInfo> {
        about.seal = Some(seal);
        files::write_whole(&self.description(&about.name), &about.to_text()?)?;
        Ok(about)
    }

    /// The data of a snapshot, if they are what was saved.
    pub(crate) fn sealed_data(&self, about: &SnapshotInfo) -> Result<PathBuf> {
        check_name(&about.name)?;
        let data = self.data(&about.name);
        about.must_be_sealed(files::seal(&data)?)?;
        Ok(data)
    }

    pub(crate) fn remove(&self, about: &SnapshotInfo) -> Result<()> {
        check_name(&about.name)?;
        remove_both(&self.description(&about.name), &self.data(&about.name))
    }
}
