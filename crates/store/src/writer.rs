//! A run on its way into the store.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kelvin_measure::event::{Event, KindCounts, Part, Second};
use kelvin_measure::observation::{Observation, Reading, Waits};
use kelvin_measure::{Histogram, Totals};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{Error, Result};
use crate::redact::{redact, redact_json};
use crate::run::RunId;
use crate::values::Packer;
use crate::{alive, blob, body};

/// Events come once a second with some jitter: a full second here would push every other one into the next.
const COMMIT_EVERY: Duration = Duration::from_millis(900);

/// Rows waiting for a store that cannot be written; what comes after them is refused.
const MOST_WAITING: usize = 100_000;

/// Writes one run. Dropping it writes what is left; a run dropped before its `Finished` event stays partial.
#[derive(Debug)]
pub struct RunWriter {
    conn: Connection,
    path: PathBuf,
    id: RunId,
    kinds: usize,
    seq: i64,
    waiting: Vec<Waiting>,
    values: Packer,
    last_commit: Instant,
}

#[derive(Debug)]
enum Waiting {
    Event { seq: i64, name: &'static str, body: String },
    Kind(KindRow),
    Reading { seq: i64, at: i64, first: u32, body: Vec<u8> },
    Waits(WaitsRow),
}

#[derive(Debug)]
struct WaitsRow {
    seq: i64,
    at: i64,
    looks: u32,
    lock_looks: u32,
    seen: String,
    rows: String,
}

impl WaitsRow {
    fn new(seq: i64, waits: &Waits) -> Result<Self> {
        let mut rows = serde_json::to_value(&waits.rows).map_err(|e| Error::Event(e.to_string()))?;
        redact_json(&mut rows);
        Ok(Self {
            seq,
            at: nanos(waits.at)?,
            looks: waits.looks,
            lock_looks: waits.lock_looks,
            seen: json(&waits.seen)?,
            rows: rows.to_string(),
        })
    }
}

/// One type of one second, its histogram already encoded: decoded it would hold 270 kB for as long as the
/// store cannot be written.
#[derive(Debug)]
struct KindRow {
    seq: i64,
    point: u32,
    second: i64,
    part: i64,
    kind: i64,
    committed: u64,
    rolled_back: u64,
    failed: u64,
    retries: u64,
    sum: u128,
    clamped: u64,
    latency: Option<Vec<u8>>,
}

impl KindRow {
    fn new(seq: i64, second: &Second, kind: usize, counts: &KindCounts) -> Result<Self> {
        Ok(Self {
            seq,
            point: second.point,
            second: second.second,
            part: part_number(second.part),
            kind: kind as i64,
            committed: counts.committed,
            rolled_back: counts.rolled_back,
            failed: counts.failed,
            retries: counts.retries,
            sum: counts.latency.sum(),
            clamped: counts.latency.clamped(),
            latency: blob::encode(&counts.latency).map_err(|e| Error::Event(e.to_string()))?,
        })
    }

    fn histogram(&self) -> Result<Histogram> {
        blob::decode(self.latency.as_deref(), self.sum, self.clamped).map_err(|e| Error::Event(e.to_string()))
    }

    /// This on top of `earlier`, at the earlier one's place.
    fn added_to(&self, earlier: &Self) -> Result<Self> {
        let mut latency = earlier.histogram()?;
        latency.add(&self.histogram()?);
        Ok(Self {
            seq: earlier.seq,
            point: self.point,
            second: self.second,
            part: self.part,
            kind: self.kind,
            committed: earlier.committed + self.committed,
            rolled_back: earlier.rolled_back + self.rolled_back,
            failed: earlier.failed + self.failed,
            retries: earlier.retries + self.retries,
            sum: latency.sum(),
            clamped: latency.clamped(),
            latency: blob::encode(&latency).map_err(|e| Error::Event(e.to_string()))?,
        })
    }
}

impl RunWriter {
    pub(crate) fn new(conn: Connection, path: PathBuf, id: RunId, kinds: usize) -> Self {
        Self {
            conn,
            path,
            id,
            kinds,
            seq: 0,
            waiting: Vec::new(),
            values: Packer::default(),
            last_commit: Instant::now(),
        }
    }

    /// The run's number.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// Stores an event: at the latest with the first event that comes a second later, and at once when it is
    /// a `Phase`, a `Window` or `Finished`. Of the `Progress` events within one second the last is kept.
    ///
    /// # Errors
    /// When the store cannot be written. The event is kept and written with the next that can be, up to
    /// 100,000 rows; those after them are lost.
    pub fn consume(&mut self, event: &Event) -> Result<()> {
        if self.waiting.len() >= MOST_WAITING {
            self.flush()?;
        }
        self.take(event)?;
        self.seq += 1;
        let now = matches!(event, Event::Phase { .. } | Event::Window(_) | Event::Finished { .. });
        if now || self.last_commit.elapsed() >= COMMIT_EVERY { self.flush() } else { Ok(()) }
    }

