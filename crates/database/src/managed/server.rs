//! A managed server, whatever its engine.

use std::sync::Arc;

use super::{HostResources, Manager, Profile, ProfileLoad};
use crate::settings::{PreviousSettings, ServerSettings};
use crate::target::Target;
use crate::{Engine, Result};

/// The profiles of one engine.
pub trait Profiles {
    /// The built-in profile of this name, `default`, `durable` or `steady`, with its sizes; none of another name.
    fn built_in(&self, name: &str, host: HostResources, load: &ProfileLoad) -> Option<Profile>;

    /// A profile from the text of a file in the form of the engine's own. Errors have the line's number.
    fn parse(&self, name: &str, text: &str) -> Result<Profile>;
}

/// A managed server that was started.
pub struct Started {
    /// How it is entered.
    pub engine: Arc<dyn Engine>,
    /// Whether it was running before.
    pub was_running: bool,
}

/// One server of Kelvin's own: of a version of PostgreSQL, or a series of MySQL or MariaDB.
pub trait ManagedServer: Send {
    /// What people call it: "PostgreSQL 15".
    fn label(&self) -> String;

    /// As a target that means this very server.
    fn target(&self) -> Target;

    /// Starts it, making it first if need be; with a profile as [`Manager::up_with_profile`] does.
    fn start(&self, profile: Option<&Profile>, progress: &mut dyn FnMut(&str)) -> Result<Started>;

    /// How it is entered, if it runs and answers; it is left alone.
    fn running(&self) -> Result<Arc<dyn Engine>>;

    /// Stops it and starts it again, its files as they are; starts it when it is stopped.
    fn restart(&self, progress: &mut dyn FnMut(&str)) -> Result<()>;

    /// Its settings; a change of one is kept until it is put back.
    fn settings(&self) -> Result<Box<dyn ServerSettings>>;

    /// Puts the settings of the stopped server back as they were; an error while it runs.
    fn put_back_stopped(&self, before: &PreviousSettings) -> Result<()>;

    /// The profiles of its engine.
    fn profiles(&self) -> Box<dyn Profiles>;

    /// The profile that it was given last; none when there is no instance yet.
    fn profile(&self) -> Option<Profile>;

    /// What the host offers it: what profiles are computed from.
    fn host(&self) -> HostResources;

    /// [`ManagedServer::restart`] after settings were changed. When it does not start with them (more memory than there is),
    /// they are put back as they were `before`, it is started with those, and the error has the end of its log.
    fn restart_or_put_back(&self, before: &PreviousSettings, progress: &mut dyn FnMut(&str)) -> Result<()> {
        let Err(error) = self.restart(progress) else { return Ok(()) };
        progress("the server does not start with these settings; restoring the old ones");
        self.put_back_stopped(before)?;
        let label = self.label();
        Err(match self.restart(progress) {
            Ok(()) => error.context(&format!(
                "{label} does not start with the new settings; the old ones were restored"
            )),
            Err(second) => {
                second.context(&format!("{label} starts neither with the new settings nor with the old ones"))
            }
        })
    }
}

/// The managed server that a target means, be there an instance yet or not; none when it is a server of somebody else's.
pub fn server(manager: &Manager, target: &Target) -> Result<Option<Box<dyn ManagedServer>>> {
    Ok(match target {
        Target::ManagedPostgres { version } => {
            Some(Box::new(crate::postgres::managed::PostgresServer::new(manager.clone(), *version)?))
        }
        Target::ManagedMysql { product } => {
            Some(Box::new(crate::mysql::managed::MysqlServer::new(manager.clone(), *product)?))
        }
        Target::Sqlite { .. } | Target::Postgres(_) | Target::Mysql(_) | Target::SqlServer(_) => None,
    })
}
