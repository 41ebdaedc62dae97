//! A managed server, whatever its engine.

use std::sync::Arc;

use super::{HostResources, Profile, Profiles};
use crate::settings::{PreviousSettings, ServerSettings};
use crate::{Engine, Result};

/// A managed server that was started.
pub struct Started {
    /// How to connect.
    pub engine: Arc<dyn Engine>,
    /// Whether it was running before.
    pub was_running: bool,
}

/// A server managed by Kelvin: of a version of PostgreSQL, or a series of MySQL or MariaDB.
pub trait ManagedServer: Send {
    /// The display name: "PostgreSQL 15".
    fn label(&self) -> String;

    /// The target, as text, that means this very server.
    fn target(&self) -> String;

    /// Starts it, making it first if need be; with a profile as [`super::Manager::up_with_profile`] does.
    fn start(&self, profile: Option<&Profile>, progress: &mut dyn FnMut(&str)) -> Result<Started>;

    /// How to connect, if it runs and answers. The server is not changed.
    fn running(&self) -> Result<Arc<dyn Engine>>;

    /// Restarts the server and keeps its files; starts it when it is stopped.
    fn restart(&self, progress: &mut dyn FnMut(&str)) -> Result<()>;

    /// The server's settings. A change is kept until it is restored.
    fn settings(&self) -> Result<Box<dyn ServerSettings>>;

    /// Puts the settings of the stopped server back as they were; an error while it runs.
    fn put_back_stopped(&self, before: &PreviousSettings) -> Result<()>;

    /// The profiles of its engine.
    fn profiles(&self) -> Box<dyn Profiles>;

    /// The profile that was applied last; `None` when there is no instance yet.
    fn profile(&self) -> Option<Profile>;

    /// Host resources from which profiles are computed.
    fn host(&self) -> HostResources;

    /// [`ManagedServer::restart`] after settings were changed. If the server does not start with them (more memory than
    /// there is), they are restored to `before`, it is started with those, and the error includes the end of its log.
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
