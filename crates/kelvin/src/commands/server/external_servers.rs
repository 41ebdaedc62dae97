//! Settings of external servers: prints, changes (with consent) and restores them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kelvin_database::managed::{HostResources, Manager, Profile};
use kelvin_database::settings::{ChangeTime, Difference, ServerSettings};
use kelvin_database::target::Target;
use kelvin_database::{Engine, Error, Session};
use kelvin_lab::directories;
use kelvin_lab::factor::{Access, recover};
use kelvin_lab::limits;
use kelvin_lab::open;
use kelvin_lab::undo::{Journal, ReversibleChange};
use kelvin_run::spec::TargetName;

use super::{profile, server_text};
use crate::args::{Global, ProfileArgs};
use crate::measure::prompt;
use crate::out;

/// Shows the differences.
pub(super) fn diff(
    target: &TargetName,
    asked: &ProfileArgs,
    global: &Global,
    report: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut reached = Reached::new(target)?;
    let profile = reached.profile(asked, global)?;
    profile.cautions.iter().for_each(|caution| report(&format!("caution: {caution}")));
    super::warn_of_lost_durability(&profile);
    let found = reached.differences(&profile)?;
    out::write(&server_text::differences(&reached.server(), &profile.name, &found))
}

/// Changes the settings that differ, with consent.
pub(super) fn apply(
    target: &TargetName,
    asked: &ProfileArgs,
    allowed: bool,
    global: &Global,
    report: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut reached = Reached::new(target)?;
    let server = reached.server();
    if asked.profile.is_none() {
        bail!("no profile given: add --profile FILE");
    }
    let profile = reached.profile(asked, global)?;
    profile.cautions.iter().for_each(|caution| report(&format!("caution: {caution}")));
    let found = reached.differences(&profile)?;
    out::write(&server_text::differences(&server, &profile.name, &found))?;
    let by_hand: Vec<&str> =
        found.iter().filter(|one| one.when == ChangeTime::InItsFiles).map(|one| one.name.as_str()).collect();
    if !by_hand.is_empty() {
        report(&format!(
            "not changed, because the server takes them from its option file only: {}",
            by_hand.join(", ")
        ));
    }
    let changes: Vec<(&str, &str)> = found
        .iter()
        .filter(|one| one.server.is_some() && one.when != ChangeTime::InItsFiles)
        .map(|one: &Difference| (one.name.as_str(), one.wanted.as_str()))
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    if !allowed {
        bail!("nothing was changed: an external server is changed only with --allow-settings");
    }
    let path = journal_of(&reached.target)?;
    let mut journal = Journal::begin(&path).with_context(|| {
        format!("a profile was already applied; revert it first: kelvin server restore --target '{server}'")
    })?;
    let names: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
    let Reached { engine, session, .. } = &mut reached;
    let settings = settings_of(engine.as_ref())?;
    let before = settings.before(session.as_mut(), &names)?;
    let number = journal.about_to(ReversibleChange::Settings {
        target: server.clone(),
        servers: None,
        before: before.clone(),
    })?;
    let waiting = match settings.change(session.as_mut(), &changes) {
        Ok(waiting) => waiting,
        Err(error) => {
            // `change` undoes its changes itself, except after a later failure. Any change that may remain is reported.
            if let Err(second) = settings.put_back(session.as_mut(), &before) {
                report(&format!(
                    "not everything could be reverted ({second}): kelvin server restore --target '{server}'"
                ));
                return Err(error.into());
            }
            journal.undone(number)?;
            journal.end()?;
            return Err(error.into());
        }
    };
    for one in settings.differences(session.as_mut(), &profile.lines)? {
        if let (Some(has), ChangeTime::Now) = (&one.server, one.when) {
            report(&format!("{} is not {}: the server has {has}", one.name, one.wanted));
        }
    }
    out::line(&format!("changed; revert with: kelvin server restore --target '{server}'"))?;
    if !waiting.is_empty() {
        out::line(&format!("restart the server yourself to apply the rest: {}", waiting.join(", ")))?;
    }
    Ok(())
}

