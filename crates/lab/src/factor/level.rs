//! A factor's levels: their names, their values, and the validity of a value.

use serde::{Deserialize, Serialize};

use super::{FactorKind, kernel};

/// A level: its name for tables, and the value that is applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: String,
    /// The value that is applied.
    pub value: LevelValue,
}

/// The value of a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LevelValue {
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
    /// A command and its undo. Both are missing at a level that does nothing.
    Command(CommandPair),
}

/// The commands of a level of a command factor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandPair {
    /// Shell command that applies the level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply: Option<String>,
    /// Shell command that undoes it; also run after a kill, when `apply` may have run in part or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

/// The process that is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The database server.
    Server,
    /// Kelvin.
    Client,
}

/// The resource to which it is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The CPUs on which a side runs.
    Cpus(Side),
    /// The memory nodes from which a side's memory comes.
    Memory(Side),
}

/// Pages of the server's shared memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HugePages {
    /// The processor's smallest page size.
    Off,
    /// Huge pages, reserved for the server.
    Of {
        /// Size of a page in kB.
        kilobytes: u64,
    },
}

impl Level {
    /// A level whose name is its value.
    pub fn of(value: LevelValue) -> Self {
        Self { name: value.text(), value }
    }

    /// A level of this name.
    pub fn named(name: &str, value: LevelValue) -> Self {
        Self { name: name.into(), value }
    }

    /// Whether the value is valid for the factor's kind.
    pub(super) fn suits(&self, how: &FactorKind) -> Result<(), String> {
        let command = matches!(self.value, LevelValue::Command(_));
        if command != matches!(how, FactorKind::Command | FactorKind::Sql) {
            return Err(if command {
                "a command needs a factor with command = true or sql = true".into()
            } else {
                "a level of a factor with command or sql is a table: { apply = \"…\", undo = \"…\" }, or { } for no \
                command"
                    .into()
            });
        }
        match (&self.value, how) {
            (LevelValue::Command(CommandPair { apply, undo }), _) => match (apply, undo) {
                (Some(_), None) => {
                    Err("the command has no undo; if there is nothing to undo, write undo = \"true\" (sql: \
                        \"select 1\")"
                        .into())
                }
                (None, Some(_)) => Err("the undo has no command".into()),
                _ => Ok(()),
            },
            (LevelValue::Number(number), _) if !number.is_finite() => {
                Err("the value is not a finite number".into())
            }
            (value, FactorKind::Bind(_)) => numbers(&value.text()).map(drop),
            (value, FactorKind::HugePages) => HugePages::read(value).map(drop),
            (value, FactorKind::Mount(_)) => mount_options(&value.text()),
            (value, FactorKind::Kernel(_) | FactorKind::Setting(_))
                if value.text().chars().any(char::is_control) =>
            {
                Err("a setting cannot contain control characters".into())
            }
            _ => Ok(()),
        }
    }
}

impl LevelValue {
    /// The value in the syntax of a setting: `on` and `off` for `true` and `false`.
    pub fn text(&self) -> String {
        match self {
            Self::Bool(true) => "on".into(),
            Self::Bool(false) => "off".into(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Command(pair) => pair.apply.clone().unwrap_or_default(),
        }
    }
}

impl Bound {
    const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Cpus(Side::Server), "server.cpus", "CPUs of the server"),
        (Self::Cpus(Side::Client), "client.cpus", "CPUs of kelvin"),
        (Self::Memory(Side::Server), "server.memory", "memory nodes of the server"),
        (Self::Memory(Side::Client), "client.memory", "memory nodes of kelvin"),
    ];

    /// The side that is bound.
    pub fn side(self) -> Side {
        match self {
            Self::Cpus(side) | Self::Memory(side) => side,
        }
    }

    pub(super) fn read(text: &str) -> Result<Self, String> {
        Self::ALL.iter().find(|(_, name, _)| *name == text).map(|(bound, ..)| *bound).ok_or_else(|| {
            format!(
                "{text:?} cannot be bound; valid names are server.cpus, server.memory, client.cpus and \
                client.memory"
            )
        })
    }

    pub(super) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(bound, ..)| *bound == self).map_or("", |(_, name, _)| name)
    }

    pub(super) fn describe(self) -> &'static str {
        Self::ALL.iter().find(|(bound, ..)| *bound == self).map_or("", |(.., words)| words)
    }
}

