//! Selects stored runs by a name from the command line.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kelvin_report::compare::{Run, Side};
use kelvin_store::{GroupId, RunId, Selection, Store};

/// Progress is printed if reading takes longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs, with the name that selected them.
pub(super) struct SelectedRuns {
    name: String,
    notes: Vec<String>,
    pub(super) runs: Vec<Run>,
}

impl SelectedRuns {
    /// Reads the selected runs, with the means of `metrics`.
    pub(super) fn load(
        store: &Store,
        name: &str,
        selection: Selection,
        metrics: &[String],
        progress: &mut Progress,
    ) -> Result<Self> {
        let mut runs = Vec::new();
        for (index, run) in selection.runs.iter().enumerate() {
            progress.show_progress(name, index, selection.runs.len());
            runs.push(Run::load(store, *run, metrics)?);
        }
        Ok(Self { name: name.to_owned(), notes: selection.notes, runs })
    }

    /// Excludes runs that do not count, and adds a note that names them.
    pub(super) fn drop_uncounted(mut self) -> Self {
        let notes = &mut self.notes;
        self.runs.retain(|run| {
            if !run.report.valid {
                notes.push(format!(
                    "run {} is left out, {}",
                    run.report.run,
                    run.report.judgement.describe()
                ));
            }
            run.report.valid
        });
        self
    }

    /// The runs as a side of a comparison.
    pub(super) fn side(&self) -> Side<'_> {
        Side::new(self.name.clone(), &self.runs, self.notes.clone())
    }

    /// The numbers of the runs.
    pub(super) fn ids(&self) -> Vec<RunId> {
        self.runs.iter().map(|run| RunId(run.report.run)).collect()
    }
}

/// Runs and whole groups, for `rm` and `export`. Runs that do not count are included.
#[derive(Default)]
pub(super) struct RunSelection {
    pub(super) runs: BTreeSet<RunId>,
    pub(super) groups: BTreeSet<GroupId>,
}

impl RunSelection {
    /// Selects by names: runs by number, label or position, ranges of runs, and groups with all their runs.
    pub(super) fn from_names(store: &Store, names: &[String]) -> Result<Self> {
        let mut whole = Self::default();
        for name in names {
            if let Some(group) = name.strip_prefix("group:") {
                let number =
                    group.parse().with_context(|| format!("{name}: give the number of the group"))?;
                let found = store.group(GroupId(number))?;
                let group = found.with_context(|| format!("no group {number}: see kelvin groups"))?;
                whole.runs.extend(store.members(group.id)?.into_iter().map(|member| member.run));
                whole.groups.insert(group.id);
            } else if let Some((from, to)) = name.split_once("..") {
                let number = |text: &str| {
                    text.parse::<i64>().with_context(|| format!("{name}: write a range as 12..17"))
                };
                let range = number(from)?..=number(to)?;
                let runs = store.runs()?.into_iter().map(|run| run.id).filter(|run| range.contains(&run.0));
                let before = whole.runs.len();
                whole.runs.extend(runs);
                if whole.runs.len() == before {
                    bail!("{name}: no runs in this range");
                }
            } else {
                whole.runs.insert(store.find(name)?);
            }
        }
        Ok(whole)
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.runs.extend(other.runs);
        self.groups.extend(other.groups);
    }
}

/// Prints on a terminal how many runs have been read.
pub(super) struct Progress {
    since: Instant,
    quiet: bool,
    shown: bool,
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Self {
        Self { since: Instant::now(), quiet: quiet || !std::io::stderr().is_terminal(), shown: false }
    }

    /// Prints that `read` of `of` runs are read.
    pub(super) fn show_progress(&mut self, what: &str, read: usize, of: usize) {
        if !self.quiet && self.since.elapsed() > PATIENCE {
            let what: String = what.chars().filter(|c| !c.is_control()).take(40).collect();
            crate::out::overwrite(&format!("reading {what}: {read} of {of} runs"));
            self.shown = true;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown {
            crate::out::overwrite("");
        }
    }
}
