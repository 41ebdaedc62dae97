//! Connections to the servers that factors change, and the user's consent.

use std::sync::Arc;

use kelvin_database::managed::{ManagedServer, Manager};
use kelvin_database::settings::ServerSettings;
use kelvin_database::target::Target;
use kelvin_database::{Engine, Error, Result, Session};

use crate::open;

/// Determines how to log in, such as by prompting for a password.
type Login = dyn Fn(Target) -> Result<Target> + Send;

/// Access to the servers.
pub struct Access {
    manager: Manager,
    login: Box<Login>,
}

/// Consent of the user to changes other than those of managed servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Consent {
    /// Commands in the study's file may run.
    pub commands: bool,
    /// Settings of an external server may be changed and restored.
    pub settings: bool,
}

/// A server that was reached.
pub(crate) struct Server {
    /// How to connect.
    pub(crate) engine: Arc<dyn Engine>,
    /// Starts and stops it, if it is managed.
    pub(crate) managed: Option<Box<dyn ManagedServer>>,
    /// A target without a password that identifies this server.
    pub(crate) target: String,
}

impl Access {
    /// Managed servers are those of `manager`; the password for another server is looked up where the server's own
    /// clients look.
    pub fn new(manager: Manager) -> Self {
        Self { manager, login: Box::new(open::with_known_password) }
    }

    /// Sets another way to find a password.
    #[must_use]
    pub fn with_login(mut self, login: impl Fn(Target) -> Result<Target> + Send + 'static) -> Self {
        self.login = Box::new(login);
        self
    }

    /// The manager of managed servers.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Connects to the server of a target; a managed server is started if it is stopped.
    pub(crate) fn server(&self, target: &Target, report: &mut dyn FnMut(&str)) -> Result<Server> {
        if let Some(managed) = target.managed_server(&self.manager)? {
            let engine = managed.start(None, report)?.engine;
            return Ok(Server { engine, target: managed.target(), managed: Some(managed) });
        }
        let none = || Error::usage(format!("{target} has no server"));
        open::server(target).ok_or_else(none)?;
        let engine = open::server(&(self.login)(target.clone())?).ok_or_else(none)?;
        Ok(Server { engine, managed: None, target: target.to_string() })
    }
}

impl Server {
    pub(crate) fn session(&self) -> Result<Box<dyn Session>> {
        self.engine.connect()
    }

    /// Accesses its settings in a separate session.
    pub(crate) fn settings<T>(
        &self,
        work: impl FnOnce(&dyn ServerSettings, &mut dyn Session) -> Result<T>,
    ) -> Result<T> {
        let mut session = self.session()?;
        if let Some(managed) = &self.managed {
            work(managed.settings()?.as_ref(), session.as_mut())
        } else {
            let none =
                || Error::usage(format!("the settings of {} are not supported as factors", self.target));
            work(self.engine.settings().ok_or_else(none)?, session.as_mut())
        }
    }

    /// The server's first process; an error unless it runs on this host.
    pub(crate) fn process(&self) -> Result<u32> {
        let mut session = self.session()?;
        let data = self.engine.data_directory(&mut *session).ok_or_else(|| {
            Error::usage(format!(
                "{} does not run on this host, or does not report its data directory",
                self.target
            ))
        })?;
        let file = data.join("postmaster.pid");
        if let Ok(text) = std::fs::read_to_string(&file) {
            let pid: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
            return pid
                .ok_or_else(|| Error::usage(format!("{} does not begin with a process ID", file.display())));
        }
        kelvin_observe::engine::locate_server(self.engine.as_ref(), &mut *session).server.ok_or_else(|| {
            Error::usage(format!(
                "the process of {} cannot be found: run kelvin on the server's host, as the server's user or \
                 as root",
                self.target
            ))
        })
    }
}
