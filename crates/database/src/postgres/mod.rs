//! PostgreSQL and what speaks its protocol: a thin blocking client.
//!
//! A session owns its socket and its buffers. The hot path is one `send` and one `recv` a round trip, with no
//! poll, no allocation and no copy between the receive buffer and the decoded cells. One verb a file:
//! `startup` connects, `prepare`, `execute`, `pipeline`, `simple` and `copy_in` talk, `cancel` interrupts.

mod authentication;
pub mod backend;
mod cancel;
mod config;
mod copy_in;
mod decode;
mod encode;
mod end_point;
mod engine;
mod error;
mod execute;
pub mod explain;
pub mod faults;
mod home;
mod inbox;
mod location;
pub mod managed;
mod numeric;
mod oid;
pub mod password;
mod pipeline;
mod prepare;
mod profile;
mod session;
pub mod settings;
mod simple_query;
mod snapshot;
mod startup;
mod text;
mod text_statement;
mod url;

pub use crate::client::Host;
pub use crate::stream::tls::SslMode;
pub use config::{ChannelBinding, Config};
pub use engine::PostgresEngine;
pub(crate) use location::PostgresLocation;
pub use password::Password;
pub use profile::PostgresProfiles;

/// What Kelvin's own statements beside a load contain behind their first word, by which they are left out of what
/// `pg_stat_statements` counts. A comment before the statement is no part of the text that PostgreSQL 18 keeps.
pub const MARK: &str = "/* kelvin observer */";
