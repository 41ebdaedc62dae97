//! The three ways of keeping snapshots of PostgreSQL's databases, and what decides between them.

mod data_directory;
mod dump;
mod facts;
mod program;
mod sessions;
mod template;

pub(crate) use data_directory::files;
pub(crate) use dump::dumps;
pub(crate) use facts::Facts;
pub(crate) use template::Templates;
