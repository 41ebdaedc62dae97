//! The cache size of a run, from the record of its environment.

use std::path::Path;

use anyhow::{Result, bail};
use kelvin_measure::text::{binary, parse_bytes};
use kelvin_run::Environment;
use kelvin_store::RunId;

/// The kernel rounds a memory limit down to whole pages.
const PAGE: u64 = 4096;

/// What limited the cache of a run, and the limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunSize {
    /// A setting, and its value in bytes.
    Setting(String, u64),
    /// The limit in bytes of a control group that the server was in; `None` if the group had no limit.
    Limit(String, Option<u64>),
    /// The server was in other control groups: the requested directory, and the server's.
    Elsewhere(String, String),
    /// The store does not record the size: what is missing.
    Unknown(String),
}

impl RunSize {
    /// Reads the size from a setting of the server.
    pub(super) fn of_setting(setting: &str, environment: Option<&Environment>) -> Self {
        let database = environment.and_then(|environment| environment.database.as_ref());
        let value = database.and_then(|database| database.settings.get(setting));
        // The value is followed by its source in parentheses.
        let bytes = value.and_then(|value| {
            parse_bytes(value.rsplit_once(" (").map_or(value.as_str(), |(value, _)| value)).ok()
        });
        match bytes {
            Some(bytes) => Self::Setting(setting.to_owned(), bytes),
            None => Self::Unknown(format!("the value of {setting}")),
        }
    }

    /// Reads the size from the limit of a control group; `file` is the file of the limit.
    pub(super) fn of_group(file: &Path, environment: Option<&Environment>) -> Self {
        let directory = file.parent().unwrap_or(file);
        let groups = environment.map_or(&[][..], |environment| &environment.server_memory_groups);
        let shown = directory.display().to_string();
        let Some(nearest) = groups.first() else {
            return Self::Unknown("the control group of the server".into());
        };
        match groups.iter().find(|group| Path::new(&group.directory) == directory) {
            Some(group) => {
                // Of several groups around the server, the smallest limit applied.
                let least =
                    groups.iter().filter(|other| other.limit.is_some()).min_by_key(|other| other.limit);
                match least {
                    Some(least) if group.limit.is_some() && least.limit < group.limit => {
                        Self::Limit(least.directory.clone(), least.limit)
                    }
                    _ => Self::Limit(shown, group.limit),
                }
            }
            None => Self::Elsewhere(shown, nearest.directory.clone()),
        }
    }

    /// A sentence about the run's size; an error if it is not `first`, the first of the sizes.
    pub(super) fn check(&self, run: RunId, first: u64) -> Result<String> {
        let wanted = |bytes: &u64| {
            format!("start --sizes with {bytes} ({}), or make a run with {}", binary(*bytes), binary(first))
        };
        match self {
            Self::Setting(name, bytes) if *bytes == first => {
                Ok(format!("Run {run} was made with {name} = {}.", binary(*bytes)))
            }
            Self::Setting(name, bytes) => bail!(
                "run {run} was made with {name} = {}, and the first of --sizes is {}: {}",
                binary(*bytes),
                binary(first),
                wanted(bytes)
            ),
            Self::Limit(group, Some(bytes)) if bytes / PAGE == first / PAGE => {
                Ok(format!("Run {run} was made with the limit {} of {group}.", binary(*bytes)))
            }
            Self::Limit(group, Some(bytes)) => bail!(
                "run {run} was made with the limit {} of {group}, and the first of --sizes is {}: {}",
                binary(*bytes),
                binary(first),
                wanted(bytes)
            ),
            Self::Limit(group, None) => bail!(
                "run {run} was made without a limit of {group}, and the first of --sizes is {}: make a run with it",
                binary(first)
            ),
            Self::Elsewhere(group, server) => bail!(
                "the server of run {run} was not in {group}, but in {server}: move the server there and \
                    repeat the run"
            ),
            Self::Unknown(what) => Ok(format!(
                "Run {run} does not record {what}: whether it used the first size was not checked."
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use kelvin_run::environment::{Database, MemoryGroup};

    use super::*;

    fn environment(settings: &[(&str, &str)], groups: &[(&str, Option<u64>)]) -> Environment {
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let group = |(directory, limit): &(&str, Option<u64>)| MemoryGroup {
            directory: (*directory).into(),
            limit: *limit,
        };
        Environment {
            database: Some(Database { version: "PostgreSQL 15".into(), settings, faults: Vec::new() }),
            server_memory_groups: groups.iter().map(group).collect(),
            ..Environment::of_files("postgres".into(), None)
        }
    }

    fn refused(size: &RunSize, first: u64) -> String {
        size.check(RunId(7), first).unwrap_err().to_string()
    }

    #[test]
    fn a_setting_is_compared_in_bytes() {
        let stored =
            environment(&[("shared_buffers", "16MB (configuration file)"), ("x", "on (default)")], &[]);
        let size = RunSize::of_setting("shared_buffers", Some(&stored));
        assert_eq!(size.check(RunId(7), 16 << 20).unwrap(), "Run 7 was made with shared_buffers = 16 MiB.");
        let expected = "run 7 was made with shared_buffers = 16 MiB, and the first of --sizes is 64 MiB: start --sizes \
            with 16777216 (16 MiB), or make a run with 64 MiB";
        assert_eq!(refused(&size, 64 << 20), expected);
        let mysql = environment(&[("innodb_buffer_pool_size", "134217728 (default)")], &[]);
        let size = RunSize::of_setting("innodb_buffer_pool_size", Some(&mysql));
        assert_eq!(size, RunSize::Setting("innodb_buffer_pool_size".into(), 128 << 20));
        for (setting, environment) in
            [("x", Some(&stored)), ("absent", Some(&stored)), ("shared_buffers", None)]
        {
            let said = RunSize::of_setting(setting, environment).check(RunId(7), 1).unwrap();
            let expected = format!(
                "Run 7 does not record the value of {setting}: whether it used the first size was not checked."
            );
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn a_limit_is_that_of_the_group_that_was_asked_for() {
        let stored = environment(&[], &[("/cg/db/pg", None), ("/cg/db", Some(64 << 20))]);
        let of = |file: &str| RunSize::of_group(Path::new(file), Some(&stored));
        let size = of("/cg/db/memory.max");
        // The kernel rounds down to whole pages.
        assert_eq!(
            size.check(RunId(7), (64 << 20) + 100).unwrap(),
            "Run 7 was made with the limit 64 MiB of /cg/db."
        );
        assert!(
            refused(&size, 32 << 20)
                .starts_with("run 7 was made with the limit 64 MiB of /cg/db, and the first of")
        );
        assert!(
            refused(&of("/cg/db/pg/memory.max"), 1)
                .starts_with("run 7 was made without a limit of /cg/db/pg")
        );
        assert!(refused(&of("/cg/other/memory.max"), 1).contains("was not in /cg/other, but in /cg/db/pg"));
        let unknown = RunSize::of_group(Path::new("/cg/db/memory.max"), Some(&environment(&[], &[])));
        assert!(unknown.check(RunId(7), 1).unwrap().ends_with("was not checked."));
    }
}
