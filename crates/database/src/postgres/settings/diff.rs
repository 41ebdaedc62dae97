//! What a server has set otherwise than a list of settings says.

use super::read::read_known;
use crate::managed::Line;
use crate::{Result, Session};

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// The server's value; none where the server does not know the setting.
    pub server: Option<String>,
    /// Where the server's value comes from, as `pg_settings.source` has it.
    pub source: String,
    /// The value that the list asks for.
    pub wanted: String,
    /// Why it asks for it.
    pub reason: String,
    /// Whether it changes at a restart only.
    pub restart: bool,
}

/// The settings that differ from `lines`, in their order, compared by value.
pub fn differences(session: &mut dyn Session, lines: &[Line]) -> Result<Vec<Difference>> {
    let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let present = read_known(session, &names)?;
    let differs = |line: &Line| {
        let found = present.iter().find(|one| one.name.eq_ignore_ascii_case(&line.name));
        if found.is_some_and(|found| found.has_value(&line.value)) {
            return None;
        }
        Some(Difference {
            name: line.name.clone(),
            server: found.map(|found| found.value.clone()),
            source: found.map(|found| found.source.clone()).unwrap_or_default(),
            wanted: line.value.clone(),
            reason: line.reason.clone(),
            restart: found.is_some_and(super::CurrentSetting::needs_restart),
        })
    };
    Ok(lines.iter().filter_map(differs).collect())
}
