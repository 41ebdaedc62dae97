//! `kelvin show`: a stored run in the terminal.

use std::io::IsTerminal;

use anyhow::Result;
use kelvin_store::Store;

use crate::args::{Global, ShowArgs};
use crate::exit::Code;
use crate::place;

/// Prints what `kelvin run` printed.
pub(crate) fn show(args: &ShowArgs, global: &Global) -> Result<Code> {
    let store = Store::open_read_only(&place::store(global.store.as_deref())?)?;
    let run = store.load(store.find(&args.run)?)?;
    print!("{}", kelvin_report::text::render(&run, std::io::stdout().is_terminal()));
    Ok(Code::Success)
}
