//! The kernel's count of the bytes that this process moved, which the workers' counts must not exceed.

use kelvin_host::SystemTree;

use crate::job::EngineName;
use crate::{Direction, Error, PerDirection, Result};

/// Bytes moved by read and write calls of this process so far (`rchar`, `wchar` of `/proc/self/io`); `None` if the
/// kernel does not count them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    read: u64,
    written: u64,
}

impl Account {
    pub(super) fn now() -> Option<Self> {
        let [read, written] = SystemTree::default().values("/proc/self/io", ["rchar", "wchar"]);
        Some(Self { read: read?, written: written? })
    }

    /// Compares the bytes that workers report with the kernel's count since `self`. The reports must be from engines
    /// for which [`is_counted`] is true; other calls of the process only increase the kernel's count.
    pub(super) fn check(self, now: Self, claimed: &PerDirection<u64>) -> Result<()> {
        let (read, written) = (now.read.saturating_sub(self.read), now.written.saturating_sub(self.written));
        for (direction, seen) in [(Direction::Read, read), (Direction::Write, written)] {
            if claimed[direction] > seen {
                return Err(Error::Disagreement(format!(
                    "the workers report {} bytes ({direction}), but the kernel counted {seen} \
                     (/proc/self/io)",
                    claimed[direction]
                )));
            }
        }
        Ok(())
    }
}

/// Whether the kernel counts all bytes that an engine moves: those of calls that the thread itself makes. I/O through
/// rings, contexts and mappings is counted only if it reaches a device, which is less than was requested.
pub(super) fn is_counted(engine: EngineName) -> bool {
    matches!(engine, EngineName::Sync | EngineName::Psync | EngineName::Pvsync | EngineName::Pvsync2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_kernel_saw_is_a_disagreement() {
        let (before, after) = (Account { read: 100, written: 50 }, Account { read: 4196, written: 50 });
        assert!(before.check(after, &PerDirection([4096, 0, 1 << 40])).is_ok());
        let error = before.check(after, &PerDirection([4097, 0, 0])).unwrap_err().to_string();
        assert!(error.contains("report 4097 bytes (read), but the kernel counted 4096"), "{error}");
        assert!(before.check(after, &PerDirection([0, 1, 0])).is_err());
    }
}
