//! A run on its way into the store.

use std::path::Path;
use std::time::{Duration, Instant};

use kelvin_measure::event::{Event, KindCounts};
use kelvin_measure::observation::{Observation, Reading};
use kelvin_measure::{Sink, SinkError, SourceId, Totals};
use rusqlite::Connection;

use crate::committer::{Committer, KindRow, Waiting, WaitsRow, nanos};
use crate::error::{Error, Result};
use crate::file_identity::FileIdentity;
use crate::run::RunId;
use crate::state::is_listed;
use crate::values::Packer;
use kelvin_measure::redact_json;

/// Events arrive once a second with some jitter: a full second here would push every other one into the next.
const COMMIT_EVERY: Duration = Duration::from_millis(900);

/// Maximum number of rows that wait for a store that cannot be written; further rows are refused.
const MOST_WAITING: usize = 100_000;

/// Writes one run, on a separate thread: the consumer of events does not wait for the disk, except at the end, or when
/// too many rows wait for it. Dropping it writes the remaining rows; a run dropped before its `Finished` event stays
/// partial.
#[derive(Debug)]
pub struct RunWriter {
    id: RunId,
    kinds: usize,
    seq: i64,
    waiting: Vec<Waiting>,
    values: Packer,
    last_handed_on: Instant,
    committer: Committer,
}

impl RunWriter {
    pub(crate) fn new(
        conn: Connection,
        path: &Path,
        identity: FileIdentity,
        id: RunId,
        kinds: usize,
    ) -> Result<Self> {
        Ok(Self {
            id,
            kinds,
            seq: 0,
            waiting: Vec::new(),
            values: Packer::default(),
            last_handed_on: Instant::now(),
            committer: Committer::start(conn, path, identity, id)?,
        })
    }

    /// The same for a run that has events: the next one has this place.
    pub(crate) fn at_place(mut self, seq: i64) -> Self {
        self.seq = seq;
        self
    }

    /// The run's number.
    pub fn id(&self) -> RunId {
        self.id
    }

    fn consume(&mut self, source: SourceId, event: &Event) -> Result<()> {
        if self.waiting.len() + self.committer.waiting() >= MOST_WAITING {
            self.flush()?;
        }
        self.take(source, event)?;
        self.seq += 1;
        match event {
            Event::Finished { .. } => self.flush(),
            Event::Phase { .. } | Event::Window(_) => self.hand_on(),
            _ if self.last_handed_on.elapsed() >= COMMIT_EVERY => self.hand_on(),
            _ => Ok(()),
        }
    }

    /// Adds the event's rows to the waiting ones.
    fn take(&mut self, source: SourceId, event: &Event) -> Result<()> {
        let seq = self.seq;
        match event {
            Event::Second(second) => {
                if second.kinds.len() != self.kinds {
                    return Err(Error::Event(format!(
                        "a per-second record has {} transaction types, but the run has {}",
                        second.kinds.len(),
                        self.kinds
                    )));
                }
                for (kind, counts) in second.kinds.iter().enumerate() {
                    // One row even for a second without any transaction: the event itself must come back.
                    if kind == 0 || !is_zero(counts) {
                        self.waiting.push(Waiting::Kind(KindRow::new((seq, source), second, kind, counts)?));
                    }
                }
            }
            Event::Observed(Observation::Reading(Reading { at, first, values })) => {
                let (at, first) = (nanos(*at)?, *first);
                let body = self.values.pack(first, values).map_err(Error::Event)?;
                self.waiting.push(Waiting::Reading { seq, source, at, first, body });
            }
            Event::Observed(Observation::Waits(waits)) => {
                self.waiting.push(Waiting::Waits(WaitsRow::new(seq, source, waits)?));
            }
            _ => {
                // Observations in between do not preserve an outdated progress.
                if matches!(event, Event::Progress { .. }) {
                    let newest =
                        self.waiting.iter().rposition(|waiting| matches!(waiting, Waiting::Event { .. }));
                    if let Some(at) = newest
                        && matches!(self.waiting[at], Waiting::Event { name: "progress", source: of, .. } if of == source)
                    {
                        self.waiting.remove(at);
                    }
                }
                let mut body = serde_json::to_value(event).map_err(|e| Error::Event(e.to_string()))?;
                redact_json(&mut body);
                let body = body.to_string();
                let listed = is_listed(event);
                self.waiting.push(Waiting::Event { seq, source, name: event.name(), body, listed });
            }
        }
        Ok(())
    }

    fn hand_on(&mut self) -> Result<()> {
        self.last_handed_on = Instant::now();
        self.committer.hand_on(std::mem::take(&mut self.waiting))
    }

    /// Commits the waiting rows, and waits until that is done.
    pub fn flush(&mut self) -> Result<()> {
        // Rows that could not be written before may be now: only the final result counts.
        let _ = self.hand_on();
        self.committer.flush()
    }

    /// Stores the collector's own sums over a point, against which the stored seconds are checked on reading.
    pub fn set_totals(&mut self, point: u32, totals: &Totals) -> Result<()> {
        self.committer.totals(point, totals)
    }
}

impl Sink for RunWriter {
    /// Passes an event to the thread that stores it: at the latest with the first event that arrives a second later,
    /// and immediately when it is a `Phase` or a `Window`. `Finished` is stored when this returns. Of the `Progress`
    /// events within one second the last is kept; several sources of one second are stored separately.
    ///
    /// # Errors
    /// When earlier rows, or those of the last event, cannot be written. They are kept and written with the next that
    /// can be, up to 100,000 rows; those after them are lost. When the file was deleted or replaced: rows are then
    /// written to the copy that the error names, when this is dropped.
    fn event_from(&mut self, source: SourceId, event: &Event) -> std::result::Result<(), SinkError> {
        Ok(self.consume(source, event)?)
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        let _ = self.hand_on();
    }
}

fn is_zero(counts: &KindCounts) -> bool {
    counts.committed == 0
        && counts.rolled_back == 0
        && counts.failed == 0
        && counts.retries == 0
        && counts.latency.is_empty()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Sink;
    use kelvin_measure::event::Event;

    use kelvin_measure::event::{RatePeriod, Series};

    use crate::{Error, NewRun, RunId, Store};

    #[test]
    fn a_full_disk_is_reported_and_pending_events_are_written_later() {
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
            headline_per: RatePeriod::Minute,
            counter_names: Vec::new(),
            notes: Vec::new(),
            environment: serde_json::Value::Null,
            started: jiff::Timestamp::UNIX_EPOCH,
        };
        let mut writer = store.begin_run(&run).unwrap();
        let pages: i64 = store.connection().pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
        writer.committer.limit_pages(pages);
        let note = |second| Event::Note { point: 0, second, text: "x".repeat(3000) };
        for second in 0..10 {
            writer.event(&note(second)).unwrap();
        }
        let error = writer.flush().unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(error.to_string().contains("the disk is full"));
        writer.committer.limit_pages(1_000_000);
        writer.flush().unwrap();
        assert_eq!(store.load(RunId(1)).unwrap().events().count(), 10);
    }
}
