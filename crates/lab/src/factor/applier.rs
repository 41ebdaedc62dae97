//! Puts cells on and takes them off.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kelvin_database::postgres::settings;

use super::access::{Access, Consent, Server};
use super::level::{Bound, HugePages, Side};
use super::memory::Cpusets;
use super::{
    Factor, FactorError, How, Level, LevelValue, cpus, kernel, level, memory, mount, server, shell,
    specification,
};
use crate::Spec;
use crate::bench::BenchError;
use crate::conditions::{Cell, Conditions};
use crate::spec::TargetName;
use crate::undo::{Change, Journal, Process, Undone, put_back};

/// Puts the levels of a cell on, and everything back in the end.
///
/// Every change stands in the journal before it is made. After a cell was put on, every level was seen to hold; one that
/// does not is an error, and everything is put back. Dropping it puts everything back, too.
pub struct Applier {
    factors: Vec<Factor>,
    path: PathBuf,
    journal: Option<Journal>,
    access: Access,
    consent: Consent,
    tell: Box<dyn FnMut(&str) + Send>,
    /// Where this process ran before it was bound.
    home: String,
    /// The server whose factors are on.
    target: Option<String>,
    /// The commands that are on: level and number in the journal, by factor.
    running: BTreeMap<String, (String, u64)>,
    /// The control group into which this process was moved, and from where.
    client_group: Option<(PathBuf, PathBuf)>,
}

type Levels<'a> = Vec<(&'a Factor, &'a Level)>;

impl Applier {
    /// An applier of these factors, whose journal is at `journal`. Refused: factors that cannot stand together, commands
    /// without consent, and a journal that another process uses or in which something waits to be put back
    /// ([`super::recover`]). Nothing is changed yet, and no server reached.
    pub fn new(
        factors: Vec<Factor>,
        journal: &Path,
        access: Access,
        consent: Consent,
    ) -> Result<Self, FactorError> {
        super::check(&factors)?;
        if let Some(factor) = factors.iter().find(|factor| factor.runs_commands() && !consent.commands) {
            return Err(FactorError::Unusable(format!(
                "factor {:?} runs commands as this user; read them, and allow it with --allow-commands",
                factor.name
            )));
        }
        Ok(Self {
            factors,
            path: journal.into(),
            journal: Some(Journal::begin(journal)?),
            access,
            consent,
            tell: Box::new(|_| ()),
            home: cpus::of(None).map_err(FactorError::Unusable)?,
            target: None,
            running: BTreeMap::new(),
            client_group: None,
        })
    }

    /// With somebody who hears of what takes long.
    #[must_use]
    pub fn with_progress(mut self, tell: impl FnMut(&str) + Send + 'static) -> Self {
        self.tell = Box::new(tell);
        self
    }

    /// The factors.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// [`Conditions::apply`] with this crate's error.
    pub fn put_on(&mut self, cell: &Cell, spec: &mut Spec) -> Result<(), FactorError> {
        let factors = self.factors.clone();
        let outcome = Self::levels(&factors, cell).and_then(|levels| {
            let mut changed = spec.clone();
            for (factor, level) in &levels {
                if let How::Spec(path) = &factor.how {
                    changed = specification::with(&changed, factor, level, path)?;
                }
            }
            self.surroundings(&levels, &changed.target)?;
            Ok(changed)
        });
        match outcome {
            Ok(changed) => {
                *spec = changed;
                Ok(())
            }
            Err(error) => {
                // What failed is more to be known than what failed after it, which the journal keeps.
                let _ = self.take_off();
                Err(error)
            }
        }
    }

    /// [`Conditions::undo`], and what was put back.
    pub fn take_off(&mut self) -> Result<Undone, FactorError> {
        self.running.clear();
        self.target = None;
        let client = self.client_home();
        let Some(mut journal) = self.journal.take() else { return Ok(Undone::default()) };
        match put_back(&mut journal, &self.access, &|_| true, &mut *self.tell) {
            Ok(undone) => {
                journal.end()?;
                client.map_err(FactorError::Unusable)?;
                Ok(undone)
            }
            Err(error) => {
                self.journal = Some(journal);
                Err(error.into())
            }
        }
    }

