//! The server's own log, where it can be read on this host: what it says of checkpoints is exact, and says why.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::link::Link;
use super::logged_plans::LoggedPlans;

/// Read at once at most; a server that logs every statement writes more than anyone can follow.
const MOST: u64 = 256 << 10;

/// What a line says of a checkpoint.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CheckpointLine {
    /// It begins.
    Starting {
        /// Because its time has come; else on request.
        timed: bool,
        /// Because the log had grown to its share of `max_wal_size`.
        for_log: bool,
    },
    /// It is over.
    Complete {
        /// Pages written.
        buffers: f64,
        write_ms: f64,
        sync_ms: f64,
        /// From its beginning to its end.
        total_ms: f64,
        /// Bytes of log since the beginning of the checkpoint before.
        distance: Option<f64>,
    },
}

/// Reads a line in English; others say nothing here, and the views are left.
pub(super) fn line(text: &str) -> Option<CheckpointLine> {
    if let Some((_, reasons)) = text.split_once(" checkpoint starting:") {
        let given = |reason: &str| reasons.split_whitespace().any(|word| word == reason);
        return Some(CheckpointLine::Starting { timed: given("time"), for_log: given("wal") });
    }
    let (_, rest) = text.split_once(" checkpoint complete: wrote ")?;
    let number = |text: &str| -> Option<f64> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let after = |key: &str| rest.split_once(key).and_then(|(_, value)| number(value));
    Some(CheckpointLine::Complete {
        buffers: number(rest)?,
        write_ms: after(" write=")? * 1000.0,
        sync_ms: after(" sync=")? * 1000.0,
        total_ms: after(" total=")? * 1000.0,
        distance: after(" distance=").map(|kilobytes| kilobytes * 1024.0),
    })
}

/// The log, when it is on this host and has checkpoints in it.
pub(super) fn find(link: &mut Link, server: u32, data: Option<&Path>) -> Option<Log> {
    let asked = link.with(|session, _| {
        let rows = session.query(
            "SELECT /* kelvin observer */ current_setting('log_checkpoints'), \
             has_function_privilege('pg_current_logfile()', 'EXECUTE')",
        )?;
        if rows.text(0, 0)? != "on" {
            return Ok(None);
        }
        if rows.int(0, 1)? == 0 {
            return Ok(Some(None));
        }
        let rows = session.query("SELECT /* kelvin observer */ pg_current_logfile()")?;
        rows.optional(0, 0, |rows, row, column| rows.text(row, column).map(PathBuf::from)).map(Some)
    });
    let current = asked.ok().flatten()?;
    // Relative to the data directory, if it is not absolute.
    let current =
        current.and_then(|path| if path.is_absolute() { Some(path) } else { Some(data?.join(path)) });
    Log::open(server, current.as_deref())
}

/// Follows a log from its present end.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    at: u64,
    /// A line whose end is not written yet.
    rest: Vec<u8>,
    /// Plans in it.
    pub(super) plans: LoggedPlans,
}

impl Log {
    /// Opens the log of the server whose first process this is: where its error stream goes, if that is a file, or the
    /// file that its logging collector names.
    pub(super) fn open(server: u32, current: Option<&Path>) -> Option<Self> {
        let stream = PathBuf::from(format!("/proc/{server}/fd/2"));
        let open = |path: &Path| {
            // Opening a pipe or a terminal would take part in it.
            std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
            let file = File::open(path).ok()?;
            let length = file.metadata().ok()?.len();
            Some((file, length))
        };
        let (file, at) = current.and_then(open).or_else(|| open(&stream))?;
        Some(Self { file, at, rest: Vec::new(), plans: LoggedPlans::default() })
    }

