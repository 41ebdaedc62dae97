//! Records storage requests during a run, for its window.

mod streams;

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kelvin_database::Engine;
use kelvin_measure::event::{Phase, Status};
use kelvin_measure::{Clock, Event, Nanos, Sink, SinkError, SourceId};
use kelvin_observe::engine;
use kelvin_observe::watch::Watcher;
use kelvin_run::Spec;
use kelvin_run::spec::Observe;
use kelvin_store::{RunId, Store};
use kelvin_trace::attribution::catalogue_names;
use kelvin_trace::capture::{Capture, CaptureOptions, LiveTotals};
use kelvin_trace::import::{self, MOST};
use kelvin_trace::summary::{TraceSummary, summary};
use kelvin_trace::zeros::{SampleOptions, add_sample};
use rustix::time::{ClockId, clock_gettime};

use crate::error::StoreBenchError;
use streams::StreamWatcher;

/// Interval between two reads of the kernel's buffers.
const PAUSE: Duration = Duration::from_millis(20);

/// Maximum number of sums of the streams that may wait for their watcher.
const MOST_WAITING: usize = 16;

/// The name of the summary in the storage data of a run.
pub const TRACE: &str = "trace";

/// The path of a run's recording: next to the store, named by the run's number.
pub fn trace_path(store: &Path, run: RunId) -> PathBuf {
    directory(store).join(format!("{}.trace", run.0))
}

fn directory(store: &Path) -> PathBuf {
    let mut name = store.file_name().unwrap_or_default().to_os_string();
    name.push(".traces");
    store.with_file_name(name)
}

/// A recording in progress, in a separate thread.
pub(crate) struct RunTrace {
    path: PathBuf,
    end: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), String>>,
    /// Whether it ends with a sample of the contents of the reads.
    has_zeros: bool,
    /// The traffic by stream, until a watcher takes it, and its interval.
    live: Option<(Receiver<LiveTotals>, Duration)>,
}

/// Sends the sums of the streams at an interval.
struct LiveSender {
    to: SyncSender<LiveTotals>,
    interval: Duration,
    due: Instant,
}

impl LiveSender {
    fn send_if_due(&mut self, capture: &mut Capture<BufWriter<File>>) -> kelvin_trace::Result<()> {
        let now = Instant::now();
        if now < self.due {
            return Ok(());
        }
        self.due = now + self.interval;
        if let Some(totals) = capture.live()? {
            // Without a watcher, the next sums include these.
            let _ = self.to.try_send(totals);
        }
        Ok(())
    }
}

impl RunTrace {
    /// Starts a recording if the specification requests it.
    pub(crate) fn begin_if(
        spec: &Spec,
        store: &Store,
        engine: Option<&Arc<dyn Engine>>,
    ) -> Result<Option<Self>, StoreBenchError> {
        let observe = &spec.observe;
        observe.trace.then(|| Self::begin(store, engine.cloned(), observe)).transpose()
    }

    /// The watcher of the streams; none on a second call.
    pub(crate) fn watcher(&mut self) -> Option<Box<dyn Watcher>> {
        let (totals, interval) = self.live.take()?;
        Some(Box::new(StreamWatcher::new(totals, interval)))
    }

    /// Starts recording all devices. A recording that is impossible fails here, before the load.
    fn begin(
        store: &Store,
        engine: Option<Arc<dyn Engine>>,
        observe: &Observe,
    ) -> Result<Self, StoreBenchError> {
        let (interval, has_zeros) = (observe.interval.duration(), observe.trace_zeros);
        let refused = |problem: String| StoreBenchError::Refused(format!("--trace: {problem}"));
        let home = directory(store.path());
        remove_left_over(&home);
        let path = home.join(format!("new-{}.trace", std::process::id()));
        let file = create(&home, &path).map_err(|error| refused(format!("{}: {error}", path.display())))?;
        let end = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&end);
        let (started, start) = std::sync::mpsc::channel();
        let (to, live) = sync_channel(MOST_WAITING);
        let mut sender = LiveSender { to, interval, due: Instant::now() };
        // The recorder's CPU time is accounted to the thread that started it.
        let record = move || {
            let options = CaptureOptions { live: true, ..CaptureOptions::default() };
            let capture = Capture::start(&options, None, BufWriter::with_capacity(1 << 17, file));
            let mut capture = match capture {
                Ok(capture) => capture,
                Err(error) => {
                    let _ = started.send(Err(error.to_string()));
                    return Ok(());
                }
            };
            let _ = started.send(Ok(()));
            // A slow answer of the server must not keep the recorder from reading the kernel's buffers.
            let ask = || {
                let engine = engine.clone();
                std::thread::spawn(move || file_names(engine.as_ref()))
            };
            let first = ask();
            while !is_over.load(Ordering::Acquire) && capture.drain().map_err(|error| error.to_string())? {
                sender.send_if_due(&mut capture).map_err(|error| error.to_string())?;
                std::thread::sleep(PAUSE);
            }
            let last = ask();
            while !(first.is_finished() && last.is_finished())
                && capture.drain().map_err(|error| error.to_string())?
            {
                std::thread::sleep(PAUSE);
            }
            let mut names: Vec<(String, String)> =
                [first, last].into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect();
            names.sort_unstable();
            names.dedup();
            capture.name_objects(&names).map_err(|error| error.to_string())?;
            capture.finish().map(|_| ()).map_err(|error| error.to_string())
        };
        let spawned = std::thread::Builder::new().name("kelvin-trace".into()).spawn(record);
        let thread = spawned.map_err(|error| refused(error.to_string()))?;
        match start.recv() {
            Ok(Ok(())) => Ok(Self { path, end, thread, has_zeros, live: Some((live, interval)) }),
            Ok(Err(problem)) => {
                let _ = std::fs::remove_file(&path);
                Err(refused(problem))
            }
            Err(_) => Err(refused("the recorder ended immediately".into())),
        }
    }

    /// Ends the recording, renames it after the run, and summarizes the requests issued in the window.
    fn finish(self, to: &Path, (begin, end): (Nanos, Nanos)) -> Result<TraceSummary, String> {
        let Self { path, end: flag, thread, has_zeros, live: _ } = self;
        flag.store(true, Ordering::Release);
        thread.join().map_err(|_| "the recorder panicked".to_owned())??;
        std::fs::rename(&path, to).map_err(|error| format!("{}: {error}", to.display()))?;
        // The results of the run do not depend on it.
        let sampled = if has_zeros { add_sample(to, SampleOptions::default()) } else { Ok(None) };
        let mut trace = import::open(to, MOST).map_err(|error| error.to_string())?;
        if let Err(error) = sampled {
            trace.notes.push(format!("what the reads found could not be sampled: {error}"));
        }
        let window = trace.within(begin, end);
        drop(trace);
        let file = to.display().to_string();
        let file_bytes = std::fs::metadata(to).map_or(0, |about| about.len());
        Ok(TraceSummary { file, file_bytes, window: Some((begin, end)), ..summary(&window) })
    }
}

