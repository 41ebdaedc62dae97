//! Changing settings of a running server, and putting them back.

use std::time::{Duration, Instant};

use super::PostgresSettings;
use super::name::{check_name, is_quoted_list};
use super::read::{literal, read_known};
use crate::settings::{BeforeSetting, PreviousSettings, ServerSettings, elements};
use crate::{Error, ErrorClass, Result, Session};

/// How long a server may take to reload its files.
const RELOAD: Duration = Duration::from_secs(15);

/// The state of these settings that [`put_back`] needs. It must be stored before [`change`] is called. Needs the right
/// to read `pg_file_settings`, which superusers have.
pub fn before(session: &mut dyn Session, names: &[&str]) -> Result<PreviousSettings> {
    names.iter().try_for_each(|name| check_name(name))?;
    // The last line of a name counts, in that file too.
    let rows = session
        .query(
            "SELECT lower(name), coalesce(setting, '') FROM pg_file_settings \
             WHERE sourcefile LIKE '%/postgresql.auto.conf' AND name IS NOT NULL ORDER BY seqno",
        )
        .map_err(|error| error.context("cannot read which settings the server's files contain"))?;
    let mut settings = Vec::with_capacity(names.len());
    for name in names {
        let mut value = None;
        for row in 0..rows.len() {
            if rows.text(row, 0)?.eq_ignore_ascii_case(name) {
                value = Some(rows.text(row, 1)?.to_owned());
            }
        }
        settings.push(BeforeSetting::new(name, value));
    }
    Ok(PreviousSettings { settings })
}

/// Sets each of `settings` in `postgresql.auto.conf`, all or none as far as the server checks, and makes the server
/// reload its files. Returns the names of those that wait for a restart. Names that [`check_name`] refuses and settings
/// that the server does not know are refused before anything is changed.
pub fn change(session: &mut dyn Session, settings: &[(&str, &str)]) -> Result<Vec<String>> {
    let names: Vec<&str> = settings.iter().map(|(name, _)| *name).collect();
    names.iter().try_for_each(|name| check_name(name))?;
    let commands: Vec<String> =
        settings.iter().map(|(name, value)| set(name, value)).collect::<Result<_>>()?;
    PostgresSettings.read(session, &names)?;
    let old = before(session, &names)?;
    for (command, (name, value)) in commands.iter().zip(settings) {
        // One at a time: together they would be a transaction, in which the server refuses them.
        if let Err(error) = session.run(command) {
            let error = error.context(&format!("cannot set {name} to {value:?}"));
            return Err(match put_back(session, &old) {
                Ok(_) => error,
                Err(second) => {
                    error.with_help(format!("the previous values could not be restored either: {second}"))
                }
            });
        }
    }
    reload(session)?;
    pending(session, &names)
}

/// Restores these settings in `postgresql.auto.conf` to their previous state, and makes the server reload its files.
/// Doing it again changes nothing. Returns the names of those that wait for a restart.
pub fn put_back(session: &mut dyn Session, before: &PreviousSettings) -> Result<Vec<String>> {
    for BeforeSetting { name, value, .. } in &before.settings {
        check_name(name)?;
        let command = match value {
            Some(value) => set(name, value)?,
            None => format!("ALTER SYSTEM RESET {}", identifier(name)),
        };
        session.run(&command).map_err(|error| error.context(&format!("cannot restore {name}")))?;
    }
    reload(session)?;
    let names: Vec<&str> = before.settings.iter().map(|one| one.name.as_str()).collect();
    pending(session, &names)
}

fn set(name: &str, value: &str) -> Result<String> {
    if value.chars().any(char::is_control) {
        return Err(Error::usage(format!("the value of {name} contains a control character")));
    }
    let value = if is_quoted_list(name) {
        let each: Vec<String> = elements(value).iter().map(|element| literal(element)).collect();
        if each.is_empty() { "''".into() } else { each.join(", ") }
    } else {
        literal(value)
    };
    Ok(format!("ALTER SYSTEM SET {} = {value}", identifier(name)))
}

/// Both parts of a module's name are identifiers. In small letters, as the server takes unquoted ones: it compares names of
/// settings without regard to case.
fn identifier(name: &str) -> String {
    let parts: Vec<String> =
        name.split('.').map(|part| format!("\"{}\"", part.to_ascii_lowercase())).collect();
    parts.join(".")
}

/// Makes the server read its files, and waits until this session has.
pub(crate) fn reload(session: &mut dyn Session) -> Result<()> {
    let at = |session: &mut dyn Session| -> Result<String> {
        Ok(session.query("SELECT extract(epoch FROM pg_conf_load_time())::text")?.text(0, 0)?.to_owned())
    };
    let old = at(session)?;
    session.run("SELECT pg_reload_conf()")?;
    let until = Instant::now() + RELOAD;
    while at(session)? == old {
        if Instant::now() > until {
            return Err(Error::new(ErrorClass::Timeout, "the server did not reload its configuration")
                .with_help("see the server log: one of its configuration files has an error"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn pending(session: &mut dyn Session, names: &[&str]) -> Result<Vec<String>> {
    let found = read_known(session, names)?;
    Ok(found.into_iter().filter(|one| one.pending_restart).map(|one| one.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_names_are_quoted() {
        assert_eq!(set("work_mem", "64MB").unwrap(), "ALTER SYSTEM SET \"work_mem\" = '64MB'");
        assert_eq!(set("a.B", "it's \\").unwrap(), "ALTER SYSTEM SET \"a\".\"b\" = E'it''s \\\\'");
        assert_eq!(
            set("search_path", "\"$user\", public").unwrap(),
            "ALTER SYSTEM SET \"search_path\" = '$user', 'public'"
        );
        assert!(set("work_mem", "1\n2").is_err());
    }
}
