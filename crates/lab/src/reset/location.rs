//! Where a database is, as far as its snapshots are concerned.

use std::path::PathBuf;

use kelvin_database::managed::Manager;
use kelvin_database::postgres::Config;
use kelvin_database::postgres::snapshot::{DataDirectories, Dumps, Facts, Templates, programs};
use kelvin_database::snapshot::{SnapshotInfo, SnapshotMethod, SnapshotStore, clones};
use kelvin_database::sqlite::snapshot::SqliteFiles;
use kelvin_database::{Engine, Error, Home, Result};
use kelvin_workload::WorkloadData;

use super::method::ResetOptions;

/// Where a database's files are, as far as they are reachable.
#[derive(Debug, Clone)]
pub enum DataLocation {
    /// A file that ends with its run: there is nothing to restore.
    Temporary,
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres {
        /// How it is entered.
        config: Box<Config>,
        /// Its manager and its major version, when it is kelvin's own.
        managed: Option<(Manager, u32)>,
        /// Where dumps are kept.
        dumps: PathBuf,
    },
    /// A MySQL or MariaDB server: its data is made anew.
    Mysql,
}

impl DataLocation {
    /// Whether the server is kelvin's own.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Postgres { managed: Some(_), .. })
    }

    /// The keeper of one way; none where the way does not exist.
    ///
    /// # Errors
    /// When the place cannot be used.
    pub fn snapshot_store(&self, way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        Ok(match (self, way) {
            (Self::Sqlite(file), SnapshotMethod::Files) => Some(Box::new(SqliteFiles::of(file)?)),
            (Self::Postgres { config, .. }, SnapshotMethod::Template) => {
                Some(Box::new(Templates::new(Config::clone(config))))
            }
            (Self::Postgres { managed: Some((manager, major)), .. }, SnapshotMethod::Files) => {
                Some(Box::new(DataDirectories::new(manager.clone(), *major)))
            }
            (Self::Postgres { config, dumps, .. }, SnapshotMethod::Dump) => {
                Some(Box::new(Dumps::new(Config::clone(config), dumps)))
            }
            _ => None,
        })
    }

    /// Every snapshot of this database, however it is kept.
    ///
    /// # Errors
    /// When they cannot be looked for.
    pub fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut found = Vec::new();
        for way in [SnapshotMethod::Template, SnapshotMethod::Files, SnapshotMethod::Dump] {
            if let Some(keeper) = self.snapshot_store(way)? {
                found.extend(keeper.list()?);
            }
        }
        Ok(found)
    }

    /// What a choice of the way depends on. `data` is the workload's; without them every table is its.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn reset_options(&self, engine: &dyn Engine, data: Option<&WorkloadData>) -> Result<ResetOptions> {
        let can_be_built = data.is_some_and(|data| data.can_be_built);
        let ours = |table: &String| data.is_none_or(|data| data.tables.contains(&table.as_str()));
        let foreign = home(engine)?.tables()?.into_iter().filter(|table| !ours(table)).collect();
        let Self::Postgres { config, managed, .. } = self else {
            return Ok(ResetOptions { can_be_built, foreign, ..ResetOptions::default() });
        };
        let mut facts = Facts::read(engine.connect()?.as_mut(), config)?;
        if let Some((manager, _)) = managed {
            facts.clones = clones(manager.base_dir());
        }
        Ok(ResetOptions {
            foreign,
            dump: programs(facts.version / 10_000).is_some(),
            managed: managed.is_some(),
            can_be_built,
            server: Some(facts),
        })
    }
}

/// The upkeep of a database.
///
/// # Errors
/// When its engine has none.
pub(super) fn home(engine: &dyn Engine) -> Result<&dyn Home> {
    engine
        .home()
        .ok_or_else(|| Error::usage(format!("{} cannot be reset or saved as a snapshot", engine.kind())))
}
