//! Targets: the text with which a user names a database.

use std::fmt;
use std::path::PathBuf;

use crate::managed::{ManagedServer, Manager};
use crate::{EngineKind, Error, Result, mysql, postgres, sqlserver};

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
                Some(Box::new(postgres::managed::PostgresServer::new(manager.clone(), *version)?))
            }
            Self::ManagedMysql { product } => {
                Some(Box::new(mysql::managed::MysqlServer::new(manager.clone(), *product)?))
            }
            Self::Sqlite { .. } | Self::Postgres(_) | Self::Mysql(_) | Self::SqlServer(_) => None,
        })
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
