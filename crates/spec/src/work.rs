//! The workload of a run with what it leaves to choose.

use kelvin_measure::labels;
use kelvin_workload::{pgbench, scan, tproc_c, tproc_h};
use serde::{Deserialize, Serialize};

use crate::{IoOptions, ScriptOptions, TargetName};

/// A workload with its options.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// The TPC-C-like workload.
    TprocC(tproc_c::Options),
    /// The TPC-H-like workload.
    TprocH(tproc_h::Options),
    /// pgbench's built-in scripts and scripts on its tables.
    Pgbench(pgbench::Options),
    /// The user's own scripts on the user's own tables.
    Script(ScriptOptions),
    /// Queries that read whole tables of TPROC-C.
    Scan(scan::Options),
    /// I/O jobs in fio's language, on files and block devices.
    Io(IoOptions),
}

impl Work {
    /// The workload's name.
    pub fn name(&self) -> WorkloadName {
        match self {
            Self::TprocC(_) => WorkloadName::TprocC,
            Self::TprocH(_) => WorkloadName::TprocH,
            Self::Pgbench(_) => WorkloadName::Pgbench,
            Self::Script(_) => WorkloadName::Script,
            Self::Scan(_) => WorkloadName::Scan,
            Self::Io(_) => WorkloadName::Io,
        }
    }

    /// The scripts that are run; none of a workload that has none.
    pub fn scripts(&self) -> &[pgbench::ScriptChoice] {
        match self {
            Self::Pgbench(options) => &options.scripts,
            Self::Script(options) => &options.scripts,
            Self::TprocC(_) | Self::TprocH(_) | Self::Scan(_) | Self::Io(_) => &[],
        }
    }

    /// Whether scripts may run shell commands.
    pub fn allows_shell(&self) -> bool {
        match self {
            Self::Pgbench(options) => options.allow_shell,
            Self::Script(options) => options.allow_shell,
            Self::TprocC(_) | Self::TprocH(_) | Self::Scan(_) | Self::Io(_) => false,
        }
    }
}

impl From<WorkloadName> for Work {
    /// The workload with every default.
    fn from(name: WorkloadName) -> Self {
        match name {
            WorkloadName::TprocC => Self::TprocC(tproc_c::Options::default()),
            WorkloadName::TprocH => Self::TprocH(tproc_h::Options::default()),
            WorkloadName::Pgbench => Self::Pgbench(pgbench::Options::default()),
            WorkloadName::Script => Self::Script(ScriptOptions::default()),
            WorkloadName::Scan => Self::Scan(scan::Options::default()),
            WorkloadName::Io => Self::Io(IoOptions::default()),
        }
    }
}

/// The workloads of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadName {
    /// [`Work::TprocC`].
    TprocC,
    /// [`Work::TprocH`].
    TprocH,
    /// [`Work::Pgbench`].
    Pgbench,
    /// [`Work::Script`].
    Script,
    /// [`Work::Scan`].
    Scan,
    /// [`Work::Io`].
    Io,
}

impl WorkloadName {
    /// Every workload.
    pub const ALL: [Self; 6] =
        [Self::TprocC, Self::TprocH, Self::Pgbench, Self::Script, Self::Scan, Self::Io];

    /// Its name on the command line and in a file, where its table has the same.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TprocC => "tproc-c",
            Self::TprocH => labels::TPROC_H,
            Self::Pgbench => "pgbench",
            Self::Script => "script",
            Self::Scan => labels::SCAN,
            Self::Io => labels::IO,
        }
    }

    /// The id of its headline figure.
    pub fn headline(self) -> &'static str {
        match self {
            Self::TprocC => "nopm",
            Self::TprocH => "queries/min",
            Self::Pgbench | Self::Script => "tps",
            Self::Scan => "scans/s",
            Self::Io => "iops",
        }
    }

    /// The database when nobody names one: the embedded one wherever it can carry the workload.
    pub(crate) fn target(self) -> TargetName {
        match self {
            // I/O jobs name their own files, and have no use for it.
            Self::TprocC | Self::TprocH | Self::Script | Self::Scan | Self::Io => TargetName::default(),
            Self::Pgbench => TargetName::managed_postgres(),
        }
    }
}
