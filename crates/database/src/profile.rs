//! Profiles: lists of server settings for a purpose. Each engine has its own.

use crate::Result;
use crate::host_resources::HostResources;

/// A setting and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The setting's name.
    pub name: String,
    /// Its value, without quotes.
    pub value: String,
    /// Why; the comment above it or behind it. Empty when there is none.
    pub reason: String,
}

impl Line {
    /// A setting with its reason.
    pub fn new(name: &str, value: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), reason: reason.into() }
    }
}

/// A list of settings with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// `default`, `durable`, `steady`, or the name of a file.
    pub name: String,
    /// The settings.
    pub lines: Vec<Line>,
    /// Warnings for the user: where the host is too small for what the profile promises.
    pub cautions: Vec<String>,
}

/// The runs for which [`Profile::steady`] is sized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfileLoad {
    /// Bytes of log that the server writes in a second, as measured; none for an estimate.
    pub wal_rate: Option<f64>,
    /// Ramp-up and measured window together.
    pub seconds: f64,
    /// Bytes of the database; none when not known.
    pub database: Option<u64>,
}

impl Default for ProfileLoad {
    /// Ten minutes of a load that has not been measured yet.
    fn default() -> Self {
        Self { wal_rate: None, seconds: 600.0, database: None }
    }
}

/// The profiles of one engine.
pub trait Profiles {
    /// The built-in profile of this name, `default`, `durable` or `steady`, with its sizes; none of another name.
    fn built_in(&self, name: &str, host: HostResources, load: &ProfileLoad) -> Option<Profile>;

    /// Parses a profile from the text of a file in the engine's own format. Errors include the line number.
    fn parse(&self, name: &str, text: &str) -> Result<Profile>;
}
