//! The factors of a study: what each one changes, its levels, and how they are applied and reverted.
//!
//! A [`Factor`] is read from a study's file. An [`Applier`] applies a cell: it changes whatever differs from the
//! present state, restarts a managed server where a setting requires that, and verifies that every level is in
//! effect. Every change is in an undo journal ([`crate::undo`]) before it is made, so that [`recover`] can restore it
//! even after a kill.

mod access;
mod applier;
pub(crate) mod cpus;
mod factor_table;
pub(crate) mod kernel;
pub(crate) mod level;
pub(crate) mod memory;
mod mount;
mod restore;
mod server;
mod shell;
mod specification;
mod statements;

use serde::{Deserialize, Serialize};

pub use access::{Access, Consent};
pub use applier::Applier;
pub use level::{Bound, CommandPair, HugePages, Level, LevelValue, Side};
pub use restore::{RestoredChanges, UndoError, recover};
pub use specification::check_factors;

use crate::undo::JournalError;
use factor_table::Written;

/// One factor. In a file:
///
/// ```toml
/// [[factor]]
/// name = "synchronous commit"
/// levels = ["on", "off"]
/// setting = "synchronous_commit"
/// ```
///
/// Levels are a list of values, or a table of names and values. Exactly one key selects what is changed: see
/// [`FactorKind`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Factor {
    name: String,
    levels: Vec<Level>,
    how: FactorKind,
}

/// What a factor changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactorKind {
    /// `setting = "NAME"`: a setting of the server, with a restart where required.
    Setting(String),
    /// `bind = "server.cpus"`: the CPUs or the memory nodes of the server or of Kelvin.
    Bind(Bound),
    /// `huge-pages = true`: the page size of the server's shared memory, with reservation of the pages.
    HugePages,
    /// `kernel = "vm.swappiness"`: a kernel setting.
    Kernel(String),
    /// `spec = "load.users"`: a value of the run's specification, by its path.
    Spec(String),
    /// `mount = "/mnt/data"`: the options of a mounted filesystem.
    Mount(String),
    /// `command = true`: a shell command and its undo.
    Command,
    /// `sql = true`: SQL statements that run in the target's database before each run, and their undo.
    Sql,
}

