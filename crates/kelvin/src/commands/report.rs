//! `kelvin report`: writes a stored run as a file.

use std::path::Path;

use anyhow::Result;
use kelvin_report::RunReport;
use kelvin_report::text::Options;
use kelvin_store::Store;

use crate::args::{Global, ReportArgs};
use crate::document::{self, RunDocument};
use crate::exit::Code;
use crate::out;
use crate::paths;

/// Renders the report and writes it.
pub(crate) fn report(args: &ReportArgs, global: &Global) -> Result<Code> {
    let path = paths::store(global.store.as_deref())?;
    let store = Store::open_read_only(&path)?;
    let id = store.find(&args.run)?;
    let report = RunReport::load(&store, id)?;
    let (text, to_standard_output) = if args.json {
        (kelvin_report::json::render(&report)?, true)
    } else if let Some(rows) = &args.csv {
        let csv = match rows.as_str() {
            "summary" => kelvin_report::csv::summary(&report),
            "statements" => kelvin_report::csv::statements(&report),
            "jobs" => kelvin_report::csv::jobs(&report),
            "queries" => kelvin_report::csv::queries(&report),
            "observed" => kelvin_report::csv::observed(&report),
            _ => kelvin_report::csv::series(&report),
        };
        (csv, true)
    } else if args.text || args.form.is_some() {
        let shown = RunDocument { report: &report, options: Options::default(), brief: false };
        (document::render(&shown, args.form.unwrap_or_default())?, true)
    } else {
        (kelvin_report::html::render(&report)?, false)
    };
    match args.output.as_deref() {
        Some(file) if file != Path::new("-") => out::file(file, &text, global.quiet)?,
        None if !to_standard_output => {
            out::file(&paths::report(&path, id)?, &text, global.quiet)?;
        }
        _ => out::write(&text)?,
    }
    Ok(Code::Success)
}
