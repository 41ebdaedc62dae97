//! What the server has set.

use super::value::same;
use crate::{Error, Result, Session};

/// A setting as the server has it, for a new session of this user in this database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentSetting {
    /// Its name as the server writes it.
    pub name: String,
    /// Its value with a unit, as `SHOW` has it.
    pub value: String,
    /// `bool`, `integer`, `real`, `enum` or `string`.
    pub kind: String,
    /// The unit in which a number without one counts.
    pub unit: Option<String>,
    /// When it can change: `postmaster` is at a restart.
    pub context: String,
    /// Where it comes from: `default`, `configuration file`, `database`, `client`, …; `ALTER SYSTEM` where the server shows
    /// this user so.
    pub source: String,
    /// Whether a restart would change it.
    pub pending_restart: bool,
}

impl CurrentSetting {
    /// Whether it has this value.
    pub fn has_value(&self, value: &str) -> bool {
        same(&self.value, value, &self.kind, self.unit.as_deref())
    }

    /// Whether it changes at a restart only.
    pub fn needs_restart(&self) -> bool {
        self.context == "postmaster"
    }
}

/// The settings of these names, in their order. One that the server does not know, or does not show to this user, is an
/// error.
pub fn read(session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
    let found = read_known(session, names)?;
    for name in names {
        if !found.iter().any(|one| one.name.eq_ignore_ascii_case(name)) {
            return Err(Error::usage(format!("the server has no setting {name}"))
                .with_help("a module's settings exist only while the module is loaded"));
        }
    }
    Ok(found)
}

/// [`read`] without those that the server does not know.
pub(super) fn read_known(session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let list: Vec<String> = names.iter().map(|name| literal(&name.to_ascii_lowercase())).collect();
    let rows = session.query(&format!(
        "SELECT name, coalesce(current_setting(name, true), ''), vartype, coalesce(unit, ''), context, \
         CASE WHEN sourcefile LIKE '%/postgresql.auto.conf' THEN 'ALTER SYSTEM' ELSE source END, \
         pending_restart::text FROM pg_settings WHERE lower(name) IN ({})",
        list.join(",")
    ))?;
    let mut found = Vec::with_capacity(rows.len());
    for row in 0..rows.len() {
        let text = |column| rows.text(row, column).map(str::to_owned);
        found.push(CurrentSetting {
            name: text(0)?,
            value: text(1)?,
            kind: text(2)?,
            unit: Some(text(3)?).filter(|unit| !unit.is_empty()),
            context: text(4)?,
            source: text(5)?,
            pending_restart: text(6)? == "true",
        });
    }
    let place = |one: &CurrentSetting| names.iter().position(|name| name.eq_ignore_ascii_case(&one.name));
    found.sort_by_key(place);
    Ok(found)
}

/// Text as an SQL literal, whatever the server's `standard_conforming_strings` says.
pub(super) fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if doubled.contains('\\') {
        format!("E'{}'", doubled.replace('\\', "\\\\"))
    } else {
        format!("'{doubled}'")
    }
}
