//! `kelvin trace to-fio`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kelvin_measure::text::{NONE, nanos, percent, plain_percent, three_figures};
use kelvin_report::table::{Table, number};
use kelvin_trace::job::text::{JobForm, describe, iolog_name, job_file, write_iolog};
use kelvin_trace::job::{FeaturePair, Fidelity, StreamsBy, TraceJobs, streams};

use super::verify::verify;
use crate::args::{Global, TraceStreams, TraceToFioArgs};
use crate::document::{self, Document};
use crate::exit::Code;
use crate::out;

/// Reads the trace, writes the job file, and runs the job if requested.
pub(super) fn to_fio(args: &TraceToFioArgs, global: &Global) -> Result<Code> {
    let form = if args.replay { JobForm::Replay } else { JobForm::Figures };
    if args.replay && args.output.is_none() && !args.verify {
        bail!("--replay writes iologs next to the job file: give its name with -o");
    }
    let trace = super::read(&args.trace, global)?;
    let by = match args.by {
        TraceStreams::Class => StreamsBy::Class,
        TraceStreams::Object => StreamsBy::Object,
        TraceStreams::Process => StreamsBy::Process,
        TraceStreams::Nothing => StreamsBy::Nothing,
    };
    let jobs = streams(&trace, by, &args.device, args.max_size)?;
    drop(trace);
    let text = job_file(&jobs, form, &args.trace.file.to_string_lossy());
    if let Some(path) = &args.output {
        // The job file is written last, so that it never exists without its iologs.
        if path.exists() {
            bail!("{} exists", path.display());
        }
        if args.replay {
            write_iologs(&jobs, path.parent().unwrap_or(Path::new("")))?;
        }
        write_new(path, text.as_bytes())?;
    } else if !args.verify {
        out::write(&text)?;
    }
    for note in &jobs.notes {
        out::note(&format!("kelvin: {note}"));
    }
    if !args.verify {
        if args.output.is_some() && !global.quiet {
            for stream in &jobs.streams {
                out::note(&format!("kelvin: {}", describe(stream)));
            }
        }
        return Ok(Code::Success);
    }
    let streams = verify(&jobs, &text, form, args, global)?;
    let is_close = streams.iter().all(Fidelity::is_close);
    document::print(&Verification { streams }, args.format.format())?;
    Ok(if is_close { Code::Success } else { Code::NotValid })
}

/// Writes the iolog of each stream into a directory. The job file has their names.
pub(super) fn write_iologs(jobs: &TraceJobs, directory: &Path) -> Result<()> {
    let paths = || jobs.streams.iter().map(|stream| directory.join(iolog_name(stream)));
    if let Some(path) = paths().find(|path| path.exists()) {
        bail!("{} exists", path.display());
    }
    for (stream, path) in jobs.streams.iter().zip(paths()) {
        let out = BufWriter::new(create(&path)?);
        write_iolog(stream, &PathBuf::from(stream.file_name()), out)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Writes a new file; an error if the file exists.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    create(path)?.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))
}

pub(super) fn create(path: &Path) -> Result<File> {
    let mut open = File::options();
    open.write(true).create_new(true).mode(0o600);
    open.open(path).with_context(|| format!("cannot create {}", path.display()))
}

/// How closely each stream's job reproduced it.
struct Verification {
    streams: Vec<Fidelity>,
}

fn value(pair: &FeaturePair, value: f64) -> String {
    match pair.feature {
        "p99 response" | "mean response" => nanos(value),
        _ if pair.is_share => percent(value),
        _ => three_figures(value),
    }
}

impl Document for Verification {
    fn text(&self) -> Result<String> {
        let mut text = String::new();
        // Differences that do not come from the job are explained.
        let footer = "Mean depth: other requests of the stream in flight when a request arrives. In flight over time: the rate times\n\
                      the mean response time, which depends on the device. Streams with less than 0.5 % of the requests are not\n\
                      judged.";
        for stream in &self.streams {
            let _ =
                writeln!(text, "{:<32}{:>12}{:>12}{:>12}  allowed", stream.job, "trace", "job", "difference");
            for pair in &stream.features {
                let difference = pair.difference();
                let shown = if difference.is_finite() { plain_percent(difference) } else { NONE.into() };
                let allowed = match (pair.allowed, pair.is_close()) {
                    (Some(allowed), Some(true)) => format!("{} ✓", plain_percent(allowed)),
                    (Some(allowed), _) => format!("{} ✗", plain_percent(allowed)),
                    _ => String::new(),
                };
                let _ = writeln!(
                    text,
                    "  {:<30}{:>12}{:>12}{shown:>12}  {allowed}",
                    pair.feature,
                    value(pair, pair.trace),
                    value(pair, pair.job)
                );
            }
        }
        let _ = writeln!(text, "{footer}");
        Ok(text)
    }

    fn records(&self) -> Result<Vec<String>> {
        self.streams.iter().map(|stream| Ok(serde_json::to_string(stream)?)).collect()
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new("job,feature,of_trace,of_job,difference,allowed");
        for stream in &self.streams {
            for pair in &stream.features {
                table.rows.push(vec![
                    stream.job.clone(),
                    pair.feature.to_owned(),
                    number(Some(pair.trace)),
                    number(Some(pair.job)),
                    number(Some(pair.difference()).filter(|difference| difference.is_finite())),
                    number(pair.allowed),
                ]);
            }
        }
        Ok(table)
    }
}
