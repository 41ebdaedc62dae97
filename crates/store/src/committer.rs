//! The thread that writes a run's rows: a slow disk blocks only this thread.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, atomic};
use std::thread::JoinHandle;

use kelvin_measure::event::{KindCounts, LoadPart, Second};
use kelvin_measure::observation::WaitSamples;
use kelvin_measure::{Exact, Histogram, SourceId, Totals};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::error::{Error, Result};
use crate::file_identity::{FileIdentity, LostStore};
use crate::run::RunId;
use crate::{blob, writer_process};
use kelvin_measure::redact_json;

#[derive(Debug)]
pub(crate) enum Waiting {
    Event { seq: i64, source: SourceId, name: &'static str, body: String, listed: bool },
    Kind(KindRow),
    Reading { seq: i64, source: SourceId, at: i64, first: u32, body: Vec<u8> },
    Waits(WaitsRow),
}

#[derive(Debug)]
pub(crate) struct WaitsRow {
    seq: i64,
    source: SourceId,
    at: i64,
    looks: u32,
    lock_looks: u32,
    seen: String,
    rows: String,
}

impl WaitsRow {
    pub(crate) fn new(seq: i64, source: SourceId, waits: &WaitSamples) -> Result<Self> {
        let mut rows = serde_json::to_value(&waits.rows).map_err(|e| Error::Event(e.to_string()))?;
        redact_json(&mut rows);
        Ok(Self {
            seq,
            source,
            at: nanos(waits.at)?,
            looks: waits.looks,
            lock_looks: waits.lock_looks,
            seen: json(&waits.seen)?,
            rows: rows.to_string(),
        })
    }
}

/// One type of one second, with its histogram encoded: decoded it would use 270 kB for as long as the store cannot be
/// written.
#[derive(Debug)]
pub(crate) struct KindRow {
    seq: i64,
    point: u32,
    second: i64,
    part: i64,
    kind: i64,
    source: SourceId,
    committed: u64,
    rolled_back: u64,
    failed: u64,
    retries: u64,
    exact: Exact,
    latency: Option<Vec<u8>>,
}

impl KindRow {
    pub(crate) fn new(
        (seq, source): (i64, SourceId),
        second: &Second,
        kind: usize,
        counts: &KindCounts,
    ) -> Result<Self> {
        Ok(Self {
            source,
            seq,
            point: second.point,
            second: second.second,
            part: part_number(second.part),
            kind: kind as i64,
            committed: counts.committed,
            rolled_back: counts.rolled_back,
            failed: counts.failed,
            retries: counts.retries,
            exact: counts.latency.exact(),
            latency: blob::encode(&counts.latency).map_err(|e| Error::Event(e.to_string()))?,
        })
    }

    fn histogram(&self) -> Result<Histogram> {
        blob::decode(self.latency.as_deref(), self.exact).map_err(|e| Error::Event(e.to_string()))
    }

    /// Adds this row to `earlier`, at the earlier one's position.
    fn added_to(&self, earlier: &Self) -> Result<Self> {
        let mut latency = earlier.histogram()?;
        latency.add(&self.histogram()?);
        Ok(Self {
            seq: earlier.seq,
            source: self.source,
            point: self.point,
            second: self.second,
            part: self.part,
            kind: self.kind,
            committed: earlier.committed.saturating_add(self.committed),
            rolled_back: earlier.rolled_back.saturating_add(self.rolled_back),
            failed: earlier.failed.saturating_add(self.failed),
            retries: earlier.retries.saturating_add(self.retries),
            exact: latency.exact(),
            latency: blob::encode(&latency).map_err(|e| Error::Event(e.to_string()))?,
        })
    }
}

enum Message {
    Rows(Vec<Waiting>),
    Totals(u32, Box<Totals>, SyncSender<Result<()>>),
    /// Everything before it is to be written; the answer reports whether it was.
    Flush(SyncSender<Result<()>>),
    #[cfg(test)]
    LimitPages(i64),
}

/// Passes rows to the thread that commits them. Dropping it writes the remaining rows and closes the run.
#[derive(Debug)]
pub(crate) struct Committer {
    sender: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<atomic::AtomicUsize>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Committer {
    pub(crate) fn start(conn: Connection, path: &Path, identity: FileIdentity, id: RunId) -> Result<Self> {
        let (sender, receiver) = channel();
        let (waiting, failed) = (Arc::default(), Arc::default());
        let mut store = Committing {
            conn,
            path: path.to_path_buf(),
            identity,
            lost: None,
            id,
            rows: Vec::new(),
            waiting: Arc::clone(&waiting),
            failed: Arc::clone(&failed),
        };
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || store.run(&receiver))
            .map_err(|error| Error::io("start the writer thread", path, error))?;
        Ok(Self { sender: Some(sender), thread: Some(thread), waiting, failed })
    }