impl HugePages {
    pub(super) fn read(value: &LevelValue) -> Result<Self, String> {
        let text = value.text();
        match text.to_ascii_lowercase().trim_end_matches('b') {
            "off" => Ok(Self::Off),
            "2m" => Ok(Self::Of { kilobytes: 2 << 10 }),
            "1g" => Ok(Self::Of { kilobytes: 1 << 20 }),
            _ => Err(format!("{text:?} is not a valid huge page size; use \"off\", \"2M\" or \"1G\"")),
        }
    }
}

/// Checks a name. Names are used in tables, in the treatment's name, and on command lines.
pub(super) fn name(text: &str) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("is empty".into());
    }
    if text.chars().count() > 60 {
        return Err("is longer than 60 characters; give the level a name: levels = { name = … }".into());
    }
    if text.contains('=') || text.chars().any(char::is_control) {
        return Err(
            "contains '=' or a control character; give the level a name: levels = { name = … }".into()
        );
    }
    Ok(())
}

/// The maximum number of a CPU or memory node; a larger one is taken for a typing error.
const MOST: u32 = 1024;

/// The numbers of a list in the kernel's form, such as `0-3,8`, in ascending order; at least one.
pub(crate) fn numbers(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("{text:?} is not a valid list of CPUs or memory nodes; write 0, 0-3 or 0-3,8");
    let found = kelvin_host::numbers(text).filter(|found| !found.is_empty()).ok_or_else(wrong)?;
    if found.iter().any(|number| *number >= MOST) {
        return Err(wrong());
    }
    Ok(found.into_iter().map(|number| number as usize).collect())
}

/// Kernel settings by which the author of a study's file could run programs, which needs consent.
const PROGRAMS: [&str; 6] = [
    "fs/binfmt_misc",
    "kernel/core_pattern",
    "kernel/hotplug",
    "kernel/modprobe",
    "kernel/poweroff_cmd",
    "kernel/usermodehelper",
];

/// The file of a kernel setting: `vm.swappiness`, `net/ipv4/conf/eth0.1/mtu` with slashes if a name contains a dot,
/// or a writable file below `/sys` ([`kernel::is_of_sysfs`]).
pub(crate) fn kernel_path(key: &str) -> Result<std::path::PathBuf, String> {
    if key.starts_with("/sys/") {
        return kernel::is_of_sysfs(key).then(|| key.into()).ok_or_else(|| {
            format!(
                "{key:?} is not a file that a factor may write: valid are /sys/block/DISK/queue/scheduler \
                and read_ahead_kb, /sys/kernel/mm/transparent_hugepage/enabled, \
                /sys/devices/system/cpu/cpufreq/policy*/scaling_governor, and related files \
                (docs/factors.md)"
            )
        });
    }
    let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
    let segments: Vec<&str> = path.split('/').collect();
    let good =
        |segment: &&str| !segment.is_empty() && !segment.starts_with('.') && segment.chars().all(plain);
    if segments.len() < 2 || !segments.iter().all(good) {
        return Err(format!("{key:?} is not a valid name of a kernel setting, such as vm.swappiness"));
    }
    if PROGRAMS.iter().any(|program| path == *program || path.starts_with(&format!("{program}/"))) {
        return Err(format!(
            "{key} names a program that the kernel runs as root; use command = true with an undo instead"
        ));
    }
    Ok(std::path::Path::new("/proc/sys").join(path))
}

/// Checks the path of a value in a specification: keys joined by dots.
pub(super) fn spec_path(path: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if path.split('.').all(|key| !key.is_empty() && key.chars().all(plain)) {
        return Ok(());
    }
    Err(format!("{path:?} is not a valid path in a specification, such as load.users or target"))
}

/// Checks a directory for use with `mount`: no `..` or similar.
pub(crate) fn mount_point(directory: &str) -> Result<(), String> {
    let path = std::path::Path::new(directory);
    let plain = path
        .components()
        .all(|part| matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_)));
    if path.is_absolute() && plain && !directory.chars().any(char::is_control) {
        return Ok(());
    }
    Err(format!("{directory:?} is not an absolute path of a mounted filesystem"))
}

/// Checks options for `mount -o`: nothing that it could interpret otherwise.
pub(crate) fn mount_options(options: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_=.:/+-".contains(c);
    if !options.is_empty() && options.split(',').all(|one| !one.is_empty() && one.chars().all(plain)) {
        return Ok(());
    }
    Err(format!("{options:?} are not valid mount options, such as noatime,nobarrier"))
}
