//! Applies and reverts cells.

mod commands;
mod host;
mod settings;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::access::{Access, Consent};
use super::level::{Bound, Side};
use super::restore::{RestoredChanges, restore_changes};
use super::{Factor, FactorError, FactorKind, Level, cpus, specification};
use crate::bench::BenchError;
use crate::conditions::{CellConditions, DesignCell};
use crate::undo::{Journal, ReversibleChange};
use kelvin_run::Spec;
use kelvin_run::spec::TargetName;

/// Applies the levels of a cell, and restores everything at the end.
///
/// Every change is in the journal before it is made. After a cell is applied, every level is verified. If a level is
/// not in effect, everything is restored and an error returned. Dropping the applier restores everything, too.
pub struct Applier {
    factors: Vec<Factor>,
    path: PathBuf,
    journal: Option<Journal>,
    /// Lock held while something is changed, so that no other study makes changes.
    alone: Option<std::fs::File>,
    access: Access,
    consent: Consent,
    report: Box<dyn FnMut(&str) + Send>,
    /// CPUs of this process before it was bound.
    home: String,
    /// The server whose factors are applied.
    target: Option<String>,
    /// The commands that are on: level and number in the journal, by factor.
    running: BTreeMap<String, (String, u64)>,
    /// The control group into which this process was moved, and from where.
    client_group: Option<(PathBuf, PathBuf)>,
}

type Levels<'a> = Vec<(&'a Factor, &'a Level)>;

impl Applier {
    /// An applier for these factors with its journal at `journal`. Refused: incompatible factors, commands without
    /// consent, and a journal that another process uses or that contains changes to restore ([`super::recover`]). It
    /// changes nothing and contacts no server.
    pub fn new(
        factors: Vec<Factor>,
        journal: &Path,
        access: Access,
        consent: Consent,
    ) -> Result<Self, FactorError> {
        super::check(&factors)?;
        if let Some(factor) = factors.iter().find(|factor| factor.runs_commands() && !consent.commands) {
            return Err(FactorError::Unusable(format!(
                "factor {:?} runs commands as this user: review them, then allow them with --allow-commands",
                factor.name
            )));
        }
        Ok(Self {
            factors,
            path: journal.into(),
            journal: Some(Journal::begin(journal)?),
            alone: None,
            access,
            consent,
            report: Box::new(|_| ()),
            home: cpus::allowed_cpus(None).map_err(FactorError::Unusable)?,
            target: None,
            running: BTreeMap::new(),
            client_group: None,
        })
    }

    /// Sets a callback for steps that take long.
    #[must_use]
    pub fn with_progress(mut self, report: impl FnMut(&str) + Send + 'static) -> Self {
        self.report = Box::new(report);
        self
    }

    /// The factors.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// [`CellConditions::apply`] with this crate's error.
    pub fn apply_cell(&mut self, cell: &DesignCell, spec: &mut Spec) -> Result<(), FactorError> {
        let factors = self.factors.clone();
        let outcome = Self::levels(&factors, cell).and_then(|levels| {
            let mut changed = spec.clone();
            for (factor, level) in &levels {
                if let FactorKind::Spec(path) = &factor.how {
                    changed = specification::apply_level(&changed, factor, level, path)?;
                }
            }
            self.apply_environment(&levels, &changed.target)?;
            self.statements(&levels, &mut changed)?;
            Ok(changed)
        });
        match outcome {
            Ok(changed) => {
                *spec = changed;
                Ok(())
            }
            Err(error) => {
                // The first error is returned; later ones remain in the journal.
                let _ = self.restore_all();
                Err(error)
            }
        }
    }

    /// [`CellConditions::undo`]; returns the restored changes.
    pub fn restore_all(&mut self) -> Result<RestoredChanges, FactorError> {
        self.running.clear();
        self.target = None;
        let client = self.client_home();
        let Some(mut journal) = self.journal.take() else { return Ok(RestoredChanges::default()) };
        match restore_changes(&mut journal, &self.access, &|_| true, &mut *self.report) {
            Ok(undone) => {
                journal.end()?;
                self.alone = None;
                client.map_err(FactorError::Unusable)?;
                Ok(undone)
            }
            Err(error) => {
                self.journal = Some(journal);
                Err(error.into())
            }
        }
    }