    /// Rows that are not committed yet.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(atomic::Ordering::Acquire)
    }

    /// Passes rows on to be committed later.
    ///
    /// # Errors
    /// If earlier rows could not be written. All of them are kept and tried again with the next.
    pub(crate) fn hand_on(&self, rows: Vec<Waiting>) -> Result<()> {
        self.waiting.fetch_add(rows.len(), atomic::Ordering::AcqRel);
        self.send(Message::Rows(rows))?;
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    pub(crate) fn totals(&self, point: u32, totals: &Totals) -> Result<()> {
        let (answer, wait) = sync_channel(1);
        self.send(Message::Totals(point, Box::new(totals.clone()), answer))?;
        wait.recv().unwrap_or_else(|_| Err(ended()))
    }

    /// Waits until everything is committed.
    pub(crate) fn flush(&self) -> Result<()> {
        let (answer, wait) = sync_channel(1);
        self.send(Message::Flush(answer))?;
        wait.recv().unwrap_or_else(|_| Err(ended()))
    }

    #[cfg(test)]
    pub(crate) fn limit_pages(&self, pages: i64) {
        self.send(Message::LimitPages(pages)).unwrap();
    }

    fn send(&self, message: Message) -> Result<()> {
        self.sender.as_ref().and_then(|sender| sender.send(message).ok()).ok_or_else(ended)
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // A failure cannot be reported any more; the run then shows as killed, which it effectively was.
            let _ = thread.join();
        }
    }
}

#[cold]
fn ended() -> Error {
    Error::Event("the store's writer thread has ended".into())
}

/// State of the thread.
struct Committing {
    conn: Connection,
    path: PathBuf,
    identity: FileIdentity,
    /// Once the file is not at its path any more.
    lost: Option<LostStore>,
    id: RunId,
    rows: Vec<Waiting>,
    waiting: Arc<atomic::AtomicUsize>,
    failed: Arc<Mutex<Option<Error>>>,
}

