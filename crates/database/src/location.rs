//! An opened database, and its data as far as they are accessible: how they are loaded, kept and restored.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use crate::managed::Manager;
use crate::snapshot::{SnapshotInfo, SnapshotMethod, SnapshotMethods, SnapshotStore};
use crate::{Engine, Result};

/// The directories in which servers have files of this user.
pub struct ServerDirectories {
    /// The manager of managed servers.
    pub manager: Manager,
    /// Directory of dumps.
    pub dumps: PathBuf,
}

/// The location of an opened database's data. By default it keeps no snapshots: the data are built again.
pub trait DataLocation: Debug + Send + Sync {
    /// The engine.
    fn engine(&self) -> Arc<dyn Engine>;

    /// Whether it is a file that is removed after its run: there is nothing to restore.
    fn is_temporary(&self) -> bool {
        false
    }

    /// Whether the server is managed.
    fn is_managed(&self) -> bool {
        false
    }

    /// Applies server settings for a bulk load if the server is managed and has such settings. `progress` is called
    /// for steps that take long.
    ///
    /// # Errors
    /// When the server cannot be reached.
    fn begin_load(&self, _progress: &mut dyn FnMut(&str)) -> Result<Option<Box<dyn LoadSettings>>> {
        Ok(None)
    }

    /// The methods by which snapshots can be kept; `None` where there are none.
    ///
    /// # Errors
    /// When the database does not answer.
    fn snapshot_methods(&self) -> Result<Option<SnapshotMethods>> {
        Ok(None)
    }

    /// The snapshot store of a method; `None` where the method does not exist.
    ///
    /// # Errors
    /// When the location cannot be used.
    fn snapshot_store(&self, _way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        Ok(None)
    }

    /// Every snapshot of this database, by any method.
    ///
    /// # Errors
    /// When they cannot be listed.
    fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut found = Vec::new();
        for way in [SnapshotMethod::Template, SnapshotMethod::Files, SnapshotMethod::Dump] {
            if let Some(keeper) = self.snapshot_store(way)? {
                found.extend(keeper.list()?);
            }
        }
        Ok(found)
    }
}

/// The settings of a server for a bulk load. It gets its previous ones back at the latest when this is dropped.
pub trait LoadSettings {
    /// Restores the previous settings.
    ///
    /// # Errors
    /// When that is refused, such as while other clients use the server: it keeps the settings of the load.
    fn end(self: Box<Self>, progress: &mut dyn FnMut(&str)) -> Result<()>;
}
