//! `kelvin compare`: stored runs, or groups of them, against the first.

use anyhow::{Context, Result};
use kelvin_report::Report;
use kelvin_report::compare::{compare as compared, text};
use kelvin_store::Store;

use crate::args::{CompareArgs, Global};
use crate::exit::Code;
use crate::out;
use crate::place;

/// Prints ratios, what else differs, and what the figures can say.
pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Code> {
    let store = Store::open_read_only(place::store(global.store.as_deref())?)?;
    let load = |name: &str| -> Result<Report> { Ok(Report::load(&store, store.find(name.trim())?)?) };
    let group = |names: &String| names.split(',').map(load).collect::<Result<Vec<_>>>();
    let groups = args.runs.iter().map(group).collect::<Result<Vec<_>>>()?;
    let groups: Vec<Vec<&Report>> = groups.iter().map(|runs| runs.iter().collect()).collect();
    let (base, others) = groups.split_first().context("give at least two runs")?;
    for (index, other) in others.iter().enumerate() {
        if index > 0 {
            out::line("")?;
        }
        out::write(&text(&compared(base, other)?))?;
    }
    Ok(Code::Success)
}
