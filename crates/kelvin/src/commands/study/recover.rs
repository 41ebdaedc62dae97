//! `kelvin study recover`: restores what a killed study left changed.

use anyhow::Result;

use super::find;
use crate::args::RecoverArgs;
use crate::exit::Code;
use crate::out;

/// Undoes all changes in the study's undo journal.
pub(super) fn recover(args: &RecoverArgs) -> Result<Code> {
    let folder = find(&args.study)?;
    let put_back = super::run::restore_factors(&folder)?;
    if put_back.is_empty() {
        out::line("nothing to restore")?;
    }
    for one in put_back {
        out::line(&format!("restored: {one}"))?;
    }
    Ok(Code::Success)
}
