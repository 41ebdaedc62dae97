//! Databases behind one pair of traits.
//!
//! An [`Engine`] is a database that can be connected to; a [`Session`] is one connection, owned by the
//! thread that uses it. Nothing here knows a workload. Adding an engine means adding a folder beside
//! `sqlite/`, `postgres/`, `mysql/` and `sqlserver/`.

mod calendar;
mod client;
mod decimal;
mod engine;
mod engine_kind;
mod error;
mod home;
mod host_resources;
mod location;
pub mod managed;
pub mod mysql;
mod password;
mod placeholder;
pub mod postgres;
pub mod process_sessions;
mod profile;
mod rows;
mod session;
pub mod settings;
pub mod snapshot;
pub mod sqlite;
pub mod sqlserver;
mod stream;
pub mod target;
mod url;
mod value;

pub use client::Host;
pub use engine::{Capabilities, Engine, Fingerprint, ServerCounters, ServerFault, ServerSetting};
pub use engine_kind::EngineKind;
pub use error::{Code, Error, ErrorClass, Result};
pub use home::Home;
pub use location::{DataLocation, LoadSettings, ServerDirectories};
pub use password::Password;
// For what is checked before there is a server: PostgreSQL's syntax of names is the wider one, and only its settings are
// known in advance.
pub use postgres::settings::{check_name as check_setting_name, is_read_at_start};
pub use rows::{Cell, Rows};
pub use session::{
    BulkLoad, BulkTable, Cancel, ColumnType, PreparedPlans, Session, Statement, TransactionControl,
};
pub use sqlite::confine_sessions;
pub use value::{Decimal, Timestamp, Value};
