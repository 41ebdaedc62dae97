//! Reversible changes.

use std::path::PathBuf;

use kelvin_database::settings::PreviousSettings;
use kelvin_observe::engine::Instrument;
use serde::{Deserialize, Serialize};

/// A change that is about to be made, described by how to restore the previous state. Restoring a state that is
/// already restored, or that a kill left unchanged, does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ReversibleChange {
    /// Settings of a server.
    Settings {
        /// The server, as a target without a password.
        target: String,
        /// The directory of managed servers, if it is one of them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        servers: Option<PathBuf>,
        /// The previous settings.
        before: PreviousSettings,
    },
    /// Instruments of a server that were switched on. A restart of the server also restores them.
    Instruments {
        /// The server, as a target without a password.
        target: String,
        /// The previous state of the instruments.
        before: Vec<Instrument>,
    },
    /// CPU affinity of processes.
    Affinity {
        /// The process; its threads and children are included.
        process: Process,
        /// The previous CPUs, as a list in the kernel's form.
        cpus: String,
    },
    /// Processes moved into a control group of Kelvin that binds their memory.
    MemoryNodes {
        /// The directory of the control group, removed when it is empty.
        group: PathBuf,
        /// The directory of the control group that the processes came from.
        from: PathBuf,
    },
    /// Processes moved into a control group of Kelvin that limits them.
    ControlGroup {
        /// The directory of the control group, removed when it is empty.
        group: PathBuf,
        /// The directory of the control group that the processes came from.
        from: PathBuf,
    },
    /// A controller switched on for the control groups of a directory.
    Controller {
        /// The file that lists the active controllers.
        file: PathBuf,
        /// The controller.
        name: String,
    },
    /// A kernel file (below /proc/sys or /sys).
    Kernel {
        /// The file.
        file: PathBuf,
        /// The previous content.
        before: String,
    },
    /// Mount options of a filesystem.
    Mount {
        /// The mount point.
        directory: String,
        /// The previous options, in the form of `mount -o`.
        options: String,
    },
    /// SQL statements.
    Statements {
        /// The database, as a target without a password.
        target: String,
        /// The statements that undo them.
        undo: String,
    },
    /// A shell command.
    Command {
        /// The shell command that undoes it.
        undo: String,
    },
}

/// A process, distinguished from a later one with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its id.
    pub pid: u32,
    /// Its start time, in clock ticks since boot.
    pub started: u64,
}

impl Process {
    /// The running process with this id; none if there is none.
    pub fn from_pid(pid: u32) -> Option<Self> {
        Some(Self { pid, started: kelvin_host::ProcessStat::read(pid)?.started })
    }

    /// Whether it is still running.
    pub fn lives(self) -> bool {
        Self::from_pid(self.pid) == Some(self)
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
        let me = Process::from_pid(std::process::id()).unwrap();
        assert!(me.lives());
        assert!(!Process { started: me.started + 1, ..me }.lives());
        assert_eq!(Process::from_pid(u32::MAX), None);
    }
}
