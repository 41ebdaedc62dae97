//! Carries out the layout plan and reports progress.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use kelvin_measure::Stop;
use rustix::fs::{Advice, FallocateFlags};

use super::extent;
use super::plan::{LayoutPlan, LayoutStep, TargetLayout};
use crate::job::Fallocate;
use crate::{Error, Result, TargetKind};
use kelvin_measure::text::exact;

/// Bytes per write.
const CHUNK: usize = 1 << 20;

/// Bytes written between syncs. The limit lets a stop take effect soon, and keeps the page cache available to other
/// processes.
const A_SYNC: u64 = 128 << 20;

/// Receives the progress of the layout: the worker, the step, bytes done and in total.
pub(crate) type ProgressReport<'a> = &'a (dyn Fn(u32, &str, u64, u64) + Sync);

/// Carries out a plan. If it ends early, the completed part is kept: a new plan for the same
/// jobs continues from there.
pub(crate) fn carry_out_plan(plan: &LayoutPlan, stop: &Stop, report: ProgressReport<'_>) -> Result<()> {
    for directory in &plan.directories {
        fs::create_dir_all(directory)
            .map_err(Error::system(format!("cannot create {}", directory.display())))?;
    }
    let total = plan.makings.iter().flat_map(|making| &making.steps).map(|step| step.bytes()).sum();
    let progress = Progress { done: Mutex::new(0), total, report };
    for making in plan.makings.iter().filter(|making| making.serialize) {
        one(making, stop, &progress)?;
    }
    beside_each_other(plan, stop, &progress)
}

/// Makes the files of workers with `create_serialize=0`, with a thread for each worker.
fn beside_each_other(plan: &LayoutPlan, stop: &Stop, progress: &Progress<'_>) -> Result<()> {
    let mut workers: Vec<u32> =
        plan.makings.iter().filter(|making| !making.serialize).map(|making| making.worker).collect();
    workers.dedup();
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter()
            .map(|worker| {
                scope.spawn(move || {
                    let mut mine = plan.makings.iter().filter(|m| !m.serialize && m.worker == *worker);
                    mine.try_for_each(|making| one(making, stop, progress))
                })
            })
            .collect();
        let ends = threads.into_iter().map(|thread| {
            let died = || Err(Error::Disagreement("a thread that laid out files panicked".into()));
            thread.join().unwrap_or_else(|_| died())
        });
        ends.collect()
    })
}

/// The total progress.
struct Progress<'a> {
    done: Mutex<u64>,
    total: u64,
    report: ProgressReport<'a>,
}

impl Progress<'_> {
    fn add(&self, making: &TargetLayout, what: &str, more: u64) {
        let mut done = self.done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *done += more;
        (self.report)(making.worker, what, *done, self.total);
    }
}

fn one(making: &TargetLayout, stop: &Stop, progress: &Progress<'_>) -> Result<()> {
    if stop.requested() {
        return Ok(());
    }
    let shown = making.path.display();
    let failed =
        |what: &str, cause: io::Error| Error::System { what: format!("cannot {what} {shown}"), cause };
    // Never truncated here: the content of a file is kept unless a step requires otherwise.
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(making.kind == TargetKind::File)
        .truncate(false)
        .open(&making.path)
        .map_err(|cause| failed("open", cause))?;
    let what = format!("laying out {shown}");
    progress.add(making, &what, 0);
    let writer = Writer { making, file: &file, what: &what, stop, progress };
    for step in &making.steps {
        match *step {
            LayoutStep::Truncate => file.set_len(0).map_err(|cause| failed("empty", cause))?,
            LayoutStep::Reserve { to, how } => {
                reserve(&file, to, how).map_err(|cause| full(making, cause, 0, to))?;
            }
            LayoutStep::Data { from, to, reserve } => {
                if reserve {
                    together(&file, from, to, making.fallocate)
                        .map_err(|cause| full(making, cause, from, to))?;
                }
                writer.write(from..to)?;
            }
            LayoutStep::UntilFull { from } => writer.until_full(from)?,
            LayoutStep::Fill { from, to } if making.kind == TargetKind::File => {
                let parts =
                    extent::unwritten(&file, from..to).map_err(|cause| failed("find the holes of", cause))?;
                let missing: u64 = parts.iter().map(|part| part.end - part.start).sum();
                progress.add(making, &what, to - from - missing);
                for part in parts {
                    writer.write(part)?;
                }
            }
            LayoutStep::Fill { from, to } => writer.zeros(from..to)?,
        }
        if stop.requested() {
            return Ok(());
        }
    }
    // Reserved or emptied files have no data to be synced first, as with fio.
    let has_data = |step: &LayoutStep| step.bytes() > 0 || matches!(step, LayoutStep::UntilFull { .. });
    if making.fsync && making.steps.iter().any(has_data) {
        file.sync_all().map_err(|cause| failed("sync", cause))?;
        // The run should not read the data just written from memory.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    }
    Ok(())
}

/// An error while a file grew, with the size that was reached.
fn full(making: &TargetLayout, cause: io::Error, from: u64, to: u64) -> Error {
    let what = format!("cannot lay out {} from {} to {}", making.path.display(), exact(from), exact(to));
    Error::System { what, cause }
}

/// Reserves space as `fallocate=` specifies, which may also set the size.
fn reserve(file: &File, to: u64, how: Fallocate) -> io::Result<()> {
    match how {
        Fallocate::None => Ok(()),
        Fallocate::Truncate => {
            if file.metadata()?.len() < to {
                file.set_len(to)?;
            }
            Ok(())
        }
        Fallocate::Keep => Ok(rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, to)?),
        // Where the filesystem does not support it, `native` continues without.
        Fallocate::Native => without_support(rustix::fs::fallocate(file, FallocateFlags::empty(), 0, to)),
        Fallocate::Posix => posix_fallocate(file, to),
    }
}

