//! Runs a job that was made from a trace, and records its requests.

use std::io::BufWriter;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use kelvin_host::SystemTree;
use kelvin_host::disk::{device_name, device_number, member_devices, whole_disk};
use kelvin_trace::attribution::FileWatcher;
use kelvin_trace::capture::{Capture, CaptureOptions};
use kelvin_trace::import::{self, MOST};
use kelvin_trace::job::text::JobForm;
use kelvin_trace::job::{Fidelity, StreamJob, TraceJobs, compare, compare_all};
use kelvin_trace::stream::profile_of;
use kelvin_trace::{Operation, Request, Trace};

use super::record::{PAUSE, ask_to_end};
use super::to_fio::{create, write_iologs, write_new};
use crate::args::{Global, TraceToFioArgs};
use crate::{out, signal};

/// Runs the job in a new directory below the given one, and compares the requests that reached the device.
pub(super) fn verify(
    jobs: &TraceJobs,
    text: &str,
    form: JobForm,
    args: &TraceToFioArgs,
    global: &Global,
) -> Result<Vec<Fidelity>> {
    let home = tempfile::Builder::new().prefix("kelvin-to-fio-").tempdir_in(&args.directory);
    let home = home.with_context(|| format!("cannot make a directory in {}", args.directory.display()))?;
    // The recorder needs absolute paths of files.
    let place = home.path().canonicalize().context("cannot find the new directory")?;
    let device = device_of(&place)?;
    let is_mapped = !member_devices(&SystemTree::default(), &device).is_empty();
    if is_mapped || !FileWatcher::knows(&place) {
        bail!(
            "--directory must be on ext2 to ext4 or XFS on a disk or partition: on {} the blocks of files \
                cannot be determined",
            args.directory.display()
        );
    }
    write_new(&place.join("job.fio"), text.as_bytes())?;
    write_new(&place.join("layout.fio"), layout(jobs).as_bytes())?;
    if form == JobForm::Replay {
        write_iologs(jobs, &place)?;
    }
    let say = |text: String| {
        if !global.quiet {
            out::note(&text);
        }
    };
    say("kelvin: writing the job's files".into());
    let status = run(&place, "layout.fio")?.wait().context("cannot wait for kelvin io")?;
    if !status.success() {
        bail!("the job's files could not be written (kelvin io: {status})");
    }
    say(format!("kelvin: running the job for {:.0} s", jobs.lasts as f64 / 1e9));
    let path = place.join("run.trace");
    record(&place, &path)?;
    let trace = import::open(&path, MOST)?;
    fidelity(jobs, &trace, &place, &device)
}

/// A job that only writes the files, so that all their blocks contain data.
fn layout(jobs: &TraceJobs) -> String {
    let mut text = String::from("[global]\nioengine=psync\ncreate_only=1\nrw=read\n");
    let mut before = "";
    for stream in &jobs.streams {
        if before != stream.name {
            let (file, size) = (stream.file_name(), stream.file_bytes);
            text += &format!("[{}]\nfilename={file}\nsize={size}\n", stream.name);
        }
        before = &stream.name;
    }
    text
}

fn run(place: &Path, job: &str) -> Result<std::process::Child> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["io", job, "--no-store"]).current_dir(place).stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().context("cannot run kelvin io")
}

/// The job's process. If its recording fails, it is asked to end and waited for, because its directory is
/// removed.
struct RunningJob(std::process::Child);

impl Drop for RunningJob {
    fn drop(&mut self) {
        ask_to_end(&mut self.0);
        let _ = self.0.wait();
    }
}

fn record(place: &Path, path: &Path) -> Result<()> {
    let stop = signal::listen_saying("kelvin: stopping")?;
    let options = CaptureOptions { files: Some(vec![place.to_owned()]), ..CaptureOptions::default() };
    let mut capture = Capture::start(&options, None, BufWriter::with_capacity(1 << 17, create(path)?))?;
    let mut job = RunningJob(run(place, "job.fio")?);
    let status = loop {
        capture.drain()?;
        if let Some(status) = job.0.try_wait().context("cannot wait for kelvin io")? {
            break status;
        }
        // The signal may have been sent only to this process.
        if stop.requested() {
            bail!("stopped while the job ran");
        }
        std::thread::sleep(PAUSE);
    };
    let (recording, _) = capture.finish()?;
    if !status.success() {
        bail!("the job did not run to its end (kelvin io: {status})");
    }
    if recording.lost > 0 || recording.full {
        bail!("the recording of the job is incomplete: {} events were lost", recording.lost);
    }
    Ok(())
}

/// The disk that a directory is on.
fn device_of(place: &Path) -> Result<String> {
    let tree = SystemTree::default();
    let about = std::fs::metadata(place).context("cannot inspect the new directory")?;
    let name = device_name(&tree, &device_number(about.dev()));
    let name = name.with_context(|| format!("{} is not on a block device", place.display()))?;
    Ok(whole_disk(&tree, &name))
}

fn fidelity(jobs: &TraceJobs, trace: &Trace, place: &Path, device: &str) -> Result<Vec<Fidelity>> {
    let device = trace.devices.iter().position(|one| one.name == device).map(|place| place as u16);
    // Requests for files of the job, with the file of each.
    let of_job = |request: &&Request| {
        Some(request.device) == device
            && request.moves_data()
            && trace
                .files
                .get(request.file as usize)
                .is_some_and(|file| Path::new(&file.path).starts_with(place))
    };
    let all: Vec<&Request> = trace.requests.iter().filter(of_job).collect();
    if all.is_empty() {
        bail!("no request of the recording could be attributed to the job's files: nothing to compare");
    }
    let stream = |file: &str, request: &Request| {
        let path = trace.files.get(request.file as usize).map(|file| Path::new(&file.path));
        path.and_then(Path::file_name).is_some_and(|name| name == file)
    };
    let mut of_streams: Vec<Vec<Request>> = jobs
        .streams
        .iter()
        .map(|job| {
            let file = job.file_name();
            let is_of = |request: &&&Request| request.operation == job.operation && stream(&file, request);
            all.iter().filter(is_of).map(|request| **request).collect()
        })
        .collect();
    let times = || of_streams.iter().flatten().map(|request| request.at);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let lasts = (last - first).max(1);
    for request in of_streams.iter_mut().flatten() {
        request.at -= first;
    }
    let flushes = trace.requests.iter().filter(|one| {
        Some(one.device) == device && one.operation == Operation::Flush && (first..=last).contains(&one.at)
    });
    let per_second = |count: usize, lasts: u64| count as f64 / (lasts as f64 / 1e9);
    let flushes = (
        per_second(jobs.streams.iter().map(|job| job.flushes.len()).sum(), jobs.lasts),
        per_second(flushes.count(), lasts),
    );
    let mut of_run: Vec<Request> = of_streams.iter().flatten().copied().collect();
    of_run.sort_by_key(|request| request.at);
    let of_trace = jobs.together();
    let all = compare_all(&profile_of(&of_trace, jobs.lasts), &profile_of(&of_run, lasts), flushes);
    let totals = (of_trace.len() as u64, of_run.len() as u64);
    let one = |(job, requests): (&StreamJob, &Vec<Request>)| {
        compare(job.job_name(), &job.profile, &profile_of(requests, lasts), totals)
    };
    Ok(std::iter::once(all).chain(jobs.streams.iter().zip(&of_streams).map(one)).collect())
}
