//! The file of an SQLite database.

use std::path::Path;
use std::sync::Arc;

use super::SqliteEngine;
use super::snapshot::SqliteFiles;
use crate::snapshot::{SnapshotMethod, SnapshotMethods, SnapshotStore};
use crate::{DataLocation, Engine, Error, Result};

/// The file of an SQLite database.
#[derive(Debug)]
pub(crate) struct SqliteLocation {
    engine: SqliteEngine,
    temporary: bool,
}

impl SqliteLocation {
    /// Opens this file; without one, a temporary file in the directory `scratch`.
    pub(crate) fn open(file: Option<&Path>, scratch: Option<&Path>) -> Result<Self> {
        const LOST: &str = "without a file, SQLite's data is lost when this command ends; give one with --target \
                            sqlite:FILE";
        let path = file.map(ToOwned::to_owned).or_else(|| Some(scratch?.join("temporary.db")));
        let engine = SqliteEngine::open(path.ok_or_else(|| Error::usage(LOST))?)?;
        Ok(Self { engine, temporary: file.is_none() })
    }
}

impl DataLocation for SqliteLocation {
    fn engine(&self) -> Arc<dyn Engine> {
        Arc::new(self.engine.clone())
    }

    fn is_temporary(&self) -> bool {
        self.temporary
    }

    fn snapshot_methods(&self) -> Result<Option<SnapshotMethods>> {
        Ok(Some(SnapshotMethods {
            no_template: Some("templates need a server; SQLite data are reset by files".into()),
            no_files: None,
            no_dump: Some("an SQLite file needs no dump; it is reset by copying the file (files)".into()),
            fastest: Ok((SnapshotMethod::Files, "SQLite uses a single file")),
            confirming: &[SnapshotMethod::Files],
            is_file: true,
        }))
    }

    fn snapshot_store(&self, way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        if self.temporary || way != SnapshotMethod::Files {
            return Ok(None);
        }
        Ok(Some(Box::new(SqliteFiles::new(self.engine.path())?)))
    }
}
