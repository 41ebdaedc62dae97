//! `lockfile=`: an I/O on a file waits for conflicting I/Os of all workers, including its own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::job::LockFile;
use crate::{Direction, Io, Target};

/// The holders of a file: a number of readers, or one writer.
#[derive(Debug, Default)]
struct Holders {
    readers: u32,
    writer: bool,
}

/// All files of the process that are held.
static HELD: Mutex<BTreeMap<PathBuf, Holders>> = Mutex::new(BTreeMap::new());

/// A worker's view of the locks of its files.
#[derive(Debug)]
pub(super) struct Locks {
    paths: Vec<PathBuf>,
    /// Readers may hold a file together.
    shared_reads: bool,
}

impl Locks {
    /// `None` if the job locks nothing.
    pub(super) fn new(lock: LockFile, targets: &[Target]) -> Option<Self> {
        let shared_reads = match lock {
            LockFile::None => return None,
            LockFile::Exclusive => false,
            LockFile::ReadWrite => true,
        };
        Some(Self { paths: targets.iter().map(|target| target.path.clone()).collect(), shared_reads })
    }

    /// Takes the lock that an I/O needs, if it is free.
    pub(super) fn take(&self, io: &Io) -> bool {
        let Some(path) = self.paths.get(io.target as usize) else { return true };
        let mut held = held();
        let holders = held.entry(path.clone()).or_default();
        if self.shared_reads && io.direction == Direction::Read {
            if holders.writer {
                return false;
            }
            holders.readers += 1;
            return true;
        }
        if holders.writer || holders.readers > 0 {
            return false;
        }
        holders.writer = true;
        true
    }

    /// Releases it.
    pub(super) fn give(&self, io: &Io) {
        let Some(path) = self.paths.get(io.target as usize) else { return };
        if let Some(holders) = held().get_mut(path) {
            if self.shared_reads && io.direction == Direction::Read {
                holders.readers = holders.readers.saturating_sub(1);
            } else {
                holders.writer = false;
            }
        }
    }
}

/// A worker that panicked while it held the table's lock left the table consistent.
fn held() -> MutexGuard<'static, BTreeMap<PathBuf, Holders>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::file;

    #[test]
    fn readers_are_together_and_a_writer_is_alone() {
        let targets = [file(std::path::Path::new("/a lock of this test"), 4096)];
        let locks = Locks::new(LockFile::ReadWrite, &targets).unwrap();
        let others = Locks::new(LockFile::ReadWrite, &targets).unwrap();
        let io = |direction| Io { direction, target: 0, offset: 0, length: 512 };
        let (read, write) = (io(Direction::Read), io(Direction::Write));
        assert!(locks.take(&read) && others.take(&read));
        assert!(!others.take(&write));
        locks.give(&read);
        assert!(!others.take(&write));
        others.give(&read);
        assert!(others.take(&write));
        assert!(!locks.take(&read) && !locks.take(&write));
        others.give(&write);
        let alone = Locks::new(LockFile::Exclusive, &targets).unwrap();
        assert!(alone.take(&read) && !alone.take(&read));
        alone.give(&read);
        assert!(Locks::new(LockFile::None, &targets).is_none());
    }
}