/// The C library's method, which writes into each block where the filesystem does not support it.
fn posix_fallocate(file: &File, to: u64) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let to = libc::off_t::try_from(to).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
    // SAFETY: the descriptor is open as long as `file` is borrowed, and no memory is handed over.
    #[allow(unsafe_code)] // rustix has the system call, not the C library's substitute for it
    let answer = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, to) };
    if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
}

/// Reserves space for the data that follows, contiguously if possible. The size does not change: it shows the progress
/// of an interrupted layout.
fn together(file: &File, from: u64, to: u64, how: Fallocate) -> io::Result<()> {
    if how == Fallocate::None || how == Fallocate::Truncate {
        return Ok(());
    }
    without_support(rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, to - from))
}

fn without_support(answer: rustix::io::Result<()>) -> io::Result<()> {
    match answer {
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
        answer => Ok(answer?),
    }
}

/// Writes data into one file or device.
struct Writer<'a> {
    making: &'a TargetLayout,
    file: &'a File,
    what: &'a str,
    stop: &'a Stop,
    progress: &'a Progress<'a>,
}

impl Writer<'_> {
    fn write(&self, range: Range<u64>) -> Result<()> {
        self.chunks(range, |_, _| Ok(true))
    }

    /// Overwrites those chunks of a device that contain a 4 KiB block of zeros. Other chunks are left unchanged, so
    /// that a second run continues where the first ended.
    fn zeros(&self, range: Range<u64>) -> Result<()> {
        const BLOCK: usize = 4096;
        let read = |at: u64, buffer: &mut [u8]| {
            self.file.read_exact_at(buffer, at)?;
            Ok(buffer.chunks(BLOCK).any(|block| block.iter().all(|byte| *byte == 0)))
        };
        self.chunks(range, read)
    }

    /// Processes a range in chunks, writes those for which `needed` is true, and syncs them at intervals.
    fn chunks(
        &self,
        range: Range<u64>,
        mut needed: impl FnMut(u64, &mut [u8]) -> io::Result<bool>,
    ) -> Result<()> {
        let failed = |at: u64| move |cause| full(self.making, cause, at, at + CHUNK as u64);
        let mut filling = self.making.filling.from(range.start)?;
        let mut buffer = vec![0; CHUNK];
        let (mut at, mut unsynced) = (range.start, 0);
        while at < range.end && !self.stop.requested() {
            // Chunks end at multiples of their size, which suits every filesystem and device.
            let next = (at + 1).next_multiple_of(CHUNK as u64).min(range.end);
            let length = (next - at) as usize;
            let Some(chunk) = buffer.get_mut(..length) else { break };
            if needed(at, chunk).map_err(failed(at))? {
                filling.fill(at, chunk);
                self.file.write_all_at(chunk, at).map_err(failed(at))?;
                unsynced += length as u64;
            }
            at = next;
            self.progress.add(self.making, self.what, length as u64);
            if unsynced >= A_SYNC && self.making.fsync {
                self.file.sync_data().map_err(failed(at))?;
                let _ = rustix::fs::fadvise(self.file, 0, None, Advice::DontNeed);
                unsynced = 0;
            }
        }
        Ok(())
    }

    fn until_full(&self, from: u64) -> Result<()> {
        match self.chunks(from..u64::MAX - CHUNK as u64, |_, _| Ok(true)) {
            Err(Error::System { cause, .. })
                if matches!(cause.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) =>
            {
                Ok(())
            }
            end => end,
        }
    }
}

/// The size of a file now, in bytes.
pub(crate) fn size(path: &Path) -> io::Result<u64> {
    Ok(fs::metadata(path)?.len())
}
