//! From a target to a database that can be connected to.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_database::managed::Manager;
use kelvin_database::mysql::{self, MysqlEngine};
use kelvin_database::postgres::password::{self, Password};
use kelvin_database::postgres::{Config, Host, PostgresEngine};
use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::target::Target;
use kelvin_run::spec::TargetName;

use crate::directories;
use crate::reset::DataLocation;
use crate::store_bench::StoreBenchError;
use crate::store_bench::error::Doing;

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Prompts for the password of the named server; none without a terminal.
pub type PasswordPrompt = fn(server: &dyn Display) -> io::Result<Option<Password>>;

/// An opened database.
pub struct Opened {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// Where it is, as far as its snapshots are concerned.
    pub place: DataLocation,
    /// The directory of a database that ends with this process; removed when dropped.
    _scratch: Option<tempfile::TempDir>,
}

/// What the caller wants to do with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Run a load; a temporary database will do.
    Run,
    /// Make data that stays after this process.
    Keep,
    /// Work on data that is there.
    Existing,
}

/// Opens the target and makes sure that it answers. A password that it wants and no file has is asked for by `prompt`; what
/// takes its time, such as starting a managed server, is reported by `tell`.
pub fn open(
    target: &TargetName,
    purpose: Purpose,
    prompt: PasswordPrompt,
    tell: &mut dyn FnMut(&str),
) -> Result<Opened> {
    let (engine, place, scratch): (Arc<dyn Engine>, _, _) = match target.target()? {
        Target::Sqlite { path: Some(path) } if purpose == Purpose::Existing && !path.exists() => {
            return Err(StoreBenchError::Refused(format!("file {} does not exist", path.display())));
        }
        Target::Sqlite { path: Some(path) } => {
            let engine = SqliteEngine::open(path)?;
            let place = DataLocation::Sqlite(engine.path().to_owned());
            (Arc::new(engine), place, None)
        }
        Target::Sqlite { path: None } if purpose != Purpose::Run => {
            return Err(StoreBenchError::Refused(
                "without a file, SQLite's data is lost when this command ends; give one with --target \
                 sqlite:FILE"
                    .into(),
            ));
        }
        Target::Sqlite { path: None } => {
            let scratch = directories::scratch()?;
            let engine = SqliteEngine::open(scratch.path().join("temporary.db"))?;
            (Arc::new(engine), DataLocation::Temporary, Some(scratch))
        }
        Target::Postgres(config) => {
            let config = with_password(*config, prompt)?;
            // Found by its address, too, so that a study may name the server either way.
            let managed = managed_by_address(&config);
            let place = DataLocation::Postgres {
                config: Box::new(config.clone()),
                managed,
                dumps: directories::dumps()?,
            };
            (Arc::new(PostgresEngine::new(config)), place, None)
        }
        Target::Mysql(config) => {
            let engine = MysqlEngine::new(with_mysql_password(*config, prompt)?);
            (Arc::new(engine), DataLocation::Mysql, None)
        }
        Target::ManagedMysql { product } => {
            let instance = kelvin_database::mysql::managed::up(
                &Manager::new(directories::servers()?),
                product,
                None,
                tell,
            )?;
            (Arc::new(MysqlEngine::new(instance.config)), DataLocation::Mysql, None)
        }
        Target::ManagedPostgres { version } => {
            let manager = Manager::new(directories::servers()?);
            let instance = manager.up(version, tell)?;
            let place = DataLocation::Postgres {
                config: Box::new(instance.config()),
                managed: Some((manager, instance.major())),
                dumps: directories::dumps()?,
            };
            (Arc::new(PostgresEngine::new(instance.config())), place, None)
        }
    };
    engine.connect().doing(format!("cannot use {}", engine.describe()))?;
    Ok(Opened { engine, place, _scratch: scratch })
}

/// The managed server whose socket this is, if it is one's.
fn managed_by_address(config: &Config) -> Option<(Manager, u32)> {
    let Host::Unix(directory) = &config.host else { return None };
    let manager = Manager::new(directories::servers().ok()?);
    // Looking at every server of ours takes time, which nobody else's needs to cost.
    if !directory.starts_with(manager.base_dir()) && !directory.starts_with("/tmp") {
        return None;
    }
    let same = |status: &kelvin_database::postgres::managed::Status| {
        status.pid.is_some() && &status.socket_directory == directory && status.port == config.port
    };
    let major = manager.status().ok()?.into_iter().find(same)?.major;
    Some((manager, major))
}

/// If the server requires a password that was not given, searches where libpq does, then asks at
/// the terminal by `prompt`. If the server requires none, nothing is read: nothing wrong with a file of passwords is
/// to stop that.
pub fn with_password(mut config: Config, prompt: PasswordPrompt) -> Result<Config> {
    let Err(error) = PostgresEngine::new(config.clone()).connect() else { return Ok(config) };
    // Any other failure is reported by the caller, who connects again.
    if !password::is_missing(&error) {
        return Ok(config);
    }
    config.password = password::find(&config, &|name| std::env::var(name).ok())?;
    if config.password.is_none() {
        config.password = prompt(&config).doing("cannot read a password")?;
    }
    Ok(config)
}

/// [`with_password`] for MySQL and MariaDB, by the places where their clients look.
fn with_mysql_password(mut config: mysql::Config, prompt: PasswordPrompt) -> Result<mysql::Config> {
    let Err(error) = MysqlEngine::new(config.clone()).connect() else { return Ok(config) };
    if !password::is_missing(&error) {
        return Ok(config);
    }
    config.password = mysql::password::find(&|name| std::env::var(name).ok())?;
    if config.password.is_none() {
        config.password = prompt(&config).doing("cannot read a password")?;
    }
    Ok(config)
}
