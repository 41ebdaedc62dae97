//! Targets: the text with which a user names a database.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::managed::{ManagedServer, Manager};
use crate::mysql::managed::MysqlServer;
use crate::mysql::{MysqlEngine, MysqlLocation};
use crate::password::is_missing;
use crate::postgres::managed::PostgresServer;
use crate::postgres::{PostgresEngine, PostgresLocation};
use crate::sqlite::SqliteLocation;
use crate::sqlserver::SqlServerEngine;
use crate::{
    DataLocation, Engine, EngineKind, Error, Password, Result, ServerDirectories, mysql, postgres, sqlserver,
};

/// A database as the user named it.
#[derive(Debug, Clone)]
pub enum Target {
    /// An SQLite file.
    Sqlite {
        /// The file; absent when Kelvin chooses one.
        path: Option<PathBuf>,
    },
    /// A PostgreSQL server that runs somewhere.
    Postgres(Box<postgres::Config>),
    /// A PostgreSQL instance that Kelvin makes and starts ([`crate::managed`]).
    ManagedPostgres {
        /// Major version; absent for the newest.
        version: Option<u32>,
    },
    /// A MySQL or MariaDB server that runs somewhere.
    Mysql(Box<mysql::Config>),
    /// A MySQL or MariaDB server that Kelvin makes and starts ([`crate::managed::mysql`]).
    ManagedMysql {
        /// The product.
        product: mysql::Product,
    },
    /// A SQL Server that runs somewhere.
    SqlServer(Box<sqlserver::Config>),
}

/// Schemes of well-known databases that this build does not support.
const NOT_YET: &[(&str, &str)] = &[("oracle", "Oracle"), ("db2", "Db2")];

const ACCEPTED: &str = "valid targets are:\n\
    sqlite                            a file that kelvin chooses\n\
    sqlite:PATH, PATH.db, PATH.sqlite an SQLite file\n\
    postgres, postgres:16             a PostgreSQL server that kelvin creates and starts\n\
    postgres://user@host:port/db      a running PostgreSQL server\n\
    mariadb, mysql                    a MariaDB or MySQL server that kelvin creates and starts\n\
    mariadb://user@host:port/db       a running MariaDB or MySQL server (also mysql://)\n\
    sqlserver://user@host:port/db     a running SQL Server (also mssql://)";

impl Target {
    /// Parses a target: `sqlite`, `sqlite:PATH`, `sqlite:///PATH`, a path that ends in `.db`,
    /// `.sqlite` or `.sqlite3`, `postgres`, `postgres:VERSION`, `postgres://…`, `postgresql://…`, `mysql`, `mariadb`,
    /// `mysql://…`, `mariadb://…`, `sqlserver://…` or `mssql://…`.
    pub fn parse(text: &str) -> Result<Self> {
        let scheme_end = text.find(':');
        let scheme = scheme_end.map_or(text, |end| &text[..end]).to_ascii_lowercase();
        let rest = scheme_end.map(|end| &text[end + 1..]);
        match (scheme.as_str(), rest) {
            ("sqlite", None) => Ok(Self::Sqlite { path: None }),
            ("sqlite", Some(rest)) => sqlite(text, rest),
            ("postgres" | "postgresql", None) => Ok(Self::ManagedPostgres { version: None }),
            ("postgres" | "postgresql", Some(rest)) if rest.starts_with("//") => {
                Ok(Self::Postgres(Box::new(postgres::Config::parse(text)?)))
            }
            ("postgres" | "postgresql", Some(version)) => managed(version),
            ("mysql", None) => Ok(Self::ManagedMysql { product: mysql::Product::Mysql }),
            ("mariadb", None) => Ok(Self::ManagedMysql { product: mysql::Product::Mariadb }),
            ("mysql" | "mariadb", Some(rest)) if rest.starts_with("//") => {
                Ok(Self::Mysql(Box::new(mysql::Config::parse(text)?)))
            }
            ("mysql" | "mariadb", _) => Err(Error::usage(format!("{:?} names no server", shown(text)))
                .with_help(format!(
                    "write {scheme}, or {scheme}://user@host:port/database for a running server"
                ))),
            ("sqlserver" | "mssql", Some(rest)) if rest.starts_with("//") => {
                Ok(Self::SqlServer(Box::new(sqlserver::Config::parse(text)?)))
            }
            ("sqlserver" | "mssql", _) => Err(Error::usage(format!("{:?} names no server", shown(text)))
                .with_help(format!("write {scheme}://user@host:port/database for a running server"))),
            (other, _) => {
                if let Some((_, name)) = NOT_YET.iter().find(|(known, _)| *known == other) {
                    return Err(Error::usage(format!("{name} is not supported yet")).with_help(ACCEPTED));
                }
                if is_database_file(text) {
                    return Ok(Self::Sqlite { path: Some(text.into()) });
                }
                Err(Error::usage(format!("{:?} names no database", shown(text))).with_help(ACCEPTED))
            }
        }
    }

