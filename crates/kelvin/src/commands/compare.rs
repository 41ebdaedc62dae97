//! `kelvin compare`: stored runs against the first of them.

use std::io::IsTerminal;

use anyhow::Result;
use kelvin_store::{Store, StoredRun};

use crate::args::{CompareArgs, Global};
use crate::exit::Code;
use crate::place;

/// Prints ratios, what else differs, and what the figures can say.
pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Code> {
    let store = Store::open_read_only(&place::store(global.store.as_deref())?)?;
    let load = |name: &String| -> Result<StoredRun> { Ok(store.load(store.find(name)?)?) };
    let runs = args.runs.iter().map(load).collect::<Result<Vec<_>>>()?;
    print!("{}", kelvin_report::compare::render(&runs, std::io::stdout().is_terminal()));
    Ok(Code::Success)
}
