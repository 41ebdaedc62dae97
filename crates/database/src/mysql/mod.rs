//! MySQL and MariaDB: a thin blocking client of their common protocol.
//!
//! A session owns its socket and its buffers. The hot path is one `send` and one `recv` a round trip, without an
//! allocation. One verb a file: `startup` connects and `authentication` logs in; `prepare`, `execute`, `pipeline`, `text`
//! and `bulk` talk; `cancel` interrupts. `packet` and `decode` read what the server sends.

mod authentication;
mod bulk;
mod cancel;
mod config;
mod decode;
mod encode;
mod engine;
mod error;
mod execute;
mod fuzz_entry;
mod home;
mod inbox;
mod location;
pub mod managed;
mod packet;
pub mod password;
mod pipeline;
mod prepare;
mod profile;
mod rsa;
mod session;
pub mod settings;
pub mod snapshot;
mod startup;
mod text;
mod url;
mod wire;

use crate::{Result, Session};

pub use crate::client::Host;
pub use crate::stream::tls::SslMode;
pub use config::{Config, Product};
pub use encode::name as quote;
pub use engine::MysqlEngine;
pub use fuzz_entry::examine;
pub(crate) use location::MysqlLocation;
pub use password::Password;
pub use profile::MysqlProfiles;

/// Which of the two products a session's server is, by what it says itself.
pub fn product(session: &mut dyn Session) -> Result<Product> {
    engine::version(session).map(|(_, product)| product)
}

/// Whether the session of this number, as the server's list of sessions has it, is or lately was one of this process's.
pub fn is_own_session(connection: i64) -> bool {
    crate::process_sessions::has_connection(connection)
}
