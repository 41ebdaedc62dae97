//! Settings of a managed server: changed in its option file, and at once where a statement can.

use std::path::PathBuf;

use super::file::{parse, written};
use super::name::{check_name, option, variable};
use super::read::read_known;
use super::statements::{put_back_after, set, set_all};
use crate::managed::account::Account;
use crate::managed::program::{io_error, write_as};
use crate::settings::{BeforeSetting, ChangeTime, CurrentSetting, PreviousSettings, ServerSettings};
use crate::{Error, Result, Session};

/// What stands above the changes, at the end of the file: the last line of a setting counts.
const CHANGES: &str = "# --- changed by kelvin until it puts them back ---";

/// The changes in the text of an option file, by their lines.
pub(crate) fn changes(text: &str) -> Vec<(String, String)> {
    let section = text.split_once(CHANGES).map_or("", |(_, section)| section);
    parse(section).unwrap_or_default().into_iter().map(|line| (line.name, line.value)).collect()
}

/// The text of an option file without changes, and with these.
pub(crate) fn with_changes(text: &str, changes: &[(String, String)]) -> Result<String> {
    let mut text = text.split_once(CHANGES).map_or(text, |(before, _)| before).to_owned();
    if !changes.is_empty() {
        text.push_str(CHANGES);
        text.push('\n');
        for (name, value) in changes {
            text.push_str(&format!("{name} = {}\n", written(value)?));
        }
    }
    Ok(text)
}

/// The settings of a managed server.
#[derive(Debug, Clone)]
pub(crate) struct OptionFileSettings {
    /// Its option file.
    pub(crate) file: PathBuf,
    /// The server's directory, and who may write there.
    pub(crate) directory: PathBuf,
    pub(crate) account: Account,
}

impl OptionFileSettings {
    fn text(&self) -> Result<String> {
        std::fs::read_to_string(&self.file).map_err(|error| io_error(&self.file, &error))
    }

    /// Replaces these changes in the file; one without a value is taken out.
    fn write(&self, new: &[(String, Option<String>)]) -> Result<()> {
        let old = self.text()?;
        let mut all = changes(&old);
        for (name, value) in new {
            let of = variable(name, "").0;
            all.retain(|(other, _)| variable(other, "").0 != of);
            all.extend(value.as_ref().map(|value| option(name, value)));
        }
        let text = with_changes(&old, &all)?;
        if text == old { Ok(()) } else { write_as(&self.account, &self.file, &text, &self.directory) }
    }

    /// Puts the file back, as [`ServerSettings::put_back`] does for a server that runs.
    pub(crate) fn put_file_back(&self, before: &PreviousSettings) -> Result<()> {
        before.settings.iter().try_for_each(|one| check_name(&one.name))?;
        let old: Vec<_> = before.settings.iter().map(|one| (one.name.clone(), one.value.clone())).collect();
        self.write(&old)
    }
}

impl ServerSettings for OptionFileSettings {
    fn check_name(&self, name: &str) -> Result<()> {
        check_name(name)
    }

    fn read_known(&self, session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
        let changed = changes(&self.text()?);
        let mut found = read_known(session, names)?;
        for one in &mut found {
            if one.needs_restart() {
                one.when = ChangeTime::AfterRestart;
                let of = variable(&one.name, "").0;
                let line = changed.iter().find(|(name, _)| variable(name, "").0 == of);
                one.pending_restart = line.is_some_and(|(_, value)| !one.has_value(value));
            }
        }
        Ok(found)
    }

    fn before(&self, session: &mut dyn Session, names: &[&str]) -> Result<PreviousSettings> {
        let changed = changes(&self.text()?);
        let settings = self.read(session, names)?.into_iter().map(|one| {
            let of = variable(&one.name, "").0;
            let line = changed.iter().find(|(name, _)| variable(name, "").0 == of);
            let value = line.map(|(_, value)| value.clone());
            BeforeSetting { name: one.name, value, running: Some(one.value) }
        });
        Ok(PreviousSettings { settings: settings.collect() })
    }

    fn change(&self, session: &mut dyn Session, settings: &[(&str, &str)]) -> Result<Vec<String>> {
        let names: Vec<&str> = settings.iter().map(|(name, _)| *name).collect();
        names.iter().try_for_each(|name| check_name(name))?;
        let present = self.read(session, &names)?;
        let old = self.before(session, &names)?;
        let new: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned()))).collect();
        self.write(&new)?;
        let at_once: Vec<&CurrentSetting> = present.iter().filter(|one| !one.needs_restart()).collect();
        set_all(session, &at_once, settings, false)
            .map_err(|error| put_back_after(self, session, &old, error))?;
        let waits = |(one, (_, value)): &(&CurrentSetting, &(&str, &str))| {
            one.needs_restart() && !one.has_value(value)
        };
        Ok(present.iter().zip(settings).filter(waits).map(|(one, _)| one.name.clone()).collect())
    }

    fn put_back(&self, session: &mut dyn Session, before: &PreviousSettings) -> Result<Vec<String>> {
        self.put_file_back(before)?;
        let mut waiting = Vec::new();
        // A second time for what another one bounds until that is put back itself.
        for old in before.settings.iter().chain(&before.settings) {
            let Some(running) = &old.running else { continue };
            for one in self.read(session, &[&old.name])?.iter().filter(|one| !one.has_value(running)) {
                if one.needs_restart() {
                    if !waiting.contains(&old.name) {
                        waiting.push(old.name.clone());
                    }
                } else {
                    session
                        .run(&set(one, running, false)?)
                        .map_err(|error: Error| error.context(&format!("cannot restore {}", old.name)))?;
                }
            }
        }
        Ok(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_at_the_end_and_leave_no_trace() {
        let file = "[mysqld]\nsync_binlog = 1\n";
        let one = [("sync_binlog".to_owned(), "0".to_owned()), ("sql_mode".to_owned(), "A B".to_owned())];
        let changed = with_changes(file, &one).unwrap();
        assert!(changed.starts_with(file) && changed.ends_with("sync_binlog = 0\nsql_mode = \"A B\"\n"));
        assert_eq!(changes(&changed), one);
        assert_eq!(with_changes(&changed, &one).unwrap(), changed);
        assert_eq!(with_changes(&changed, &[]).unwrap(), file);
        assert_eq!(changes(file), []);
    }
}
