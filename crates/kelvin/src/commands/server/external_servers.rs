//! Settings of servers that are not kelvin's own: shown, changed with consent, and restored.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_database::managed::{HostResources, Manager, Profile};
use kelvin_database::postgres::settings::{self, Difference};
use kelvin_database::postgres::{Config, PostgresEngine};
use kelvin_database::target::Target;
use kelvin_database::{Engine, Error, Session};
use kelvin_lab::directories;
use kelvin_lab::factor::{Access, recover};
use kelvin_lab::open;
use kelvin_lab::undo::{Journal, ReversibleChange};
use kelvin_run::spec::TargetName;

use super::{profile, text};
use crate::args::{Global, ProfileArgs};
use crate::measure::prompt;
use crate::out;

/// Shows what differs.
pub(super) fn diff(
    target: &TargetName,
    asked: &ProfileArgs,
    global: &Global,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut reached = Reached::new(target)?;
    let profile = reached.profile(asked, global)?;
    profile.cautions.iter().for_each(|caution| tell(&format!("caution: {caution}")));
    super::warn_of_lost_durability(&profile);
    let found = settings::differences(&mut *reached.session, &profile.lines)?;
    out::write(&text::differences(&reached.config.to_string(), &profile.name, &found))
}

/// Changes what differs, when that is allowed.
pub(super) fn apply(
    target: &TargetName,
    asked: &ProfileArgs,
    allowed: bool,
    global: &Global,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let mut reached = Reached::new(target)?;
    let server = reached.config.to_string();
    if asked.profile.is_none() {
        bail!("no profile given: add --profile FILE");
    }
    let profile = reached.profile(asked, global)?;
    profile.cautions.iter().for_each(|caution| tell(&format!("caution: {caution}")));
    let found = settings::differences(&mut *reached.session, &profile.lines)?;
    out::write(&text::differences(&server, &profile.name, &found))?;
    let changes: Vec<(&str, &str)> = found
        .iter()
        .filter(|one| one.server.is_some())
        .map(|one: &Difference| (one.name.as_str(), one.wanted.as_str()))
        .collect();
    if changes.is_empty() {
        return Ok(());
    }
    if !allowed {
        bail!("nothing was changed: an external server is changed only with --allow-settings");
    }
    let path = journal_of(&reached.config)?;
    let mut journal = Journal::begin(&path).with_context(|| {
        format!("a profile was already applied; revert it first: kelvin server restore --target '{server}'")
    })?;
    let names: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
    let before = settings::before(&mut *reached.session, &names)?;
    let number = journal.about_to(ReversibleChange::Settings {
        target: server.clone(),
        servers: None,
        before: before.clone(),
    })?;
    let waiting = match settings::change(&mut *reached.session, &changes) {
        Ok(waiting) => waiting,
        Err(error) => {
            // It restores what it did itself, but for what fails after the last one. Nothing is forgotten that may be left.
            if let Err(second) = settings::put_back(&mut *reached.session, &before) {
                tell(&format!(
                    "not everything could be reverted ({second}): kelvin server restore --target '{server}'"
                ));
                return Err(error.into());
            }
            journal.undone(number)?;
            journal.end()?;
            return Err(error.into());
        }
    };
    out::line(&format!("changed; revert with: kelvin server restore --target '{server}'"))?;
    if !waiting.is_empty() {
        out::line(&format!("restart the server yourself to apply the rest: {}", waiting.join(", ")))?;
    }
    Ok(())
}

/// Puts back what was changed.
pub(super) fn restore(
    target: Option<&TargetName>,
    manager: &Manager,
    tell: &mut dyn FnMut(&str),
) -> Result<()> {
    let journals = match target {
        Some(target) => match target.target()? {
            Target::Postgres(config) => vec![journal_of(&config)?],
            other => bail!("{other} is not a server that `kelvin server apply` could have changed"),
        },
        None => all_journals()?,
    };
    let access = Access::new(manager.clone()).with_login(|config| {
        open::with_password(config, prompt).map_err(|error| Error::usage(format!("{error:#}")))
    });
    let mut nothing = true;
    for journal in journals.iter().filter(|journal| journal.exists()) {
        nothing = false;
        let undone = recover(journal, &access, tell)?;
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

/// A server that was connected to.
struct Reached {
    config: Config,
    engine: PostgresEngine,
    session: Box<dyn Session>,
}

impl Reached {
    fn new(target: &TargetName) -> Result<Self> {
        let config = match target.target()? {
            Target::Postgres(config) => *config,
            Target::ManagedPostgres { .. } => {
                bail!("{target} is kelvin's own server; omit --target, or use `kelvin server up --profile`")
            }
            Target::Mysql(_) | Target::ManagedMysql { .. } => {
                bail!("changing the settings of MySQL and MariaDB is not supported yet")
            }
            Target::Sqlite { .. } => {
                bail!("{target} has no server with settings; give postgres://user@host/database")
            }
        };
        let engine = PostgresEngine::new(open::with_password(config, prompt)?);
        let session = engine.connect().with_context(|| format!("cannot use {}", engine.describe()))?;
        Ok(Self { config: engine.config().clone(), engine, session })
    }

    /// The asked profile. Sizes come from the server's host, which has to be this one.
    fn profile(&mut self, asked: &ProfileArgs, global: &Global) -> Result<Profile> {
        let name = asked.profile.as_deref().unwrap_or("default");
        let data = self.engine.data_directory(&mut *self.session);
        if data.is_none() && profile::is_built_in(name) {
            bail!(
                "the sizes of the profile {name} are computed from this host, and {} is on another host: \
                 give a file with --profile FILE",
                self.config
            );
        }
        let host = HostResources::look(&data.unwrap_or_else(|| "/".into()));
        profile::resolve(name, asked.sized_for.as_deref(), host, global)
    }
}

/// The directory of the journals, which is made if need be.
fn journals() -> Result<PathBuf> {
    let directory = directories::data()?.join("settings");
    std::fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    Ok(directory)
}

/// One a server, whatever user and database it was entered with.
fn journal_of(config: &Config) -> Result<PathBuf> {
    let host = match &config.host {
        kelvin_database::postgres::Host::Tcp(name) => name.clone(),
        kelvin_database::postgres::Host::Unix(directory) => directory.to_string_lossy().into_owned(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    let name: String = host.chars().map(plain).collect();
    Ok(journals()?.join(format!("{name}_{}.journal", config.port)))
}

fn all_journals() -> Result<Vec<PathBuf>> {
    let directory = journals()?;
    let entries =
        std::fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path: &PathBuf| Path::extension(path).is_some_and(|extension| extension == "journal"))
        .collect();
    found.sort();
    Ok(found)
}
