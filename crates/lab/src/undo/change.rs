//! What can be undone.

use std::path::PathBuf;

use kelvin_database::settings::PreviousSettings;
use kelvin_observe::engine::Instrument;
use serde::{Deserialize, Serialize};

/// A change that is about to be made, in terms of how to restore it. Putting back what was restored already, or what was
/// never changed because of a kill, does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReversibleChange {
    /// Settings of a server were changed.
    Settings {
        /// The server, as a target without a password.
        target: String,
        /// The directory of Kelvin servers, when it is one of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        servers: Option<PathBuf>,
        /// What they were.
        before: PreviousSettings,
    },
    /// Instruments of a server were switched on. They are as before after its next start, too.
    Instruments {
        /// The server, as a target without a password.
        target: String,
        /// What they were.
        before: Vec<Instrument>,
    },
    /// Processes were bound to CPUs.
    Affinity {
        /// The processes; their threads and children with them.
        process: Process,
        /// Their CPUs before, as a list of the kernel's form.
        cpus: String,
    },
    /// Processes were moved into a control group of Kelvin that binds their memory.
    MemoryNodes {
        /// The directory of the control group, removed when it is empty.
        group: PathBuf,
        /// The directory of the control group where the processes were.
        from: PathBuf,
    },
    /// Processes were moved into a control group of Kelvin that limits them.
    ControlGroup {
        /// The directory of the control group, removed when it is empty.
        group: PathBuf,
        /// The directory of the control group where the processes were.
        from: PathBuf,
    },
    /// A controller was switched on for the control groups of a directory.
    Controller {
        /// The file that says which are on.
        file: PathBuf,
        /// The controller.
        name: String,
    },
    /// A file of the kernel (below /proc/sys or /sys) was written.
    Kernel {
        /// The file.
        file: PathBuf,
        /// What it said.
        before: String,
    },
    /// A filesystem was mounted again with other options.
    Mount {
        /// Where it is mounted.
        directory: String,
        /// Its options before, as `mount -o` takes them.
        options: String,
    },
    /// SQL statements were run.
    Statements {
        /// The database, as a target without a password.
        target: String,
        /// The statements that undo them.
        undo: String,
    },
    /// A command was run.
    Command {
        /// What undoes it, for the shell.
        undo: String,
    },
}

/// A process, distinguished from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in the kernel's ticks since the boot.
    pub started: u64,
}

impl Process {
    /// The living process of this number.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { pid, started: kelvin_host::ProcessStat::parse(&stat)?.started })
    }

    /// Whether it still lives.
    pub fn lives(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

impl std::fmt::Display for ReversibleChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Settings { target, before, .. } => {
                let names: Vec<&str> = before.settings.iter().map(|one| one.name.as_str()).collect();
                write!(f, "{} of {target}", names.join(", "))
            }
            Self::Instruments { target, before } => {
                write!(f, "{} instruments of {target}", before.len())
            }
            Self::Affinity { process, cpus } => write!(f, "CPUs {cpus} of process {}", process.pid),
            Self::MemoryNodes { group, .. } => write!(f, "memory nodes of {}", group.display()),
            Self::ControlGroup { group, .. } => write!(f, "control group {}", group.display()),
            Self::Controller { file, name } => write!(f, "controller {name} in {}", file.display()),
            Self::Kernel { file, before } => write!(f, "{} = {}", file.display(), before.trim()),
            Self::Mount { directory, options } => write!(f, "{directory} mounted with {options}"),
            Self::Statements { target, undo } => write!(f, "ran {undo:?} in {target}"),
            Self::Command { undo } => write!(f, "ran {undo:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_pid_is_distinguished() {
        let me = Process::of(std::process::id()).unwrap();
        assert!(me.lives());
        assert!(!Process { started: me.started + 1, ..me }.lives());
        assert_eq!(Process::of(u32::MAX), None);
    }
}
