//! The runs that a name selects (see `run_names.rs`).
//!
//! A name for several runs excludes those that do not count, as far as they have been judged. A run that is named
//! individually is always included.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::group::GroupId;
use crate::run::{RunId, RunSummary};
use crate::run_names::{Term, parse};
use crate::store::Store;

/// Runs of a branch without a number: six per side are recommended for a comparison.
const NEWEST: usize = 6;

/// The selected runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Each once, in the order of the name; of a branch, a label or a range the oldest first.
    pub runs: Vec<RunId>,
    /// Notes for the user, in sentences: excluded runs and the reasons.
    pub notes: Vec<String>,
}

impl Store {
    /// The runs that a name selects.
    ///
    /// # Errors
    /// When the name is invalid, or selects no run.
    pub fn select(&self, name: &str) -> Result<Selection> {
        self.select_without(name, &[])
    }

    /// The same without certain runs: those of the other side of a comparison.
    ///
    /// # Errors
    /// When the name is invalid, or selects no run.
    pub fn select_without(&self, name: &str, without: &[RunId]) -> Result<Selection> {
        let refused = |why: String| Error::Selection { wanted: name.into(), why };
        let terms = parse(name).map_err(refused)?;
        let summaries: BTreeMap<RunId, RunSummary> = if terms.iter().all(|t| matches!(t, Term::One(_))) {
            BTreeMap::new()
        } else {
            self.runs()?.into_iter().map(|run| (run.id, run)).collect()
        };
        let mut selection = Selection::default();
        for term in &terms {
            let before = selection.runs.len() + selection.notes.len();
            match term {
                Term::One(name) => selection.runs.push(self.find(name)?),
                Term::Range(from, to) => {
                    let runs = summaries.range(RunId(*from)..=RunId(*to)).map(|(id, _)| *id);
                    take(runs.collect(), without, &summaries, None, &mut selection);
                }
                Term::Label(label) => {
                    let of = |run: &&RunSummary| run.label.as_deref() == Some(label);
                    let runs = summaries.values().filter(of).map(|run| run.id).collect();
                    take(runs, without, &summaries, None, &mut selection);
                }
                Term::Group(id, treatment) => {
                    let runs = self.of_group(GroupId(*id), treatment.as_deref(), refused)?;
                    take(runs, without, &summaries, None, &mut selection);
                }
                Term::Branch { name, testbed, newest } => {
                    let runs = self.of_branch(name, testbed.as_deref(), refused)?;
                    let newest = newest.unwrap_or(NEWEST);
                    let taken = take(runs, without, &summaries, Some(newest), &mut selection);
                    if testbed.is_none() {
                        self.one_testbed(name, &taken).map_err(refused)?;
                    }
                }
            }
            if before == selection.runs.len() + selection.notes.len() {
                return Err(refused(format!("{term} matches no run; `kelvin runs` lists the runs")));
            }
        }
        let mut seen = BTreeSet::new();
        selection.runs.retain(|run| seen.insert(*run));
        if selection.runs.is_empty() {
            let why = selection.notes.join("; ");
            return Err(refused(if why.is_empty() { "it matches no run".into() } else { why }));
        }
        Ok(selection)
    }

    fn of_group(
        &self,
        id: GroupId,
        treatment: Option<&str>,
        refused: impl Fn(String) -> Error,
    ) -> Result<Vec<RunId>> {
        if self.group(id)?.is_none() {
            let groups: Vec<String> =
                self.groups()?.iter().map(|g| format!("{} ({})", g.id, g.info.kind.as_str())).collect();
            let there = if groups.is_empty() {
                "there are no groups yet".into()
            } else {
                format!("the groups are {}", groups.join(", "))
            };
            return Err(refused(format!("there is no group {id}; {there}")));
        }
        let members = self.members(id)?;
        let Some(treatment) = treatment else { return Ok(members.iter().map(|member| member.run).collect()) };
        let of: Vec<RunId> =
            members.iter().filter(|m| m.slot.treatment == treatment).map(|member| member.run).collect();
        if of.is_empty() {
            let names: BTreeSet<&str> = members.iter().map(|m| m.slot.treatment.as_str()).collect();
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            let there = if names.is_empty() { "it has only one".into() } else { names.join(", ") };
            return Err(refused(format!("group {id} has no treatment {treatment:?}: {there}")));
        }
        Ok(of)
    }