    /// Puts the event's rows among those that wait.
    fn take(&mut self, event: &Event) -> Result<()> {
        let seq = self.seq;
        match event {
            Event::Second(second) => {
                if second.kinds.len() != self.kinds {
                    return Err(Error::Event(format!(
                        "a second with {} transaction types in a run of {}",
                        second.kinds.len(),
                        self.kinds
                    )));
                }
                for (kind, counts) in second.kinds.iter().enumerate() {
                    // One row even for a second without any transaction: the event itself must come back.
                    if kind == 0 || !is_zero(counts) {
                        self.waiting.push(Waiting::Kind(KindRow::new(seq, second, kind, counts)?));
                    }
                }
            }
            Event::Observed(Observation::Reading(Reading { at, first, values })) => {
                let (at, first) = (nanos(*at)?, *first);
                let body = self.values.pack(first, values).map_err(Error::Event)?;
                self.waiting.push(Waiting::Reading { seq, at, first, body });
            }
            Event::Observed(Observation::Waits(waits)) => {
                self.waiting.push(Waiting::Waits(WaitsRow::new(seq, waits)?));
            }
            _ => {
                // What was seen in between does not keep an outdated progress.
                if matches!(event, Event::Progress { .. }) {
                    let newest =
                        self.waiting.iter().rposition(|waiting| matches!(waiting, Waiting::Event { .. }));
                    if let Some(at) = newest
                        && matches!(self.waiting[at], Waiting::Event { name: "progress", .. })
                    {
                        self.waiting.remove(at);
                    }
                }
                let mut body = serde_json::to_value(event).map_err(|e| Error::Event(e.to_string()))?;
                redact_json(&mut body);
                let body = body.to_string();
                self.waiting.push(Waiting::Event { seq, name: body::name(event), body });
            }
        }
        Ok(())
    }

    /// Commits what is waiting.
    pub fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        // Also after a failure: a full disk must not be asked again with every event.
        self.last_commit = Instant::now();
        let to = |e| Error::sqlite(&self.path, e);
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
        let changed = transaction
            .prepare_cached("UPDATE run SET committed_ms = ? WHERE id = ?")
            .and_then(|mut s| s.execute(params![alive::now_ms(), self.id.0]))
            .map_err(to)?;
        if changed != 1 {
            return Err(deleted(self.id));
        }
        for waiting in &self.waiting {
            match waiting {
                Waiting::Event { seq, name, body } => {
                    transaction
                        .prepare_cached("INSERT INTO event (run, seq, name, body) VALUES (?, ?, ?, ?)")
                        .and_then(|mut s| s.execute(params![self.id.0, seq, name, body]))
                        .map_err(to)?;
                }
                Waiting::Kind(row) => write_kind(&transaction, &self.path, self.id, row)?,
                Waiting::Reading { seq, at, first, body } => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO reading (run, seq, at, first, body) VALUES (?, ?, ?, ?, ?)",
                        )
                        .and_then(|mut s| s.execute(params![self.id.0, seq, at, first, body]))
                        .map_err(to)?;
                }
                Waiting::Waits(row) => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO waits (run, seq, at, looks, lock_looks, seen, rows) \
                             VALUES (?, ?, ?, ?, ?, ?, ?)",
                        )
                        .and_then(|mut s| {
                            s.execute(params![
                                self.id.0,
                                row.seq,
                                row.at,
                                row.looks,
                                row.lock_looks,
                                row.seen,
                                row.rows
                            ])
                        })
                        .map_err(to)?;
                }
            }
        }
        transaction.commit().map_err(to)?;
        self.waiting.clear();
        Ok(())
    }

    /// Replaces the sentences that belong to the result.
    pub fn set_notes(&mut self, notes: &[String]) -> Result<()> {
        let notes: Vec<String> = notes.iter().map(|note| redact(note)).collect();
        self.update("UPDATE run SET notes = ?1 WHERE id = ?2", &json(&notes)?)
    }

    /// Adds a sentence that belongs to the result.
    pub fn add_note(&mut self, note: &str) -> Result<()> {
        self.update("UPDATE run SET notes = json_insert(notes, '$[#]', ?1) WHERE id = ?2", &redact(note))
    }

    /// Replaces the description of the environment.
    pub fn set_environment(&mut self, environment: &serde_json::Value) -> Result<()> {
        let mut environment = environment.clone();
        redact_json(&mut environment);
        self.update("UPDATE run SET environment = ?1 WHERE id = ?2", &environment.to_string())
    }

    /// Stores the collector's own sums over a point, against which the stored seconds are checked on reading.
    pub fn set_totals(&mut self, point: u32, totals: &Totals) -> Result<()> {
        let to = |e| Error::sqlite(&self.path, e);
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
        for (scope, kinds) in [(0, &totals.measured), (1, &totals.all)] {
            for (kind, counts) in kinds.iter().enumerate() {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO total VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
                    .and_then(|mut s| {
                        s.execute(params![
                            self.id.0,
                            point,
                            scope,
                            kind as i64,
                            counts.committed as i64,
                            counts.rolled_back as i64,
                            counts.failed as i64,
                            counts.retries as i64,
                            counts.latency.sum() as i64
                        ])
                    })
                    .map_err(to)?;
            }
        }
        transaction.commit().map_err(to)
    }

    fn update(&mut self, sql: &str, value: &str) -> Result<()> {
        let changed =
            self.conn.execute(sql, params![value, self.id.0]).map_err(|e| Error::sqlite(&self.path, e))?;
        if changed == 1 {
            return Ok(());
        }
        Err(deleted(self.id))
    }

    fn close(&mut self) -> Result<()> {
        self.flush()?;
        self.conn
            .execute("UPDATE run SET writer = NULL WHERE id = ?", [self.id.0])
            .map_err(|e| Error::sqlite(&self.path, e))?;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.conn
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        // Nobody is left to be told; the run then shows as killed, which it as good as was.
        let _ = self.close();
    }
}

