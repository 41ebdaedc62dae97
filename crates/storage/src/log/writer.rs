//! Writes the log files of all workers while they run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::file::{LogFile, join};
use super::form::{Form, row_of};
use super::summed::Summed;
use super::{Chunk, LogKind};
use crate::job::{Job, Jobs, LogValue};
use crate::{Error, Result};

/// A job's log of one kind, for one worker.
struct Own {
    kind: LogKind,
    file: usize,
}

/// The destinations of a worker's rows, by index into the writer's lists.
struct Worker {
    form: Form,
    rows: Vec<Own>,
    histogram: Option<usize>,
    sums: Vec<usize>,
}

/// A summed log and its file.
struct SummedLog {
    summed: Summed,
    form: Form,
    maximum: bool,
    path: PathBuf,
    file: usize,
}

/// A log of several workers, one after the other as in fio: each has a separate file until the end.
struct Shared {
    path: PathBuf,
    parts: Vec<usize>,
}

/// The log files of a run. [`LogWriter::chunk`] passes all rows to the kernel before it returns.
pub struct LogWriter {
    files: Vec<LogFile>,
    workers: Vec<Worker>,
    sums: Vec<SummedLog>,
    shared: Vec<Shared>,
    rows: Vec<u8>,
}

/// The list of the log files while it is built.
struct Places<'a> {
    directory: &'a Path,
    files: Vec<LogFile>,
    by_path: BTreeMap<PathBuf, usize>,
    shared: Vec<Shared>,
}

impl Places<'_> {
    /// The index of the file at a path, which is listed once.
    fn place(&mut self, path: &Path, compressed: bool) -> usize {
        let next = self.files.len();
        let place = *self.by_path.entry(path.to_owned()).or_insert(next);
        if place == next {
            self.files.push(LogFile::new(path.to_owned(), compressed));
        }
        place
    }

    /// The index of a worker's file with a prefix and a kind.
    fn worker_file(
        &mut self,
        job: &Job,
        number: usize,
        (prefix, word): (&str, &str),
        compressed: bool,
    ) -> usize {
        if job.logs.per_job {
            return self.place(&self.directory.join(format!("{prefix}_{word}.{number}.log")), compressed);
        }
        let end = if compressed { ".fz" } else { "" };
        let path = self.directory.join(format!("{prefix}_{word}.log{end}"));
        let part = self.place(&self.directory.join(format!("{prefix}_{word}.log.{number}.part")), compressed);
        match self.shared.iter_mut().find(|shared| shared.path == path) {
            Some(shared) => shared.parts.push(part),
            None => self.shared.push(Shared { path, parts: vec![part] }),
        }
        part
    }
}

/// The prefix of one of a job's logs, if requested.
fn prefix(job: &Job, kind: LogKind) -> Option<&str> {
    let (logs, disabled) = (&job.logs, job.report.disabled);
    let (prefix, taken) = match kind {
        LogKind::Bandwidth => (&logs.bandwidth, true),
        LogKind::Iops => (&logs.iops, true),
        LogKind::Submission => (&logs.latency, !disabled.submission),
        LogKind::Completion => (&logs.latency, !disabled.completion),
        LogKind::Total => (&logs.latency, !disabled.latency),
    };
    let prefix = prefix.as_deref().filter(|_| taken)?;
    // As in fio, the default is the job's name.
    Some(if prefix.is_empty() { &job.name } else { prefix })
}

/// The time of a clock when the wall clock shows `started`, in milliseconds.
fn epoch(job: &Job, clock: i32, started: i64) -> Result<i64> {
    use rustix::time::{ClockId, clock_gettime};
    let clock = match clock {
        0 => return Ok(started),
        1 => ClockId::Monotonic,
        4 => ClockId::MonotonicRaw,
        7 => ClockId::Boottime,
        other => {
            return Err(Error::refused(
                &job.name,
                format!(
                    "clock {other} is not supported for log times: use 0 (realtime), 1 (monotonic), 4 (raw) \
                     or 7 (boottime)"
                ),
            ));
        }
    };
    let millis = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    };
    Ok(started + millis(clock) - millis(ClockId::Realtime))
}

