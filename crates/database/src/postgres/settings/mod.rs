//! A PostgreSQL server's settings: changed with `ALTER SYSTEM`, and put back as they were.

mod at_start;
mod auto;
mod change;
mod file;
mod name;
mod read;

pub use at_start::is_read_at_start;
pub use auto::in_auto_conf;
pub(crate) use change::reload;
pub use change::{before, change, put_back};
pub use file::parse;
pub(crate) use file::{quoted, written};
pub use name::check_name;
use read::read_known;

use crate::settings::{CurrentSetting, PreviousSettings, ServerSettings};
use crate::{Result, Session};

/// The settings of a PostgreSQL server. Reading what they were needs the right to read `pg_file_settings`, which superusers
/// have.
#[derive(Debug, Clone, Copy)]
pub struct PostgresSettings;

impl ServerSettings for PostgresSettings {
    fn check_name(&self, name: &str) -> Result<()> {
        check_name(name)
    }

    fn read_known(&self, session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
        read_known(session, names)
    }

    fn before(&self, session: &mut dyn Session, names: &[&str]) -> Result<PreviousSettings> {
        before(session, names)
    }

    fn change(&self, session: &mut dyn Session, settings: &[(&str, &str)]) -> Result<Vec<String>> {
        change(session, settings)
    }

    fn put_back(&self, session: &mut dyn Session, before: &PreviousSettings) -> Result<Vec<String>> {
        put_back(session, before)
    }
}