fn deleted(id: RunId) -> Error {
    Error::Event(format!("run {id} was deleted while it was written"))
}

/// A moment as the store has it.
fn nanos(at: kelvin_measure::Nanos) -> Result<i64> {
    i64::try_from(at).map_err(|_| Error::Event(format!("an observation at {at} ns, in more than 292 years")))
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Event(e.to_string()))
}

fn is_zero(counts: &KindCounts) -> bool {
    counts.committed == 0
        && counts.rolled_back == 0
        && counts.failed == 0
        && counts.retries == 0
        && counts.latency.is_empty()
}

/// Part as the store has it.
fn part_number(part: Part) -> i64 {
    match part {
        Part::RampUp => 0,
        Part::Measured => 1,
        Part::Tail => 2,
    }
}

/// Writes one type of one second, on top of what an earlier event for the same second brought.
fn write_kind(transaction: &Transaction<'_>, path: &Path, id: RunId, row: &KindRow) -> Result<()> {
    let to = |e| Error::sqlite(path, e);
    let earlier = transaction
        .prepare_cached(
            "SELECT seq, committed, rolled_back, failed, retries, latency_sum, clamped, latency FROM second \
             WHERE run = ? AND point = ? AND second = ? AND part = ? AND kind = ?",
        )
        .and_then(|mut s| {
            s.query_row(params![id.0, row.point, row.second, row.part, row.kind], |found| {
                let int = |i| found.get::<_, i64>(i);
                Ok(KindRow {
                    seq: int(0)?,
                    point: row.point,
                    second: row.second,
                    part: row.part,
                    kind: row.kind,
                    committed: int(1)? as u64,
                    rolled_back: int(2)? as u64,
                    failed: int(3)? as u64,
                    retries: int(4)? as u64,
                    sum: int(5)? as u128,
                    clamped: int(6)? as u64,
                    latency: found.get(7)?,
                })
            })
            .optional()
        })
        .map_err(to)?;
    let sum;
    let row = match earlier {
        Some(earlier) => {
            sum = row.added_to(&earlier)?;
            &sum
        }
        None => row,
    };
    let latency_sum = i64::try_from(row.sum)
        .map_err(|_| Error::Event("the latencies of one second add up to more than 292 years".into()))?;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO second (run, point, second, part, kind, seq, committed, rolled_back, failed, \
             retries, latency_sum, clamped, latency) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .and_then(|mut s| {
            s.execute(params![
                id.0,
                row.point,
                row.second,
                row.part,
                row.kind,
                row.seq,
                row.committed as i64,
                row.rolled_back as i64,
                row.failed as i64,
                row.retries as i64,
                latency_sum,
                row.clamped as i64,
                row.latency
            ])
        })
        .map_err(to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use kelvin_measure::event::Event;

    use kelvin_measure::event::{Per, Series};

    use crate::{Error, NewRun, RunId, Store};

    #[test]
    fn a_full_disk_is_told_and_what_waits_is_written_later() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("k.db")).unwrap();
        let run = NewRun {
            workload: "w".into(),
            target: "t".into(),
            label: None,
            spec_toml: String::new(),
            command: String::new(),
            seed: 1,
            random_algorithm: String::new(),
            kelvin_version: String::new(),
            kinds: vec![Series::transaction("a", true)],
            headline: "x".into(),
            headline_per: Per::Minute,
            counter_names: Vec::new(),
            notes: Vec::new(),
            environment: serde_json::Value::Null,
            started: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut writer = store.begin(&run).unwrap();
        let pages: i64 = writer.connection().pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
        let limit = |pages: i64| {
            writer.connection().pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
        };
        limit(pages);
        let note = |second| Event::Note { point: 0, second, text: "x".repeat(3000) };
        for second in 0..10 {
            writer.consume(&note(second)).unwrap();
        }
        let error = writer.flush().unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(error.to_string().contains("the disk is full"));
        writer.connection().pragma_update_and_check(None, "max_page_count", 1_000_000, |_| Ok(())).unwrap();
        writer.flush().unwrap();
        assert_eq!(store.load(RunId(1)).unwrap().events().count(), 10);
    }
}
