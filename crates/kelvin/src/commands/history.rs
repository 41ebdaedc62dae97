//! `kelvin history`: the results of a branch over time, and the changes of their level.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_report::history::{self, History};
use kelvin_report::table::Table;
use kelvin_store::{RunId, Store};

use super::select::Progress;
use crate::args::{Global, HistoryArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Prints the entries and the changes between them.
pub(crate) fn history(args: &HistoryArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open_read_only(&path)?;
    let asked = history::HistoryQuery {
        branch: args.branch.clone(),
        testbed: args.testbed.clone(),
        workload: args.workload.clone(),
        measure: args.measure.clone(),
        tenant: args.tenant.clone(),
        newest: args.last,
    };
    let mut progress = Progress::new(global.quiet);
    let found =
        history::load_each(&store, &asked, &mut |read, of| progress.show_progress("the history", read, of))?;
    drop(progress);
    if let (Some(_), [_, second, ..]) = (&args.html, found.as_slice()) {
        let name = second.tenant.as_deref().unwrap_or_default();
        bail!("--html writes the trend of one tenant; name it, such as --tenant {name}");
    }
    let found = Histories(found);
    document::print(&found, args.format.format())?;
    if let (Some(file), [found]) = (&args.html, found.0.as_slice()) {
        out::file(file, &history::html(found, &|run| link(&path, file, run))?, global.quiet)?;
    }
    Ok(Code::Success)
}

/// One history; for scenarios, one for each tenant.
struct Histories(Vec<History>);

impl Document for Histories {
    fn text(&self) -> Result<String> {
        let options = crate::document::text_options(false);
        let each: Vec<String> = self.0.iter().map(|one| history::text(one, options)).collect();
        Ok(each.join("\n"))
    }

    fn records(&self) -> Result<Vec<String>> {
        self.0.iter().map(|one| Ok(serde_json::to_string(one)?)).collect()
    }

    fn is_list(&self) -> bool {
        self.0.len() > 1
    }

    fn table(&self) -> Result<Table> {
        let mut tables = self.0.iter().map(history::table);
        let first = tables.next().context("no history")?;
        Ok(tables.fold(first, |mut all, one| {
            all.rows.extend(one.rows);
            all
        }))
    }
}

/// The address of a run's page, relative to the trend's page; `None` if the run has none.
fn link(store: &Path, page: &Path, run: i64) -> Option<String> {
    let target = paths::report(store, RunId(run)).ok()?.canonicalize().ok()?;
    let parent = page.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let from = parent.canonicalize().ok()?;
    let common = from.components().zip(target.components()).take_while(|(a, b)| a == b).count();
    let mut relative = PathBuf::new();
    for _ in from.components().skip(common) {
        relative.push("..");
    }
    relative.extend(target.components().skip(common));
    Some(relative.to_str()?.bytes().map(address).collect())
}

/// A byte of a path, encoded for a URL.
fn address(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    }
}
