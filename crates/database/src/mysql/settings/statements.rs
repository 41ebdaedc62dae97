//! Settings of a server that is reached by statements only: `SET PERSIST` on MySQL, which outlives a restart, and `SET GLOBAL` on
//! MariaDB, which does not.

use super::name::{check_name, variable};
use super::read::read_known;
use crate::mysql::{Product, product};
use crate::settings::{
    BeforeSetting, ChangeTime, CurrentSetting, PreviousSettings, ServerSettings, whole_number,
};
use crate::{Error, Result, Session};

/// The settings of a MySQL or MariaDB server. Changing them needs SYSTEM_VARIABLES_ADMIN (those that a restart brings also
/// PERSIST_RO_VARIABLES_ADMIN), or SUPER.
#[derive(Debug, Clone, Copy)]
pub struct SessionSettings;

impl ServerSettings for SessionSettings {
    fn check_name(&self, name: &str) -> Result<()> {
        check_name(name)
    }

    fn read_known(&self, session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
        let mut found = read_known(session, names)?;
        if product(session)? == Product::Mysql {
            for one in &mut found {
                let kept = persisted(session, &variable(&one.name, "").0)?;
                one.pending_restart = one.needs_restart() && kept.is_some_and(|kept| !one.has_value(&kept));
            }
        }
        Ok(found)
    }

    fn before(&self, session: &mut dyn Session, names: &[&str]) -> Result<PreviousSettings> {
        let keeps = product(session)? == Product::Mysql;
        let mut settings = Vec::new();
        for one in self.read(session, names)? {
            let value = if keeps { persisted(session, &variable(&one.name, "").0)? } else { None };
            settings.push(BeforeSetting { name: one.name, value, running: Some(one.value) });
        }
        Ok(PreviousSettings { settings })
    }

    fn change(&self, session: &mut dyn Session, settings: &[(&str, &str)]) -> Result<Vec<String>> {
        let names: Vec<&str> = settings.iter().map(|(name, _)| *name).collect();
        names.iter().try_for_each(|name| check_name(name))?;
        let present = self.read(session, &names)?;
        if let Some(one) = present.iter().find(|one| one.when == ChangeTime::InItsFiles) {
            return Err(Error::usage(format!("{} cannot be changed by a statement", one.name))
                .with_help("set it in the server's option file, and restart the server"));
        }
        let keeps = product(session)? == Product::Mysql;
        let old = self.before(session, &names)?;
        let all: Vec<&CurrentSetting> = present.iter().collect();
        set_all(session, &all, settings, keeps)
            .map_err(|error| put_back_after(self, session, &old, error))?;
        Ok(present.into_iter().filter(CurrentSetting::needs_restart).map(|one| one.name).collect())
    }

    fn put_back(&self, session: &mut dyn Session, before: &PreviousSettings) -> Result<Vec<String>> {
        let keeps = product(session)? == Product::Mysql;
        let mut waiting = Vec::new();
        // A second time for what another one bounds until that is put back itself.
        for old in before.settings.iter().chain(&before.settings) {
            let name = variable(&old.name, "").0;
            let present = self.read(session, &[&old.name])?;
            let Some(one) = present.first() else { continue };
            let failed = |error: Error| error.context(&format!("cannot restore {}", old.name));
            if keeps {
                match &old.value {
                    Some(value) => session.run(&set(one, value, true)?).map_err(failed)?,
                    None if persisted(session, &name)?.is_some() => {
                        session.run(&format!("RESET PERSIST {name}")).map_err(failed)?;
                    }
                    None => {}
                }
            }
            let Some(running) = old.running.as_deref().filter(|running| !one.has_value(running)) else {
                continue;
            };
            if one.needs_restart() {
                if !waiting.contains(&old.name) {
                    waiting.push(old.name.clone());
                }
            } else {
                session.run(&set(one, running, false)?).map_err(failed)?;
            }
        }
        Ok(waiting)
    }
}

