//! Runs on their way from one store to another. What is exported is a separate store with these runs only, under their
//! numbers, and the digest of its content; what is imported is renumbered, and knows where it comes from.

mod content;
mod export;
mod import;

use std::collections::BTreeMap;

use rusqlite::{OptionalExtension, Row};
use serde::Serialize;

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::run::RunId;
use crate::store::Store;

pub use export::Exporter;
pub use import::ImportSource;

/// Which run of another store a run was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The machine that exported it; none where it was taken from a store that is no export.
    pub host: Option<String>,
    /// The name of the store's file there.
    pub store: String,
    /// Its number there.
    pub number: RunId,
}

impl Origin {
    /// "kelvin.db on db1".
    pub fn describe(&self) -> String {
        match &self.host {
            Some(host) => format!("{} on {host}", self.store),
            None => self.store.clone(),
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { host: row.get(0)?, store: row.get(1)?, number: RunId(row.get(2)?) })
    }
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// The machine that exported the file; none of a store that is no export.
    pub host: Option<String>,
    /// The runs, in the order of their numbers in the file.
    pub runs: Vec<ImportedRun>,
    /// The groups, in the order of their numbers in the file.
    pub groups: Vec<ImportedGroup>,
}

/// A run of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportedRun {
    /// Its number in the file.
    pub number: RunId,
    /// Its number in the store.
    pub run: RunId,
    /// Whether the store had it already.
    pub was_there: bool,
}

/// A group of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ImportedGroup {
    /// Its number in the file.
    pub number: GroupId,
    /// Its number in the store.
    pub group: GroupId,
    /// Whether the store had it already.
    pub was_there: bool,
}

impl Store {
    /// Which run of another store a run was; none of one that was made with this store.
    pub fn origin(&self, run: RunId) -> Result<Option<Origin>> {
        self.connection()
            .query_row("SELECT host, store, number FROM origin WHERE run = ?", [run.0], Origin::read)
            .optional()
            .map_err(|e| Error::sqlite(self.path(), e))
    }

    /// Where each imported run of the store comes from.
    pub fn origins(&self) -> Result<BTreeMap<RunId, Origin>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement =
            self.connection().prepare("SELECT host, store, number, run FROM origin").map_err(to)?;
        let rows = statement.query_map([], |row| Ok((RunId(row.get(3)?), Origin::read(row)?))).map_err(to)?;
        rows.collect::<rusqlite::Result<_>>().map_err(to)
    }
}
