//! `kelvin groups`: groups of runs.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use kelvin_lab::repeat::{GroupRun, Steady};
use kelvin_lab::{ab, repeat};
use kelvin_report::table::{Table, number};
use kelvin_run::Spec;
use kelvin_run::spec::StartingData;
use kelvin_store::{GroupId, GroupKind, Judgement, RunId, RunSummary, Store, StoredGroup};
use serde::de::DeserializeOwned;

use crate::args::{Format, Global, GroupsArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::{out, paths};

/// Lists the groups with the newest last, or shows one.
pub(crate) fn groups(args: &GroupsArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    if let Some(group) = args.group {
        let store = Store::open_read_only(&path)?;
        let stored = find(&store, &group.to_string())?;
        let group = Group::new(&store, &stored);
        if let Some(file) = &args.html {
            let page = for_page(&group)?;
            out::file(file, &kelvin_report::group::render(&page)?, global.quiet)?;
        }
        return print(&group, args.format.format());
    }
    let listed = if path.exists() { list(&Store::open_read_only(&path)?)? } else { Vec::new() };
    if listed.is_empty() && args.format.format() == Format::Text {
        let path = path.display();
        out::line(&format!("no groups yet in {path}; start with: kelvin run tproc-c --repeat 6"))?;
        return Ok(Code::Success);
    }
    document::print(&Groups(listed), args.format.format())?;
    Ok(Code::Success)
}

/// Prints a stored group as it was printed at its end.
pub(super) fn show(store: &Store, group: &str, format: Format) -> Result<Code> {
    print(&Group::new(store, &find(store, group)?), format)
}

fn print(group: &Group<'_>, format: Format) -> Result<Code> {
    if group.stored.info.kind == GroupKind::Study {
        let name = group.stored.info.name.as_deref().unwrap_or("DIR");
        bail!(
            "group {} belongs to the study \"{name}\": see kelvin study show and kelvin study analyze, or \
             kelvin show for one of its runs",
            group.stored.id
        )
    }
    document::print(group, format)?;
    Ok(Code::Success)
}

/// A group with its summary.
pub(super) struct Group<'a> {
    pub(super) store: &'a Store,
    pub(super) stored: &'a StoredGroup,
    rows: OnceCell<Vec<GroupRun>>,
}

impl<'a> Group<'a> {
    pub(super) fn new(store: &'a Store, stored: &'a StoredGroup) -> Self {
        Self { store, stored, rows: OnceCell::new() }
    }

    /// The group's runs. Each is read and judged only once.
    pub(super) fn rows(&self) -> Result<&[GroupRun]> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let read = repeat::group_runs(self.store, self.stored.id)?;
        Ok(self.rows.get_or_init(|| read))
    }
}

impl Document for Group<'_> {
    fn text(&self) -> Result<String> {
        match self.stored.info.kind {
            GroupKind::Repeat => super::repeat::render_text(self),
            GroupKind::Ab => super::ab::render_text(self),
            GroupKind::Sweep => super::io::sweep_text(self.store, self.stored),
            GroupKind::Study => bail!("a study has its own commands: kelvin study show"),
        }
    }

    fn records(&self) -> Result<Vec<String>> {
        let value = match self.stored.info.kind {
            GroupKind::Repeat => super::repeat::json(self)?,
            GroupKind::Ab => super::ab::json(self)?,
            GroupKind::Sweep => super::io::sweep_json(self.store, self.stored)?,
            GroupKind::Study => bail!("a study has its own commands: kelvin study show"),
        };
        Ok(vec![value.to_string()])
    }

    /// A row for each run.
    fn table(&self) -> Result<Table> {
        let rows = self.rows()?;
        let mut table = Table::new("run,order,block,treatment,counted,reason");
        let figures: Vec<String> = rows
            .first()
            .map(|row| row.figures.iter().map(|figure| figure.id.clone()).collect())
            .unwrap_or_default();
        table.columns.extend(figures.iter().cloned());
        for row in rows {
            let mut fields = vec![
                row.run.to_string(),
                (row.slot.place + 1).to_string(),
                (row.slot.block + 1).to_string(),
                row.slot.treatment.clone(),
                row.counts().to_string(),
                row.void.clone().unwrap_or_default(),
            ];
            let value =
                |id: &String| row.figures.iter().find(|figure| figure.id == *id).and_then(|f| f.value);
            fields.extend(figures.iter().map(|id| number(value(id))));
            table.rows.push(fields);
        }
        Ok(table)
    }
}

/// The list of groups.
struct Groups(Vec<Listed>);

impl Document for Groups {
    fn text(&self) -> Result<String> {
        Ok(table(&self.0))
    }

    fn records(&self) -> Result<Vec<String>> {
        self.0.iter().map(|group| Ok(serde_json::to_string(group)?)).collect()
    }

