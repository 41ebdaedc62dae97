//! A managed PostgreSQL as servers of every engine are used.

use std::sync::Arc;

use super::Status;
use crate::managed::{HostResources, ManagedServer, Manager, Profile, Profiles, Started};
use crate::postgres::settings::PostgresSettings;
use crate::postgres::{Config, Host, PostgresEngine, PostgresProfiles};
use crate::settings::{PreviousSettings, ServerSettings};
use crate::{Engine, Result};

/// The instance of one major version.
#[derive(Debug, Clone)]
pub struct PostgresServer {
    pub(crate) manager: Manager,
    pub(crate) version: u32,
}

impl PostgresServer {
    /// The instance of this version, or the newest that there is or can be made.
    pub fn new(manager: Manager, version: Option<u32>) -> Result<Self> {
        let version = version.map_or_else(|| manager.version(None), Ok)?;
        Ok(Self { manager, version })
    }

    /// The managed server with this socket, if there is one.
    pub(crate) fn by_socket(manager: Manager, config: &Config) -> Option<Self> {
        let Host::Unix(directory) = &config.host else { return None };
        if !manager.may_have_socket(directory) {
            return None;
        }
        let same = |status: &Status| {
            status.pid.is_some() && &status.socket_directory == directory && status.port == config.port
        };
        let version = manager.status().ok()?.into_iter().find(same)?.major;
        Some(Self { manager, version })
    }
}

impl ManagedServer for PostgresServer {
    fn label(&self) -> String {
        format!("PostgreSQL {}", self.version)
    }

    fn target(&self) -> String {
        format!("postgres:{}", self.version)
    }

    fn start(&self, profile: Option<&Profile>, progress: &mut dyn FnMut(&str)) -> Result<Started> {
        let version = Some(self.version);
        let instance = match profile {
            Some(profile) => self.manager.up_with_profile(version, profile, progress),
            None => self.manager.up(version, progress),
        }?;
        let engine = Arc::new(PostgresEngine::new(instance.config()));
        Ok(Started { engine, was_running: instance.was_running() })
    }

    fn running(&self) -> Result<Arc<dyn Engine>> {
        Ok(Arc::new(PostgresEngine::new(self.manager.running(self.version)?.config())))
    }

    fn restart(&self, progress: &mut dyn FnMut(&str)) -> Result<()> {
        self.manager.restart(self.version, progress).map(drop)
    }

    fn settings(&self) -> Result<Box<dyn ServerSettings>> {
        Ok(Box::new(PostgresSettings))
    }

    fn put_back_stopped(&self, before: &PreviousSettings) -> Result<()> {
        self.manager.put_back_stopped(self.version, before)
    }

    fn profiles(&self) -> Box<dyn Profiles> {
        Box::new(PostgresProfiles)
    }

    fn profile(&self) -> Option<Profile> {
        self.manager.profile(self.version)
    }

    fn host(&self) -> HostResources {
        self.manager.host(self.version)
    }
}