/// Restores the changed settings.
pub(super) fn restore(
    target: Option<&TargetName>,
    manager: &Manager,
    report: &mut dyn FnMut(&str),
) -> Result<()> {
    let journals = match target {
        Some(target) => {
            let target = target.target()?;
            let of = |begin: &str| directories::settings_journal(&target, begin);
            vec![journal_of(&target)?, of(directories::INSTRUMENTS)?, of(directories::ADVICE)?]
        }
        None => all_journals()?,
    };
    let access = Access::new(manager.clone()).with_login(|target| {
        open::with_password(target, prompt).map_err(|error| Error::usage(format!("{error:#}")))
    });
    let mut nothing = true;
    if target.is_none() {
        for change in limits::recover_left_over()? {
            nothing = false;
            out::line(&format!("reverted: {change}"))?;
        }
    }
    // Any journals of limits that still exist belong to running processes.
    let of_servers = |journal: &&PathBuf| journal.exists() && !limits::is_journal(journal);
    for journal in journals.iter().filter(of_servers) {
        nothing = false;
        let undone = recover(journal, &access, report)?;
        for change in undone.changes {
            out::line(&format!("reverted: {change}"))?;
        }
        for left in undone.left {
            out::line(&left)?;
        }
    }
    if nothing {
        out::line("nothing to revert")?;
    }
    Ok(())
}

/// An external server with a connection.
struct Reached {
    /// Includes the password.
    target: Target,
    engine: Arc<dyn Engine>,
    session: Box<dyn Session>,
}

impl Reached {
    fn new(target: &TargetName) -> Result<Self> {
        let target = match target.target()? {
            own if own.is_managed() => {
                bail!("{target} is kelvin's own server; omit --target, or use `kelvin server up --profile`")
            }
            Target::SqlServer(_) => bail!("changing the settings of SQL Server is not supported yet"),
            Target::Sqlite { .. } => {
                bail!(
                    "{target} has no server with settings; give postgres://user@host/database or \
                     mysql://user@host/database"
                )
            }
            server => open::with_password(server, prompt)?,
        };
        let engine = open::server(&target).with_context(|| format!("{target} has no server"))?;
        let session = engine.connect().with_context(|| format!("cannot use {}", engine.describe()))?;
        Ok(Self { target, engine, session })
    }

    /// The server's URL without the password, for messages and the journal.
    fn server(&self) -> String {
        self.target.to_string()
    }

    fn differences(&mut self, profile: &Profile) -> Result<Vec<Difference>> {
        let settings = settings_of(self.engine.as_ref())?;
        Ok(settings.differences(self.session.as_mut(), &profile.lines)?)
    }

    /// The requested profile. Sizes are computed from the server's host, which must be this one.
    fn profile(&mut self, asked: &ProfileArgs, global: &Global) -> Result<Profile> {
        let name = asked.profile.as_deref().unwrap_or("default");
        let data = self.engine.data_directory(self.session.as_mut());
        if data.is_none() && profile::is_built_in(name) {
            bail!(
                "the sizes of the profile {name} are computed from this host, and {} is on another host: \
                 give a file with --profile FILE",
                self.server()
            );
        }
        let host = HostResources::read(&data.unwrap_or_else(|| "/".into()));
        let profiles = self.engine.profiles(self.session.as_mut())?;
        let profiles = profiles.with_context(|| format!("{} has no profiles", self.server()))?;
        profile::resolve(name, asked.sized_for.as_deref(), host, profiles.as_ref(), global)
    }
}

fn settings_of(engine: &dyn Engine) -> Result<&dyn ServerSettings> {
    engine.settings().with_context(|| format!("{} has no settings", engine.describe()))
}

/// The journal of the settings that `apply` has changed.
fn journal_of(target: &Target) -> Result<PathBuf> {
    Ok(directories::settings_journal(target, "")?)
}

fn all_journals() -> Result<Vec<PathBuf>> {
    let directory = directories::settings_journals()?;
    let entries =
        std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path: &PathBuf| Path::extension(path).is_some_and(|extension| extension == "journal"))
        .collect();
    found.sort();
    Ok(found)
}
