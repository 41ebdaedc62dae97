//! A server's settings: read, compared by value, changed with `ALTER SYSTEM`, and restored as they were.
//!
//! Nothing is remembered here. Who changes a setting keeps its [`PreviousSettings`] first, where it survives a crash, and gives it to
//! [`put_back`]. Settings that need a restart are named; restarting is the business of who owns the server.

mod auto;
mod change;
mod diff;
mod file;
mod name;
mod read;
mod value;

pub use auto::in_auto_conf;
pub(crate) use change::reload;
pub use change::{BeforeSetting, PreviousSettings, before, change, put_back};
pub use diff::{Difference, differences};
pub use file::parse;
pub(crate) use file::{quoted, written};
pub use name::check_name;
pub use read::{CurrentSetting, read};
pub use value::same;
