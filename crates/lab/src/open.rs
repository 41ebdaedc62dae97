//! Opens the database of a target.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use kelvin_database::managed::Manager;
use kelvin_database::mysql::managed::MysqlServer;
use kelvin_database::mysql::{self, MysqlEngine};
use kelvin_database::postgres::password::{self, Password};
use kelvin_database::postgres::{Config, Host, PostgresEngine};
use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::sqlserver::{self, SqlServerEngine};
use kelvin_database::target::Target;
use kelvin_database::{Engine, Session};
use kelvin_run::spec::TargetName;

use crate::directories;
use crate::error::Doing;
use crate::error::StoreBenchError;
use crate::reset::DataLocation;

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Prompts for the password of a server; none without a terminal.
pub type PasswordPrompt = fn(server: &dyn Display) -> io::Result<Option<Password>>;

/// An opened database.
pub struct Opened {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The location of the database's data, for snapshots.
    pub place: DataLocation,
    /// The directory of a database that ends with this process; removed when dropped.
    _scratch: Option<tempfile::TempDir>,
}

/// The intended use of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Run a load; a temporary database will do.
    Run,
    /// Create data that remains after this process.
    Keep,
    /// Use existing data.
    Existing,
}

/// Opens the target and checks that it answers. A required password that no file provides is requested through
/// `prompt`; steps that take long, such as starting a managed server, are reported through `report`.
pub fn open(
    target: &TargetName,
    purpose: Purpose,
    prompt: PasswordPrompt,
    report: &mut dyn FnMut(&str),
) -> Result<Opened> {
    let (engine, place, scratch): (Arc<dyn Engine>, _, _) = match with_password(target.target()?, prompt)? {
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
            // A managed server is also found by its address, so that a study may name it either way.
            let managed = managed_by_address(&config);
            let place =
                DataLocation::Postgres { config: config.clone(), managed, dumps: directories::dumps()? };
            (Arc::new(PostgresEngine::new(*config)), place, None)
        }
        Target::Mysql(config) => {
            let manager = Manager::new(directories::servers()?);
            let place = DataLocation::Mysql {
                config: config.clone(),
                managed: MysqlServer::by_socket(&manager, &config).map(Box::new),
                dumps: directories::dumps()?,
            };
            (Arc::new(MysqlEngine::new(*config)), place, None)
        }
        Target::SqlServer(config) => {
            let engine = SqlServerEngine::new(with_sqlserver_password(*config, prompt)?);
            (Arc::new(engine), DataLocation::SqlServer, None)
        }
        Target::ManagedMysql { product } => {
            let manager = Manager::new(directories::servers()?);
            let instance = mysql::managed::up(&manager, product, None, report)?;
            let place = DataLocation::Mysql {
                config: Box::new(instance.config.clone()),
                managed: Some(Box::new(MysqlServer::new(manager, product)?)),
                dumps: directories::dumps()?,
            };
            (Arc::new(MysqlEngine::new(instance.config)), place, None)
        }
        Target::ManagedPostgres { version } => {
            let manager = Manager::new(directories::servers()?);
            let instance = manager.up(version, report)?;
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

/// Connects to a running server with the given password.
pub fn connect_with_password(target: &str, password: &str) -> Result<Box<dyn Session>> {
    let password = (!password.is_empty()).then(|| Password::new(password));
    let mut target = Target::parse(target)?;
    match &mut target {
        Target::Postgres(config) => config.password = password,
        Target::Mysql(config) => config.password = password,
        Target::SqlServer(config) => config.password = password,
        _ => {}
    }
    let name = target.to_string();
    let engine = match target {
        Target::SqlServer(config) => Some(Arc::new(SqlServerEngine::new(*config)) as Arc<dyn Engine>),
        target => server(target),
    };
    let engine = engine.ok_or_else(|| StoreBenchError::Refused(format!("{name} is not a running server")))?;
    engine.connect().doing(format!("cannot use {}", engine.describe()))
}

/// The managed server with this socket, if there is one.
fn managed_by_address(config: &Config) -> Option<(Manager, u32)> {
    let Host::Unix(directory) = &config.host else { return None };
    let manager = Manager::new(directories::servers().ok()?);
    // Checking every managed server takes time, so other sockets are ruled out first.
    if !directory.starts_with(manager.base_dir()) && !directory.starts_with("/tmp") {
        return None;
    }
    let same = |status: &kelvin_database::postgres::managed::Status| {
        status.pid.is_some() && &status.socket_directory == directory && status.port == config.port
    };
    let major = manager.status().ok()?.into_iter().find(same)?.major;
    Some((manager, major))
}

/// The engine of a target that can be connected to directly; `None` for a file, and for a server that Kelvin
/// has to start first.
pub fn server(target: Target) -> Option<Arc<dyn Engine>> {
    match target {
        Target::Postgres(config) => Some(Arc::new(PostgresEngine::new(*config))),
        Target::Mysql(config) => Some(Arc::new(MysqlEngine::new(*config))),
        // SQL Server is opened by [`open`] only: nothing is sent to it before its password is known.
        Target::Sqlite { .. }
        | Target::ManagedPostgres { .. }
        | Target::ManagedMysql { .. }
        | Target::SqlServer(_) => None,
    }
}

/// The same server, with its password: looked up where the server's own clients look, then requested at the terminal
/// through `prompt`. Where the server requires no password, no look-up is made, so that a broken password file does not
/// prevent the connection.
pub fn with_password(target: Target, prompt: PasswordPrompt) -> Result<Target> {
    let (mut target, known) = look_up(target)?;
    if !known {
        let asked = |server: &dyn Display| prompt(server).doing("cannot read a password");
        match &mut target {
            Target::Postgres(config) => config.password = asked(config)?,
            Target::Mysql(config) => config.password = asked(config)?,
            Target::Sqlite { .. }
            | Target::ManagedPostgres { .. }
            | Target::ManagedMysql { .. }
            | Target::SqlServer(_) => {}
        }
    }
    Ok(target)
}

/// [`with_password`] without a prompt.
pub(crate) fn with_known_password(target: Target) -> kelvin_database::Result<Target> {
    look_up(target).map(|(target, _)| target)
}

/// The target with its password, and whether no other password is needed. A failure other than a missing
/// password is reported by the caller, who connects again.
fn look_up(mut target: Target) -> kelvin_database::Result<(Target, bool)> {
    let missing = server(target.clone())
        .is_some_and(|engine| engine.connect().is_err_and(|error| password::is_missing(&error)));
    if !missing {
        return Ok((target, true));
    }
    let environment = |name: &str| std::env::var(name).ok();
    let found = match &mut target {
        Target::Postgres(config) => {
            config.password = password::find(config, &environment)?;
            config.password.is_some()
        }
        Target::Mysql(config) => {
            config.password = mysql::password::find(&environment)?;
            config.password.is_some()
        }
        Target::Sqlite { .. }
        | Target::ManagedPostgres { .. }
        | Target::ManagedMysql { .. }
        | Target::SqlServer(_) => true,
    };
    Ok((target, found))
}

/// [`with_password`] for SQL Server, which always requires a password: nothing is sent before it is known.
fn with_sqlserver_password(
    mut config: sqlserver::Config,
    prompt: PasswordPrompt,
) -> Result<sqlserver::Config> {
    if config.token.is_some() || config.token_file.is_some() {
        return Ok(config);
    }
    config.password = sqlserver::password::find(&|name| std::env::var(name).ok());
    if config.password.is_none() {
        config.password = prompt(&config).doing("cannot read a password")?;
    }
    Ok(config)
}
