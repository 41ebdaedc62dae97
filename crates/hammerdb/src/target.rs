//! The database of a step as one of Kelvin's targets.

use crate::settings::System;
use crate::step::{Action, Benchmark, Step};

impl Step {
    /// The target as a URL, for `user` and `database`.
    ///
    /// # Errors
    /// The settings request an authentication method that Kelvin does not have.
    pub(crate) fn target(&self, user: &str, database: &str) -> Result<String, String> {
        match self.settings.system() {
            System::Mariadb => Ok(self.mysql("mariadb", user, database)),
            System::Mysql => Ok(self.mysql("mysql", user, database)),
            System::SqlServer => self.sql_server(user, database),
            _ => self.postgres(user, database),
        }
    }

    fn mysql(&self, scheme: &str, user: &str, database: &str) -> String {
        let socket = self.connection("socket");
        let encrypted = if self.connection("ssl") == "true" { "require" } else { "prefer" };
        let local = ["127.0.0.1", "localhost", "null"].contains(&self.connection("host"));
        // As in HammerDB, a local host uses the Unix socket if it exists.
        let (user, database) = (encoded(user), encoded(database));
        if local && !socket.is_empty() && std::path::Path::new(socket).exists() {
            return format!("{scheme}://{user}@/{database}?socket={}", encoded(socket));
        }
        let (host, port) = (self.connection("host"), self.connection("port"));
        format!("{scheme}://{user}@{}:{port}/{database}?sslmode={encrypted}", encoded(host))
    }

    fn postgres(&self, user: &str, database: &str) -> Result<String, String> {
        let (host, port) = (self.connection("host"), self.connection("port"));
        // A host that is a directory holds the server's socket.
        let (host, mut more) = if host.starts_with('/') {
            ("", format!("&host={}", encoded(host)))
        } else {
            (host, String::new())
        };
        // HammerDB sets it in every session that runs queries.
        if (self.benchmark, self.action) == (Benchmark::Tproch, Action::Run) {
            let workers = self.text("degree_of_parallel").trim();
            let workers =
                workers.parse::<u16>().map_err(|_| self.bad("degree_of_parallel", "a whole number"))?;
            let option = encoded(&format!("-c max_parallel_workers_per_gather={workers}"));
            more.push_str(&format!("&options={option}"));
        }
        let mode = encoded(self.connection("sslmode"));
        let (user, host, database) = (encoded(user), encoded(host), encoded(database));
        Ok(format!("postgres://{user}@{host}:{port}/{database}?sslmode={mode}{more}"))
    }

    /// As in HammerDB on Linux: the server is `mssqls_linux_server`, unless only `mssqls_server` is set.
    fn sql_server(&self, user: &str, database: &str) -> Result<String, String> {
        let (linux, other) = (self.connection("linux_server"), self.connection("server"));
        let server = if linux == "localhost" && other != "(local)" { other } else { linux };
        if !self.connection("linux_authent").eq_ignore_ascii_case("sql") {
            return Err(format!(
                "mssqls_linux_authent is {:?}: this build logs in with mssqls_uid and mssqls_pass (sql); with an access \
                 token, use kelvin run --target sqlserver://HOST/DATABASE",
                self.connection("linux_authent")
            ));
        }
        let server = server.trim().trim_start_matches("tcp:");
        let (server, written) = match server.split_once(',') {
            Some((server, port)) => (server, Some(port.trim())),
            None => (server, None),
        };
        let tcp = self.connection("tcp") == "true";
        let port = written.or_else(|| tcp.then(|| self.connection("port")));
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let (host, instance) = match server.split_once('\\') {
            Some((host, instance)) => (host, format!(";{}", encoded(instance))),
            None => (server, String::new()),
        };
        let host = if host.is_empty() || host == "." || host == "(local)" { "localhost" } else { host };
        let encrypt = if self.connection("encrypt_connection") == "true" { "mandatory" } else { "optional" };
        let trust = self.connection("trust_server_cert") == "true";
        let (user, host, database) = (encoded(user), encoded(host), encoded(database));
        Ok(format!(
            "sqlserver://{user}@{host}{port}{instance}/{database}?encrypt={encrypt}&trustServerCertificate={trust}"
        ))
    }
}

/// Percent-encodes a part of a URL: everything except letters, digits, `-`, `_` and `.`.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
