//! `kelvin show`: prints a stored run.

use std::io::IsTerminal;

use anyhow::Result;
use kelvin_report::RunReport;
use kelvin_report::text::Options;
use kelvin_store::Store;

use crate::args::{Global, ShowArgs};
use crate::document::{self, RunDocument};
use crate::exit::Code;
use crate::paths;

/// Prints the report that `kelvin run` printed.
pub(crate) fn show(args: &ShowArgs, global: &Global) -> Result<Code> {
    let store = Store::open_read_only(&paths::store(global.store.as_deref())?)?;
    if let Some(group) = args.run.strip_prefix("group:") {
        return super::groups::show(&store, group, args.format.format());
    }
    let report = RunReport::load(&store, store.find(&args.run)?)?;
    let shown = RunDocument { report: &report, options: options(args.all), brief: args.brief };
    document::print(&shown, args.format.format())?;
    Ok(Code::Success)
}

/// Options of the text: colours on a terminal, unless NO_COLOR is set (no-color.org).
pub(super) fn options(all: bool) -> Options {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Options { colour: std::io::stdout().is_terminal() && !refused, all }
}