    /// What was written about checkpoints since the last time; plans are put among those.
    pub(super) fn read(&mut self) -> Vec<CheckpointLine> {
        let Ok(length) = self.file.metadata().map(|found| found.len()) else { return Vec::new() };
        if length < self.at || length - self.at > MOST {
            // Truncated, or too much: go on at its end.
            self.at = length;
            self.rest.clear();
            self.plans.interrupted();
            return Vec::new();
        }
        if length == self.at || self.file.seek(SeekFrom::Start(self.at)).is_err() {
            return Vec::new();
        }
        let Ok(count) = (&mut self.file).take(length - self.at).read_to_end(&mut self.rest) else {
            return Vec::new();
        };
        self.at += count as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            if self.rest.len() as u64 > MOST {
                self.rest.clear();
                self.plans.interrupted();
            }
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&self.rest[..end]);
        let lines = text.lines().inspect(|text| self.plans.line(text)).filter_map(line).collect();
        self.rest.drain(..=end);
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    const COMPLETE: &str = "2026-11-21 17:08:43.123 UTC [12] LOG:  checkpoint complete: wrote 138 buffers (1.7%); \
        0 WAL file(s) added, 0 removed, 1 recycled; write=2.005 s, sync=0.002 s, total=2.016 s; sync files=5, \
        longest=0.001 s, average=0.001 s; distance=1024 kB, estimate=2048 kB";

    #[test]
    fn lines_are_read_in_the_forms_of_all_versions() {
        let complete = CheckpointLine::Complete {
            buffers: 138.0,
            write_ms: 2005.0,
            sync_ms: 2.0,
            total_ms: 2016.0,
            distance: Some(1_048_576.0),
        };
        assert_eq!(line(COMPLETE), Some(complete.clone()));
        // 17 counts pages of other kinds too.
        assert_eq!(line(&COMPLETE.replace("(1.7%);", "(1.7%), wrote 3 SLRU buffers;")), Some(complete));
        let starting = |reasons: &str| line(&format!("LOG:  checkpoint starting: {reasons}"));
        assert_eq!(starting("time"), Some(CheckpointLine::Starting { timed: true, for_log: false }));
        assert_eq!(starting("wal"), Some(CheckpointLine::Starting { timed: false, for_log: true }));
        assert_eq!(
            starting("immediate force wait"),
            Some(CheckpointLine::Starting { timed: false, for_log: false })
        );
        for other in
            ["", "LOG:  restartpoint complete: wrote 1", "LOG:  checkpoint complete: wrote many", "x"]
        {
            assert_eq!(line(other), None, "{other}");
        }
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_read_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = file.reopen().unwrap();
        writeln!(writer, "LOG:  checkpoint starting: wal").unwrap();
        let mut log = Log::open(u32::MAX, Some(file.path())).unwrap();
        assert_eq!(log.read(), [], "what was before is no news");
        write!(writer, "LOG:  checkpoint star").unwrap();
        assert_eq!(log.read(), []);
        write!(writer, "ting: time\nLOG:  x").unwrap();
        assert_eq!(log.read(), [CheckpointLine::Starting { timed: true, for_log: false }]);
        assert_eq!(log.read(), []);
        writer.set_len(0).unwrap();
        assert_eq!(log.read(), []);
        writer.seek(SeekFrom::Start(0)).unwrap();
        writeln!(writer, "{COMPLETE}").unwrap();
        assert_eq!(log.read().len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in ".{0,100}", numbers in "[0-9.]{0,30}") {
            let _ = line(&text);
            let _ = line(&format!(" checkpoint complete: wrote {numbers}{text} write={numbers} sync={numbers}{text}"));
        }

        #[test]
        fn figures_come_back(buffers in 0_u32.., write in 0_u32..9_000_000, sync in 0_u32..9_000_000) {
            let seconds = |ms: u32| format!("{}.{:03}", ms / 1000, ms % 1000);
            let text = format!("LOG:  checkpoint complete: wrote {buffers} buffers (1%); write={} s, sync={} s, total=0.001 s;", seconds(write), seconds(sync));
            let Some(CheckpointLine::Complete { buffers: b, write_ms, sync_ms, .. }) = line(&text) else { panic!("{text}") };
            prop_assert_eq!(b, f64::from(buffers));
            prop_assert!((write_ms - f64::from(write)).abs() < 0.01 && (sync_ms - f64::from(sync)).abs() < 0.01);
        }
    }
}
