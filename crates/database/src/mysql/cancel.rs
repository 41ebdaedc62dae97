//! Interrupting a running statement, over a separate connection.

use std::net::SocketAddr;
use std::time::Instant;

use super::{Config, startup};
use crate::client::as_encrypted;
use crate::stream::connect;
use crate::{Cancel, Result};

pub(crate) struct MysqlCancel {
    pub(crate) config: Config,
    /// Where the session is connected: the name may lead to another server by now.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) encrypted: bool,
    pub(crate) connection: u32,
}

impl Cancel for MysqlCancel {
    fn cancel(&self) -> Result<()> {
        self.request().map_err(|e| e.context("cannot cancel the statement"))
    }
}

impl MysqlCancel {
    fn request(&self) -> Result<()> {
        let deadline = Instant::now() + self.config.connect_timeout;
        let socket = match self.peer {
            Some(address) => connect::open_address(&[address], deadline)?,
            None => startup::open(&self.config, deadline)?,
        };
        let mode = as_encrypted(self.encrypted, self.config.ssl_mode);
        let mut session = startup::start(socket, &self.config, mode, deadline, &mut false)?;
        match session.simple(&format!("KILL QUERY {}", self.connection), None) {
            // It has ended meanwhile.
            Err(e) if e.code().0.starts_with("1094") => Ok(()),
            other => other,
        }
    }
}
