//! The process that writes a run, and whether it is still alive.
//!
//! A run without an end is either running or was killed. Its row names the writing process by boot, process
//! namespace, process id and start time, since a process id may have been reused. If the
//! row comes from another boot or namespace (a store on a network share, a container), the process cannot be
//! looked at from here, and the time of the last commit decides: a writer commits every second under load.
//! Nothing of this holds a lock, so that a killed writer leaves nothing behind to clean up.

use serde::{Deserialize, Serialize};

/// A writer seen from another host is taken for killed after this time without a commit, in milliseconds.
const SILENT_MS: i64 = 30_000;

/// The process that writes a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WriterProcess {
    pid: u32,
    /// Start time in clock ticks since boot, field 22 of /proc/PID/stat.
    start: u64,
    boot: String,
    namespace: String,
}

impl WriterProcess {
    /// This process.
    pub(crate) fn this() -> Self {
        let pid = std::process::id();
        Self { pid, start: start_of(pid).unwrap_or(0), boot: boot(), namespace: namespace() }
    }

    /// Whether it lives, given when it last committed (Unix time in milliseconds).
    pub(crate) fn is_alive(&self, last_commit: i64, now: i64) -> bool {
        let here = !self.boot.is_empty() && self.boot == boot() && self.namespace == namespace();
        if here {
            return start_of(self.pid) == Some(self.start);
        }
        now - last_commit < SILENT_MS
    }
}

/// Unix time in milliseconds.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

fn boot() -> String {
    kelvin_host::SystemTree::default().boot_id().unwrap_or_default()
}

fn namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid").map(|p| p.to_string_lossy().into_owned()).unwrap_or_default()
}

fn start_of(pid: u32) -> Option<u64> {
    let stat = kelvin_host::ProcessStat::read(pid)?;
    // A zombie has ended: it is only waited for.
    (!matches!(stat.state, 'Z' | 'X')).then_some(stat.started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_by_more_than_its_number() {
        let this = WriterProcess::this();
        assert!(this.start > 0);
        assert!(this.is_alive(0, i64::MAX), "the time does not matter where the process can be seen");
        let recycled = WriterProcess { start: this.start - 1, ..this.clone() };
        assert!(!recycled.is_alive(0, 0));
        let elsewhere = WriterProcess { boot: "other".into(), ..this };
        assert!(elsewhere.is_alive(1_000_000, 1_020_000));
        assert!(!elsewhere.is_alive(1_000_000, 1_040_000));
    }
}
