//! `kelvin gate`: decides whether a candidate passes against a base.

use std::path::Path;

use anyhow::Result;
use kelvin_report::compare::compare_sides;
use kelvin_report::gate::{self, Gate};
use kelvin_report::table::Table;
use kelvin_store::Store;

use super::select::{Progress, SelectedRuns};
use crate::args::{GateArgs, Global};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Judges the candidate, prints the result, and returns it as an exit code.
pub(crate) fn gate(args: &GateArgs, global: &Global) -> Result<Code> {
    let limits = args.limits()?;
    let metrics: Vec<String> =
        limits.iter().filter_map(|l| l.measure.clone()).filter(|measure| measure.contains('.')).collect();
    let store = Store::open_read_only(paths::store(global.store.as_deref())?)?;
    let mut progress = Progress::new(global.quiet);
    let name = match &args.candidate {
        Some(name) => name.trim().to_owned(),
        None => newest(&store)?,
    };
    let selection = store.select(&name)?;
    let candidate = SelectedRuns::load(&store, &name, selection, &metrics, &mut progress)?.drop_uncounted();
    let against = args.against.trim();
    let selection = store.select_without(against, &candidate.ids())?;
    let base = SelectedRuns::load(&store, against, selection, &metrics, &mut progress)?.drop_uncounted();
    drop(progress);
    let judged = if candidate.runs.is_empty() || base.runs.is_empty() {
        gate::void(&base.side(), &candidate.side(), &limits, args.strict)
    } else {
        let comparison = compare_sides(&base.side(), &candidate.side(), kelvin_report::compare::NOISE)?;
        gate::judge(&comparison, &limits, args.strict)?
    };
    if let Some(file) = &args.junit {
        out::file(file, &gate::junit(&judged), global.quiet)?;
    }
    match args.markdown.as_deref() {
        Some(file) if file == Path::new("-") => out::write(&gate::markdown(&judged))?,
        other => {
            if let Some(file) = other {
                out::file(file, &gate::markdown(&judged), global.quiet)?;
            }
            document::print(&judged, args.format.format())?;
        }
    }
    Ok(if judged.fails() {
        Code::NotValid
    } else if judged.lacks_runs() {
        Code::NotTestable
    } else if judged.is_blind() {
        Code::Blind
    } else {
        Code::Success
    })
}

impl Document for Gate {
    fn text(&self) -> Result<String> {
        Ok(gate::text(self, crate::document::text_options(false)))
    }

    fn records(&self) -> Result<Vec<String>> {
        Ok(vec![serde_json::to_string(self)?])
    }

    fn table(&self) -> Result<Table> {
        Ok(gate::table(self))
    }

    fn markdown(&self) -> Result<String> {
        Ok(gate::markdown(self))
    }
}

/// The name of the newest run, with its group and treatment.
fn newest(store: &Store) -> Result<String> {
    let run = store.find("last")?;
    Ok(match store.membership(run)? {
        Some(member) if member.slot.treatment.is_empty() => format!("group:{}", member.group),
        Some(member) => format!("group:{}/{}", member.group, member.slot.treatment),
        None => run.to_string(),
    })
}
