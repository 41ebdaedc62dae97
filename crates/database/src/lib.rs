//! Databases behind one pair of traits.
//!
//! An [`Engine`] is a database that can be connected to; a [`Session`] is one connection, owned by the
//! thread that uses it. Nothing here knows a workload. Adding an engine means adding a folder beside
//! `sqlite/` and `postgres/`.

mod engine;
mod error;
pub mod managed;
pub mod postgres;
mod rows;
mod session;
pub mod snapshot;
pub mod sqlite;
pub mod target;
mod value;

pub use engine::{Capabilities, Engine, EngineKind, Fingerprint, ServerCounters, Setting};
pub use error::{Code, Error, ErrorClass, Result};
pub use rows::{Cell, Rows};
pub use session::{BulkLoad, BulkTable, Cancel, ColumnType, Session, Statement};
pub use value::{Decimal, Timestamp, Value};
