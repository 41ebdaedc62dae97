//! One thread with its file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, OFlags};

use super::block::{self, Buffer};
use super::counters::{Counters, add, add_time};
use super::plan::{VioperfPlan, free, refused};
use super::report::Test;
use super::{MB, Options};
use crate::error::{Error, Result};

/// Blocks that a file grows by between two checks of the free space.
const LOOK_EVERY: u64 = 64;

/// Number of names tried for a file, in case another run has left some.
const NAMES: u32 = 100;

/// A thread's work in a test.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) test: Test,
    pub(super) begin: Instant,
    pub(super) length: Duration,
    pub(super) over: Arc<AtomicBool>,
    pub(super) crc: bool,
}

/// A thread's file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Worker {
    file: File,
    path: PathBuf,
    directory: usize,
    number: u32,
    direct: bool,
    buffer: Buffer,
    /// The maximum number of blocks of the file, and the present one.
    most: u64,
    blocks: u64,
    /// The file stops growing when the filesystem has fewer free bytes.
    reserve: u64,
    /// Writes so far: no two blocks are equal.
    writes: u64,
    remove: bool,
}

/// The reason why a file stopped growing.
enum Grown {
    Enough,
    /// The filesystem has less free space than at the beginning.
    NoRoom(String),
}

/// Creates the files, empty. Removes them again if one cannot be created.
pub(super) fn open(options: &Options, plan: &mut VioperfPlan) -> Result<Vec<Worker>> {
    let mut workers = Vec::new();
    for (index, directory) in plan.directories.iter().enumerate() {
        for _ in 0..directory.threads {
            let number = workers.len() as u32;
            let (file, path, direct) = make(&directory.path, number, options.direct)?;
            workers.push(Worker {
                file,
                path,
                directory: index,
                number,
                direct,
                buffer: Buffer::new(options.buffer, u64::from(number)),
                most: directory.file / options.buffer as u64,
                blocks: 0,
                reserve: directory.free / 4,
                writes: 0,
                remove: true,
            });
        }
        if options.direct && workers.last().is_some_and(|worker| !worker.direct) {
            plan.direct = false;
            plan.notes.push(format!(
                "{}: this filesystem does not support direct I/O; files are dropped from the page cache \
                 before reads",
                directory.path.display()
            ));
        }
    }
    Ok(workers)
}

