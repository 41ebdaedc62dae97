//! Shared by the tests of pgbench's workloads: a separate PostgreSQL server, and pgbench itself.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each test uses a part")]

#[path = "../server_support/mod.rs"]
mod postgres_server;

use std::path::PathBuf;
use std::process::{Command, Output};

pub use postgres_server::Server;

/// Runs pgbench on the server.
pub fn pgbench(server: &Server, arguments: &[&str]) -> Output {
    Command::new(binaries().join("pgbench"))
        .args(["-h", server.directory().to_str().unwrap(), "-p", &server.port().to_string()])
        .args(["-U", "postgres"])
        .args(arguments)
        .arg("postgres")
        .output()
        .unwrap()
}

/// The directory of pgbench.
pub fn binaries() -> PathBuf {
    postgres_server::binaries(15, "pgbench")
}

/// Directory of the server's socket and its port, separated by a comma.
pub fn place(server: &Server) -> String {
    format!("{},{}", server.directory().display(), server.port())
}
