//! A MySQL or MariaDB server's settings: read, changed while the server runs, and put back.

mod file;
mod name;
mod option_file;
mod read;
mod statements;

pub use file::parse;
pub(crate) use file::written;
pub(crate) use option_file::{OptionFileSettings, changes, with_changes};
pub use statements::SessionSettings;
