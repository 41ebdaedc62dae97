//! Counters of the threads.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters of one thread in one test. Only that thread writes them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) read: AtomicU64,
    pub(super) written: AtomicU64,
    pub(super) seeks: AtomicU64,
    /// The part of `written` that extended the file, and its time in nanoseconds, including the sync at its end.
    pub(super) extended: AtomicU64,
    pub(super) extending: AtomicU64,
    /// The part of `written` that overwrote data, and its time in nanoseconds.
    pub(super) overwritten: AtomicU64,
    pub(super) overwriting: AtomicU64,
    /// CPU time of the thread, the part of it spent on checksums, and the bytes of these checksums.
    pub(super) cpu: AtomicU64,
    pub(super) crc: AtomicU64,
    pub(super) summed: AtomicU64,
}

pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

pub(super) fn add_time(counter: &AtomicU64, more: Duration) {
    add(counter, more.as_nanos() as u64);
}

pub(super) fn sum(counters: &[Counters], of: impl Fn(&Counters) -> &AtomicU64) -> u64 {
    counters.iter().map(|counters| of(counters).load(Ordering::Relaxed)).sum()
}

/// The I/O in a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) seeks: u64,
    pub(super) threads: u32,
}

impl Counts {
    /// By directory; if there are several, all together last.
    pub(super) fn by_directory(counters: &[Counters], directories: &[usize], count: usize) -> Vec<Self> {
        let mut all = vec![Self::default(); count];
        for (counters, directory) in counters.iter().zip(directories) {
            if let Some(counts) = all.get_mut(*directory) {
                counts.read += counters.read.load(Ordering::Relaxed);
                counts.written += counters.written.load(Ordering::Relaxed);
                counts.seeks += counters.seeks.load(Ordering::Relaxed);
                counts.threads += 1;
            }
        }
        if count > 1 {
            let total = all.iter().fold(Self::default(), |sum, counts| Self {
                read: sum.read + counts.read,
                written: sum.written + counts.written,
                seeks: sum.seeks + counts.seeks,
                threads: sum.threads + counts.threads,
            });
            all.push(total);
        }
        all
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            read: self.read - before.read,
            written: self.written - before.written,
            seeks: self.seeks - before.seeks,
            threads: self.threads,
        }
    }
}
