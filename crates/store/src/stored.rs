//! A run read from the store: the description, and its events in their order.

mod follow;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kelvin_measure::event::{Event, HostLoad, KindCounts, LoadPart, MaximumRate, Second, Status};
use kelvin_measure::observation::{Observation, Reading, WaitSamples};
use kelvin_measure::{Exact, Nanos, Source, SourceId, SourcedEvent};
use rusqlite::{Connection, OptionalExtension, Params, Row, params};

use crate::blob;
use crate::error::{Error, Result};
use crate::run::{NewRun, PointSummary, RunId, best};
use crate::state::Liveness;
use crate::store::Store;
use crate::values::Unpacker;

pub use follow::Follower;

/// Seconds of a window or a ramp-up above which a stored run is damaged: 115 days. Every second gets a row.
pub(crate) const LONGEST_SECONDS: u64 = 10_000_000;

/// A whole run. Histograms stay encoded until they are requested: decoded, each uses 270 kB.
#[derive(Debug)]
pub struct StoredRun {
    /// Its number.
    pub id: RunId,
    /// The run's properties at its beginning, with the notes and the environment as last set.
    pub info: NewRun,
    /// How it ended; [`Status::Partial`] without an end.
    pub status: Status,
    /// Whether it is still being written.
    pub liveness: Liveness,
    /// The error that ended it, if one did.
    pub error: Option<String>,
    /// The objection of its group: a reason for which it does not count that is in none of its events.
    pub void: Option<String>,
    path: PathBuf,
    /// Everything but the seconds.
    pub(crate) events: Vec<(i64, Event)>,
    pub(crate) seconds: Vec<StoredSecond>,
    pub(crate) totals: Vec<StoredTotal>,
    observed: Vec<(i64, StoredObservation)>,
    /// By index among the events: the non-local sources of events other than seconds.
    sources: BTreeMap<i64, SourceId>,
}

/// Frequent observations with separate tables. The values stay packed until they are requested.
#[derive(Debug)]
enum StoredObservation {
    Reading { at: Nanos, first: u32, body: Vec<u8> },
    Waits(WaitSamples),
}

/// One second as stored, of all its sources.
#[derive(Debug)]
pub(crate) struct StoredSecond {
    seq: i64,
    pub(crate) point: u32,
    pub(crate) second: i64,
    pub(crate) part: LoadPart,
    sources: BTreeMap<SourceId, SourceSecond>,
}

impl StoredSecond {
    /// Its sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = SourceId> {
        self.sources.keys().copied()
    }
}

/// One second of one source.
#[derive(Debug)]
struct SourceSecond {
    seq: i64,
    kinds: Vec<StoredKind>,
}

#[derive(Debug, Default, Clone)]
struct StoredKind {
    committed: u64,
    rolled_back: u64,
    failed: u64,
    retries: u64,
    exact: Exact,
    latency: Option<Vec<u8>>,
}

/// The collector's own sums over a point for one transaction type.
#[derive(Debug)]
pub(crate) struct StoredTotal {
    pub(crate) point: u32,
    pub(crate) measured: bool,
    pub(crate) kind: usize,
    /// Committed, rolled back, failed, retries, sum of the latencies.
    pub(crate) figures: [u64; 6],
}

