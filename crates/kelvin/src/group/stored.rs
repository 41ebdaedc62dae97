//! A stored group of runs: its plan, its runs, the data that they began from.

use std::cell::OnceCell;

use anyhow::{Context, Result};
use kelvin_lab::repeat::{self, GroupRun};
use kelvin_run::Spec;
use kelvin_run::spec::StartingData;
use kelvin_store::{GroupId, Store, StoredGroup};
use serde::de::DeserializeOwned;

/// A group with its summary.
pub(crate) struct Group<'a> {
    pub(crate) store: &'a Store,
    pub(crate) stored: &'a StoredGroup,
    rows: OnceCell<Vec<GroupRun>>,
}

impl<'a> Group<'a> {
    pub(crate) fn new(store: &'a Store, stored: &'a StoredGroup) -> Self {
        Self { store, stored, rows: OnceCell::new() }
    }

    /// The group's runs. Each is read and judged only once.
    pub(crate) fn rows(&self) -> Result<&[GroupRun]> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let read = repeat::group_runs(self.store, self.stored.id)?;
        Ok(self.rows.get_or_init(|| read))
    }
}

/// The starting data of each treatment's runs, according to the specification of its first run; `None` if the
/// specification cannot be read.
pub(crate) fn resets(store: &Store, group: &StoredGroup) -> Result<Vec<(String, Option<StartingData>)>> {
    let mut found: Vec<(String, Option<StartingData>)> = Vec::new();
    for member in store.members(group.id)? {
        let treatment = member.slot.treatment;
        if found.iter().all(|(known, _)| *known != treatment) {
            let written = store.load(member.run)?.info.spec_toml;
            let how = Spec::parse(&written, "the stored specification").ok().map(|spec| spec.beginning());
            found.push((treatment, how));
        }
    }
    Ok(found)
}

/// Describes whether the runs of a group began from the same data. `how_to` says how to request a reset.
pub(crate) fn describe_resets(resets: &[(String, Option<StartingData>)], how_to: &str) -> String {
    let Some((_, first)) = resets.first() else { return "no runs".into() };
    if resets.iter().any(|(_, how)| how != first) {
        let each = resets.iter().map(|(treatment, how)| format!("{treatment}: {}", reset_label(*how)));
        return format!(
            "THE SIDES START FROM DIFFERENT DATA ({}): use the same reset for all, {how_to}",
            each.collect::<Vec<_>>().join(", ")
        );
    }
    match first {
        Some(how) => how.describe(how_to),
        None => "not known: the stored specification cannot be read".into(),
    }
}

/// The label of a reset in JSON.
pub(crate) fn reset_label(how: Option<StartingData>) -> &'static str {
    how.map_or("unknown", StartingData::word)
}

pub(crate) fn find(store: &Store, wanted: &str) -> Result<StoredGroup> {
    let number: i64 = wanted.parse().with_context(|| {
        format!("\"{wanted}\" is not a group; give its number, as listed by kelvin groups")
    })?;
    let found = store.group(GroupId(number))?;
    found.with_context(|| format!("no group {number} in {}: see kelvin groups", store.path().display()))
}

/// Finds a group that was just begun, as it was stored.
pub(crate) fn find_again(store: &Store, group: GroupId) -> Result<StoredGroup> {
    store
        .group(group)?
        .with_context(|| format!("group {group} no longer exists in {}", store.path().display()))
}

/// The plan of a group.
pub(crate) fn plan<T: DeserializeOwned>(group: &StoredGroup) -> Result<T> {
    serde_json::from_value(group.info.body.clone())
        .with_context(|| format!("the plan of group {} cannot be read", group.id))
}

/// "run 7: TPROC-C …" for the first run of a group, or a text that it has no runs.
pub(crate) fn describe_first_run(store: &Store, group: &StoredGroup) -> Result<String> {
    let Some(first) = store.members(group.id)?.into_iter().next() else {
        return Ok("no runs".into());
    };
    let runs = store.runs()?;
    let run = runs.iter().find(|run| run.id == first.run);
    Ok(run.map_or_else(String::new, |run| format!("{} on {}", run.workload, run.target)))
}
