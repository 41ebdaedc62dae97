//! The location of a database, for its snapshots.

use std::path::PathBuf;

use kelvin_database::managed::Manager;
use kelvin_database::mysql;
use kelvin_database::mysql::managed::MysqlServer;
use kelvin_database::postgres::Config;
use kelvin_database::postgres::managed::Loading;
use kelvin_database::postgres::snapshot::{Facts, Templates, programs};
use kelvin_database::snapshot::{SnapshotInfo, SnapshotMethod, SnapshotStore, clones};
use kelvin_database::sqlite::snapshot::SqliteFiles;
use kelvin_database::{Engine, Error, Home, Result, postgres};
use kelvin_workload::WorkloadData;

use super::method::{DataServer, ResetOptions};

/// The location of a database's files, as far as they are accessible.
#[derive(Debug, Clone)]
pub enum DataLocation {
    /// A file that is removed after its run: there is nothing to restore.
    Temporary,
    /// An SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL server.
    Postgres {
        /// How to connect.
        config: Box<Config>,
        /// Its manager and its major version, if it is managed.
        managed: Option<(Manager, u32)>,
        /// Directory of dumps.
        dumps: PathBuf,
    },
    /// A MySQL or MariaDB server.
    Mysql {
        /// How to connect.
        config: Box<mysql::Config>,
        /// The managed server, if it is one.
        managed: Option<Box<MysqlServer>>,
        /// Directory of dumps.
        dumps: PathBuf,
    },
    /// A SQL Server: its data is built again.
    SqlServer,
}

impl DataLocation {
    /// Whether the server is managed.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Postgres { managed: Some(_), .. } | Self::Mysql { managed: Some(_), .. })
    }

    /// Applies server settings for a bulk load if the server is managed and has such settings. `report` is
    /// called for steps that take long.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) fn begin_load(&self, report: &mut dyn FnMut(&str)) -> Result<Option<Loading>> {
        match self {
            Self::Postgres { managed: Some((manager, major)), .. } => manager.begin_load(*major, report),
            _ => Ok(None),
        }
    }

    /// The snapshot store of a method; `None` where the method does not exist.
    ///
    /// # Errors
    /// When the location cannot be used.
    pub fn snapshot_store(&self, way: SnapshotMethod) -> Result<Option<Box<dyn SnapshotStore>>> {
        Ok(match (self, way) {
            (Self::Sqlite(file), SnapshotMethod::Files) => Some(Box::new(SqliteFiles::of(file)?)),
            (Self::Postgres { config, .. }, SnapshotMethod::Template) => {
                Some(Box::new(Templates::new(Config::clone(config))))
            }
            (Self::Postgres { managed: Some((manager, major)), .. }, SnapshotMethod::Files) => {
                Some(postgres::snapshot::files(manager.clone(), *major))
            }
            (Self::Postgres { config, dumps, .. }, SnapshotMethod::Dump) => {
                Some(postgres::snapshot::dumps(Config::clone(config), dumps))
            }
            (Self::Mysql { managed: Some(server), .. }, SnapshotMethod::Files) => {
                Some(mysql::snapshot::files(MysqlServer::clone(server)))
            }
            (Self::Mysql { config, managed, dumps }, SnapshotMethod::Dump) => {
                let base = managed.as_ref().and_then(|server| server.base());
                Some(mysql::snapshot::dumps(mysql::Config::clone(config), base, dumps))
            }
            _ => None,
        })
    }

    /// Every snapshot of this database, by any method.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut found = Vec::new();
        for way in [SnapshotMethod::Template, SnapshotMethod::Files, SnapshotMethod::Dump] {
            if let Some(keeper) = self.snapshot_store(way)? {
                found.extend(keeper.list()?);
            }
        }
        Ok(found)
    }

    /// The facts on which the choice of a method depends. `data` is the workload's; without it every table counts as
    /// the workload's.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn reset_options(&self, engine: &dyn Engine, data: Option<&WorkloadData>) -> Result<ResetOptions> {
        let can_be_built = data.is_some_and(|data| data.can_be_built);
        let ours = |table: &String| data.is_none_or(|data| data.tables.contains(&table.as_str()));
        let foreign = home(engine)?.tables()?.into_iter().filter(|table| !ours(table)).collect();
        let options = ResetOptions { can_be_built, foreign, ..ResetOptions::default() };
        match self {
            Self::Temporary | Self::Sqlite(_) | Self::SqlServer => Ok(options),
            Self::Postgres { config, managed, .. } => {
                let mut facts = Facts::read(engine.connect()?.as_mut(), config)?;
                if let Some((manager, _)) = managed {
                    facts.clones = clones(manager.base_dir());
                }
                let major = facts.version / 10_000;
                let no_dump = programs(major).is_none().then(|| {
                    format!(
                        "pg_dump and pg_restore of PostgreSQL {major} or newer are not installed here (Debian: \
                         apt-get install postgresql-client-{major})"
                    )
                });
                let server = Some(DataServer::WithTemplates(facts));
                Ok(ResetOptions { server, managed: managed.is_some(), no_dump, ..options })
            }
            Self::Mysql { managed, .. } => {
                let product = mysql::product(engine.connect()?.as_mut())?;
                let base = managed.as_ref().and_then(|server| server.base());
                let no_dump = mysql::snapshot::programs(product, base.as_deref())
                    .is_none()
                    .then(|| format!("the client programs of {product} are not installed here"));
                let server = Some(DataServer::OfFiles);
                Ok(ResetOptions { server, managed: managed.is_some(), no_dump, ..options })
            }
        }
    }
}

/// The maintenance interface of a database.
///
/// # Errors
/// When its engine has none.
pub(super) fn home(engine: &dyn Engine) -> Result<&dyn Home> {
    engine
        .home()
        .ok_or_else(|| Error::usage(format!("{} cannot be reset or saved as a snapshot", engine.kind())))
}
