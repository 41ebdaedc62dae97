//! SQL Server: a thin blocking client of its protocol, TDS 7.4 and 8.0.
//!
//! A session owns its socket and its buffers. The hot path is one `send` and one `recv` a round trip, without an allocation.
//! One verb a file: `startup` connects, with `prelogin`, `tls` and `login`; `prepare`, `execute`, `pipeline`, `text` and
//! `bulk` talk; `link` interrupts. `inbox`, `token`, `column` and `decode` read what the server sends.

mod browser;
mod bulk;
mod collation;
mod column;
mod config;
mod decode;
mod encode;
mod engine;
mod error;
mod examine;
mod execute;
mod home;
mod inbox;
mod link;
mod login;
mod packet;
pub mod password;
mod pipeline;
mod prelogin;
mod prepare;
#[cfg(test)]
mod reference;
mod session;
mod startup;
mod statement;
mod text;
mod tls;
mod token;
mod url;
mod wire;

pub use config::{Config, Encrypt};
pub use engine::SqlServerEngine;
pub use error::error;
pub use examine::examine;
pub use password::Password;

/// Whether the session of this number, as the server's list of sessions has it, is or lately was one of this process's.
pub fn is_own_session(number: i64) -> bool {
    crate::process_sessions::has_connection(number)
}
