//! The target in a specification: checked when it is parsed, so that an error has its location.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use kelvin_database::target::Target;
use serde::{Deserialize, Serialize};

/// A target as the user wrote it. It parses, and holds no password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TargetName(String);

impl TargetName {
    /// The parsed target.
    pub fn target(&self) -> kelvin_database::Result<Target> {
        Target::parse(&self.0)
    }

    /// Whether it is a managed server.
    pub fn is_managed(&self) -> bool {
        self.target().is_ok_and(|target| target.is_managed())
    }

    /// Whether it is a file that is created for each run and removed after it.
    pub fn is_temporary(&self) -> bool {
        self.target().is_ok_and(|target| target.is_temporary())
    }

    /// The file of a database that this process reads and writes itself; none of a server, and of a temporary one.
    pub fn file(&self) -> Option<PathBuf> {
        self.target().ok()?.file().map(ToOwned::to_owned)
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TargetName {
    /// A server of Kelvin.
    pub(crate) fn managed_postgres() -> Self {
        Self(Target::ManagedPostgres { version: None }.to_string())
    }
}

impl Default for TargetName {
    fn default() -> Self {
        Self(Target::Sqlite { path: None }.to_string())
    }
}

impl FromStr for TargetName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Target::parse(text).map_err(|error| error.to_string())?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for TargetName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<TargetName> for String {
    fn from(target: TargetName) -> Self {
        target.0
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
