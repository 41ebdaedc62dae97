//! Databases on the server that `KELVIN_TEST_SQLSERVER` names, SQL Server or Babelfish (a URL; the password
//! is in `MSSQL_PASSWORD`).
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "each test uses a part, and one is inside the crate"
)]

use kelvin_database::Engine;
use kelvin_database::sqlserver::{Config, SqlServerEngine, password};

/// A new, empty database named `kelvin_` and this name; `None`, with a message, if no server is configured.
pub fn database(name: &str) -> Option<SqlServerEngine> {
    let Ok(url) = std::env::var("KELVIN_TEST_SQLSERVER") else {
        eprintln!("skipped: KELVIN_TEST_SQLSERVER names no server");
        return None;
    };
    let mut config = Config::parse(&url).unwrap();
    config.password = password::find(&|name| std::env::var(name).ok());
    let mut session = SqlServerEngine::new(config.clone()).connect().unwrap();
    // A database of an earlier run may still have a session that is ending.
    session.run(&format!("drop database if exists kelvin_{name}")).unwrap();
    session.run(&format!("create database kelvin_{name}")).unwrap();
    config.database = format!("kelvin_{name}");
    Some(SqlServerEngine::new(config))
}
