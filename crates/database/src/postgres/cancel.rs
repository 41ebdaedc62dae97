//! Interrupting a running statement, over a separate connection.

use std::net::SocketAddr;
use std::time::Instant;

use super::backend::Fields;
use super::inbox::Inbox;
use super::{Config, startup};
use crate::client::as_encrypted;
use crate::stream::{Stream, connect};
use crate::{Cancel, Error, ErrorClass, Result};

/// The cancel key that the server sent to the session.
#[derive(Clone)]
pub(crate) struct Key {
    process: i32,
    secret: Vec<u8>,
}

impl Key {
    pub(crate) fn parse(body: &[u8]) -> Result<Self> {
        let mut fields = Fields(body);
        let process = fields.int4()?;
        // Four bytes in protocol 3.0, up to 256 since 3.2.
        if !(4..=256).contains(&fields.0.len()) {
            return Err(Error::protocol("the server sent a cancel key of invalid length"));
        }
        Ok(Self { process, secret: fields.0.to_vec() })
    }
}

pub(crate) struct PostgresCancel {
    pub(crate) config: Config,
    /// Where the session is connected: the name may lead to another server by now.
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) key: Option<Key>,
    pub(crate) encrypted: bool,
}

impl Cancel for PostgresCancel {
    fn cancel(&self) -> Result<()> {
        self.request().map_err(|e| e.context("cannot cancel the statement"))
    }
}

impl PostgresCancel {
    fn request(&self) -> Result<()> {
        let key = self
            .key
            .as_ref()
            .ok_or_else(|| Error::new(ErrorClass::Server, "the server sent no cancel key"))?;
        let deadline = Instant::now() + self.config.connect_timeout;
        let socket = match self.peer {
            Some(address) => connect::open_address(&[address], deadline)?,
            None => startup::open(&self.config, deadline)?,
        };
        let mut stream = Stream::new(socket, deadline);
        let mut inbox = Inbox::new();
        // The key is a secret.
        let mode = as_encrypted(self.encrypted, self.config.ssl_mode);
        startup::encrypt(&mut stream, &mut inbox, &self.config, mode, &mut false)?;
        let mut message = Vec::with_capacity(12 + key.secret.len());
        message.extend_from_slice(&(12 + key.secret.len() as u32).to_be_bytes());
        message.extend_from_slice(&80_877_102_u32.to_be_bytes());
        message.extend_from_slice(&key.process.to_be_bytes());
        message.extend_from_slice(&key.secret);
        stream.send(&message, &mut inbox.buffer)?;
        // The server closes when it has passed the request on; before that the statement may not know of it.
        match stream.receive(inbox.buffer.space()?) {
            Err(e) if e.class() == ErrorClass::Timeout => Err(e),
            _ => Ok(()),
        }
    }
}