impl LogWriter {
    /// For the workers of all jobs, in order. Relative names are below `directory`; `started` is the wall clock's time
    /// at the zero of the run's clock, in milliseconds since 1970. The files are created immediately.
    pub fn new(jobs: &Jobs, directory: Option<&Path>, started: i64) -> Result<Self> {
        let mut places = Places {
            directory: directory.unwrap_or(Path::new("")),
            files: Vec::new(),
            by_path: BTreeMap::new(),
            shared: Vec::new(),
        };
        let mut writer = Self {
            files: Vec::new(),
            workers: Vec::new(),
            sums: Vec::new(),
            shared: Vec::new(),
            rows: Vec::new(),
        };
        for job in &jobs.jobs {
            let clock = job.logs.epoch_clock.map(|clock| epoch(job, clock, started)).transpose()?;
            let form = Form::new(&job.logs, clock);
            if job.logs.compressed && (job.logs.issue_time || job.logs.value == LogValue::Both) {
                return Err(Error::refused(
                    &job.name,
                    "compressed logs (log_store_compressed) cannot hold log_issue_time or a maximum in \
                     addition to the mean: remove one of them",
                ));
            }
            for _ in 0..job.clones {
                // fio counts its workers from 1 over all jobs.
                let number = writer.workers.len() + 1;
                let mut worker = Worker { form, rows: Vec::new(), histogram: None, sums: Vec::new() };
                for kind in LogKind::ALL {
                    let Some(prefix) = prefix(job, kind) else { continue };
                    // The sum has the name of fio's single file for all jobs, and replaces it.
                    if job.logs.per_job || !job.logs.summed {
                        let file =
                            places.worker_file(job, number, (prefix, kind.word()), job.logs.compressed);
                        worker.rows.push(Own { kind, file });
                    }
                    if job.logs.summed {
                        let path = places.directory.join(format!("{prefix}_{}.log", kind.word()));
                        let file = places.place(&path, job.logs.compressed);
                        let known = writer.sums.iter().position(|sum| sum.path == path);
                        let at = known.unwrap_or(writer.sums.len());
                        if known.is_none() {
                            writer.sums.push(SummedLog {
                                summed: Summed::new(kind, job.logs.window.unwrap_or(0)),
                                form,
                                maximum: job.logs.value != LogValue::Average,
                                path,
                                file,
                            });
                        }
                        worker.sums.push(at);
                    }
                }
                if let Some(name) = &job.logs.histogram {
                    let prefix = if name.is_empty() { &job.name } else { name };
                    // Histograms are rows of text in fio's compressed logs too.
                    worker.histogram = Some(places.worker_file(job, number, (prefix, "clat_hist"), false));
                }
                writer.workers.push(worker);
            }
        }
        (writer.files, writer.shared) = (places.files, places.shared);
        for file in &mut writer.files {
            file.create()?;
        }
        Ok(writer)
    }

    /// Whether no job requests a log.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Writes a worker's chunk.
    pub fn chunk(&mut self, worker: u32, chunk: &Chunk) -> Result<()> {
        let Some(worker_logs) = self.workers.get(worker as usize) else {
            return Err(Error::Disagreement(format!("a log belongs to the unknown worker {worker}")));
        };
        for own in &worker_logs.rows {
            self.rows.clear();
            for row in chunk.rows.iter().filter(|row| row.kind == own.kind) {
                worker_logs.form.row(&mut self.rows, chunk.begin, row);
            }
            for done in &chunk.done {
                worker_logs.form.row(&mut self.rows, chunk.begin, &row_of(done, own.kind));
            }
            if let Some(file) = self.files.get_mut(own.file) {
                file.add(&self.rows)?;
            }
        }
        if let Some(file) = worker_logs.histogram.and_then(|place| self.files.get_mut(place)) {
            self.rows.clear();
            for row in &chunk.histograms {
                worker_logs.form.histogram(&mut self.rows, chunk.begin, row);
            }
            file.add(&self.rows)?;
        }
        for &place in &worker_logs.sums {
            let Some(sum) = self.sums.get_mut(place) else { continue };
            let kind = sum.summed.kind();
            let single = chunk.done.iter().map(|done| row_of(done, kind));
            sum.summed.add(worker, chunk, chunk.rows.iter().copied().chain(single));
            sum.write(false, &mut self.files, &mut self.rows)?;
        }
        Ok(())
    }

    /// Completes and closes all files. Returns notes for the reader of the logs.
    pub fn finish(mut self) -> Result<Vec<String>> {
        let mut notes = Vec::new();
        for sum in &mut self.sums {
            sum.write(true, &mut self.files, &mut self.rows)?;
            let late = sum.summed.late();
            if late > 0 {
                notes.push(format!(
                    "{} lacks {late} I/Os that were reported after their window was written",
                    sum.path.display()
                ));
            }
        }
        let paths = self.files.into_iter().map(LogFile::finish).collect::<Result<Vec<_>>>()?;
        for shared in &self.shared {
            let parts: Vec<_> = shared.parts.iter().filter_map(|part| paths.get(*part).cloned()).collect();
            join(&shared.path, &parts)?;
        }
        Ok(notes)
    }
}

impl SummedLog {
    fn write(&mut self, all: bool, files: &mut [LogFile], rows: &mut Vec<u8>) -> Result<()> {
        rows.clear();
        for row in self.summed.rows(all, self.maximum) {
            // Times in a sum are on the run's clock: its workers began at different times.
            self.form.row(rows, 0, &row);
        }
        match files.get_mut(self.file) {
            Some(file) => file.add(rows),
            None => Ok(()),
        }
    }
}