    /// The levels of a cell, one for each factor.
    fn levels<'a>(factors: &'a [Factor], cell: &DesignCell) -> Result<Levels<'a>, FactorError> {
        let unusable = |why: String| Err(FactorError::Unusable(why));
        if let Some(other) = cell.0.iter().find(|one| !factors.iter().any(|factor| factor.name == one.factor))
        {
            return unusable(format!("there is no factor {:?}", other.factor));
        }
        let mut levels = Vec::new();
        for factor in factors {
            let Some(setting) = cell.0.iter().find(|one| one.factor == factor.name) else {
                return unusable(format!(
                    "the cell {:?} has no level of the factor {:?}",
                    cell.name(),
                    factor.name
                ));
            };
            let Some(level) = factor.level(&setting.level) else {
                let known = factor.levels().join(", ");
                return unusable(format!(
                    "factor {:?} has no level {:?}; its levels are {known}",
                    factor.name, setting.level
                ));
            };
            levels.push((factor, level));
        }
        Ok(levels)
    }

    /// Applies everything except the specification. Removed commands are undone first and new ones run last, so that
    /// they interfere with no restart.
    fn apply_environment(&mut self, levels: &Levels<'_>, target: &TargetName) -> Result<(), FactorError> {
        self.end_commands(levels)?;
        // A scheduler is set before its number of requests.
        let is_scheduler = |factor: &Factor| matches!(&factor.how, FactorKind::Kernel(key) if key.ends_with("/queue/scheduler"));
        let (schedulers, others): (Vec<_>, Vec<_>) =
            levels.iter().partition(|(factor, _)| is_scheduler(factor));
        for (factor, level) in schedulers.into_iter().chain(others) {
            let done = match &factor.how {
                FactorKind::Kernel(key) => self.kernel(key, &level.value.text()),
                FactorKind::Mount(directory) => self.mount(directory, &level.value.text()),
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        let of_server = levels.iter().any(|(factor, _)| factor.is_of_server());
        let of_client = levels.iter().any(|(factor, _)| matches!(factor.how, FactorKind::Bind(_)));
        // A server that a run starts from a bound process would inherit the binding.
        if of_server || of_client && target.is_managed() {
            self.server(levels, target)?;
        }
        for (factor, level) in levels {
            let done = match factor.how {
                FactorKind::Bind(Bound::Cpus(Side::Client)) => {
                    cpus::bind_process(std::process::id(), &level.value.text())
                }
                FactorKind::Bind(Bound::Memory(Side::Client)) => self.client_memory(&level.value.text()),
                _ => Ok(()),
            };
            done.map_err(|why| not_taken(factor, level, why))?;
        }
        self.begin_commands(levels)
    }

    fn record(&mut self, change: ReversibleChange) -> Result<u64, String> {
        // The author of the commands is responsible for their compatibility.
        if self.alone.is_none() && !matches!(change, ReversibleChange::Command { .. }) {
            self.alone = Some(self.access.manager().lock_changes().map_err(|error| error.to_string())?);
        }
        let journal = match &mut self.journal {
            Some(journal) => journal,
            None => self.journal.insert(Journal::begin(&self.path).map_err(|error| error.to_string())?),
        };
        journal.about_to(change).map_err(|error| error.to_string())
    }

    fn pending(&self) -> impl Iterator<Item = &ReversibleChange> {
        self.journal.iter().flat_map(Journal::pending).map(|pending| &pending.change)
    }

    /// Runs an action whose new processes must not inherit this process's binding: a server started by this thread
    /// inherits its CPUs.
    fn at_home<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        let bound = cpus::allowed_cpus(None)?;
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

    /// Restores the original CPUs of this process's threads. No journal records them: the binding ends with the
    /// process.
    fn client_home(&mut self) -> Result<(), String> {
        self.client_group = None;
        let bound =
            self.factors.iter().any(|factor| factor.how == FactorKind::Bind(Bound::Cpus(Side::Client)));
        if bound { cpus::bind_process(std::process::id(), &self.home) } else { Ok(()) }
    }
}

impl CellConditions for Applier {
    fn apply(&mut self, cell: &DesignCell, spec: &mut Spec) -> Result<(), BenchError> {
        self.apply_cell(cell, spec).map_err(|error| BenchError::Failed(error.into()))
    }

    fn undo(&mut self) -> Result<(), BenchError> {
        self.restore_all().map(drop).map_err(|error| BenchError::Failed(error.into()))
    }
}

impl Drop for Applier {
    fn drop(&mut self) {
        // Changes that cannot be restored stay in the journal; a drop can report nothing.
        let _ = self.restore_all();
    }
}

fn not_taken(factor: &Factor, level: &Level, why: String) -> FactorError {
    FactorError::NotTaken { factor: factor.name.clone(), level: level.name.clone(), why }
}