fn make(directory: &Path, number: u32, direct: bool) -> Result<(File, PathBuf, bool)> {
    for name in 0..NAMES {
        let path = directory.join(format!(".kelvin-vioperf-{}-{number}-{name}", std::process::id()));
        let open = |direct: bool| {
            let flags = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
            OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .custom_flags(flags)
                .open(&path)
        };
        match open(direct) {
            Ok(file) => return Ok((file, path, direct)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) if direct && error.raw_os_error() == Some(libc::EINVAL) => {
                // The kernel may have created it before it refused the flag.
                let _gone = std::fs::remove_file(&path);
                let file = open(false)
                    .map_err(Error::system(format!("cannot create a file in {}", directory.display())))?;
                return Ok((file, path, false));
            }
            Err(error) => {
                return Err(refused(format!("cannot create a file in {}: {error}", directory.display())));
            }
        }
    }
    Err(refused(format!(
        "{} has {NAMES} files .kelvin-vioperf-{}-{number}-N from earlier runs; remove them",
        directory.display(),
        std::process::id()
    )))
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

impl Worker {
    pub(super) fn directory(&self) -> usize {
        self.directory
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, or keeps it; returns the error.
    pub(super) fn end(&mut self, preserve: bool) -> std::result::Result<(), String> {
        self.remove = false;
        if preserve {
            return Ok(());
        }
        std::fs::remove_file(&self.path)
            .map_err(|error| format!("{} cannot be removed: {error}; remove it by hand", self.path.display()))
    }

    /// Runs one test until its time is over; returns a note, or the error that ended it.
    pub(super) fn run(
        &mut self,
        order: &Order,
        counters: &Counters,
    ) -> std::result::Result<Option<String>, String> {
        let before = cpu_time();
        let result = match order.test {
            Test::Write => self.write(order, counters),
            Test::ReWrite => self.rewrite(order, counters).map(|()| None),
            Test::Read => self.read(order, counters).map(|()| None),
            Test::SkipRead => self.skip_read(order, counters).map(|()| None),
        };
        add_time(&counters.cpu, cpu_time().saturating_sub(before));
        result
    }

    /// Extends the file for half of the time, or until it has its full size; then overwrites it from its beginning.
    fn write(&mut self, order: &Order, counters: &Counters) -> std::result::Result<Option<String>, String> {
        let begin = Instant::now();
        let half = order.begin + order.length / 2;
        let mut note = None;
        loop {
            match self.grow(order, counters)? {
                None => {}
                Some(Grown::Enough) => break,
                Some(Grown::NoRoom(why)) => {
                    note = Some(why);
                    break;
                }
            }
            if Instant::now() >= half || over(order) {
                break;
            }
        }
        self.sync()?;
        add_time(&counters.extending, begin.elapsed());
        let begin = Instant::now();
        let mut place = 0;
        // At least once, so that there is a result however long extending took.
        loop {
            self.put(place, order.crc, counters)?;
            add(&counters.overwritten, self.buffer.bytes().len() as u64);
            place = (place + 1) % self.blocks;
            if over(order) {
                break;
            }
        }
        self.sync()?;
        add_time(&counters.overwriting, begin.elapsed());
        Ok(note)
    }

    /// Adds a block; returns the reason if the file cannot grow.
    fn grow(&mut self, order: &Order, counters: &Counters) -> std::result::Result<Option<Grown>, String> {
        if self.blocks >= self.most {
            return Ok(Some(Grown::Enough));
        }
        let stopped_at = |blocks: u64, bytes: usize| {
            format!("stops growing after {:.0} MB", blocks as f64 * bytes as f64 / MB)
        };
        let bytes = self.buffer.bytes().len();
        if self.blocks % LOOK_EVERY == LOOK_EVERY - 1 {
            let left = self.path.parent().and_then(|directory| free(directory).ok());
            if left.is_some_and(|left| left < self.reserve) {
                return Ok(Some(Grown::NoRoom(format!(
                    "{} {}: another process fills the filesystem",
                    self.path.display(),
                    stopped_at(self.blocks, bytes)
                ))));
            }
        }
        match self.put_now(self.blocks, order.crc, counters) {
            Ok(()) => {
                self.blocks += 1;
                add(&counters.extended, bytes as u64);
                Ok(None)
            }
            // No space, the quota is exhausted, or the file would be too large.
            Err(error)
                if self.blocks > 0
                    && matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)) =>
            {
                Ok(Some(Grown::NoRoom(format!(
                    "{} {}: {error}",
                    self.path.display(),
                    stopped_at(self.blocks, bytes)
                ))))
            }
            Err(error) => Err(self.failed("write", self.blocks, &error)),
        }
    }

    fn rewrite(&mut self, order: &Order, counters: &Counters) -> std::result::Result<(), String> {
        self.forget_cached();
        let begin = Instant::now();
        for place in self.around() {
            self.get(place, order.crc, counters)?;
            self.put(place, order.crc, counters)?;
            add(&counters.overwritten, self.buffer.bytes().len() as u64);
            if over(order) {
                break;
            }
            self.forget_at_the_end(place);
        }
        self.sync()?;
        add_time(&counters.overwriting, begin.elapsed());
        Ok(())
    }

    fn read(&mut self, order: &Order, counters: &Counters) -> std::result::Result<(), String> {
        self.forget_cached();
        for place in self.around() {
            self.get(place, order.crc, counters)?;
            if over(order) {
                break;
            }
            self.forget_at_the_end(place);
        }
        Ok(())
    }

    /// Reads each block once, in an order without adjacent blocks, repeatedly.
    fn skip_read(&mut self, order: &Order, counters: &Counters) -> std::result::Result<(), String> {
        self.forget_cached();
        let step = skip(self.blocks);
        let mut place = 0;
        loop {
            self.get(place, order.crc, counters)?;
            add(&counters.seeks, 1);
            place = (place + step) % self.blocks;
            if over(order) {
                return Ok(());
            }
            if place == 0 {
                self.forget_cached();
            }
        }
    }

    /// The blocks from the first to the last, repeated indefinitely.
    fn around(&self) -> impl Iterator<Item = u64> + use<> {
        let blocks = self.blocks.max(1);
        (0..).map(move |count| count % blocks)
    }

    fn put(&mut self, place: u64, crc: bool, counters: &Counters) -> std::result::Result<(), String> {
        self.put_now(place, crc, counters).map_err(|error| self.failed("write", place, &error))
    }

    fn put_now(&mut self, place: u64, crc: bool, counters: &Counters) -> io::Result<()> {
        self.writes += 1;
        let (number, writes) = (self.number, self.writes);
        let bytes = self.buffer.bytes_mut();
        block::stamp(bytes, number, place, writes);
        if crc {
            timed(counters, bytes.len(), || block::seal(bytes));
        }
        self.file.write_all_at(self.buffer.bytes(), place * self.buffer.bytes().len() as u64)?;
        add(&counters.written, self.buffer.bytes().len() as u64);
        Ok(())
    }

    fn get(&mut self, place: u64, crc: bool, counters: &Counters) -> std::result::Result<(), String> {
        let bytes = self.buffer.bytes_mut();
        let length = bytes.len();
        self.file
            .read_exact_at(bytes, place * length as u64)
            .map_err(|error| self.failed("read", place, &error))?;
        add(&counters.read, length as u64);
        if crc {
            timed(counters, length, || block::check(self.buffer.bytes(), self.number, place)).map_err(
                |problem| {
                    format!(
                        "{} does not contain the data that was written at byte {}: {problem}",
                        self.path.display(),
                        place * length as u64
                    )
                },
            )?;
        }
        Ok(())
    }

    fn sync(&self) -> std::result::Result<(), String> {
        self.file.sync_data().map_err(|error| format!("cannot sync {}: {error}", self.path.display()))
    }

    /// Without direct I/O, reads must not find written data in the page cache.
    fn forget_cached(&self) {
        if !self.direct {
            // If the kernel rejects the advice, as for files in memory, there is no medium either.
            let _advised = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
        }
    }

    fn forget_at_the_end(&self, place: u64) {
        if place + 1 == self.blocks {
            let _ended = self.sync();
            self.forget_cached();
        }
    }

    fn failed(&self, what: &str, place: u64, error: &io::Error) -> String {
        let at = place * self.buffer.bytes().len() as u64;
        format!("cannot {what} {} at byte {at}: {error}", self.path.display())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.remove {
            // An earlier failure was already reported.
            let _gone = std::fs::remove_file(&self.path);
        }
    }
}

