//! Databases on a MariaDB server started by the tests.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part, and one is inside the crate"
)]

#[path = "../../../database/tests/mysql_support/mod.rs"]
mod mysql_server;

use std::sync::{Arc, Mutex, Weak};

use kelvin_database::mysql::MysqlEngine;
pub use mysql_server::Server;

/// A server whose cache holds a few warehouses, shared by concurrent tests. Each test uses different database
/// names.
pub fn start() -> Arc<Server> {
    static RUNNING: Mutex<Weak<Server>> = Mutex::new(Weak::new());
    let mut running = RUNNING.lock().unwrap();
    running.upgrade().unwrap_or_else(|| {
        let settings = ["--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M", "--sync-binlog=0"];
        let server = Arc::new(Server::start_with(&settings, |_| {}));
        *running = Arc::downgrade(&server);
        server
    })
}

/// A new, empty database.
pub fn database(server: &Server, name: &str) -> MysqlEngine {
    server.session().run(&format!("create database {name}")).unwrap();
    let mut config = server.unix();
    name.clone_into(&mut config.database);
    MysqlEngine::new(config)
}
