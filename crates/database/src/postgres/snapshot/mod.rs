//! The three ways of keeping snapshots of PostgreSQL's databases, and what decides between them.

mod data_directory;
mod dump;
mod facts;
mod program;
mod sessions;
mod template;

pub use data_directory::files;
pub use dump::{dumps, programs};
pub use facts::Facts;
pub use template::Templates;