impl StoredRun {
    /// The events as they were consumed, in their order. A second that arrived in several parts, or from several
    /// sources, is returned once, at the position of the first part; of the progress events within one second only the
    /// last is returned.
    ///
    /// # Errors
    /// An item is an error when its histogram or its values are damaged.
    pub fn events(&self) -> impl Iterator<Item = Result<Event>> + '_ {
        self.merged_events().map(|event| event.map(|event| event.event))
    }

    /// The same with their sources, but for the seconds, which are of all.
    ///
    /// # Errors
    /// Those of [`StoredRun::events`].
    pub fn merged_events(&self) -> impl Iterator<Item = Result<SourcedEvent>> + '_ {
        self.in_order(self.seconds.iter().map(|second| (second.seq, None, second)).collect())
    }

    /// The same with their sources; several sources of one second are returned separately.
    ///
    /// # Errors
    /// Those of [`StoredRun::events`].
    pub fn sourced_events(&self) -> impl Iterator<Item = Result<SourcedEvent>> + '_ {
        let mut seconds = Vec::new();
        for second in &self.seconds {
            seconds.extend(second.sources.iter().map(|(source, of)| (of.seq, Some(*source), second)));
        }
        seconds.sort_by_key(|(seq, ..)| *seq);
        self.in_order(seconds)
    }

    /// The sources of the run other than this process.
    pub fn sources(&self) -> impl Iterator<Item = (SourceId, &Source)> {
        self.events.iter().filter_map(|(_, event)| match event {
            Event::Source { id, source } => Some((*id, source)),
            _ => None,
        })
    }

    /// What each host of a fleet did in a point, with its name; none of a run without a fleet.
    pub fn host_loads(&self, point: u32) -> Vec<(String, &HostLoad)> {
        let declared: BTreeMap<SourceId, &Source> = self.sources().collect();
        let named = |seq: i64| {
            let id = self.source_of(seq);
            let host = declared.get(&id).and_then(|source| source.host.clone());
            host.unwrap_or_else(|| Source::default().describe(id))
        };
        let loads = self.events.iter().filter_map(|(seq, event)| match event {
            Event::HostLoad(load) if load.point == point => Some((named(*seq), &**load)),
            _ => None,
        });
        loads.collect()
    }

    /// All events by their positions; each second is from one source, or from all together.
    fn in_order<'a>(
        &'a self,
        seconds: Vec<(i64, Option<SourceId>, &'a StoredSecond)>,
    ) -> impl Iterator<Item = Result<SourcedEvent>> + 'a {
        let mut events = self.events.iter().peekable();
        let mut seconds = seconds.into_iter().peekable();
        let mut observed = self.observed.iter().peekable();
        let mut values = Unpacker::default();
        std::iter::from_fn(move || {
            let event = events.peek().map_or(i64::MAX, |(seq, _)| *seq);
            let second = seconds.peek().map_or(i64::MAX, |(seq, ..)| *seq);
            let observation = observed.peek().map_or(i64::MAX, |(seq, _)| *seq);
            let (source_id, event) = if observation < event.min(second) {
                let (seq, seen) = observed.next()?;
                (self.source_of(*seq), unpack(&self.path, self.id, seen, &mut values))
            } else if second < event {
                let (_, source, second) = seconds.next()?;
                (source.unwrap_or_default(), self.decode(second, source).map(Event::Second))
            } else {
                let (seq, event) = events.next()?;
                (self.source_of(*seq), Ok(event.clone()))
            };
            Some(event.map(|event| SourcedEvent { source_id, event }))
        })
    }

    /// Whether there are observations besides the load.
    pub fn has_observations(&self) -> bool {
        !self.observed.is_empty() || self.events.iter().any(|(_, event)| matches!(event, Event::Observed(_)))
    }

    /// Whether there is evidence for findings besides the counts: observations during the load, or facts about the
    /// files of I/O jobs.
    pub fn has_evidence(&self) -> bool {
        self.has_observations() || self.storage("facts").is_some()
    }

    /// The newest point of which seconds are there, and the first of them; none before the first.
    pub fn first_second(&self) -> Option<(u32, i64)> {
        let point = self.seconds.iter().map(|second| second.point).max()?;
        self.seconds.iter().filter(|second| second.point == point).map(|second| (point, second.second)).min()
    }

    /// The newest second of a point; none before the first.
    pub fn last_second(&self, point: u32) -> Option<i64> {
        self.seconds.iter().filter(|second| second.point == point).map(|second| second.second).max()
    }

    /// Transactions that failed for good, over everything the users did.
    pub fn failed(&self) -> u64 {
        let failed = |event: &Event| if let Event::Errors(count) = event { count.failed() } else { 0 };
        self.events.iter().map(|(_, event)| failed(event)).sum()
    }

    /// The best point of the run: for a search the highest rate that passed; else the highest headline value of those
    /// whose invariants hold and whose schedule was kept. `None` while no window has closed.
    pub fn best_point(&self) -> Option<u32> {
        let mut points: Vec<PointSummary> = Vec::new();
        for (_, event) in &self.events {
            match event {
                Event::Window(window) => points.extend(PointSummary::from_window(window)),
                Event::Invariant { point, invariant } => {
                    let of = points.iter_mut().filter(|summary| summary.point == *point);
                    of.for_each(|summary| summary.void |= !invariant.holds);
                }
                _ => {}
            }
        }
        best(&points, self.maximum_rate().and_then(MaximumRate::highest_held)).map(|best| best.point)
    }

    pub(crate) fn damaged(&self, detail: impl Into<String>) -> Error {
        Error::damaged(&self.path, detail)
    }

    /// The source of an event that is not a second, by its place.
    pub(crate) fn source_of(&self, seq: i64) -> SourceId {
        self.sources.get(&seq).copied().unwrap_or_default()
    }

    /// A second of one source, or of all together.
    pub(crate) fn decode(&self, second: &StoredSecond, source: Option<SourceId>) -> Result<Second> {
        let mut kinds: Vec<KindCounts> = Vec::new();
        for (_, of) in second.sources.iter().filter(|(id, _)| source.is_none_or(|wanted| wanted == **id)) {
            let decoded = of.kinds.iter().map(|kind| self.decode_kind(second, kind));
            let decoded = decoded.collect::<Result<Vec<_>>>()?;
            if kinds.is_empty() {
                kinds = decoded;
            } else {
                kinds.iter_mut().zip(&decoded).for_each(|(sum, kind)| sum.add(kind));
            }
        }
        Ok(Second { point: second.point, second: second.second, part: second.part, kinds })
    }

    fn decode_kind(&self, second: &StoredSecond, kind: &StoredKind) -> Result<KindCounts> {
        let latency = blob::decode(kind.latency.as_deref(), kind.exact).map_err(|e| {
            Error::damaged(&self.path, format!("second {} of run {}: {e}", second.second, self.id))
        })?;
        Ok(KindCounts {
            committed: kind.committed,
            rolled_back: kind.rolled_back,
            failed: kind.failed,
            retries: kind.retries,
            latency,
        })
    }
}

