//! A run whose writer died, taken up by another process; and notes on a run that has ended.

use kelvin_measure::Event;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{Error, Result};
use crate::file_identity::FileIdentity;
use crate::run::RunId;
use crate::schema;
use crate::state::Liveness;
use crate::store::Store;
use crate::writer::RunWriter;
use crate::writer_process::{self, WriterProcess};

/// Events of other sources than the process itself that are written anew with the seconds of a point.
const OF_LOAD: &str = "name IN ('errors', 'arrivals', 'note', 'query')";

/// The place after the last one among a run's events.
const NEXT: &str = "SELECT coalesce(max(seq), -1) + 1 FROM (SELECT max(seq) AS seq FROM event WHERE run = ?1 \
                    UNION ALL SELECT max(seq) FROM second WHERE run = ?1 UNION ALL SELECT max(seq) FROM reading \
                    WHERE run = ?1 UNION ALL SELECT max(seq) FROM waits WHERE run = ?1)";

impl Store {
    /// Goes on with a run whose writer was killed. What other sources than that process sent of this point is removed: whoever
    /// resumes the run has all of it, and writes it again.
    ///
    /// # Errors
    /// A run that has ended, or that another process still writes, is not changed.
    pub fn resume_run(&self, id: RunId, point: u32) -> Result<RunWriter> {
        let path = self.path();
        let to = |e| Error::sqlite(path, e);
        let conn = schema::open(path)?;
        let transaction = Transaction::new_unchecked(&conn, TransactionBehavior::Immediate).map_err(to)?;
        // Within the transaction, so that of two who try one goes on.
        let (info, liveness) = self.info(id)?;
        let finished: Option<i64> = transaction
            .query_row("SELECT seq FROM event WHERE run = ? AND name = 'finished' LIMIT 1", [id.0], |row| {
                row.get(0)
            })
            .optional()
            .map_err(to)?;
        if finished.is_some() {
            return Err(Error::Event(format!("run {id} has ended: there is nothing to resume")));
        }
        if liveness == Liveness::Running {
            return Err(Error::Running(id.0));
        }
        let removed = [
            "DELETE FROM second WHERE run = ? AND point = ? AND source_id <> 0".to_owned(),
            format!(
                "DELETE FROM event WHERE run = ? AND body ->> 'point' = ? AND source_id <> 0 AND {OF_LOAD}"
            ),
        ];
        for sql in removed {
            transaction.execute(&sql, params![id.0, point]).map_err(to)?;
        }
        let next = next_place(&transaction, id).map_err(to)?;
        let writer =
            serde_json::to_string(&WriterProcess::this()).map_err(|e| Error::Event(e.to_string()))?;
        transaction
            .execute(
                "UPDATE run SET writer = ?, committed_ms = ? WHERE id = ?",
                params![writer, writer_process::now_ms(), id.0],
            )
            .map_err(to)?;
        transaction.commit().map_err(to)?;
        let identity = FileIdentity::at_path(path)?;
        Ok(RunWriter::new(conn, path, identity, id, info.kinds.len())?.at_place(next))
    }

    /// Adds notes to a run that has ended. What it was judged to be stays.
    ///
    /// # Errors
    /// When there is no such run, or the store cannot be written.
    pub fn add_notes(&self, id: RunId, notes: &[Event]) -> Result<()> {
        let to = |e| Error::sqlite(self.path(), e);
        self.info(id)?;
        let transaction =
            Transaction::new_unchecked(self.connection(), TransactionBehavior::Immediate).map_err(to)?;
        for note in notes {
            let next = next_place(&transaction, id).map_err(to)?;
            let mut body = serde_json::to_value(note).map_err(|e| Error::Event(e.to_string()))?;
            kelvin_measure::redact_json(&mut body);
            transaction
                .execute(
                    "INSERT INTO event (run, seq, source_id, name, body, listed) VALUES (?, ?, 0, ?, ?, 0)",
                    params![id.0, next, note.name(), body.to_string()],
                )
                .map_err(to)?;
        }
        transaction.commit().map_err(to)
    }

    /// The notes of runs that begin so, oldest run first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn notes_that_begin(&self, with: &str) -> Result<Vec<(RunId, String)>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut statement = self
            .connection()
            .prepare(
                "SELECT run.id, note.value FROM run, json_each(run.notes) AS note \
                 WHERE substr(note.value, 1, length(?1)) = ?1 ORDER BY run.id",
            )
            .map_err(to)?;
        let rows = statement.query_map([with], |row| Ok((RunId(row.get(0)?), row.get(1)?))).map_err(to)?;
        rows.collect::<rusqlite::Result<_>>().map_err(to)
    }
}

fn next_place(conn: &Connection, id: RunId) -> rusqlite::Result<i64> {
    conn.query_row(NEXT, [id.0], |row| row.get(0))
}
