//! The two ways of keeping snapshots of MySQL's and MariaDB's databases.

mod data_directory;
mod dump;
mod sessions;

pub(crate) use data_directory::files;
pub(crate) use dump::dumps;
pub use dump::programs;
