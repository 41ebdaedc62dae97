//! `kelvin export` and `kelvin import`: copy runs from one store to another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_lab::study::{Folder, State, StudyPlan};
use kelvin_measure::text::count;
use kelvin_report::table::Table;
use kelvin_store::{Exporter, GroupId, GroupKind, ImportSource, ImportSummary, ImportedRun, Store};

use super::select::RunSelection;
use crate::args::{ExportArgs, Global, ImportArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::{out, paths};

/// The name that selects every run of the store.
const ALL: &str = "all";

/// Writes runs to a file.
pub(crate) fn export(args: &ExportArgs, global: &Global) -> Result<Code> {
    let studies: Vec<Study> =
        args.runs.iter().filter_map(|name| Study::from_name(name).transpose()).collect::<Result<_>>()?;
    let path = store_of(&studies, global)?;
    let store = Store::open_read_only(&path)?;
    let names: Vec<String> = args.runs.iter().filter(|name| !Study::is_folder(name)).cloned().collect();
    let mut whole = RunSelection::default();
    if names.iter().any(|name| name == ALL) {
        whole.runs.extend(store.runs()?.into_iter().map(|run| run.id));
        whole.groups.extend(store.groups()?.into_iter().map(|group| group.id));
    }
    let names: Vec<String> = names.into_iter().filter(|name| name != ALL).collect();
    whole.extend(RunSelection::from_names(&store, &names)?);
    for study in &studies {
        whole.groups.insert(study.group_in(&store)?);
    }
    let exporter = Exporter {
        runs: whole.runs,
        groups: whole.groups,
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        kelvin_version: env!("KELVIN_VERSION").into(),
    };
    let runs = exporter.write(&store, &args.file)?;
    if !global.quiet {
        let bytes = std::fs::metadata(&args.file).map_or(0, |meta| meta.len());
        let mut what = count(runs.len(), "run");
        if !exporter.groups.is_empty() {
            what.push_str(&format!(" and {}", count(exporter.groups.len(), "group")));
        }
        let file = args.file.display();
        out::line(&format!("{file}: {what}, {} KiB", bytes.div_ceil(1024)))?;
        out::line(&format!(
            "kelvin import {file} adds them to another store; kelvin --store {file} runs lists them"
        ))?;
    }
    Ok(Code::Success)
}

/// A study's folder, and the location of its runs.
struct Study {
    name: String,
    folder: PathBuf,
    store: PathBuf,
    group: GroupId,
}

impl Study {
    fn is_folder(name: &str) -> bool {
        Path::new(name).join(Folder::STUDY).is_file()
    }

    /// Reads the study of a folder; `None` if `name` is no folder of a study.
    fn from_name(name: &str) -> Result<Option<Self>> {
        if !Self::is_folder(name) {
            return Ok(None);
        }
        let folder = Folder::open(Path::new(name))?;
        let study = folder.study()?;
        let session = State::from_entries(&StudyPlan::new(&study), &folder.ledger()?).session;
        let session = session.with_context(|| format!("the study {name} has no runs yet"))?;
        let (store, group) = (session.store, GroupId(session.group));
        Ok(Some(Self { name: study.name, folder: folder.path().to_owned(), store, group }))
    }

    /// The study's group, if the store has it under the number in the ledger.
    fn group_in(&self, store: &Store) -> Result<GroupId> {
        let found = store.group(self.group)?;
        let is_it = found.is_some_and(|group| {
            group.info.kind == GroupKind::Study && group.info.name.as_deref() == Some(self.name.as_str())
        });
        if !is_it {
            bail!(
                "the runs of {} are group {} in {}, not in {}",
                self.folder.display(),
                self.group,
                self.store.display(),
                store.path().display()
            );
        }
        Ok(self.group)
    }
}

/// The store of the flags, otherwise the store that the first study's ledger names.
fn store_of(studies: &[Study], global: &Global) -> Result<PathBuf> {
    match (&global.store, studies.first()) {
        (None, Some(study)) => Ok(study.store.clone()),
        _ => paths::store(global.store.as_deref()),
    }
}

/// Adds the runs of a file to the store.
pub(crate) fn import(args: &ImportArgs, global: &Global) -> Result<Code> {
    // The file is read first: for an unreadable file no store is created.
    let incoming = ImportSource::open(&args.file)?;
    let mut store = Store::open(paths::store(global.store.as_deref())?)?;
    let imported = store.import(&incoming)?;
    document::print(&ImportReport { file: &args.file, imported }, args.format.format())?;
    Ok(Code::Success)
}

/// The result of an import.
struct ImportReport<'a> {
    file: &'a Path,
    imported: ImportSummary,
}

impl Document for ImportReport<'_> {
    fn text(&self) -> Result<String> {
        let (there, new): (Vec<ImportedRun>, Vec<ImportedRun>) =
            self.imported.runs.iter().partition(|run| run.was_there);
        let from = self.imported.host.as_ref().map_or(String::new(), |host| format!(" from {host}"));
        let mut text = format!("{}: {} imported{from}\n", self.file.display(), count(new.len(), "run"));
        for (runs, words) in [(&new, "is now"), (&there, "already exists as")] {
            for run in runs {
                text.push_str(&format!("  run {} {words} run {}\n", run.number, run.run));
            }
        }
        for group in &self.imported.groups {
            let words = if group.was_there { "already exists as" } else { "is now" };
            text.push_str(&format!("  group {} {words} group {}\n", group.number, group.group));
        }
        Ok(text)
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(&self.imported)?])
    }

    /// A row for each run and group.
    fn table(&self) -> Result<Table> {
        let mut table = Table::new("what,number_in_file,number,was_there");
        let row = |what: &str, number: i64, new: i64, was_there: bool| {
            vec![what.to_owned(), number.to_string(), new.to_string(), was_there.to_string()]
        };
        let runs = self.imported.runs.iter();
        table.rows.extend(runs.map(|run| row("run", run.number.0, run.run.0, run.was_there)));
        let groups = self.imported.groups.iter();
        table.rows.extend(groups.map(|group| row("group", group.number.0, group.group.0, group.was_there)));
        Ok(table)
    }
}
