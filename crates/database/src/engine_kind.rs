//! Which engine a database has.

use serde::{Deserialize, Serialize};

/// The engine of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// SQLite, embedded.
    Sqlite,
    /// PostgreSQL and servers that speak its protocol.
    Postgres,
    /// MySQL and MariaDB. The server's version distinguishes them.
    Mysql,
    /// SQL Server and servers that speak its protocol.
    SqlServer,
    /// An engine that this crate does not know, by name: that of a program with its own implementation.
    Other(&'static str),
}

impl EngineKind {
    const KNOWN: [Self; 4] = [Self::Sqlite, Self::Postgres, Self::Mysql, Self::SqlServer];

    /// Its name in results and specifications.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
            Self::SqlServer => "sqlserver",
            Self::Other(name) => name,
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::SqlServer => "SQL Server",
            Self::Other(name) => name,
        })
    }
}

impl Serialize for EngineKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for EngineKind {
    /// Only for the engines that this crate knows.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let known = Self::KNOWN.into_iter().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| serde::de::Error::custom(format!("unknown engine {word:?}")))
    }
}
