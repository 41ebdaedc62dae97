//! What the server has set.

use crate::settings::{ChangeTime, CurrentSetting};
use crate::{Result, Session};

/// The settings of these names, in their order, without those that the server does not know.
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
            when: if text(4)? == "postmaster" { ChangeTime::AfterRestart } else { ChangeTime::Now },
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
