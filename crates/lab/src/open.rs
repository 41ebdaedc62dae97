//! Opens the database of a target.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use kelvin_database::target::Target;
use kelvin_database::{DataLocation, Engine, Password, Session};
use kelvin_run::spec::TargetName;

use crate::directories;
use crate::error::Doing;
use crate::error::StoreBenchError;

type Result<T> = std::result::Result<T, StoreBenchError>;

/// Prompts for the password of a server; none without a terminal.
pub type PasswordPrompt = fn(server: &dyn Display) -> io::Result<Option<Password>>;

/// An opened database.
pub struct Opened {
    /// The engine.
    pub engine: Arc<dyn Engine>,
    /// The location of the database's data, for snapshots.
    pub place: Box<dyn DataLocation>,
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
    let target = with_password(target.target()?, prompt)?;
    if let Some(path) = target.file().filter(|path| purpose == Purpose::Existing && !path.exists()) {
        return Err(StoreBenchError::Refused(format!("file {} does not exist", path.display())));
    }
    let is_temporary = purpose == Purpose::Run && target.is_temporary();
    let scratch = is_temporary.then(directories::scratch).transpose()?;
    let directory = scratch.as_ref().map(tempfile::TempDir::path);
    let place = target.open(directory, &directories::of_servers, report)?;
    let engine = place.engine();
    engine.connect().doing(format!("cannot use {}", engine.describe()))?;
    Ok(Opened { engine, place, _scratch: scratch })
}

/// Connects to a running server with the given password.
pub fn connect_with_password(target: &str, password: &str) -> Result<Box<dyn Session>> {
    let mut target = Target::parse(target)?;
    target.set_password((!password.is_empty()).then(|| Password::new(password)));
    let not_running = || StoreBenchError::Refused(format!("{target} is not a running server"));
    let engine = target.server().ok_or_else(not_running)?;
    engine.connect().doing(format!("cannot use {}", engine.describe()))
}

/// The engine of a running server whose settings can be changed; `None` for other targets, and for a server that Kelvin
/// has to start first.
pub fn server(target: &Target) -> Option<Arc<dyn Engine>> {
    target.server().filter(|engine| engine.settings().is_some())
}

/// The same server, with its password: looked up where the server's own clients look, then requested at the terminal
/// through `prompt`.
pub fn with_password(mut target: Target, prompt: PasswordPrompt) -> Result<Target> {
    if !target.find_password()? {
        let asked = prompt(&target).doing("cannot read a password")?;
        target.set_password(asked);
    }
    Ok(target)
}

/// [`with_password`] without a prompt.
pub(crate) fn with_known_password(mut target: Target) -> kelvin_database::Result<Target> {
    target.find_password()?;
    Ok(target)
}