/// Sets each to its value, and once more what another one has bounded before it was changed itself (`innodb_io_capacity` by its
/// maximum). What the server rounds is no error.
pub(super) fn set_all(
    session: &mut dyn Session,
    present: &[&CurrentSetting],
    settings: &[(&str, &str)],
    keeps: bool,
) -> Result<()> {
    let value_of = |one: &CurrentSetting| {
        settings.iter().find(|(name, _)| name.eq_ignore_ascii_case(&one.name)).map_or("", |(_, value)| *value)
    };
    let mut rest: Vec<&CurrentSetting> = present.to_vec();
    for _ in 0..2 {
        for one in &rest {
            let value = value_of(one);
            session
                .run(&set(one, value, keeps)?)
                .map_err(|error| error.context(&format!("cannot set {} to {value:?}", one.name)))?;
        }
        let names: Vec<&str> = rest.iter().map(|one| one.name.as_str()).collect();
        let now = read_known(session, &names)?;
        rest.retain(|one| {
            let has = now.iter().find(|now| now.name == one.name);
            !one.needs_restart() && has.is_some_and(|now| !now.has_value(value_of(one)))
        });
    }
    Ok(())
}

/// The error of a change after what was done of it was put back.
pub(super) fn put_back_after(
    settings: &dyn ServerSettings,
    session: &mut dyn Session,
    old: &PreviousSettings,
    error: Error,
) -> Error {
    match settings.put_back(session, old) {
        Ok(_) => error,
        Err(second) => error.with_help(format!("the previous values could not be restored either: {second}")),
    }
}

/// What MySQL has kept of a setting for its next start.
fn persisted(session: &mut dyn Session, variable: &str) -> Result<Option<String>> {
    let rows = session.query(&format!(
        "SELECT variable_value FROM performance_schema.persisted_variables WHERE variable_name = '{variable}'"
    ))?;
    if rows.is_empty() { Ok(None) } else { rows.text(0, 0).map(|value| Some(value.to_owned())) }
}

/// The statement that gives a setting a value, for the next starts as well where the server `keeps` it.
pub(super) fn set(one: &CurrentSetting, value: &str, keeps: bool) -> Result<String> {
    let (name, value) = variable(&one.name, value);
    if value.chars().any(char::is_control) {
        return Err(Error::usage(format!("the value of {name} contains a control character")));
    }
    let scope = match (keeps, one.needs_restart()) {
        (true, true) => "PERSIST_ONLY",
        (true, false) => "PERSIST",
        (false, _) => "GLOBAL",
    };
    let plain = match one.kind.as_str() {
        "bytes" => whole_number(value).map(|number| number.to_string()),
        "real" => value.trim().parse::<f64>().ok().map(|number| number.to_string()),
        _ => None,
    };
    if plain.is_none() && value.contains('\\') {
        // What it means depends on the session's sql_mode.
        return Err(Error::usage(format!("the value of {name} contains a backslash")));
    }
    let value = plain.unwrap_or_else(|| format!("'{}'", value.replace('\'', "''")));
    Ok(format!("SET {scope} {name} = {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_or_literals() {
        let one = |name: &str, kind: &str, when| CurrentSetting {
            name: name.into(),
            value: String::new(),
            kind: kind.into(),
            unit: None,
            when,
            source: String::new(),
            pending_restart: false,
        };
        let now = |name, kind| one(name, kind, ChangeTime::Now);
        assert_eq!(
            set(&now("innodb_io_capacity", "bytes"), "2k", false).unwrap(),
            "SET GLOBAL innodb_io_capacity = 2048"
        );
        assert_eq!(set(&now("a-b", "string"), "it's", true).unwrap(), "SET PERSIST a_b = 'it''s'");
        let later = one("innodb_doublewrite", "enum", ChangeTime::AfterRestart);
        assert_eq!(set(&later, "OFF", true).unwrap(), "SET PERSIST_ONLY innodb_doublewrite = 'OFF'");
        assert!(set(&later, "a\nb", true).is_err() && set(&later, "\\", true).is_err());
    }
}
