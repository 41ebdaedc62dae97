//! `kelvin doctor`: measures the capacity of the idle machine.

mod table;

use std::io::IsTerminal;
use std::ops::ControlFlow;

use anyhow::{Context, Result, anyhow};
use kelvin_lab::open::Purpose;
use kelvin_lab::{directories, limits};
use kelvin_observe::baseline::{self, Baseline, Comparison, Options};
use kelvin_store::{Store, StoredBaseline};
use serde::Serialize;

use crate::args::{DoctorArgs, Global};
use crate::exit::{Code, Stopped};
use crate::measure::open;
use crate::{out, paths, signal};

/// The document that is printed.
#[derive(Debug, Serialize)]
struct DoctorReport {
    number: i64,
    host: String,
    taken: jiff::Timestamp,
    #[serde(flatten)]
    baseline: Baseline,
    remarks: Vec<baseline::Remark>,
    against: Option<Against>,
}

/// The earlier doctor report for comparison.
#[derive(Debug, Serialize)]
struct Against {
    number: i64,
    taken: jiff::Timestamp,
    /// Cores that other processes used during the measurement.
    others: Option<f64>,
    #[serde(flatten)]
    comparison: Comparison,
}

/// Measures, stores and prints.
pub(crate) fn doctor(args: &DoctorArgs, global: &Global) -> Result<Code> {
    let stop = signal::listen()?;
    for change in limits::recover_left_over()? {
        out::note(&format!("kelvin: reverted what a killed process left behind: {change}"));
    }
    let store = Store::open(paths::store(global.store.as_deref())?)?;
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let before = prior_report(&store, args, &host)?;
    let progress = Progress::new(global.quiet);
    let opened = match &args.target {
        Some(target) => Some(open(target, Purpose::Run, &mut |text| progress.say(text))?),
        None => None,
    };
    let scratch = directories::scratch()?;
    let options = Options {
        directory: Some(args.disk.clone().unwrap_or_else(|| scratch.path().to_owned())),
        disk: args.disk.clone(),
        engine: opened.as_ref().map(|opened| opened.engine.clone()),
    };
    let taken = jiff::Timestamp::now();
    let measured = baseline::measure(&options, &mut |what| {
        progress.say(&format!("measuring: {what}"));
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    progress.end();
    let baseline = measured.map_err(|error| Stopped(format!("{error}: nothing was stored")))?;
    let number = store.add_baseline(taken, &host, &serde_json::to_value(&baseline)?)?;
    let against = before.map(|(before, body)| Against {
        number: before.id,
        taken: before.taken,
        others: body.figure(baseline::OTHERS),
        comparison: baseline::compare(&baseline, &body),
    });
    let remarks = baseline::judge(&baseline);
    let report = DoctorReport { number, host, taken, baseline, remarks, against };
    if args.json {
        out::line(&serde_json::to_string(&report)?)?;
    } else {
        out::write(&table::render(&report, out::width()))?;
    }
    Ok(Code::Success)
}

/// The doctor report to compare with: that of `--against`, or the last one of this host.
fn prior_report(store: &Store, args: &DoctorArgs, host: &str) -> Result<Option<(StoredBaseline, Baseline)>> {
    let found =
        match args.against {
            Some(number) => Some(store.baseline(number)?.ok_or_else(|| {
                anyhow!("there is no doctor report {number} in {}", store.path().display())
            })?),
            None => store.last_baseline(host)?,
        };
    let Some(found) = found else { return Ok(None) };
    match serde_json::from_value(found.body.clone()) {
        Ok(body) => Ok(Some((found, body))),
        // The last report may have been written by another version and is then ignored. One that the user
        // named must be readable.
        Err(error) if args.against.is_some() => Err(error)
            .with_context(|| format!("doctor report {} was written by another version of kelvin", found.id)),
        Err(_) => Ok(None),
    }
}

/// A progress line on standard error; on a terminal each message overwrites the last.
struct Progress {
    quiet: bool,
    interactive: bool,
}

impl Progress {
    fn new(quiet: bool) -> Self {
        Self { quiet, interactive: std::io::stderr().is_terminal() }
    }

    fn say(&self, text: &str) {
        match (self.quiet, self.interactive) {
            (true, _) => {}
            (false, true) => out::overwrite(text),
            (false, false) => eprintln!("{text}"),
        }
    }

    fn end(&self) {
        if self.interactive && !self.quiet {
            out::overwrite("");
        }
    }
}