/// An observation with its values, which are packed as changes since the previous ones.
fn unpack(path: &Path, id: RunId, seen: &StoredObservation, values: &mut Unpacker) -> Result<Event> {
    Ok(Event::Observed(match seen {
        StoredObservation::Reading { at, first, body } => {
            let values = values
                .unpack(*first, body)
                .map_err(|e| Error::damaged(path, format!("a reading at {at} ns of run {id}: {e}")))?;
            Observation::Reading(Reading { at: *at, first: *first, values })
        }
        StoredObservation::Waits(waits) => Observation::Waits(waits.clone()),
    }))
}

impl Store {
    /// Reads everything about a run, as of one moment when it is still being written.
    pub fn load(&self, id: RunId) -> Result<StoredRun> {
        let path = self.path();
        let snapshot = self.connection().unchecked_transaction().map_err(|e| Error::sqlite(path, e))?;
        let (info, liveness) = self.info(id)?;
        let mut sources = BTreeMap::new();
        let events = read_events(&snapshot, path, id, FIRST, &mut sources)?;
        let (status, error, liveness) = end(&events).unwrap_or((Status::Partial, None, liveness));
        let seconds = read_seconds(&snapshot, path, id, info.kinds.len(), (FIRST, FIRST))?;
        let totals = read_totals(&snapshot, path, id)?;
        let observed = read_observed(&snapshot, path, id, FIRST, &mut sources)?;
        let void = snapshot
            .query_row("SELECT void FROM member WHERE run = ?", [id.0], |row| row.get(0))
            .optional()
            .map_err(|e| Error::sqlite(path, e))?
            .flatten();
        Ok(StoredRun {
            id,
            info,
            status,
            liveness,
            error,
            void,
            path: path.to_path_buf(),
            events,
            seconds,
            totals,
            observed,
            sources,
        })
    }

    /// The newest complete run of the same workload on the same target before this one, made where this one was: two machines
    /// may call their targets alike.
    pub fn previous_run(&self, run: &StoredRun) -> Result<Option<RunId>> {
        let to = |e| Error::sqlite(self.path(), e);
        let mut same = self
            .connection()
            .prepare(
                "SELECT id, started FROM run WHERE id < ? AND workload = ? AND target = ? ORDER BY id DESC",
            )
            .map_err(to)?;
        let place = |id| Ok::<_, Error>(self.origin(id)?.map(|origin| (origin.host, origin.store)));
        let here = place(run.id)?;
        let mut finished = self
            .connection()
            .prepare("SELECT body FROM event WHERE run = ? AND name = 'finished' ORDER BY seq DESC LIMIT 1")
            .map_err(to)?;
        let mut rows = same.query(params![run.id.0, run.info.workload, run.info.target]).map_err(to)?;
        while let Some(row) = rows.next().map_err(to)? {
            let id: i64 = row.get(0).map_err(to)?;
            // Runs that were imported have later numbers than those that were made after them.
            if self.timestamp(&row.get::<_, String>(1).map_err(to)?)? > run.info.started
                || place(RunId(id))? != here
            {
                continue;
            }
            let body: Option<String> = finished.query_row([id], |row| row.get(0)).optional().map_err(to)?;
            let end = body.map(|body| self.json::<Event>(&body)).transpose()?;
            if matches!(end, Some(Event::Finished { status: Status::Complete, .. })) {
                return Ok(Some(RunId(id)));
            }
        }
        Ok(None)
    }
}

