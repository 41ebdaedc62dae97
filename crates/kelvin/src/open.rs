//! From a target to a database that can be connected to.

use std::io::IsTerminal;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kelvin_database::Engine;
use kelvin_database::managed::Manager;
use kelvin_database::postgres::password::{self, Password};
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::target::Target;
use kelvin_lab::spec::TargetName;

use crate::place;

/// An opened database.
pub(crate) struct Opened {
    /// The engine.
    pub(crate) engine: Arc<dyn Engine>,
    /// The directory of a database that ends with this process; removed when dropped.
    _scratch: Option<tempfile::TempDir>,
}

/// What the caller wants to do with the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Run a load; a temporary database will do.
    Run,
    /// Make data that stays after this process.
    Keep,
    /// Work on data that is there.
    Existing,
}

/// Opens the target and makes sure that it answers, asking for a password if it wants one.
pub(crate) fn open(target: &TargetName, purpose: Purpose, tell: &mut dyn FnMut(&str)) -> Result<Opened> {
    let (engine, scratch): (Arc<dyn Engine>, _) = match target.target()? {
        Target::Sqlite { path: Some(path) } if purpose == Purpose::Existing && !path.exists() => {
            bail!("there is no file {}", path.display())
        }
        Target::Sqlite { path: Some(path) } => (Arc::new(SqliteEngine::open(path)?), None),
        Target::Sqlite { path: None } if purpose != Purpose::Run => {
            bail!("without a file, SQLite's data ends with this command; give one with --target sqlite:FILE")
        }
        Target::Sqlite { path: None } => {
            let scratch = place::scratch()?;
            let engine = SqliteEngine::open(scratch.path().join("temporary.db"))?;
            (Arc::new(engine), Some(scratch))
        }
        Target::Postgres(config) => (Arc::new(PostgresEngine::new(with_password(*config)?)), None),
        Target::ManagedPostgres { version } => {
            let instance = Manager::new(place::servers()?).up(version, tell)?;
            (Arc::new(PostgresEngine::new(instance.config())), None)
        }
    };
    engine.connect().with_context(|| format!("cannot use {}", engine.describe()))?;
    Ok(Opened { engine, _scratch: scratch })
}

/// When the server wants a password that nobody has told us, looks where libpq does, then asks the person at
/// the terminal. A server that wants none is entered without a look: nothing wrong with a file of passwords is
/// to stop that.
pub(crate) fn with_password(mut config: Config) -> Result<Config> {
    let Err(error) = PostgresEngine::new(config.clone()).connect() else { return Ok(config) };
    // Any other failure is reported by the caller, who connects again.
    if !password::is_missing(&error) {
        return Ok(config);
    }
    config.password = password::find(&config, &|name| std::env::var(name).ok())?;
    if config.password.is_none() && std::io::stdin().is_terminal() {
        let prompt = format!("Password for {config}: ");
        config.password =
            Some(Password::new(rpassword::prompt_password(prompt).context("cannot read a password")?));
    }
    Ok(config)
}
