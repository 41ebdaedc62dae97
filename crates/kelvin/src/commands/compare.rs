//! `kelvin compare`: stored runs, groups or branches against the first.

use anyhow::{Context, Result, bail};
use kelvin_report::compare::{html, render, sides};
use kelvin_store::Store;

use super::select::{Named, Progress};
use crate::args::{CompareArgs, Global};
use crate::exit::Code;
use crate::out;
use crate::place;

/// Prints ratios, what else differs, and what the figures can say.
pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Code> {
    if args.html.is_some() && args.runs.len() > 2 {
        bail!("--html writes the page of one comparison; name two sides");
    }
    let store = Store::open_read_only(place::store(global.store.as_deref())?)?;
    let mut progress = Progress::new(global.quiet);
    let mut loaded = Vec::new();
    for name in &args.runs {
        let selection = store.select(name.trim())?;
        loaded.push(Named::load(&store, name.trim(), selection, &[], &mut progress)?);
    }
    drop(progress);
    let (base, others) = loaded.split_first().context("give at least two runs")?;
    for (index, other) in others.iter().enumerate() {
        let found = sides(&base.side(), &other.side(), args.noise)?;
        if args.json {
            out::line(&serde_json::to_string(&found)?)?;
        } else {
            if index > 0 {
                out::line("")?;
            }
            out::write(&render(&found, super::show::options(false)))?;
        }
        if let Some(file) = &args.html {
            out::file(file, &html(&found)?, global.quiet)?;
        }
    }
    Ok(Code::Success)
}
