//! The table of a run of I/O jobs: the job text itself, in fio's language, so that the file alone repeats the run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelvin_storage::job::Jobs;
use kelvin_workload::UserRange;
use serde::{Deserialize, Serialize};

use crate::is_false;
use crate::{jobfile_text, plan};

/// I/O jobs, and what is done to them before they run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct IoOptions {
    /// The job file's text. Files that it includes and variables of the environment are in it already.
    pub job: String,
    /// A job file whose text becomes `job` when the specification is read; never printed.
    #[serde(skip_serializing)]
    pub file: Option<PathBuf>,
    /// Options put on top of every job, by fio's names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Setting>,
    /// The sections that are run; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<String>,
    /// Each job over several files or devices becomes one job for each of them, with the whole depth for each.
    #[serde(skip_serializing_if = "is_false")]
    pub per_target: bool,
    /// On a fleet, each worker runs on one of the hosts; otherwise every host runs every job.
    #[serde(skip_serializing_if = "is_false")]
    pub split_workers: bool,
    /// Lay out and fill what is missing or was never written before the run.
    #[serde(skip_serializing_if = "is_false")]
    pub prepare: bool,
    /// Refuse jobs that would write.
    #[serde(skip_serializing_if = "is_false")]
    pub read_only: bool,
}

/// The value of an option, as a file may write it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Setting {
    /// `true` is fio's 1.
    Switch(bool),
    /// A number.
    Integer(i64),
    /// A number with a fraction.
    Number(f64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(value) => u8::from(*value).fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl IoOptions {
    /// Puts the text of `file` into its place. A relative name is looked for in `directory`.
    pub(crate) fn resolve(&mut self, directory: &Path) -> Result<(), String> {
        let Some(file) = self.file.take() else { return Ok(()) };
        if !self.job.is_empty() {
            return Err("[io] has both a job and a file; give only one".into());
        }
        self.job = jobfile_text::resolved(&directory.join(file))?;
        Ok(())
    }

    /// Refuses jobs that would have this host read a file, a directory or its environment while they are parsed: a controller
    /// has put the contents in their places.
    pub(crate) fn stands_alone(&self) -> Result<(), String> {
        let set: Vec<(&str, String)> =
            self.set.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
        let reads = |line: &str| {
            let line = line.trim_start();
            let of_pattern =
                |(name, value): (&str, &str)| name.trim_end().ends_with("pattern") && value.contains('\'');
            line.starts_with("include")
                || line.starts_with("opendir")
                || line.contains("${")
                || line.split_once('=').is_some_and(of_pattern)
        };
        if self.file.is_some() || jobfile_text::with_options(&self.job, &set).lines().any(reads) {
            return Err("[io] jobs from another host have no file, no include, no opendir, no pattern from a file and no ${…}".into());
        }
        Ok(())
    }

    /// The jobs with everything that is to be done to them, as `seed` decides their random values: 1 leaves them as fio's
    /// users know them, the same offsets every time.
    ///
    /// # Errors
    /// When the text is not what fio's language allows; with its place.
    pub fn jobs(&self, seed: u64) -> kelvin_storage::Result<Jobs> {
        let set: Vec<(&str, String)> =
            self.set.iter().map(|(name, value)| (name.as_str(), value.to_string())).collect();
        let mut jobs = kelvin_storage::jobfile::parse_text(
            &jobfile_text::with_options(&self.job, &set),
            None,
            &self.sections,
        )?;
        if self.per_target {
            plan::split_targets(&mut jobs);
        }
        plan::seed(&mut jobs, seed);
        Ok(jobs)
    }

    /// Those of one of so many hosts: its part of the workers, or all jobs.
    ///
    /// # Errors
    /// As of [`Self::jobs`].
    pub fn jobs_of_host(&self, seed: u64, (host, hosts): (u32, u32)) -> kelvin_storage::Result<Jobs> {
        let jobs = self.jobs(seed)?;
        let share = || UserRange::share(u32::try_from(jobs.workers()).ok()?, host, hosts);
        let range = self.split_workers.then(share).flatten();
        Ok(range.map_or_else(|| jobs.clone(), |range| jobs.part(range.numbers())))
    }

    /// How long the jobs take by what they say, at most; none where the amount decides.
    pub fn planned(&self) -> Option<Duration> {
        plan::planned(&self.jobs(1).ok()?)
    }

    /// How many phases its stonewalls make.
    pub fn phases(&self) -> u32 {
        self.jobs(1).ok().and_then(|jobs| plan::points(&jobs).last().copied()).map_or(1, |last| last + 1)
    }

    /// Whether a rate decides when I/Os begin.
    pub fn is_open_loop(&self) -> bool {
        self.jobs(1).is_ok_and(|jobs| plan::is_open_loop(&jobs))
    }

    /// I/Os per second that all jobs request; none where one has no rate.
    pub fn asked(&self) -> Option<f64> {
        self.jobs(1).ok().and_then(|jobs| plan::asked_of_all(&jobs))
    }

    /// Whether all I/Os are Poisson arrivals of known rates.
    pub fn is_poisson(&self) -> bool {
        self.jobs(1).is_ok_and(|jobs| plan::is_poisson(&jobs))
    }

    pub(crate) fn validate(&self) -> Result<(), String> {
        if let Some(file) = &self.file {
            return Err(format!("[io] file {} was not read", file.display()));
        }
        if self.job.trim().is_empty() {
            return Err("[io] has no job: give its text as job, or its file as file".into());
        }
        self.jobs(1).map(drop).map_err(|error| format!("[io] job: {error}"))
    }
}