impl Committing {
    fn run(&mut self, receiver: &Receiver<Message>) {
        let mut held = None;
        while let Some(message) = held.take().or_else(|| receiver.recv().ok()) {
            match message {
                Message::Rows(rows) => {
                    self.rows.extend(rows);
                    // One attempt for all that came meanwhile: a locked store lets each wait for seconds.
                    while held.is_none()
                        && let Ok(next) = receiver.try_recv()
                    {
                        match next {
                            Message::Rows(rows) => self.rows.extend(rows),
                            other => held = Some(other),
                        }
                    }
                    let outcome = self.commit();
                    self.set_failed(outcome.err());
                }
                Message::Totals(point, totals, answer) => {
                    let _ = answer.send(self.write_totals(point, &totals));
                }
                Message::Flush(answer) => {
                    // Rows that could not be written before are written now, or fail again.
                    self.set_failed(None);
                    let _ = answer.send(self.commit());
                }
                #[cfg(test)]
                Message::LimitPages(pages) => {
                    self.conn.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(())).unwrap();
                }
            }
        }
        if self.commit().is_ok() || self.lost.is_some() {
            let _ = self.conn.execute("UPDATE run SET writer = NULL WHERE id = ?", [self.id.0]);
        }
        if let Some(lost) = &self.lost {
            lost.rescue_again(&self.conn);
        }
    }

    fn set_failed(&self, failed: Option<Error>) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    /// Commits the waiting rows; after an error they still wait. It is also an error if the file can no longer be
    /// opened by its path.
    fn commit(&mut self) -> Result<()> {
        self.write_rows()?;
        if self.lost.is_none() {
            self.lost = LostStore::rescue(self.identity, &self.conn, &self.path);
        }
        self.lost.as_ref().map_or(Ok(()), |lost| Err(lost.error(&self.path)))
    }

    fn write_rows(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let to = |e| Error::sqlite(&self.path, e);
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
        let changed = transaction
            .prepare_cached("UPDATE run SET committed_ms = ? WHERE id = ?")
            .and_then(|mut s| s.execute(params![writer_process::now_ms(), self.id.0]))
            .map_err(to)?;
        if changed != 1 {
            return Err(deleted(self.id));
        }
        for waiting in &self.rows {
            match waiting {
                Waiting::Event { seq, source, name, body, listed } => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO event (run, seq, source_id, name, body, listed) VALUES (?, ?, ?, ?, ?, ?)",
                        )
                        .and_then(|mut s| s.execute(params![self.id.0, seq, source.0, name, body, listed]))
                        .map_err(to)?;
                }
                Waiting::Kind(row) => write_kind(&transaction, &self.path, self.id, row)?,
                Waiting::Reading { seq, source, at, first, body } => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO reading (run, seq, source_id, at, first, body) VALUES (?, ?, ?, ?, ?, ?)",
                        )
                        .and_then(|mut s| s.execute(params![self.id.0, seq, source.0, at, first, body]))
                        .map_err(to)?;
                }
                Waiting::Waits(row) => {
                    transaction
                        .prepare_cached(
                            "INSERT INTO waits (run, seq, source_id, at, looks, lock_looks, seen, rows) \
                             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        )
                        .and_then(|mut s| {
                            s.execute(params![
                                self.id.0,
                                row.seq,
                                row.source.0,
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
        self.waiting.fetch_sub(self.rows.len(), atomic::Ordering::AcqRel);
        self.rows.clear();
        Ok(())
    }

    fn write_totals(&mut self, point: u32, totals: &Totals) -> Result<()> {
        let to = |e| Error::sqlite(&self.path, e);
        let transaction = self.conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(to)?;
        for (scope, kinds) in [(0, &totals.measured), (1, &totals.all)] {
            for (kind, counts) in kinds.iter().enumerate() {
                transaction
                    .prepare_cached("INSERT OR REPLACE INTO total VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
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
                            counts.latency.sum() as i64,
                            counts.latency.exact().max as i64
                        ])
                    })
                    .map_err(to)?;
            }
        }
        transaction.commit().map_err(to)
    }
}

fn deleted(id: RunId) -> Error {
    Error::Event(format!("run {id} was deleted while it was being written"))
}

/// A moment as the store has it.
pub(crate) fn nanos(at: kelvin_measure::Nanos) -> Result<i64> {
    i64::try_from(at)
        .map_err(|_| Error::Event(format!("an observation at {at} ns, which is beyond 292 years")))
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| Error::Event(e.to_string()))
}

/// Part as the store has it.
fn part_number(part: LoadPart) -> i64 {
    match part {
        LoadPart::RampUp => 0,
        LoadPart::Measured => 1,
        LoadPart::Tail => 2,
    }
}

/// Writes one type of one second, added to an earlier event for the same second.
fn write_kind(transaction: &Transaction<'_>, path: &Path, id: RunId, row: &KindRow) -> Result<()> {
    let to = |e| Error::sqlite(path, e);
    let earlier = transaction
        .prepare_cached(
            "SELECT seq, committed, rolled_back, failed, retries, latency_sum, latency_max, clamped, \
             latency FROM second \
             WHERE run = ? AND point = ? AND second = ? AND part = ? AND kind = ? AND source_id = ?",
        )
        .and_then(|mut s| {
            s.query_row(params![id.0, row.point, row.second, row.part, row.kind, row.source.0], |found| {
                let int = |i| found.get::<_, i64>(i);
                Ok(KindRow {
                    seq: int(0)?,
                    source: row.source,
                    point: row.point,
                    second: row.second,
                    part: row.part,
                    kind: row.kind,
                    committed: int(1)? as u64,
                    rolled_back: int(2)? as u64,
                    failed: int(3)? as u64,
                    retries: int(4)? as u64,
                    exact: Exact { sum: int(5)? as u128, max: int(6)? as u64, clamped: int(7)? as u64 },
                    latency: found.get(8)?,
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
    let latency_sum = i64::try_from(row.exact.sum)
        .map_err(|_| Error::Event("the latencies of one second add up to more than 292 years".into()))?;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO second (run, point, second, part, kind, source_id, seq, committed, rolled_back, \
             failed, retries, latency_sum, latency_max, clamped, latency) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )
        .and_then(|mut s| {
            s.execute(params![
                id.0,
                row.point,
                row.second,
                row.part,
                row.kind,
                row.source.0,
                row.seq,
                row.committed as i64,
                row.rolled_back as i64,
                row.failed as i64,
                row.retries as i64,
                latency_sum,
                row.exact.max as i64,
                row.exact.clamped as i64,
                row.latency
            ])
        })
        .map_err(to)?;
    Ok(())
}
