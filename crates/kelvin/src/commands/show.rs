//! `kelvin show`: prints a stored run.

use anyhow::Result;
use kelvin_report::RunReport;
use kelvin_store::Store;

use crate::args::{Global, ShowArgs};
use crate::document::{self, RunDocument};
use crate::exit::Code;
use crate::{group, paths};

/// Prints the report that `kelvin run` printed.
pub(crate) fn show(args: &ShowArgs, global: &Global) -> Result<Code> {
    let store = Store::open_read_only(&paths::store(global.store.as_deref())?)?;
    if let Some(group) = args.run.strip_prefix("group:") {
        return group::show(&store, group, args.format.format());
    }
    let report = RunReport::load(&store, store.find(&args.run)?)?;
    let shown = RunDocument { report: &report, options: document::text_options(args.all), brief: args.brief };
    document::print(&shown, args.format.format())?;
    Ok(Code::Success)
}
