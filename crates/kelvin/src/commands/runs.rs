//! `kelvin runs`: the stored runs.

use anyhow::Result;
use kelvin_store::Store;

use crate::args::{Global, RunsArgs};
use crate::exit::Code;
use crate::place;

/// Lists them, the newest last.
pub(crate) fn runs(args: &RunsArgs, global: &Global) -> Result<Code> {
    let path = place::store(global.store.as_deref())?;
    if !path.exists() {
        if !args.json {
            println!("no runs yet in {}; start with: kelvin run tproc-c", path.display());
        }
        return Ok(Code::Success);
    }
    let runs = Store::open_read_only(&path)?.runs()?;
    if args.json {
        for run in &runs {
            println!("{}", serde_json::to_string(run)?);
        }
    } else {
        print!("{}", kelvin_report::text::runs(&runs));
    }
    Ok(Code::Success)
}