/// How a run ended; `None` when it has not.
fn end(events: &[(i64, Event)]) -> Option<(Status, Option<String>, Liveness)> {
    events.iter().rev().find_map(|(_, event)| match event {
        Event::Finished { status, error } => Some((*status, error.clone(), Liveness::Ended)),
        _ => None,
    })
}

/// Before every place among a run's events, every point and every second.
const FIRST: i64 = i64::MIN;

fn read_observed(
    conn: &Connection,
    path: &Path,
    id: RunId,
    after: i64,
    sources: &mut BTreeMap<i64, SourceId>,
) -> Result<Vec<(i64, StoredObservation)>> {
    let mut observed = read_readings(conn, path, id, after, sources)?;
    observed.append(&mut read_waits(conn, path, id, after, sources)?);
    observed.sort_by_key(|(seq, _)| *seq);
    Ok(observed)
}

/// Notes the source of an event that is not local.
fn note_source(
    path: &Path,
    id: RunId,
    (seq, source): (i64, i64),
    sources: &mut BTreeMap<i64, SourceId>,
) -> Result<()> {
    let source = SourceId(unsigned(path, id, source)?);
    if !source.is_local() {
        sources.insert(seq, source);
    }
    Ok(())
}

/// The rows of a query, each of them read by `read`.
fn read_rows<T>(
    conn: &Connection,
    path: &Path,
    sql: &str,
    parameters: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let to = |e| Error::sqlite(path, e);
    let mut statement = conn.prepare(sql).map_err(to)?;
    let mut rows = statement.query(parameters).map_err(to)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(to)? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read_events(
    conn: &Connection,
    path: &Path,
    id: RunId,
    after: i64,
    sources: &mut BTreeMap<i64, SourceId>,
) -> Result<Vec<(i64, Event)>> {
    let to = |e| Error::sqlite(path, e);
    let sql = "SELECT seq, body, source_id FROM event WHERE run = ? AND seq > ? ORDER BY seq";
    read_rows(conn, path, sql, [id.0, after], |row| {
        let text: String = row.get(1).map_err(to)?;
        let event = serde_json::from_str::<Event>(&text)
            .map_err(|e| Error::damaged(path, format!("an event of run {id}: {e}")))?;
        let seq = row.get(0).map_err(to)?;
        note_source(path, id, (seq, row.get(2).map_err(to)?), sources)?;
        Ok((seq, event))
    })
}

/// The seconds from a given one on, by point and second.
fn read_seconds(
    conn: &Connection,
    path: &Path,
    id: RunId,
    kinds: usize,
    from: (i64, i64),
) -> Result<Vec<StoredSecond>> {
    let to = |e| Error::sqlite(path, e);
    let mut statement = conn
        .prepare(
            "SELECT point, second, part, kind, seq, committed, rolled_back, failed, retries, latency_sum, \
             latency_max, clamped, latency, source_id FROM second WHERE run = ? AND (point, second) >= (?, ?)",
        )
        .map_err(to)?;
    let mut rows = statement.query([id.0, from.0, from.1]).map_err(to)?;
    let mut seconds: BTreeMap<(u32, i64, i64), StoredSecond> = BTreeMap::new();
    while let Some(row) = rows.next().map_err(to)? {
        let int = |i| row.get::<_, i64>(i).map_err(to);
        let count = |i| unsigned::<u64>(path, id, int(i)?);
        let (point, second, part_number) = (unsigned(path, id, int(0)?)?, int(1)?, int(2)?);
        if second.unsigned_abs() > LONGEST_SECONDS {
            return Err(Error::damaged(path, format!("run {id} has an invalid record for second {second}")));
        }
        let part = match part_number {
            0 => LoadPart::RampUp,
            1 => LoadPart::Measured,
            2 => LoadPart::Tail,
            other => {
                return Err(Error::damaged(
                    path,
                    format!("a per-second record of run {id} has an invalid part {other}"),
                ));
            }
        };
        let entry = seconds.entry((point, second, part_number)).or_insert_with(|| StoredSecond {
            seq: i64::MAX,
            point,
            second,
            part,
            sources: BTreeMap::new(),
        });
        let of_source = entry
            .sources
            .entry(SourceId(unsigned(path, id, int(13)?)?))
            .or_insert_with(|| SourceSecond { seq: i64::MAX, kinds: vec![StoredKind::default(); kinds] });
        let kind = of_source
            .kinds
            .get_mut(unsigned::<usize>(path, id, int(3)?)?)
            .ok_or_else(|| Error::damaged(path, format!("an unknown transaction type in run {id}")))?;
        *kind = StoredKind {
            committed: count(5)?,
            rolled_back: count(6)?,
            failed: count(7)?,
            retries: count(8)?,
            exact: Exact { sum: u128::from(count(9)?), max: count(10)?, clamped: count(11)? },
            latency: row.get(12).map_err(to)?,
        };
        of_source.seq = of_source.seq.min(int(4)?);
        entry.seq = entry.seq.min(of_source.seq);
    }
    let mut seconds: Vec<_> = seconds.into_values().collect();
    seconds.sort_by_key(|s| s.seq);
    Ok(seconds)
}

fn read_readings(
    conn: &Connection,
    path: &Path,
    id: RunId,
    after: i64,
    sources: &mut BTreeMap<i64, SourceId>,
) -> Result<Vec<(i64, StoredObservation)>> {
    let to = |e| Error::sqlite(path, e);
    let sql = "SELECT seq, at, first, body, source_id FROM reading WHERE run = ? AND seq > ? ORDER BY seq";
    read_rows(conn, path, sql, [id.0, after], |row| {
        let int = |i| row.get::<_, i64>(i).map_err(to);
        let (at, first) = (unsigned(path, id, int(1)?)?, unsigned(path, id, int(2)?)?);
        let body = row.get(3).map_err(to)?;
        note_source(path, id, (int(0)?, int(4)?), sources)?;
        Ok((int(0)?, StoredObservation::Reading { at, first, body }))
    })
}

fn read_waits(
    conn: &Connection,
    path: &Path,
    id: RunId,
    after: i64,
    sources: &mut BTreeMap<i64, SourceId>,
) -> Result<Vec<(i64, StoredObservation)>> {
    let to = |e| Error::sqlite(path, e);
    let sql = "SELECT seq, at, looks, lock_looks, seen, rows, source_id FROM waits WHERE run = ? AND seq > ? \
               ORDER BY seq";
    read_rows(conn, path, sql, [id.0, after], |row| {
        let int = |i| row.get::<_, i64>(i).map_err(to);
        let (seen, relations): (String, String) = (row.get(4).map_err(to)?, row.get(5).map_err(to)?);
        let bad = |e| Error::damaged(path, format!("the waits of run {id}: {e}"));
        let waits = WaitSamples {
            at: unsigned(path, id, int(1)?)?,
            looks: unsigned(path, id, int(2)?)?,
            lock_looks: unsigned(path, id, int(3)?)?,
            seen: serde_json::from_str(&seen).map_err(bad)?,
            rows: serde_json::from_str(&relations).map_err(bad)?,
        };
        note_source(path, id, (int(0)?, int(6)?), sources)?;
        Ok((int(0)?, StoredObservation::Waits(waits)))
    })
}

fn read_totals(conn: &Connection, path: &Path, id: RunId) -> Result<Vec<StoredTotal>> {
    let to = |e| Error::sqlite(path, e);
    let sql = "SELECT point, scope, kind, committed, rolled_back, failed, retries, latency_sum, latency_max FROM total \
               WHERE run = ? ORDER BY point, scope, kind";
    read_rows(conn, path, sql, [id.0], |row| {
        let int = |i| row.get::<_, i64>(i).map_err(to);
        let count = |i| unsigned::<u64>(path, id, int(i)?);
        Ok(StoredTotal {
            point: unsigned(path, id, int(0)?)?,
            measured: int(1)? == 0,
            kind: unsigned(path, id, int(2)?)?,
            figures: [count(3)?, count(4)?, count(5)?, count(6)?, count(7)?, count(8)?],
        })
    })
}

/// A number that cannot be negative and must fit its type.
fn unsigned<T: TryFrom<i64>>(path: &Path, id: RunId, value: i64) -> Result<T> {
    T::try_from(value).map_err(|_| Error::damaged(path, format!("run {id} has a count of {value}")))
}