    /// The managed server that it names, whether or not its instance exists yet; `None` for an external server.
    pub fn managed_server(&self, manager: &Manager) -> Result<Option<Box<dyn ManagedServer>>> {
        Ok(match self {
            Self::ManagedPostgres { version } => {
                Some(Box::new(PostgresServer::new(manager.clone(), *version)?))
            }
            Self::ManagedMysql { product } => Some(Box::new(MysqlServer::new(manager.clone(), *product)?)),
            Self::Sqlite { .. } | Self::Postgres(_) | Self::Mysql(_) | Self::SqlServer(_) => None,
        })
    }

    /// Opens the database. A managed server is started, and made first if need be; `progress` is called for every step
    /// that takes long. Without a file, SQLite's is made in the directory `scratch`; refused if there is none.
    pub fn open(
        &self,
        scratch: Option<&Path>,
        directories: &dyn Fn() -> Result<ServerDirectories>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Box<dyn DataLocation>> {
        Ok(match self {
            Self::Sqlite { path } => Box::new(SqliteLocation::open(path.as_deref(), scratch)?),
            Self::Postgres(config) => Box::new(PostgresLocation::new(config, directories()?)),
            Self::ManagedPostgres { version } => {
                Box::new(PostgresLocation::start(*version, directories()?, progress)?)
            }
            Self::Mysql(config) => Box::new(MysqlLocation::new(config, directories()?)),
            Self::ManagedMysql { product } => {
                Box::new(MysqlLocation::start(*product, directories()?, progress)?)
            }
            Self::SqlServer(config) => Box::new(SqlServerEngine::new(*config.clone())),
        })
    }

    /// The engine of a running server; `None` for a file, and for a server that Kelvin has to start first.
    pub fn server(&self) -> Option<Arc<dyn Engine>> {
        match self {
            Self::Postgres(config) => Some(Arc::new(PostgresEngine::new(*config.clone()))),
            Self::Mysql(config) => Some(Arc::new(MysqlEngine::new(*config.clone()))),
            Self::SqlServer(config) => Some(Arc::new(SqlServerEngine::new(*config.clone()))),
            Self::Sqlite { .. } | Self::ManagedPostgres { .. } | Self::ManagedMysql { .. } => None,
        }
    }

    /// Looks for the password where the server's own clients look, if the server asks for one. Where it requires none,
    /// nothing is looked up, so that a broken password file does not prevent the connection. Returns whether no other
    /// password is needed; a failure for another reason is reported by the caller, who connects again.
    pub fn find_password(&mut self) -> Result<bool> {
        let environment = |name: &str| std::env::var(name).ok();
        let asks = |server: Option<Arc<dyn Engine>>| {
            server.is_some_and(|server| server.connect().is_err_and(|error| is_missing(&error)))
        };
        let found = match &*self {
            Self::Postgres(config) if asks(self.server()) => postgres::password::find(config, &environment)?,
            Self::Mysql(_) if asks(self.server()) => mysql::password::find(&environment)?,
            // It always asks for one: nothing is sent before it is known.
            Self::SqlServer(config) if config.token.is_none() && config.token_file.is_none() => {
                sqlserver::password::find(&environment)
            }
            Self::Sqlite { .. }
            | Self::Postgres(_)
            | Self::Mysql(_)
            | Self::SqlServer(_)
            | Self::ManagedPostgres { .. }
            | Self::ManagedMysql { .. } => return Ok(true),
        };
        let is_found = found.is_some();
        self.set_password(found);
        Ok(is_found)
    }

    /// Sets the password of a running server.
    pub fn set_password(&mut self, password: Option<Password>) {
        match self {
            Self::Postgres(config) => config.password = password,
            Self::Mysql(config) => config.password = password,
            Self::SqlServer(config) => config.password = password,
            Self::Sqlite { .. } | Self::ManagedPostgres { .. } | Self::ManagedMysql { .. } => {}
        }
    }

    /// A name for the server in file names, the same for every user and database of it; `None` where there are no
    /// settings that Kelvin can change.
    pub fn settings_key(&self) -> Option<String> {
        match self {
            Self::Postgres(config) => Some(config.host.file_name(config.port)),
            Self::Mysql(config) => Some(config.host.file_name(config.port)),
            Self::ManagedPostgres { .. } | Self::ManagedMysql { .. } => {
                Some(self.to_string().replace(':', "_"))
            }
            Self::Sqlite { .. } | Self::SqlServer(_) => None,
        }
    }

    /// Whether it is a managed server.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::ManagedPostgres { .. } | Self::ManagedMysql { .. })
    }

