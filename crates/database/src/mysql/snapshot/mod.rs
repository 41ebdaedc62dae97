//! The two ways of keeping snapshots of MySQL's and MariaDB's databases.

mod data_directory;
mod dump;
mod sessions;

pub use data_directory::files;
pub use dump::{dumps, programs};