/// Removes recordings that killed processes left unfinished.
fn remove_left_over(home: &Path) {
    for entry in std::fs::read_dir(home).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix("new-")?.strip_suffix(".trace")?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn create(home: &Path, path: &Path) -> std::io::Result<File> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(home)?;
    // A file that a killed process with the same id left.
    let mut open = File::options();
    open.write(true).create(true).truncate(true).mode(0o600);
    open.open(path)
}

/// The names of files according to the catalogue; without a connection they keep their numbers.
fn file_names(engine: Option<&Arc<dyn Engine>>) -> Vec<(String, String)> {
    let Some(engine) = engine else { return Vec::new() };
    let names = engine::file_names(engine.as_ref()).unwrap_or_default();
    if names.is_empty() {
        return Vec::new();
    }
    let directory = engine.connect().ok().and_then(|mut session| engine.data_directory(session.as_mut()));
    catalogue_names(directory.as_deref(), names)
}

/// The sink of a run with a storage recording. The summary is stored before the end of the run.
pub(crate) struct TracedSink<'a> {
    inner: &'a mut dyn Sink,
    trace: Option<RunTrace>,
    to: PathBuf,
    /// How far the run's clock is behind the kernel's.
    offset: Nanos,
    window: Option<(Nanos, Option<Nanos>)>,
    clock: Clock,
}

impl<'a> TracedSink<'a> {
    /// Wraps the sink of a run that has a number and a clock.
    pub(crate) fn new(
        inner: &'a mut dyn Sink,
        trace: Option<RunTrace>,
        store: &Store,
        run: RunId,
        clock: &Clock,
    ) -> Self {
        let time = clock_gettime(ClockId::Monotonic);
        let now = (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64);
        let to = trace_path(store.path(), run);
        Self { inner, trace, to, offset: now.saturating_sub(clock.now()), window: None, clock: clock.clone() }
    }

    /// For a run with several points, the window lasts from the start of the first to the end of the last.
    fn note(&mut self, event: &Event) {
        let Event::Phase { phase, at, .. } = event else { return };
        match (&mut self.window, *phase) {
            (None, Phase::Measure) => self.window = Some((*at, None)),
            (Some((_, end)), Phase::Measure) => *end = None,
            (Some((_, end)), _) => {
                end.get_or_insert(*at);
            }
            _ => {}
        }
    }

    fn store(&mut self, trace: RunTrace) -> Result<(), SinkError> {
        let now = self.clock.now();
        let (begin, end) = self.window.map_or((0, now), |(begin, end)| (begin, end.unwrap_or(now)));
        let window = (begin.saturating_add(self.offset), end.saturating_add(self.offset));
        let body = match trace.finish(&self.to, window) {
            Ok(summary) => serde_json::to_value(&summary).unwrap_or_default(),
            Err(problem) => {
                let notes = vec![format!("the storage could not be recorded: {problem}")];
                serde_json::to_value(TraceSummary { notes, ..TraceSummary::default() }).unwrap_or_default()
            }
        };
        self.inner.event(&Event::Storage { what: TRACE.into(), body })
    }
}

impl Sink for TracedSink<'_> {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.note(event);
        if matches!(event, Event::Finished { status: Status::Complete | Status::Interrupted, .. })
            && let Some(trace) = self.trace.take()
        {
            self.store(trace)?;
        }
        self.inner.event_from(source, event)
    }
}

impl Drop for TracedSink<'_> {
    fn drop(&mut self) {
        // The run stopped without an end event, so no part of the result refers to the recording.
        if let Some(trace) = self.trace.take() {
            trace.end.store(true, Ordering::Release);
            let _ = trace.thread.join();
            let _ = std::fs::remove_file(&trace.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let mine = format!("new-{}.trace", std::process::id());
        // No process has an id this large.
        for name in ["new-4194999.trace", mine.as_str(), "7.trace", "new-x.trace"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        remove_left_over(home.path());
        let mut left: Vec<_> =
            std::fs::read_dir(home.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        left.sort();
        let mut expected = vec!["7.trace".into(), std::ffi::OsString::from(mine), "new-x.trace".into()];
        expected.sort();
        assert_eq!(left, expected);
    }
}
