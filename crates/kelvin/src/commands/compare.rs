//! `kelvin compare`: compares stored runs, groups or branches with the first one.

use anyhow::{Context, Result, bail};
use kelvin_report::compare::{Comparison, compare_sides, html, render};
use kelvin_report::table::Table;
use kelvin_store::Store;

use super::select::{Progress, SelectedRuns};
use crate::args::{CompareArgs, Global};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Prints ratios, other differences, and what can be concluded from the metrics.
pub(crate) fn compare(args: &CompareArgs, global: &Global) -> Result<Code> {
    if args.html.is_some() && args.runs.len() > 2 {
        bail!("--html writes one comparison; name two sides");
    }
    let store = Store::open_read_only(paths::store(global.store.as_deref())?)?;
    let mut progress = Progress::new(global.quiet);
    let mut loaded = Vec::new();
    for name in &args.runs {
        let selection = store.select(name.trim())?;
        loaded.push(SelectedRuns::load(&store, name.trim(), selection, &[], &mut progress)?);
    }
    drop(progress);
    let (base, others) = loaded.split_first().context("give at least two runs")?;
    let mut compared = Vec::new();
    for other in others {
        compared.push(compare_sides(&base.side(), &other.side(), args.noise)?);
    }
    if let (Some(file), Some(found)) = (&args.html, compared.first()) {
        out::file(file, &html(found)?, global.quiet)?;
    }
    document::print(&Compared(compared), args.format.format())?;
    Ok(Code::Success)
}

/// The comparison of each side with the base.
struct Compared(Vec<Comparison>);

impl Document for Compared {
    fn text(&self) -> Result<String> {
        let options = crate::document::text_options(false);
        let each: Vec<String> = self.0.iter().map(|found| render(found, options)).collect();
        Ok(each.join("\n"))
    }

    fn records(&self) -> Result<Vec<String>> {
        self.0.iter().map(|found| Ok(serde_json::to_string(found)?)).collect()
    }

    fn is_list(&self) -> bool {
        true
    }

    fn table(&self) -> Result<Table> {
        Ok(kelvin_report::compare::table(&self.0))
    }
}
