//! Other settings for an instance that exists.

use super::instance::{self, Instance, Places};
use crate::managed::account::Account;
use crate::managed::program::{io_error, write_as};
use crate::postgres::PostgresEngine;
use crate::postgres::settings::{in_auto_conf, reload};
use crate::settings::PreviousSettings;
use crate::{Engine, Error, Result, Session};

/// Replaces the main configuration file of a running instance, and restarts it where a setting needs that.
pub(super) fn running(
    places: &Places,
    account: &Account,
    instance: Instance,
    old: &str,
    new: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Instance> {
    if old == new {
        return Ok(instance);
    }
    let mut session = PostgresEngine::new(instance.config()).connect()?;
    places.write_configuration(account, new)?;
    let waiting = match read_again(&mut *session) {
        Ok(waiting) if waiting.is_empty() => return Ok(instance),
        Ok(waiting) => others_at_work(&mut *session).map(|()| waiting),
        Err(error) => Err(error),
    };
    let waiting = match waiting {
        Ok(waiting) => waiting,
        Err(error) => {
            places.write_configuration(account, old)?;
            reload(&mut *session)?;
            return Err(error);
        }
    };
    drop(session);
    progress(&format!("restarting PostgreSQL {} to apply {}", instance.major(), waiting.join(", ")));
    restart(places, account, &instance, old, progress)
}

fn restart(
    places: &Places,
    account: &Account,
    instance: &Instance,
    old: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<Instance> {
    let major = instance.major();
    instance::stop(places, account, major)?;
    let error = match instance::start_as_it_is(places, account, major, &mut |_| ()) {
        Ok(instance) => return Ok(instance),
        Err(error) => error,
    };
    progress("the server does not start with these settings; restoring the old ones");
    places.write_configuration(account, old)?;
    instance::start_as_it_is(places, account, major, &mut |_| ())
        .map_err(|second| second.context("starts neither with the new settings nor with the old ones"))?;
    Err(error.context("it does not start with the new settings; the old ones were restored"))
}

/// Makes the server reload its files; returns the names of the settings that wait for a restart. A value that the
/// server refuses, or an unknown name, is an error.
fn read_again(session: &mut dyn Session) -> Result<Vec<String>> {
    // The view shows the current content of the files. It reports a change that waits for a restart as an error; the
    // same applies to a setting removed from the files, which has no file.
    let rows = session.query(
        "SELECT coalesce(f.sourceline, 0)::bigint, coalesce(f.name, ''), f.error FROM pg_file_settings f \
         LEFT JOIN pg_settings s ON lower(s.name) = lower(f.name) \
         WHERE f.error IS NOT NULL AND f.sourcefile IS NOT NULL AND s.context IS DISTINCT FROM 'postmaster' \
         ORDER BY f.seqno LIMIT 1",
    )?;
    if !rows.is_empty() {
        let (name, error) = (rows.text(0, 1)?, rows.text(0, 2)?);
        return Err(Error::usage(format!("the server rejects the setting {name}: {error}")));
    }
    reload(session)?;
    let rows = session.query("SELECT name FROM pg_settings WHERE pending_restart ORDER BY name")?;
    rows.texts(0)
}

/// A restart would end their work.
fn others_at_work(session: &mut dyn Session) -> Result<()> {
    let ask = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    // Sessions that have just ended are there for a moment.
    for _ in 0..20 {
        if session.query(ask)?.int(0, 0)? == 0 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    Err(Error::usage("the profile needs a server restart, and other sessions are active")
        .with_help("end their sessions first, or stop the server: kelvin server down"))
}

/// Puts `postgresql.auto.conf` of a stopped instance back.
pub(super) fn put_back_stopped(places: &Places, account: &Account, before: &PreviousSettings) -> Result<()> {
    if super::postmaster::running(&places.data).is_some() {
        return Err(Error::usage("the managed server is running; it restores its settings itself"));
    }
    let file = places.data.join("postgresql.auto.conf");
    let text = std::fs::read_to_string(&file).map_err(|error| io_error(&file, &error))?;
    let wanted = in_auto_conf(&text, before)?;
    if wanted == text { Ok(()) } else { write_as(account, &file, &wanted, places.directory()) }
}
