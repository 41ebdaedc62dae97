//! `kelvin trace record`.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kelvin_database::Engine;
use kelvin_lab::open::Purpose;
use kelvin_measure::text::{binary, count, nanos, plain_percent, seconds, whole};
use kelvin_observe::engine;
use kelvin_run::spec::TargetName;
use kelvin_trace::attribution::catalogue_names;
use kelvin_trace::capture::{Capture, CaptureOptions};
use kelvin_trace::recording::Recording;
use kelvin_trace::zeros::{SampleOptions, add_sample};
use kelvin_workload::Stop;

use crate::args::{Global, TraceRecordArgs};
use crate::exit::Code;
use crate::measure::open;
use crate::{out, signal};

/// Interval between two reads of the kernel's buffers: 4 MiB of a processor hold 30,000 requests.
pub(super) const PAUSE: Duration = Duration::from_millis(20);
/// Completions may arrive this long after the command's end.
const AFTER: Duration = Duration::from_millis(100);

/// Records until the requested end, restores the kernel's settings, and prints what was recorded.
pub(super) fn record(args: &TraceRecordArgs, global: &Global) -> Result<Code> {
    if args.buffer < 64 << 10 || args.buffer > 1 << 30 {
        bail!("a --buffer of {} is not between 64k and 1g", binary(args.buffer));
    }
    for directory in &args.files {
        if !directory.is_dir() {
            bail!("--files {}: not a directory", directory.display());
        }
    }
    let path = args.output.as_path();
    let mut open = File::options();
    open.write(true).create_new(true).mode(0o600);
    let file = open.open(path).with_context(|| format!("cannot create {}", path.display()))?;
    let recorded = record_into(args, global, file);
    match recorded {
        Ok((recording, code)) => {
            // The recording is complete without the sample.
            let sampled = if args.no_zeros { Ok(None) } else { add_sample(path, SampleOptions::default()) };
            let size = std::fs::metadata(path).map_or(0, |about| about.len());
            report(path, &recording, size)?;
            match sampled {
                Ok(sample) => {
                    for problem in sample.iter().flat_map(|sample| &sample.problems) {
                        out::warning(&format!("sample of what reads found: {problem}"));
                    }
                }
                Err(error) => out::warning(&format!("what the reads found could not be sampled: {error}")),
            }
            Ok(code)
        }
        Err(error) => {
            // An empty file would prevent the next attempt.
            let is_empty = std::fs::metadata(path).is_ok_and(|about| about.len() == 0);
            if is_empty {
                let _ = std::fs::remove_file(path);
            }
            Err(error)
        }
    }
}

fn record_into(args: &TraceRecordArgs, global: &Global, file: File) -> Result<(Recording, Code)> {
    let options = CaptureOptions {
        devices: args.device.clone(),
        buffer_kib: args.buffer >> 10,
        most_bytes: args.max_bytes,
        files: (!args.no_files).then(|| args.files.clone()),
        live: false,
    };
    let catalogue = args.target.as_ref().map(|target| Catalogue::open(target, global)).transpose()?;
    let program = args.command.first().cloned();
    let stop = signal::listen_saying("kelvin: ending the recording; Ctrl-C again to stop now")?;
    let capture = Capture::start(&options, program.clone(), BufWriter::with_capacity(1 << 17, file))?;
    let mut child = match program {
        Some(program) => {
            let mut command = Command::new(&program);
            command.args(&args.command[1..]);
            match command.spawn() {
                Ok(child) => Some(child),
                Err(error) => {
                    drop(capture);
                    let _ = std::fs::remove_file(&args.output);
                    return Err(error).with_context(|| format!("cannot run {program}"));
                }
            }
        }
        None => None,
    };
    if !global.quiet && child.is_none() && args.duration.is_none() {
        out::note("kelvin: recording; Ctrl-C ends it");
    }
    let followed = follow(capture, args, &stop, child.as_mut(), catalogue);
    let Some(mut child) = child else {
        // Without a command, Ctrl-C is the normal end of a recording.
        return followed.map(|recording| (recording, Code::Success));
    };
    // The command got the Ctrl-C, too, but is asked once more. If the recording failed, the command is not needed
    // any more.
    if followed.is_err() || stop.requested() {
        ask_to_end(&mut child);
    }
    let status = child.wait().context("cannot wait for the command");
    let (recording, status) = (followed?, status?);
    let code = if stop.requested() {
        Code::Interrupted
    } else if status.success() {
        Code::Success
    } else {
        out::warning(&format!("the command ended with {status}"));
        Code::Aborted
    };
    Ok((recording, code))
}

