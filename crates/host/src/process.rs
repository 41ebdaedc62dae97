//! Statistics of a process or thread, from its files in `/proc`.
//!
//! Sources: proc(5), `Documentation/scheduler/sched-stats.rst`.

use crate::bytes::{number, words};

/// The fields of `/proc/PID/stat` after the name, which may contain blanks and parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat {
    /// The state: "R", "S", "D", "T", "Z" and others.
    pub state: char,
    /// The parent process.
    pub parent: u32,
    /// Clock ticks in user mode, without child processes.
    pub user: u64,
    /// Clock ticks in the kernel, without child processes.
    pub system: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults that read from a device.
    pub major_faults: u64,
    /// Of ended child processes that it has waited for, with theirs: user and system ticks, minor and major
    /// faults.
    pub ended: [u64; 4],
    /// The number of threads.
    pub threads: u64,
    /// The start time in ticks since boot.
    pub started: u64,
    /// Pages in memory.
    pub resident_pages: u64,
}

impl ProcessStat {
    /// The fields of a running process, or of a zombie; `None` without one.
    pub fn read(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the file. Does not allocate.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let end = text.iter().rposition(|&b| b == b')')?;
        let mut words = words(&text[end + 1..]);
        let state = char::from(*words.next()?.first()?);
        // The parent is field 4 in proc(5). Some of the others can be negative, but none of those used here.
        let mut values = [None; 21];
        for value in &mut values {
            *value = number(words.next()?);
        }
        Some(Self {
            state,
            parent: u32::try_from(values[0]?).ok()?,
            minor_faults: values[6]?,
            major_faults: values[8]?,
            user: values[10]?,
            system: values[11]?,
            ended: [values[12]?, values[13]?, values[7]?, values[9]?],
            threads: values[16]?,
            started: values[18]?,
            resident_pages: values[20]?,
        })
    }

    /// CPU ticks in user mode and in the kernel.
    pub fn ticks(&self) -> u64 {
        self.user.saturating_add(self.system)
    }
}

/// The nanoseconds for which a process or thread ran, and for which it waited for a CPU: `schedstat`.
pub fn run_and_delay(schedstat: &[u8]) -> Option<(u64, u64)> {
    let mut words = words(schedstat).map(number);
    Some((words.next()??, words.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_from_the_last_parenthesis() {
        let text = b"42 (a) S (b) c) S 7 42 42 0 -1 4194560 11 3 12 4 13 14 1 2 20 0 5 0 100 4096 77 1 1";
        let expected = ProcessStat {
            state: 'S',
            parent: 7,
            user: 13,
            system: 14,
            minor_faults: 11,
            major_faults: 12,
            ended: [1, 2, 3, 4],
            threads: 5,
            started: 100,
            resident_pages: 77,
        };
        assert_eq!(ProcessStat::parse(text), Some(expected));
        assert_eq!(expected.ticks(), 27);
        assert_eq!(ProcessStat::parse(b"42 (a) S 7"), None);
        assert_eq!(ProcessStat::parse(b""), None);
    }

    #[test]
    fn what_is_no_statistic_is_none() {
        assert_eq!(run_and_delay(b"12 34 5\n"), Some((12, 34)));
        for text in ["", "12", "12 x 5", "-1 2 3"] {
            assert_eq!(run_and_delay(text.as_bytes()), None, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(7 \\(a\\) S)?([0-9]{1,20} ?){0,24}\\PC{0,9}", raw: Vec<u8>) {
            for text in [text.as_bytes(), &raw] {
                let _ = (ProcessStat::parse(text).map(|stat| stat.ticks()), run_and_delay(text));
            }
        }
    }

    #[test]
    fn this_process_has_begun() {
        let stat = ProcessStat::read(std::process::id());
        assert!(stat.is_some_and(|stat| stat.started > 0 && stat.parent > 0));
    }
}