/// Why a factor is invalid, or could not be applied or undone.
#[derive(Debug, thiserror::Error)]
pub enum FactorError {
    /// The factor is invalid, or unsupported on this host or target.
    #[error("{0}")]
    Unusable(String),
    /// The level could not be applied, or is not in effect.
    #[error("factor \"{factor}\" at \"{level}\": {why}")]
    NotTaken {
        /// The factor's name.
        factor: String,
        /// The level's name.
        level: String,
        /// The observed state, or the error.
        why: String,
    },
    /// The undo journal cannot be written or read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A change could not be restored; its journal is kept.
    #[error(transparent)]
    Undo(#[from] UndoError),
}

impl Factor {
    /// A factor with these levels; checked as by [`Factor::validate`].
    pub fn new(name: &str, levels: Vec<Level>, how: FactorKind) -> Result<Self, FactorError> {
        let factor = Self { name: name.into(), levels, how };
        factor.validate()?;
        Ok(factor)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names of its levels in the order of the file; the first is the base.
    pub fn levels(&self) -> Vec<&str> {
        self.levels.iter().map(|level| level.name.as_str()).collect()
    }

    /// The level of this name.
    pub fn level(&self, name: &str) -> Option<&Level> {
        self.levels.iter().find(|level| level.name == name)
    }

    /// What it changes.
    pub fn how(&self) -> &FactorKind {
        &self.how
    }

    /// How it is applied, as text: "server setting shared_buffers".
    pub fn applied_by(&self) -> String {
        match &self.how {
            FactorKind::Setting(name) => format!("server setting {name}"),
            FactorKind::Bind(bound) => bound.describe().into(),
            FactorKind::HugePages => "huge pages of the server's shared memory".into(),
            FactorKind::Kernel(key) => format!("kernel setting {key}"),
            FactorKind::Spec(path) => format!("specification {path}"),
            FactorKind::Mount(directory) => format!("mount options of {directory}"),
            FactorKind::Command => "command".into(),
            FactorKind::Sql => "SQL statements".into(),
        }
    }

    /// Whether applying it runs commands or statements from the file, which requires consent.
    pub fn runs_commands(&self) -> bool {
        matches!(self.how, FactorKind::Command | FactorKind::Sql)
    }

    /// Whether it changes a property of the server.
    pub fn is_of_server(&self) -> bool {
        match self.how {
            FactorKind::Setting(_) | FactorKind::HugePages => true,
            FactorKind::Bind(bound) => bound.side() == Side::Server,
            FactorKind::Kernel(_)
            | FactorKind::Spec(_)
            | FactorKind::Mount(_)
            | FactorKind::Command
            | FactorKind::Sql => false,
        }
    }

    /// Refuses a factor that is invalid on any host and target: an unsuitable name, fewer than two levels, duplicate
    /// levels, or a value of the wrong type.
    pub fn validate(&self) -> Result<(), FactorError> {
        self.check().map_err(|why| {
            let name = if self.name.is_empty() { "(unnamed)" } else { &self.name };
            FactorError::Unusable(format!("factor {name:?}: {why}"))
        })
    }

    fn check(&self) -> Result<(), String> {
        level::name(&self.name).map_err(|why| format!("its name {why}"))?;
        if self.levels.len() < 2 {
            return Err("a factor needs at least two levels".into());
        }
        for (index, one) in self.levels.iter().enumerate() {
            level::name(&one.name).map_err(|why| format!("the level {:?} {why}", one.name))?;
            if let Some(twice) =
                self.levels[..index].iter().find(|other| other.name == one.name || other.value == one.value)
            {
                return Err(format!("the levels {:?} and {:?} are the same", twice.name, one.name));
            }
            one.suits(&self.how).map_err(|why| format!("level {:?}: {why}", one.name))?;
        }
        match &self.how {
            // Which settings may be changed is known only with the server.
            FactorKind::Setting(name) => {
                kelvin_database::check_setting_name(name).map_err(|error| error.message().to_owned())
            }
            FactorKind::Kernel(key) => level::kernel_path(key).map(drop),
            FactorKind::Spec(path) => level::spec_path(path),
            FactorKind::Mount(directory) => level::mount_point(directory),
            FactorKind::Bind(_) | FactorKind::HugePages | FactorKind::Command | FactorKind::Sql => Ok(()),
        }
    }

    /// A key that is equal for two factors that change the same thing.
    fn changes(&self) -> String {
        match &self.how {
            FactorKind::Setting(name) if name.eq_ignore_ascii_case("huge_pages") => "huge pages".into(),
            FactorKind::Setting(name) => format!("setting {}", name.to_ascii_lowercase()),
            FactorKind::Kernel(key) => format!("kernel {}", kernel::for_every_cpu(key).replace('/', ".")),
            FactorKind::HugePages => "huge pages".into(),
            FactorKind::Command | FactorKind::Sql => format!("command {}", self.name),
            FactorKind::Bind(_) | FactorKind::Spec(_) | FactorKind::Mount(_) => self.applied_by(),
        }
    }
}

/// Refuses a set of factors for one study: an invalid factor (see [`Factor::validate`]), a duplicate name, or two
/// factors that change the same thing.
pub fn check(factors: &[Factor]) -> Result<(), FactorError> {
    for (index, factor) in factors.iter().enumerate() {
        factor.validate()?;
        for other in &factors[..index] {
            if other.name == factor.name {
                return Err(FactorError::Unusable(format!("two factors have the name {:?}", factor.name)));
            }
            if other.changes() == factor.changes() {
                return Err(FactorError::Unusable(format!(
                    "the factors {:?} and {:?} both change the {}",
                    other.name,
                    factor.name,
                    factor.changes()
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