    /// Whether it is a file that is created for each run and removed after it.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Sqlite { path: None })
    }

    /// The file of a database that this process reads and writes itself; none of a server, and of a temporary one.
    pub fn file(&self) -> Option<&Path> {
        if let Self::Sqlite { path } = self { path.as_deref() } else { None }
    }

    /// Whether it is a server whose settings can be changed and restored.
    pub fn has_server_settings(&self) -> bool {
        self.engine() != EngineKind::Sqlite
    }

    /// Whether it has a setting, applied at its start, that puts its shared memory in huge pages.
    pub fn has_huge_page_setting(&self) -> bool {
        self.engine() == EngineKind::Postgres
    }

    /// The engine that drives it.
    pub fn engine(&self) -> EngineKind {
        match self {
            Self::Sqlite { .. } => EngineKind::Sqlite,
            Self::Postgres(_) | Self::ManagedPostgres { .. } => EngineKind::Postgres,
            Self::Mysql(_) | Self::ManagedMysql { .. } => EngineKind::Mysql,
            Self::SqlServer(_) => EngineKind::SqlServer,
        }
    }
}

fn sqlite(text: &str, rest: &str) -> Result<Target> {
    let path = match rest.strip_prefix("//") {
        // As in a file URL: nothing between the second and the third slash, the path from the third on.
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => {
            return Err(Error::usage(format!("{:?} names a host, but SQLite uses a file", shown(text)))
                .with_help("write sqlite:PATH, or sqlite:///PATH for an absolute path"));
        }
        None => rest,
    };
    if path.is_empty() || path.ends_with('/') || path.contains('\0') {
        return Err(Error::usage(format!("{:?} names no file", shown(text))).with_help(ACCEPTED));
    }
    if path == ":memory:" {
        return Err(Error::usage("virtual users cannot share an in-memory SQLite database")
            .with_help("name a file; a file in /dev/shm is in memory"));
    }
    Ok(Target::Sqlite { path: Some(path.into()) })
}

fn managed(version: &str) -> Result<Target> {
    // A major version has two digits: 9.6 is not supported, and 5432 is a misplaced port.
    match version.parse::<u32>() {
        Ok(version @ 10..=99) => Ok(Target::ManagedPostgres { version: Some(version) }),
        _ => Err(Error::usage(format!("{:?} is not a major version of PostgreSQL", shown(version)))
            .with_help("write postgres:16, or postgres://user@host:port/db for a running server")),
    }
}

fn is_database_file(text: &str) -> bool {
    let extension = std::path::Path::new(text).extension().and_then(|extension| extension.to_str());
    !text.contains("://")
        && !text.contains('\0')
        && extension.is_some_and(|found| {
            ["db", "sqlite", "sqlite3"].iter().any(|known| found.eq_ignore_ascii_case(known))
        })
}

/// The part of the user's text that may be repeated: nothing that could be a password in a URL, however mistyped. The
/// text before an `@` or after a `?` may contain one.
fn shown(text: &str) -> String {
    let (before_query, query) = text.split_once('?').map_or((text, None), |(a, b)| (a, Some(b)));
    let without = match (before_query.rfind('@'), query) {
        // The '?' may be a character of the password itself.
        (_, Some(query)) if query.contains('@') => "…".to_owned(),
        (Some(at), _) => format!("…{}", &before_query[at..]),
        (None, Some(_)) => format!("{before_query}?…"),
        (None, None) => before_query.to_owned(),
    };
    without.chars().take(100).collect()
}

/// The target as it can be written, never with a password.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite { path: None } => f.write_str("sqlite"),
            // A path that begins with two slashes would read as a host.
            Self::Sqlite { path: Some(path) } if path.as_os_str().as_encoded_bytes().starts_with(b"//") => {
                write!(f, "sqlite://{}", path.display())
            }
            Self::Sqlite { path: Some(path) } => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(config) => config.fmt(f),
            Self::Mysql(config) => config.fmt(f),
            Self::SqlServer(config) => config.fmt(f),
            Self::ManagedMysql { product } => f.write_str(product.word()),
            Self::ManagedPostgres { version: None } => f.write_str("postgres"),
            Self::ManagedPostgres { version: Some(version) } => write!(f, "postgres:{version}"),
        }
    }
}

impl std::str::FromStr for Target {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}