    fn is_list(&self) -> bool {
        true
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("group,kind,name,created,runs,void,answer");
        for one in &self.0 {
            table.rows.push(vec![
                one.group.to_string(),
                one.kind.into(),
                one.name.clone().unwrap_or_default(),
                one.created.clone(),
                one.runs.to_string(),
                one.void.to_string(),
                one.answer.clone(),
            ]);
        }
        Ok(table)
    }
}

/// The starting data of each treatment's runs, according to the specification of its first run; `None` if the
/// specification cannot be read.
pub(super) fn resets(store: &Store, group: &StoredGroup) -> Result<Vec<(String, Option<StartingData>)>> {
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
pub(super) fn describe_resets(resets: &[(String, Option<StartingData>)], how_to: &str) -> String {
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
pub(super) fn reset_label(how: Option<StartingData>) -> &'static str {
    how.map_or("unknown", StartingData::word)
}

fn find(store: &Store, wanted: &str) -> Result<StoredGroup> {
    let number: i64 = wanted.parse().with_context(|| {
        format!("\"{wanted}\" is not a group; give its number, as listed by kelvin groups")
    })?;
    let found = store.group(GroupId(number))?;
    found.with_context(|| format!("no group {number} in {}: see kelvin groups", store.path().display()))
}

/// Finds a group that was just begun, as it was stored.
pub(super) fn find_again(store: &Store, group: GroupId) -> Result<StoredGroup> {
    store
        .group(group)?
        .with_context(|| format!("group {group} no longer exists in {}", store.path().display()))
}

/// The plan of a group.
pub(super) fn plan<T: DeserializeOwned>(group: &StoredGroup) -> Result<T> {
    serde_json::from_value(group.info.body.clone())
        .with_context(|| format!("the plan of group {} cannot be read", group.id))
}

/// One line of the list.
#[derive(Debug, serde::Serialize)]
struct Listed {
    group: i64,
    kind: &'static str,
    name: Option<String>,
    created: String,
    runs: usize,
    void: usize,
    answer: String,
}

fn list(store: &Store) -> Result<Vec<Listed>> {
    let runs: BTreeMap<RunId, RunSummary> = store.runs()?.into_iter().map(|run| (run.id, run)).collect();
    let mut listed = Vec::new();
    for group in store.groups()? {
        let rows = rows(store, &group, &runs)?;
        listed.push(Listed {
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
        GroupKind::Repeat => {
            super::repeat::in_short(&repeat::RepeatSummary::of(&plan::<repeat::RepeatPlan>(group)?, rows))
        }
        GroupKind::Ab => super::ab::in_short(&ab::AbSummary::of(&plan::<ab::AbPlan>(group)?, rows)),
        GroupKind::Study => "see kelvin study".into(),
        GroupKind::Sweep => super::io::sweep_in_short(rows),
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

fn table(listed: &[Listed]) -> String {
    let mut text = format!(
        "{:>5}  {:<6}  {:<16}  {:>4}  {:>4}  {:<48}  {}\n",
        "group", "kind", "began (UTC)", "runs", "void", "answer", "name"
    );
    for one in listed {
        let name = one.name.as_ref().map_or(String::new(), |name| format!("\"{name}\""));
        let line = format!(
            "{:>5}  {:<6}  {:<16}  {:>4}  {:>4}  {:<48}  {name}",
            one.group, one.kind, one.created, one.runs, one.void, one.answer
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// "run 7: TPROC-C …" for the first run of a group, or a text that it has no runs.
pub(super) fn describe_first_run(store: &Store, group: &StoredGroup) -> Result<String> {
    let Some(first) = store.members(group.id)?.into_iter().next() else {
        return Ok("no runs".into());
    };
    let runs = store.runs()?;
    let run = runs.iter().find(|run| run.id == first.run);
    Ok(run.map_or_else(String::new, |run| format!("{} on {}", run.workload, run.target)))
}

/// The groups of `kelvin serve`.
pub(super) struct ForPage;

impl kelvin_serve::DescribeGroups for ForPage {
    fn list(&self, store: &Store) -> Result<Vec<kelvin_serve::GroupLine>, String> {
        let line = |one: Listed| kelvin_serve::GroupLine {
            group: one.group,
            kind: one.kind,
            name: one.name,
            created: one.created,
            runs: one.runs,
            void: one.void,
            answer: one.answer,
        };
        list(store)
            .map(|all| all.into_iter().map(line).collect())
            .map_err(|error| crate::exit::describe(&error))
    }

    fn page(&self, store: &Store, group: i64) -> Result<kelvin_report::group::GroupPage, String> {
        let page = || for_page(&Group::new(store, &find(store, &group.to_string())?));
        page().map_err(|error| crate::exit::describe(&error))
    }
}

/// A group with all the contents of its page.
fn for_page(group: &Group<'_>) -> Result<kelvin_report::group::GroupPage> {
    let text = match group.stored.info.kind {
        GroupKind::Study => String::new(),
        // Standard output may be a terminal, and the text has colours then.
        _ => without_colours(&group.text()?),
    };
    super::group_page::describe(group, text.trim().to_owned())
}

/// Removes the escape sequences that colour text on a terminal.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}
