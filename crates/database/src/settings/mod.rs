//! A server's settings, for every engine: compared by value, changed, and restored.
//!
//! This module stores nothing. Before changing a setting the caller stores its [`PreviousSettings`] where they survive
//! a crash, and passes them to [`ServerSettings::put_back`]. Settings that need a restart are returned by name;
//! restarting is up to the owner of the server.

mod value;

use serde::{Deserialize, Serialize};

pub use value::same;
pub(crate) use value::{elements, whole_number};

use crate::profile::Line;
use crate::{Error, Result, Session};

/// When a change of a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeTime {
    /// At once.
    Now,
    /// At the server's next start.
    AfterRestart,
    /// At the server's next start, and only when it is in the server's own files: no statement changes it.
    InItsFiles,
}

/// A setting as the server has it, for a new session of this user in this database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentSetting {
    /// Its name as the server writes it.
    pub name: String,
    /// Its value with a unit, as a person reads it.
    pub value: String,
    /// `bool`, `integer`, `real`, `enum`, `string`, or of MySQL's `bytes`, a number with its
    /// endings (K, M, G, T), and `switch`, which any name switches on.
    pub kind: String,
    /// The unit of a number without one.
    pub unit: Option<String>,
    /// When it can change.
    pub when: ChangeTime,
    /// The source of the value: `default`, `configuration file`, `database`, `client`, …; `ALTER SYSTEM` or
    /// `SET PERSIST` where the server shows this user so.
    pub source: String,
    /// Whether a restart would change it.
    pub pending_restart: bool,
}

impl CurrentSetting {
    /// Whether it has this value.
    pub fn has_value(&self, value: &str) -> bool {
        same(&self.value, value, &self.kind, self.unit.as_deref())
    }

    /// Whether it changes at a restart only.
    pub fn needs_restart(&self) -> bool {
        self.when != ChangeTime::Now
    }
}

/// A setting that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// The server's value; `None` where the server does not know the setting.
    pub server: Option<String>,
    /// The source of the server's value.
    pub source: String,
    /// The value in the list.
    pub wanted: String,
    /// The reason for it.
    pub reason: String,
    /// When a change takes effect.
    pub when: ChangeTime,
}

/// Previous entries of some settings in the file that [`ServerSettings::change`] writes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousSettings {
    /// Each setting.
    pub settings: Vec<BeforeSetting>,
}

/// The previous entry of one setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BeforeSetting {
    /// Its name.
    pub name: String,
    /// Its value there; none when it was not there, so that the other files or the default counted.
    pub value: Option<String>,
    /// The value that the running server had, where it does not follow from that place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
}

impl BeforeSetting {
    /// A setting that has all its value from that place.
    pub fn new(name: &str, value: Option<String>) -> Self {
        Self { name: name.into(), value, running: None }
    }
}

/// The settings of one server.
pub trait ServerSettings: Send + Sync {
    /// Refuses names of settings that Kelvin does not change: where the server is, commands, secrets.
    fn check_name(&self, name: &str) -> Result<()>;

    /// Those of the named settings that the server knows and shows to this user, in their order.
    fn read_known(&self, session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>>;

    /// The state of these settings that [`ServerSettings::put_back`] needs. It must be stored before
    /// [`ServerSettings::change`] is called.
    fn before(&self, session: &mut dyn Session, names: &[&str]) -> Result<PreviousSettings>;

    /// Sets each, all or none as far as the server checks. Returns the names of those that wait for a restart. Names
    /// that [`ServerSettings::check_name`] refuses and settings that the server does not know are refused before
    /// anything is changed.
    fn change(&self, session: &mut dyn Session, settings: &[(&str, &str)]) -> Result<Vec<String>>;

    /// Restores the previous settings. Doing it again changes nothing. Returns the names of those that wait for a
    /// restart.
    fn put_back(&self, session: &mut dyn Session, before: &PreviousSettings) -> Result<Vec<String>>;

    /// The settings of these names, in their order. A setting that the server does not know, or does not show to this
    /// user, is an error.
    fn read(&self, session: &mut dyn Session, names: &[&str]) -> Result<Vec<CurrentSetting>> {
        let found = self.read_known(session, names)?;
        match names.iter().find(|name| !found.iter().any(|one| one.name.eq_ignore_ascii_case(name))) {
            None => Ok(found),
            Some(name) => Err(Error::usage(format!("the server has no setting {name}"))
                .with_help("a module's settings exist only while the module is loaded")),
        }
    }

    /// The settings that differ from `lines`, in their order, compared by value.
    fn differences(&self, session: &mut dyn Session, lines: &[Line]) -> Result<Vec<Difference>> {
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        let present = self.read_known(session, &names)?;
        let differs = |line: &Line| {
            let found = present.iter().find(|one| one.name.eq_ignore_ascii_case(&line.name));
            if found.is_some_and(|found| found.has_value(&line.value)) {
                return None;
            }
            Some(Difference {
                name: line.name.clone(),
                server: found.map(|found| found.value.clone()),
                source: found.map(|found| found.source.clone()).unwrap_or_default(),
                wanted: line.value.clone(),
                reason: line.reason.clone(),
                when: found.map_or(ChangeTime::Now, |found| found.when),
            })
        };
        Ok(lines.iter().filter_map(differs).collect())
    }
}
