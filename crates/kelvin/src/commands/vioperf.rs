//! `kelvin vioperf`: measures whether storage is fast enough for a column store.

mod log;

use std::time::Duration;

use anyhow::{Result, bail};
use kelvin_storage::vioperf::{self, Options, Report, ThroughputGrade, VioperfEvent};

use crate::args::{Global, Required, VioperfArgs};
use crate::exit::Code;
use crate::{out, signal};

use log::Log;

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_hours(24);
/// With shorter intervals, printing rows would disturb the measurement.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

/// Measures and prints.
pub(crate) fn run(args: &VioperfArgs, global: &Global) -> Result<Code> {
    let (duration, interval) = (args.duration.duration(), args.log_interval.duration());
    if !(SHORTEST..=LONGEST).contains(&duration) {
        bail!("a --duration of {} is not between 1s and 24h", args.duration);
    }
    if interval < SHORTEST_INTERVAL {
        bail!("a --log-interval of {} is shorter than 100ms", args.log_interval);
    }
    let options = Options {
        directories: args.directories.clone(),
        duration,
        interval,
        threads: args.thread_count,
        crc: !args.disable_crc,
        direct: !args.disable_direct_io,
        buffer: usize::try_from(args.max_buffer_size).unwrap_or(usize::MAX),
        working_set: args.working_set,
        preserve: args.preserve_files,
    };
    let stop = signal::listen_saying("kelvin: stopping; Ctrl-C again to stop now")?;
    let (mut log, mut failed) = (None, None);
    let report = vioperf::run(&options, &stop, &mut |event| {
        let done = on_event(event, args, global.quiet, &mut log);
        if let Err(error) = done
            && failed.is_none()
        {
            // If results cannot be written, the measurement stops.
            failed = Some(error);
            stop.request();
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if !global.quiet {
        out::line("")?;
    }
    out::write(&vioperf::summary(&report))?;
    if let Some(mut log) = log {
        log.end(&report)?;
        if !global.quiet {
            out::note(&format!("wrote {}", log.path().display()));
        }
    }
    Ok(code(&report, args.require))
}

fn on_event(event: &VioperfEvent<'_>, args: &VioperfArgs, quiet: bool, log: &mut Option<Log>) -> Result<()> {
    match event {
        VioperfEvent::Plan(plan) => {
            *log = Some(Log::create(args.log_file.as_deref(), args.condense_log)?);
            if !quiet {
                out::write(&vioperf::plan_text(plan))?;
                out::line("")?;
                out::write(&vioperf::header(plan))?;
            }
        }
        VioperfEvent::Row(row) => {
            if let Some(log) = log {
                log.row(row)?;
            }
            if !quiet {
                out::write(&vioperf::row_text(row))?;
            }
        }
        // The results repeat the notes at the end.
        VioperfEvent::Note(note) if !quiet => out::note(&format!("kelvin: {note}")),
        VioperfEvent::Note(_) => {}
    }
    Ok(())
}

fn code(report: &Report, required: Required) -> Code {
    let least = match required {
        Required::Minimum => ThroughputGrade::Minimum,
        Required::Recommended => ThroughputGrade::Recommended,
    };
    match report.verdict {
        _ if report.failure.is_some() => Code::Aborted,
        _ if report.interrupted => Code::Interrupted,
        Some(verdict) if verdict >= least => Code::Success,
        _ => Code::NotValid,
    }
}
