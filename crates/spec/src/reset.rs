//! What is done to the database before a run, so that every run begins from the same state.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Span;

/// How the data are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetMethod {
    /// Not at all: the run begins with what earlier runs left.
    #[default]
    None,
    /// In the fastest way that is possible here.
    Auto,
    /// PostgreSQL: from a database beside it, copied by the server.
    Template,
    /// From copied files: SQLite's, or those of a stopped managed server.
    Files,
    /// PostgreSQL: by `pg_restore`.
    Dump,
    /// By building the workload's data anew.
    Reload,
}

impl ResetMethod {
    /// Its word in a file and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Auto => "auto",
            Self::Template => "template",
            Self::Files => "files",
            Self::Dump => "dump",
            Self::Reload => "reload",
        }
    }
}

impl fmt::Display for ResetMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The data that the runs of a series begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartingData {
    /// What the run before left.
    Left,
    /// Data made for the run: the file is a temporary one.
    Made,
    /// The files of an I/O job, which it lays out when they are not there.
    Files,
    /// Data restored.
    Reset(ResetMethod),
}

impl StartingData {
    /// In a word: how the data are restored, "none", or "made anew".
    pub fn word(self) -> &'static str {
        match self {
            Self::Left | Self::Files => ResetMethod::None.word(),
            Self::Made => "rebuilt",
            Self::Reset(how) => how.word(),
        }
    }

    /// What it means for runs that follow each other; `how_to` says what to write where data are not restored.
    pub fn describe(self, how_to: &str) -> String {
        match self {
            Self::Left => {
                format!(
                    "none: each run starts with the data that the previous run left; {how_to} gives every \
                    run the same data"
                )
            }
            Self::Made => "not needed: each run builds its data in a temporary file".into(),
            Self::Files => {
                "none: each run uses the files and devices as the previous run left them, and lays out \
                missing files"
                    .into()
            }
            Self::Reset(how) => format!("{how}: every run starts with the same data"),
        }
    }
}

/// When a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepPolicy {
    /// When the way in which the data came back leaves it to be done.
    #[default]
    Needed,
    /// Before every run.
    Always,
    /// Never.
    Never,
}

impl StepPolicy {
    /// Whether it is done, where the way needs it or not.
    pub fn is_done(self, needed: bool) -> bool {
        match self {
            Self::Needed => needed,
            Self::Always => true,
            Self::Never => false,
        }
    }
}

/// The table `[reset]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Reset {
    /// How the data are restored.
    pub how: ResetMethod,
    /// The snapshot to restore, by name, instead of one of the data as they were built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// VACUUM.
    pub vacuum: StepPolicy,
    /// ANALYZE.
    pub analyze: StepPolicy,
    /// CHECKPOINT, so that none of what the reset wrote is written in the measured window.
    pub checkpoint: StepPolicy,
    /// Reads the tables and their indexes into the database's cache.
    pub prewarm: bool,
    /// SQL statements that are run after the data were restored, one after another.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// The longest wait until CPUs and disks are idle; 0s is none. Absent: 30s after a reset, none without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_wait: Option<Span>,
}

impl Reset {
    /// Whether nothing of it is asked for.
    pub fn is_nothing(&self) -> bool {
        self.how == ResetMethod::None
            && !self.prewarm
            && self.idle_wait().is_zero()
            && !self.has_steps()
            && self.statements.is_empty()
    }

    /// The longest wait until CPUs and disks are idle.
    pub fn idle_wait(&self) -> Span {
        let unsaid = if self.how == ResetMethod::None { Span::seconds(0) } else { Span::seconds(30) };
        self.idle_wait.unwrap_or(unsaid)
    }

    fn has_steps(&self) -> bool {
        [self.vacuum, self.analyze, self.checkpoint].contains(&StepPolicy::Always)
    }

    /// Refuses settings that contradict each other.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if self.snapshot.is_some() && matches!(self.how, ResetMethod::None | ResetMethod::Reload) {
            return Err(format!(
                "[reset] names a snapshot, but how = \"{}\" does not restore one; write how = \"auto\"",
                self.how
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spec, WorkloadName};

    fn parsed(table: &str) -> Result<Spec, String> {
        Spec::parse(&format!("workload = \"tproc-c\"\n[reset]\n{table}"), "run.toml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_table_is_printed_only_when_it_says_something_and_is_read_again() {
        assert!(!Spec::new(WorkloadName::TprocC).to_toml().contains("reset"));
        let spec = parsed(
            "how = \"template\"\nsnapshot = \"a\"\nanalyze = \"always\"\nprewarm = true\nidle-wait = \"1m\"",
        )
        .unwrap();
        let printed = spec.to_toml();
        assert!(printed.contains("[reset]\nhow = \"template\"\nsnapshot = \"a\"\n"), "{printed}");
        assert_eq!(Spec::parse(&printed, "x").unwrap(), spec);
    }

    #[test]
    fn without_a_reset_nothing_waits() {
        assert!(Reset::default().is_nothing());
        let reset = Reset { how: ResetMethod::Auto, ..Reset::default() };
        assert_eq!((reset.idle_wait(), reset.is_nothing()), (Span::seconds(30), false));
        assert!(!Reset { vacuum: StepPolicy::Always, ..Reset::default() }.is_nothing());
        assert!(!Reset { statements: vec!["select 1".into()], ..Reset::default() }.is_nothing());
        assert!(Reset { idle_wait: Some(Span::seconds(0)), ..reset }.idle_wait().is_zero());
    }

    #[test]
    fn mistakes_have_their_place() {
        assert!(parsed("how = \"fast\"").unwrap_err().contains("line 3, column 7"));
        assert!(parsed("speed = 1").unwrap_err().contains("line 3, column 1"));
        let error = parsed("how = \"reload\"\nsnapshot = \"a\"").unwrap_err();
        assert!(error.contains("does not restore one"), "{error}");
    }
}
