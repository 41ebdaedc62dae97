//! How the servers are reached that factors change, and what the user has allowed.

use kelvin_database::managed::Manager;
use kelvin_database::postgres::{Config, PostgresEngine, password};
use kelvin_database::target::Target;
use kelvin_database::{Engine, Error, Result, Session};

/// Finds out how to log in, such as by asking for a password.
type Login = dyn Fn(Config) -> Result<Config> + Send;

/// The way to the servers.
pub struct Access {
    manager: Manager,
    login: Box<Login>,
}

/// What the user has allowed beyond changing servers of Kelvin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consent {
    /// Commands of the study's file are run.
    pub commands: bool,
    /// Settings of a server that is not Kelvin's own are changed, and restored.
    pub settings: bool,
}

/// A PostgreSQL server that was reached.
pub(crate) struct Server {
    /// How to connect.
    pub(crate) engine: PostgresEngine,
    /// Its version, when it is Kelvin's own.
    pub(crate) managed: Option<u32>,
    /// As a target, without a password, that means this very server.
    pub(crate) target: String,
}

impl Access {
    /// Servers of Kelvin are those of `manager`; the password for another is looked for where libpq looks.
    pub fn new(manager: Manager) -> Self {
        Self { manager, login: Box::new(look_up) }
    }

    /// With another way to find a password.
    #[must_use]
    pub fn with_login(mut self, login: impl Fn(Config) -> Result<Config> + Send + 'static) -> Self {
        self.login = Box::new(login);
        self
    }

    /// Who starts Kelvin's own servers.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Reaches the server of a target; starts it when it is Kelvin's own and stopped.
    pub(crate) fn server(&self, target: &Target, tell: &mut dyn FnMut(&str)) -> Result<Server> {
        match target {
            Target::ManagedPostgres { version } => {
                let instance = self.manager.up(*version, tell)?;
                let major = instance.major();
                let target = Target::ManagedPostgres { version: Some(major) }.to_string();
                Ok(Server { engine: PostgresEngine::new(instance.config()), managed: Some(major), target })
            }
            Target::Postgres(config) => {
                let engine = PostgresEngine::new((self.login)((**config).clone())?);
                Ok(Server { engine, managed: None, target: target.to_string() })
            }
            Target::Mysql(_) | Target::ManagedMysql { .. } => {
                Err(Error::usage("MySQL and MariaDB settings are not yet supported as factors of a study"))
            }
            Target::Sqlite { .. } => Err(Error::usage(format!("{target} has no server"))),
        }
    }
}

impl Server {
    pub(crate) fn session(&self) -> Result<Box<dyn Session>> {
        self.engine.connect()
    }

    /// The server's first process, when it runs on this host.
    pub(crate) fn process(&self) -> Result<u32> {
        let mut session = self.session()?;
        let data = self.engine.data_directory(&mut *session).ok_or_else(|| {
            Error::usage(format!(
                "{} does not run on this host, or does not report its data directory",
                self.target
            ))
        })?;
        let file = data.join("postmaster.pid");
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Error::usage(format!("{} cannot be read: {error}", file.display())))?;
        let pid: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
        pid.ok_or_else(|| Error::usage(format!("{} does not begin with a process ID", file.display())))
    }
}

fn look_up(mut config: Config) -> Result<Config> {
    let Err(error) = PostgresEngine::new(config.clone()).connect() else { return Ok(config) };
    if !password::is_missing(&error) {
        return Err(error);
    }
    config.password = password::find(&config, &|name| std::env::var(name).ok())?;
    Ok(config)
}
