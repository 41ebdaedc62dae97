//! `kelvin history`: a branch over time, and where its level changed.

use std::path::{Path, PathBuf};

use anyhow::Result;
use kelvin_report::history::{self, History};
use kelvin_report::table::Table;
use kelvin_store::{RunId, Store};

use super::select::Progress;
use crate::args::{Global, HistoryArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Prints the entries with the changes between them.
pub(crate) fn history(args: &HistoryArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open_read_only(&path)?;
    let asked = history::HistoryQuery {
        branch: args.branch.clone(),
        testbed: args.testbed.clone(),
        workload: args.workload.clone(),
        measure: args.measure.clone(),
        newest: args.last,
    };
    let mut progress = Progress::new(global.quiet);
    let found =
        history::load(&store, &asked, &mut |read, of| progress.show_progress("the history", read, of))?;
    drop(progress);
    document::print(&found, args.format.format())?;
    if let Some(file) = &args.html {
        out::file(file, &history::html(&found, &|run| link(&path, file, run))?, global.quiet)?;
    }
    Ok(Code::Success)
}

impl Document for History {
    fn text(&self) -> Result<String> {
        Ok(history::text(self, super::show::options(false)))
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    fn table(&self) -> Result<Table> {
        Ok(history::table(self))
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

/// A byte of a path as an address has it.
fn address(byte: u8) -> String {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    }
}