    fn of_branch(
        &self,
        name: &str,
        testbed: Option<&str>,
        refused: impl Fn(String) -> Error,
    ) -> Result<Vec<RunId>> {
        let history = self.history()?;
        let on =
            |(_, branch, on): &&(RunId, String, String)| branch == name && testbed.is_none_or(|t| t == on);
        let runs: Vec<RunId> = history.iter().filter(on).map(|(run, ..)| *run).collect();
        if runs.is_empty() {
            return Err(refused(absent(&history, name, testbed)));
        }
        Ok(runs)
    }

    /// Runs of two machines are no repetitions of each other.
    fn one_testbed(&self, branch: &str, runs: &[RunId]) -> std::result::Result<(), String> {
        let mut testbeds = BTreeSet::new();
        for run in runs {
            if let Some((_, testbed)) = self.in_history(*run).map_err(|error| error.to_string())? {
                testbeds.insert(testbed);
            }
        }
        if testbeds.len() < 2 {
            return Ok(());
        }
        let names: Vec<String> = testbeds.iter().map(|on| format!("branch:{branch}@{on}")).collect();
        Err(format!(
            "the newest runs of branch {branch} are from {} testbeds; name one: {}",
            names.len(),
            names.join(" or ")
        ))
    }
}

/// The existing branches, when a branch has no run.
fn absent(history: &[(RunId, String, String)], name: &str, testbed: Option<&str>) -> String {
    let testbeds: BTreeSet<&str> =
        history.iter().filter(|(_, branch, _)| branch == name).map(|(.., on)| on.as_str()).collect();
    if let Some(testbed) = testbed.filter(|_| !testbeds.is_empty()) {
        let there: Vec<&str> = testbeds.into_iter().collect();
        return format!(
            "branch {name} has no run on the testbed {testbed:?}; it has runs on {}",
            there.join(", ")
        );
    }
    let branches: BTreeSet<&str> = history.iter().map(|(_, branch, _)| branch.as_str()).collect();
    if branches.is_empty() {
        return "no run is on a branch yet; `kelvin run … --branch NAME` puts it on one".into();
    }
    let there: Vec<&str> = branches.into_iter().collect();
    format!("there is no branch {name:?}; there are {}", there.join(", "))
}

/// Takes those that count, at most the last `newest` of them; returns the runs taken.
fn take(
    runs: Vec<RunId>,
    without: &[RunId],
    summaries: &BTreeMap<RunId, RunSummary>,
    newest: Option<usize>,
    selection: &mut Selection,
) -> Vec<RunId> {
    let (mut taken, mut notes, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for run in runs.into_iter().rev() {
        if newest.is_some_and(|newest| taken.len() >= newest) {
            break;
        }
        if without.contains(&run) {
            others.push(run.to_string());
        } else if let Some(judged) = summaries
            .get(&run)
            .and_then(|summary| summary.judgement.as_ref())
            .filter(|judged| !judged.counts())
        {
            notes.push(format!("run {run} is left out, {}", judged.describe()));
        } else {
            taken.push(run);
        }
    }
    taken.reverse();
    selection.runs.extend(&taken);
    selection.notes.extend(notes.into_iter().rev());
    others.reverse();
    match others.as_slice() {
        [] => {}
        [one] => selection.notes.push(format!("run {one} is left out: it is on the other side")),
        several => {
            let several = several.join(", ");
            selection.notes.push(format!("runs {several} are left out: they are on the other side"));
        }
    }
    taken
}