/// Records until the command ends, the time is up, the file is full, or Ctrl-C.
fn follow(
    mut capture: Capture<BufWriter<File>>,
    args: &TraceRecordArgs,
    stop: &Stop,
    mut child: Option<&mut Child>,
    catalogue: Option<Catalogue>,
) -> Result<Recording> {
    let mut over = None;
    loop {
        let goes_on = capture.drain()?;
        if let Some(child) = &mut child
            && over.is_none()
            && child.try_wait()?.is_some()
        {
            over = Some(capture.lasted() + AFTER);
        }
        let is_after = over.is_some_and(|over| capture.lasted() >= over);
        if !goes_on
            || stop.requested()
            || is_after
            || capture.is_over(args.duration.map(kelvin_run::spec::Span::duration))
        {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    if let Some(catalogue) = catalogue {
        capture.name_objects(&catalogue.names())?;
    }
    let (recording, _) = capture.finish()?;
    if recording.full {
        out::warning(&format!(
            "recording ended early: the file has {} (--max-bytes)",
            binary(args.max_bytes)
        ));
    }
    Ok(recording)
}

/// A database whose catalogue has the names of files.
struct Catalogue {
    engine: Arc<dyn Engine>,
    names: Vec<(String, String, String)>,
    directory: Option<PathBuf>,
}

impl Catalogue {
    /// Connects, and reads the present names.
    fn open(target: &TargetName, global: &Global) -> Result<Self> {
        let mut note = |text: &str| {
            if !global.quiet {
                out::note(text);
            }
        };
        let engine = open(target, Purpose::Existing, &mut note)?.engine;
        let names = engine::file_names(engine.as_ref())?;
        let directory = engine.data_directory(engine.connect()?.as_mut());
        Ok(Self { engine, names, directory })
    }

    /// The names at the beginning and now: TRUNCATE and REINDEX give relations new files.
    fn names(mut self) -> Vec<(String, String)> {
        match engine::file_names(self.engine.as_ref()) {
            Ok(names) => self.names.extend(names),
            Err(error) => {
                out::warning(&format!("the catalog was not read at the end of the recording: {error}"));
            }
        }
        let mut names = catalogue_names(self.directory.as_deref(), self.names);
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Asks a command to end, unless it has ended.
pub(super) fn ask_to_end(child: &mut Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let (Ok(None), Some(pid)) = (child.try_wait(), pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn report(path: &Path, recording: &Recording, size: u64) -> Result<()> {
    let lasted = recording.lasted as f64 / 1e9;
    let requests = recording.requests;
    let mut text = format!(
        "{} requests in {} ({} per second), {} in {}\n",
        whole(requests),
        seconds(lasted),
        whole((requests as f64 / lasted.max(1e-9)).round() as u64),
        binary(size),
        path.display()
    );
    let events = recording.issues + recording.completions;
    if requests > 0 {
        text += &format!(
            "{:.1} bytes per event, {} of CPU per request ({} of one CPU)\n",
            size as f64 / events.max(1) as f64,
            nanos(recording.cpu as f64 / requests as f64),
            plain_percent(recording.cpu as f64 / recording.lasted.max(1) as f64),
        );
    }
    if recording.files_cpu > 0 {
        text += &format!("{} of CPU to map files\n", nanos(recording.files_cpu as f64));
    }
    text += &super::table::checks(recording);
    out::write(&text)?;
    if recording.lost > 0 {
        out::warning(&format!(
            "{} lost: the kernel's buffers were full; use a larger --buffer",
            count(recording.lost, "event")
        ));
    }
    Ok(())
}
