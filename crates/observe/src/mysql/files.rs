//! Operations on files by `performance_schema`: by the kind of file, as a run's counters have them, and by file.

use kelvin_database::{Result, Session};

use crate::activity::{FileSums, IoSums};

/// Numbers, bytes and milliseconds (from picoseconds) of reads and writes, number and milliseconds of all else: syncs, opens, closes.
const SUMS: &str = "COUNT_READ + 0e0, SUM_NUMBER_OF_BYTES_READ + 0e0, SUM_TIMER_READ / 1e9, \
     COUNT_WRITE + 0e0, SUM_NUMBER_OF_BYTES_WRITE + 0e0, SUM_TIMER_WRITE / 1e9, COUNT_MISC + 0e0, SUM_TIMER_MISC / 1e9";

/// The kinds of files whose instruments have these names behind "wait/io/file/".
pub(super) fn by_event(session: &mut dyn Session, events: &[&str]) -> Result<Vec<FileSums>> {
    let events: Vec<String> = events.iter().map(|file| format!("'wait/io/file/{file}'")).collect();
    sums(
        session,
        &format!(
            "SELECT EVENT_NAME, {SUMS} FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME IN ({})",
            events.join(", ")
        ),
    )
}

/// Every file that was used, by its name within the data directory.
pub(super) fn by_instance(session: &mut dyn Session) -> Result<Vec<FileSums>> {
    sums(
        session,
        &format!(
            "SELECT REPLACE(FILE_NAME, @@datadir, ''), {SUMS} FROM performance_schema.file_summary_by_instance \
             WHERE COUNT_STAR > 0"
        ),
    )
}

fn sums(session: &mut dyn Session, sql: &str) -> Result<Vec<FileSums>> {
    let rows = session.query(sql)?;
    let one = |row| {
        let value = |column| rows.float(row, column).map(Some);
        Ok(FileSums {
            name: rows.text(row, 0)?.to_owned(),
            reads: IoSums { count: value(1)?, bytes: value(2)?, ms: value(3)? },
            writes: IoSums { count: value(4)?, bytes: value(5)?, ms: value(6)? },
            syncs: IoSums { count: value(7)?, bytes: None, ms: value(8)? },
        })
    };
    (0..rows.len()).map(one).collect()
}
