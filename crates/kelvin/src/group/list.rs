//! The list of groups, each with its answer in one line, and the groups of `kelvin serve`.

use std::collections::BTreeMap;

use anyhow::Result;
use kelvin_lab::repeat::{GroupRun, Steady};
use kelvin_lab::{ab, repeat};
use kelvin_serve::GroupLine;
use kelvin_store::{GroupKind, Judgement, RunId, RunSummary, Store, StoredGroup};

use super::stored::{Group, find, plan};
use crate::document::Document;

/// The groups of a store.
pub(crate) fn list(store: &Store) -> Result<Vec<GroupLine>> {
    let runs: BTreeMap<RunId, RunSummary> = store.runs()?.into_iter().map(|run| (run.id, run)).collect();
    let mut listed = Vec::new();
    for group in store.groups()? {
        let rows = rows(store, &group, &runs)?;
        listed.push(GroupLine {
            group: group.id.0,
            kind: group.info.kind.as_str(),
            runs: rows.len(),
            void: rows.iter().filter(|row| !row.counts()).count(),
            answer: answer(&group, &rows)?,
            created: group.info.created.strftime("%Y-%m-%d %H:%M").to_string(),
            name: group.info.name,
        });
    }
    Ok(listed)
}

/// The answer in one line.
fn answer(group: &StoredGroup, rows: &[GroupRun]) -> Result<String> {
    if rows.is_empty() {
        return Ok("no runs".into());
    }
    Ok(match group.info.kind {
        GroupKind::Repeat => super::repeat::summary_line(&repeat::RepeatSummary::from_runs(
            &plan::<repeat::RepeatPlan>(group)?,
            rows,
        )),
        GroupKind::Ab => {
            super::ab::summary_line(&ab::AbSummary::from_runs(&plan::<ab::AbPlan>(group)?, rows))
        }
        GroupKind::Study => "see kelvin study".into(),
        GroupKind::Sweep => super::sweep::summary_line(rows),
    })
}

/// The runs of a group with only the metric of the list of runs, the headline, so that a list of many groups does not read
/// every second of every run. A run whose metric is not in the list is read.
fn rows(store: &Store, group: &StoredGroup, runs: &BTreeMap<RunId, RunSummary>) -> Result<Vec<GroupRun>> {
    let judged = group.info.body.get("figure").and_then(serde_json::Value::as_str);
    if judged.is_some() && matches!(group.info.kind, GroupKind::Repeat | GroupKind::Ab) {
        return Ok(repeat::group_runs(store, group.id)?);
    }
    let row = |member: kelvin_store::GroupMember| {
        let run = runs.get(&member.run)?;
        let figure = kelvin_diagnose::KeyFigure {
            id: run.headline.to_lowercase(),
            name: run.headline.clone(),
            unit: String::new(),
            better: None,
            value: run.points.first().map(|point| point.rate(run.headline_per)),
            at_least: false,
        };
        Some(GroupRun {
            run: member.run,
            slot: member.slot,
            void: run.judgement.as_ref().and_then(Judgement::why_not),
            figures: vec![figure],
            steady: Steady::Unknown,
            noise: None,
            failed: 0,
        })
    };
    Ok(store.members(group.id)?.into_iter().filter_map(row).collect())
}

/// The groups of `kelvin serve`.
pub(crate) struct ServedGroups;

impl kelvin_serve::DescribeGroups for ServedGroups {
    fn list(&self, store: &Store) -> Result<Vec<GroupLine>, String> {
        list(store).map_err(|error| crate::exit::describe(&error))
    }

    fn page(&self, store: &Store, group: i64) -> Result<kelvin_report::group::GroupPage, String> {
        let page = || self::page(&Group::new(store, &find(store, &group.to_string())?));
        page().map_err(|error| crate::exit::describe(&error))
    }
}

/// A group with all the contents of its page.
pub(crate) fn page(group: &Group<'_>) -> Result<kelvin_report::group::GroupPage> {
    let text = match group.stored.info.kind {
        GroupKind::Study => String::new(),
        // Standard output may be a terminal, and the text has colours then.
        _ => without_colours(&group.text()?),
    };
    super::page::describe(group, text.trim().to_owned())
}

/// Removes the escape sequences that colour text on a terminal.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}