    /// The levels of a cell: every factor at one that it has.
    fn levels<'a>(factors: &'a [Factor], cell: &Cell) -> Result<Levels<'a>, FactorError> {
        let unusable = |why: String| Err(FactorError::Unusable(why));
        if let Some(other) = cell.0.iter().find(|one| !factors.iter().any(|factor| factor.name == one.factor))
        {
            return unusable(format!("there is no factor {:?}", other.factor));
        }
        let mut levels = Vec::new();
        for factor in factors {
            let Some(setting) = cell.0.iter().find(|one| one.factor == factor.name) else {
                return unusable(format!(
                    "the cell {:?} says nothing of the factor {:?}",
                    cell.name(),
                    factor.name
                ));
            };
            match factor.level(&setting.level) {
                Some(level) => levels.push((factor, level)),
                None => {
                    let known = factor.levels().join(", ");
                    return unusable(format!(
                        "factor {:?} has no level {:?}; it has {known}",
                        factor.name, setting.level
                    ));
                }
            }
        }
        Ok(levels)
    }

    /// Everything but the specification. Commands that go are undone first and those that come are run last, so that what
    /// they do disturbs no restart.
    fn surroundings(&mut self, levels: &Levels<'_>, target: &TargetName) -> Result<(), FactorError> {
        self.end_commands(levels)?;
        for (factor, level) in levels {
            let done = match &factor.how {
                How::Kernel(key) => self.kernel(key, &level.value.text()),
                How::Mount(directory) => self.mount(directory, &level.value.text()),
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        let of_server = levels.iter().any(|(factor, _)| factor.is_of_server());
        let of_client = levels.iter().any(|(factor, _)| matches!(factor.how, How::Bind(_)));
        // A server that a run would start from a bound process would be bound with it.
        if of_server || of_client && target.is_managed() {
            self.server(levels, target)?;
        }
        for (factor, level) in levels {
            let done = match factor.how {
                How::Bind(Bound::Cpus(Side::Client)) => {
                    cpus::bind_process(std::process::id(), &level.value.text())
                }
                How::Bind(Bound::Memory(Side::Client)) => self.client_memory(&level.value.text()),
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        self.begin_commands(levels)
    }

    fn server(&mut self, levels: &Levels<'_>, target: &TargetName) -> Result<(), FactorError> {
        let first = levels.first().copied();
        let told = |why: String| match first {
            Some((factor, level)) => not_taken(factor, level, why),
            None => FactorError::Unusable(why),
        };
        let reached =
            self.at_home(|this| server::reach(&this.access, target, &mut *this.tell)).map_err(told)?;
        if self.target.as_ref().is_some_and(|old| *old != reached.target) {
            // Another server: the one before gets back what it had.
            let of_server =
                |change: &Change| matches!(change, Change::Settings { .. } | Change::Affinity { .. });
            if let Some(journal) = &mut self.journal {
                put_back(journal, &self.access, &of_server, &mut *self.tell)?;
            }
        }
        self.target = Some(reached.target.clone());
        self.settings(levels, &reached)?;
        let bound = levels.iter().any(|(factor, _)| factor.how == How::Bind(Bound::Cpus(Side::Server)));
        if reached.managed.is_some() && !bound {
            self.unbind(&reached).map_err(told)?;
        }
        for (factor, level) in levels {
            let done = match factor.how {
                How::Bind(Bound::Cpus(Side::Server)) => self.server_cpus(&reached, &level.value.text()),
                How::Bind(Bound::Memory(Side::Server)) => self.server_memory(&reached, &level.value.text()),
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    fn settings(&mut self, levels: &Levels<'_>, server: &Server) -> Result<(), FactorError> {
        let asked = server::asked(levels).map_err(FactorError::Unusable)?;
        let Some(first) = asked.first() else { return Ok(()) };
        let told = |why: String| not_taken(first.factor, first.level, why);
        let differing = server::differing(server, &asked).map_err(told)?;
        if !differing.is_empty() {
            let (one, _) = &differing[0];
            if server.managed.is_none() && !self.consent.settings {
                return Err(FactorError::Unusable(format!(
                    "factor {:?} changes settings of {}, which is not kelvin's own server; allow it with --allow-settings: \
                     they are put back in the end",
                    one.factor.name, server.target
                )));
            }
            self.reserve_pages(levels, server, &asked)?;
            let changes: Vec<(&str, &str)> =
                differing.iter().map(|(one, _)| (one.name.as_str(), one.value.as_str())).collect();
            self.change(server, &changes).map_err(|why| {
                // Several were changed together: the one that the error names is to blame.
                let blamed =
                    differing.iter().find(|(one, _)| why.contains(&one.name)).unwrap_or(&differing[0]);
                not_taken(blamed.0.factor, blamed.0.level, why)
            })?;
            if let Some((one, why)) = server::differing(server, &asked).map_err(told)?.first() {
                let why = format!("{} was set to {}, and {why}", one.name, one.value);
                return Err(not_taken(one.factor, one.level, why));
            }
        }
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == How::HugePages) {
            let taken = match HugePages::read(&level.value) {
                Ok(HugePages::Off) => self.release_pages(),
                Ok(HugePages::Of { kilobytes }) => match server::has_pages(server, kilobytes) {
                    Ok(true) => Ok(()),
                    Ok(false) => Err(format!("the server's shared memory has no pages of {kilobytes} kB")),
                    Err(why) => Err(why),
                },
                Err(why) => Err(why),
            };
            taken.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    /// Changes settings and restarts the server where that is needed and allowed.
    fn change(&mut self, server: &Server, changes: &[(&str, &str)]) -> Result<(), String> {
        let told = |error: kelvin_database::Error| error.to_string();
        let mut session = server.session().map_err(told)?;
        let names: Vec<&str> = changes.iter().map(|(name, _)| *name).collect();
        let present = settings::read(&mut *session, &names).map_err(told)?;
        if let (None, Some(one)) = (server.managed, present.iter().find(|one| one.needs_restart())) {
            return Err(format!(
                "{} changes only when the server is restarted, and {} is not kelvin's own to restart",
                one.name, server.target
            ));
        }
        let before = settings::before(&mut *session, &names).map_err(told)?;
        // Only what was there before the first change is put back in the end.
        let mut new = before.clone();
        new.settings.retain(|one| !self.is_recorded(&server.target, &one.name));
        if !new.settings.is_empty() {
            let servers = server.managed.map(|_| self.access.manager().base_dir().to_owned());
            self.record(Change::Settings { target: server.target.clone(), servers, before: new })?;
        }
        let waiting = settings::change(&mut *session, changes).map_err(told)?;
        drop(session);
        match server.managed {
            Some(version) if !waiting.is_empty() => {
                (self.tell)(&format!("restarting PostgreSQL {version} for {}", waiting.join(", ")));
                self.at_home(|this| {
                    let manager = this.access.manager().clone();
                    let restarted = manager.restart_or_put_back(version, &before, &mut |_| ());
                    restarted
                        .map(drop)
                        .map_err(|error| format!("restarted for {}: {error}", waiting.join(", ")))
                })
            }
            _ => Ok(()),
        }
    }

    fn is_recorded(&self, server: &str, name: &str) -> bool {
        self.pending().any(|change| match change {
            Change::Settings { target, before, .. } => {
                target == server && before.settings.iter().any(|one| one.name.eq_ignore_ascii_case(name))
            }
            _ => false,
        })
    }

    fn reserve_pages(
        &mut self,
        levels: &Levels<'_>,
        server: &Server,
        asked: &[server::Asked<'_>],
    ) -> Result<(), FactorError> {
        for (factor, level) in levels.iter().filter(|(factor, _)| factor.how == How::HugePages) {
            let done = (|| {
                let HugePages::Of { kilobytes } = HugePages::read(&level.value)? else { return Ok(()) };
                let file = kernel::huge_pages(kilobytes);
                let before = self.kernel_before(&file)?;
                let others: u64 = before.trim().parse().unwrap_or(0);
                kernel::reserve(&file, others + server::pages(server, asked, kilobytes)?)
            })();
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    /// Gives reserved huge pages back; the server no longer has them.
    fn release_pages(&mut self) -> Result<(), String> {
        let reserved: Vec<(PathBuf, String)> = self
            .pending()
            .filter_map(|change| match change {
                Change::Kernel { file, before } if file.starts_with("/sys/kernel/mm/hugepages") => {
                    Some((file.clone(), before.clone()))
                }
                _ => None,
            })
            .collect();
        reserved.iter().try_for_each(|(file, before)| kernel::write(file, before.trim()))
    }

    fn kernel(&mut self, key: &str, value: &str) -> Result<(), String> {
        let file = level::kernel_path(key)?;
        if kernel::same(&kernel::read(&file)?, value) {
            return Ok(());
        }
        self.kernel_before(&file)?;
        kernel::write(&file, value)?;
        let now = kernel::read(&file)?;
        if kernel::same(&now, value) {
            Ok(())
        } else {
            Err(format!("{} says {}", file.display(), now.trim()))
        }
    }

    /// What the file said before the first change, which is in the journal afterwards.
    fn kernel_before(&mut self, file: &Path) -> Result<String, String> {
        let recorded = self.pending().find_map(|change| match change {
            Change::Kernel { file: other, before } if other == file => Some(before.clone()),
            _ => None,
        });
        if let Some(before) = recorded {
            return Ok(before);
        }
        let before = kernel::read(file)?;
        self.record(Change::Kernel { file: file.into(), before: before.clone() })?;
        Ok(before)
    }

    fn mount(&mut self, directory: &str, wanted: &str) -> Result<(), String> {
        let now = mount::options(directory)?;
        if mount::holds(&now, wanted) {
            return Ok(());
        }
        let recorded = self
            .pending()
            .any(|change| matches!(change, Change::Mount { directory: other, .. } if other == directory));
        if !recorded {
            self.record(Change::Mount { directory: directory.into(), options: now })?;
        }
        mount::remount(directory, wanted)?;
        let now = mount::options(directory)?;
        if mount::holds(&now, wanted) { Ok(()) } else { Err(format!("{directory} is mounted with {now}")) }
    }

    fn server_cpus(&mut self, server: &Server, wanted: &str) -> Result<(), String> {
        let pid = server.process().map_err(|error| error.to_string())?;
        if cpus::astray(pid, wanted)?.is_none() {
            return Ok(());
        }
        let process = Process::of(pid).ok_or("the server is gone")?;
        let recorded = self
            .pending()
            .any(|change| matches!(change, Change::Affinity { process: other, .. } if *other == process));
        if !recorded {
            self.record(Change::Affinity { process, cpus: cpus::of(Some(pid))? })?;
        }
        cpus::bind_tree(pid, wanted)?;
        match cpus::astray(pid, wanted)? {
            None => Ok(()),
            Some((thread, where_it_is)) => {
                Err(format!("process {thread} of the server runs on {where_it_is}"))
            }
        }
    }

    /// A server that was started anew by this process after a crash has this process's CPUs, which nobody asked for.
    fn unbind(&mut self, server: &Server) -> Result<(), String> {
        let mine = cpus::of(None)?;
        let pid = server.process().map_err(|error| error.to_string())?;
        if mine != self.home && cpus::of(Some(pid))? == mine {
            cpus::bind_tree(pid, &self.home)
        } else {
            Ok(())
        }
    }

    fn server_memory(&mut self, server: &Server, wanted: &str) -> Result<(), String> {
        let pid = server.process().map_err(|error| error.to_string())?;
        self.memory(pid, wanted).map(drop)
    }

    fn client_memory(&mut self, wanted: &str) -> Result<(), String> {
        if let Some(group) = self.memory(std::process::id(), wanted)? {
            self.client_group = Some(group);
        }
        Ok(())
    }

    /// Binds a process and those that it made; the group and where they were before, when they had to be moved.
    fn memory(&mut self, pid: u32, wanted: &str) -> Result<Option<(PathBuf, PathBuf)>, String> {
        let nodes = cpus::list(level::numbers(wanted)?);
        let pids = cpus::processes_of_tree(pid);
        if pids.iter().filter_map(|pid| memory::allowed(*pid)).all(|now| now == nodes) {
            return Ok(None);
        }
        let here = Cpusets::of(pid)?.group;
        let recorded = self.pending().find_map(|change| match change {
            Change::MemoryNodes { group, from } if *group == here => Some((group.clone(), from.clone())),
            _ => None,
        });
        let (group, from) = match recorded {
            Some(both) => both,
            None => {
                let group = here.join(format!("kelvin-{}-{pid}", std::process::id()));
                self.record(Change::MemoryNodes { group: group.clone(), from: here.clone() })?;
                (group, here)
            }
        };
        Cpusets::bind(&group, &from, &pids, wanted)?;
        Ok(Some((group, from)))
    }

    /// Undoes the commands that the cell does not have.
    fn end_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels {
            let Some((old, number)) = self.running.get(&factor.name).cloned() else { continue };
            if old == level.name {
                continue;
            }
            if let Some(LevelValue::Command(pair)) = factor.level(&old).map(|level| &level.value)
                && let Some(undo) = &pair.undo
            {
                shell::run(undo)
                    .map_err(|why| not_taken(factor, level, format!("the undo of {old:?}: {why}")))?;
            }
            if let Some(journal) = &mut self.journal {
                journal.undone(number)?;
            }
            self.running.remove(&factor.name);
        }
        Ok(())
    }

    /// Runs the commands of the cell that are not on yet.
    fn begin_commands(&mut self, levels: &Levels<'_>) -> Result<(), FactorError> {
        for (factor, level) in levels {
            let LevelValue::Command(pair) = &level.value else { continue };
            let (Some(apply), Some(undo)) = (&pair.apply, &pair.undo) else { continue };
            if self.running.contains_key(&factor.name) {
                continue;
            }
            let number = self
                .record(Change::Command { undo: undo.clone() })
                .map_err(|why| not_taken(factor, level, why))?;
            self.running.insert(factor.name.clone(), (level.name.clone(), number));
            self.at_home(|_| shell::run(apply)).map_err(|why| not_taken(factor, level, why))?;
        }
        Ok(())
    }

    fn record(&mut self, change: Change) -> Result<u64, String> {
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(Journal::begin(&self.path).map_err(|error| error.to_string())?),
        };
        journal.about_to(change).map_err(|error| error.to_string())
    }

    fn pending(&self) -> impl Iterator<Item = &Change> {
        self.journal.iter().flat_map(|journal| journal.pending()).map(|pending| &pending.change)
    }

    /// Does something whose new processes are not to stand where this process is bound: a server that this thread starts
    /// inherits its CPUs.
    fn at_home<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let bound = cpus::of(None)?;
        let group = self.client_group.clone();
        let me = std::process::id().to_string();
        let enter = |directory: &Path| {
            std::fs::write(directory.join("cgroup.procs"), &me)
                .map_err(|error| format!("this process cannot enter {}: {error}", directory.display()))
        };
        if let Some((_, from)) = &group {
            enter(from)?;
        }
        cpus::bind(None, &self.home.clone())?;
        let outcome = act(self);
        cpus::bind(None, &bound)?;
        if let Some((group, _)) = &group {
            enter(group)?;
        }
        outcome
    }

    /// Brings the threads of this process back to where they were. No journal holds that: it ends with the process.
    fn client_home(&mut self) -> Result<(), String> {
        self.client_group = None;
        let bound = self.factors.iter().any(|factor| factor.how == How::Bind(Bound::Cpus(Side::Client)));
        if bound { cpus::bind_process(std::process::id(), &self.home) } else { Ok(()) }
    }
}

impl Conditions for Applier {
    fn apply(&mut self, cell: &Cell, spec: &mut Spec) -> Result<(), BenchError> {
        self.put_on(cell, spec).map_err(|error| BenchError::Failed(error.into()))
    }

    fn undo(&mut self) -> Result<(), BenchError> {
        self.take_off().map(drop).map_err(|error| BenchError::Failed(error.into()))
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        // The journal keeps what cannot be put back, and there is nobody to tell.
        let _ = self.take_off();
    }
}

fn not_taken(factor: &Factor, level: &Level, why: String) -> FactorError {
    FactorError::NotTaken { factor: factor.name.clone(), level: level.name.clone(), why }
}