fn over(order: &Order) -> bool {
    order.over.load(Ordering::Acquire) || order.begin.elapsed() >= order.length
}

/// Counts the CPU time for making or checking a checksum.
fn timed<T>(counters: &Counters, bytes: usize, what: impl FnOnce() -> T) -> T {
    let before = cpu_time();
    let result = what();
    add_time(&counters.crc, cpu_time().saturating_sub(before));
    add(&counters.summed, bytes as u64);
    result
}

/// The stride in blocks: about 0.38 of their number, with no common divisor, so that each block is read.
fn skip(blocks: u64) -> u64 {
    let divides = |mut one: u64, mut other: u64| {
        while other > 0 {
            (one, other) = (other, one % other);
        }
        one
    };
    let near = (blocks as f64 * 0.381_966) as u64;
    (near.max(2)..blocks).find(|step| divides(*step, blocks) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn skipping_reaches_every_block_and_never_the_next_one() {
        for blocks in [5, 7, 8, 10, 64, 100, 1000, 4096] {
            let step = skip(blocks);
            assert!(step > 1, "{blocks}");
            let seen: BTreeSet<u64> = (0..blocks).map(|count| count * step % blocks).collect();
            assert_eq!(seen.len() as u64, blocks);
        }
        // With four and six blocks, only the strides one and the last reach all blocks: these are read backwards.
        assert_eq!((skip(4), skip(6)), (3, 5));
    }
}
