//! A table of waits by class: what was sampled and what the server counted, side by side.

use std::collections::{BTreeMap, HashMap};

use kelvin_measure::observation::{WaitGroup, WaitKind};
use serde::Serialize;

use super::{
    BlockedSession, FileSums, IoSums, LatchKind, LatchSums, SampleCounts, ServerActivity, ServerReading,
    SessionSamples,
};

/// Statements that are named for each class.
const STATEMENTS: usize = 5;

/// What a report is made of.
pub struct WaitInputs<'a> {
    /// The states of the sessions.
    pub samples: &'a SessionSamples,
    /// Their numbers in the interval.
    pub counts: &'a SampleCounts,
    /// What the server counted in the interval.
    pub interval: &'a ServerReading,
    /// What it has counted since its counters began.
    pub since_start: &'a ServerReading,
    /// Length of the interval in seconds.
    pub seconds: f64,
    /// Who was seen waiting for whom.
    pub blocked: Vec<BlockedSession>,
}

/// What sessions waited for over an interval.
#[derive(Debug, Clone, Serialize)]
pub struct WaitReport {
    /// Length of the interval.
    pub seconds: f64,
    /// Samples of the sessions in it.
    pub samples: u64,
    /// Sessions that ran a statement, on average; the classes add up to it.
    pub active_sessions: f64,
    /// Sessions whose transaction waited for its client, on average.
    pub idle_in_transaction: f64,
    /// Whether the server counts waits; otherwise all shares are of samples.
    pub counted: bool,
    /// Waits that a healthy server does not have.
    pub poison: Vec<PoisonRow>,
    /// What the sessions did, the most time first; classes that were only counted last.
    pub classes: Vec<ClassRow>,
    /// What the server's own processes did: process, class and event.
    pub background: Vec<EventRow>,
    /// Files by the time spent on them, then by their operations.
    pub files: Vec<FileRow>,
    /// Latches by the time that was waited for them, then spinlocks by their spins; empty where they are not counted by class.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub latches: Vec<LatchRow>,
    /// Who waited for whom.
    pub blocked: Vec<BlockedSession>,
}

/// A wait that points to something wrong with the server rather than to its load.
#[derive(Debug, Clone, Serialize)]
pub struct PoisonRow {
    /// Class and event.
    pub event: String,
    /// Sessions in it, on average; none where it was counted only.
    pub sessions: Option<f64>,
    /// Waits in the interval; none where they are not counted.
    pub waits: Option<f64>,
    /// Waits since the counters began.
    pub waits_since_start: Option<f64>,
    /// What it is a sign of.
    pub sign: &'static str,
}

/// A class of waits.
#[derive(Debug, Clone, Serialize)]
pub struct ClassRow {
    /// Its name in programs.
    pub class: WaitKind,
    /// Its name for people.
    pub label: &'static str,
    /// Its sums.
    #[serde(flatten)]
    pub sums: EventRow,
    /// What it consists of, the most first.
    pub events: Vec<EventRow>,
    /// The statements seen in it, the most first.
    pub statements: Vec<StatementShare>,
}

/// Sessions sampled in a state, and what the server counted of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EventRow {
    /// Class and event as the server names them; empty for the sums of a class.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// Average number of sessions; none where it was not sampled.
    pub sessions: Option<f64>,
    /// Their share of the active sessions' time, of 1.
    pub share: Option<f64>,
    /// Waits in the interval by the server's count; none where it counts none.
    pub waits: Option<f64>,
    /// Mean time of one in milliseconds.
    pub average_ms: Option<f64>,
    /// The part of the counted time that was a wait for a CPU after what was waited for was there, of 1.
    pub signal_share: Option<f64>,
    /// The same since the server's counters began.
    pub since_start: Option<CountedSinceStart>,
}

/// What a server counted since its counters began.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct CountedSinceStart {
    /// Waits.
    pub waits: f64,
    /// Their time in milliseconds; none where only the number is counted.
    pub total_ms: Option<f64>,
    /// Mean time of one.
    pub average_ms: Option<f64>,
}

/// A statement in a class.
#[derive(Debug, Clone, Serialize)]
pub struct StatementShare {
    /// Its identifier as the server prints it.
    pub query: String,
    /// Its text without values; empty where it is not known.
    pub text: String,
    /// Average number of its sessions in the class.
    pub sessions: f64,
}

/// Operations on a file in the interval.
#[derive(Debug, Clone, Serialize)]
pub struct FileRow {
    /// The file or the class of files.
    pub name: String,
    /// Reads.
    pub reads: Latency,
    /// Writes.
    pub writes: Latency,
    /// Syncs; with opens and closes where the server counts them together.
    pub syncs: Latency,
}

/// A class of latches or spinlocks in the interval.
#[derive(Debug, Clone, Serialize)]
pub struct LatchRow {
    /// Which of them.
    pub kind: LatchKind,
    /// Its name on the server.
    pub name: String,
    /// Waits for a latch; collisions of a spinlock.
    pub waits: f64,
    /// Milliseconds asleep in them.
    pub wait_ms: f64,
    /// Rounds of spinning; none of a latch.
    pub spins: Option<f64>,
    /// How often a spinning task went to sleep; none of a latch.
    pub backoffs: Option<f64>,
}

/// How many operations, and how long they took.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Latency {
    /// Operations; none where they are not counted.
    pub count: Option<f64>,
    /// Bytes; none where they are not counted.
    pub bytes: Option<f64>,
    /// Milliseconds altogether; none where they are not measured.
    pub total_ms: Option<f64>,
    /// Mean time of one.
    pub average_ms: Option<f64>,
}

impl From<IoSums> for Latency {
    fn from(sums: IoSums) -> Self {
        let mean = sums.ms.zip(sums.count).filter(|(_, count)| *count > 0.0).map(|(ms, count)| ms / count);
        Self { count: sums.count, bytes: sums.bytes, total_ms: sums.ms, average_ms: mean }
    }
}

/// Whether a process serves a client; the others are the server's own.
fn is_client(group: &WaitGroup) -> bool {
    group.backend.starts_with("client backend") || group.backend == "parallel worker"
}

/// Class and event as one name.
fn event_name(class: &str, event: &str) -> String {
    format!("{class} {event}").trim_end().to_owned()
}

/// What comes together under a class or an event.
#[derive(Debug, Default)]
struct Merged {
    sampled: Option<u64>,
    interval: Sums,
    since_start: Sums,
}

#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    count: Option<f64>,
    ms: Option<f64>,
    /// Of the waits that have a time.
    timed: f64,
    signal_ms: Option<f64>,
}

impl Sums {
    fn add(&mut self, one: &super::CountedWait) {
        *self.count.get_or_insert_default() += one.count;
        if let Some(ms) = one.total_ms {
            *self.ms.get_or_insert_default() += ms;
            self.timed += one.count;
        }
        if let Some(ms) = one.signal_ms {
            *self.signal_ms.get_or_insert_default() += ms;
        }
    }

    fn mean(&self) -> Option<f64> {
        self.ms.filter(|_| self.timed > 0.0).map(|ms| ms / self.timed)
    }
}

impl Merged {
    fn row(&self, event: String, looks: f64, active: f64) -> EventRow {
        let since_start = self.since_start;
        EventRow {
            event,
            sessions: self.sampled.map(|seen| seen as f64 / looks),
            share: self.sampled.filter(|_| active > 0.0).map(|seen| seen as f64 / active),
            waits: self.interval.count,
            average_ms: self.interval.mean(),
            signal_share: self
                .interval
                .signal_ms
                .zip(self.interval.ms)
                .filter(|(_, all)| *all > 0.0)
                .map(|(signal, all)| signal / all),
            since_start: since_start.count.map(|waits| CountedSinceStart {
                waits,
                total_ms: since_start.ms,
                average_ms: since_start.mean(),
            }),
        }
    }

    /// The order: by sampled time, then by counted time.
    fn weight(&self) -> (u64, f64) {
        (self.sampled.unwrap_or(0), self.interval.ms.or(self.interval.count).unwrap_or(0.0))
    }
}

fn heaviest<K>(rows: &mut [(K, Merged)]) {
    rows.sort_by(|(_, one), (_, other)| {
        let (one, other) = (one.weight(), other.weight());
        other.0.cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
}

impl WaitReport {
    /// Adds up an interval.
    pub fn new(inputs: WaitInputs<'_>, server: &dyn ServerActivity) -> Self {
        let WaitInputs { samples, counts, interval, since_start, seconds, mut blocked } = inputs;
        let looks = counts.looks.max(1) as f64;
        let mut active = 0;
        let mut idle = 0;
        let mut events: BTreeMap<(WaitKind, String), Merged> = BTreeMap::new();
        let mut background: BTreeMap<String, Merged> = BTreeMap::new();
        let mut statements: HashMap<WaitKind, HashMap<i64, u64>> = HashMap::new();
        for (group, seen) in samples.states(counts) {
            let mut event = event_name(&group.class, &group.event);
            if let Some(object) = &group.object {
                event = format!("{event} of {object}");
            }
            if !is_client(group) {
                let name = format!("{}: {event}", group.backend);
                *background.entry(name).or_default().sampled.get_or_insert_default() += seen;
                continue;
            }
            if group.kind == WaitKind::IdleInTransaction {
                idle += seen;
            } else {
                active += seen;
                *events.entry((group.kind, event)).or_default().sampled.get_or_insert_default() += seen;
            }
            if let Some(query) = group.query {
                *statements.entry(group.kind).or_default().entry(query).or_default() += seen;
            }
        }
        for (reading, of) in [(interval, 0), (since_start, 1)] {
            for one in &reading.waits {
                let merged = events.entry((one.kind, event_name(&one.class, &one.event))).or_default();
                let sums = if of == 0 { &mut merged.interval } else { &mut merged.since_start };
                sums.add(one);
            }
        }
        let classes = classes(events, &statements, samples, server, (looks, active as f64));
        let mut background: Vec<_> = background.into_iter().collect();
        heaviest(&mut background);
        blocked.sort_by(|one, other| {
            other
                .waited_ms
                .unwrap_or(0.0)
                .total_cmp(&one.waited_ms.unwrap_or(0.0))
                .then(one.session.cmp(&other.session))
        });
        Self {
            seconds,
            samples: counts.looks,
            active_sessions: active as f64 / looks,
            idle_in_transaction: idle as f64 / looks,
            counted: !since_start.waits.is_empty(),
            poison: poison(samples, counts, interval, since_start, server),
            classes,
            background: background.into_iter().map(|(name, one)| one.row(name, looks, 0.0)).collect(),
            files: files(&interval.files),
            latches: latches(&interval.latches),
            blocked,
        }
    }
}

fn classes(
    events: BTreeMap<(WaitKind, String), Merged>,
    statements: &HashMap<WaitKind, HashMap<i64, u64>>,
    samples: &SessionSamples,
    server: &dyn ServerActivity,
    (looks, active): (f64, f64),
) -> Vec<ClassRow> {
    let mut by_kind: BTreeMap<WaitKind, (Merged, Vec<(String, Merged)>)> = BTreeMap::new();
    for ((kind, event), one) in events {
        let (sum, events) = by_kind.entry(kind).or_default();
        if let Some(seen) = one.sampled {
            *sum.sampled.get_or_insert_default() += seen;
        }
        for (sum, one) in [(&mut sum.interval, one.interval), (&mut sum.since_start, one.since_start)] {
            let add = |sum: &mut Option<f64>, one: Option<f64>| {
                if let Some(one) = one {
                    *sum.get_or_insert_default() += one;
                }
            };
            add(&mut sum.count, one.count);
            add(&mut sum.ms, one.ms);
            add(&mut sum.signal_ms, one.signal_ms);
            sum.timed += one.timed;
        }
        events.push((event, one));
    }
    let mut kinds: Vec<_> = by_kind.into_iter().map(|(kind, (sum, events))| ((kind, events), sum)).collect();
    heaviest(&mut kinds);
    let row = |((kind, mut events), sum): ((WaitKind, Vec<(String, Merged)>), Merged)| {
        heaviest(&mut events);
        let mut statements: Vec<_> = statements.get(&kind).into_iter().flatten().collect();
        statements.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
        ClassRow {
            class: kind,
            label: kind.label(),
            sums: sum.row(String::new(), looks, active),
            events: events.into_iter().map(|(event, one)| one.row(event, looks, active)).collect(),
            statements: statements
                .into_iter()
                .take(STATEMENTS)
                .map(|(query, seen)| StatementShare {
                    query: server.query_id(*query),
                    text: samples.texts().get(query).cloned().unwrap_or_default(),
                    sessions: *seen as f64 / looks,
                })
                .collect(),
        }
    };
    kinds.into_iter().map(row).collect()
}

/// Waits that the engine names as such, sampled or counted.
fn poison(
    samples: &SessionSamples,
    counts: &SampleCounts,
    interval: &ServerReading,
    since_start: &ServerReading,
    server: &dyn ServerActivity,
) -> Vec<PoisonRow> {
    let mut rows: BTreeMap<String, PoisonRow> = BTreeMap::new();
    let mut row = |class: &str, event: &str, change: &mut dyn FnMut(&mut PoisonRow)| {
        let Some(sign) = server.poison(class, event) else { return };
        let name = event_name(class, event);
        let new =
            PoisonRow { event: name.clone(), sessions: None, waits: None, waits_since_start: None, sign };
        change(rows.entry(name).or_insert(new));
    };
    for (group, seen) in samples.states(counts) {
        row(&group.class, &group.event, &mut |row| {
            *row.sessions.get_or_insert_default() += seen as f64 / counts.looks.max(1) as f64;
        });
    }
    for one in &since_start.waits {
        row(&one.class, &one.event, &mut |row| {
            row.waits_since_start = Some(one.count);
            row.waits = Some(0.0);
        });
    }
    for one in &interval.waits {
        row(&one.class, &one.event, &mut |row| row.waits = Some(one.count));
    }
    let mut rows: Vec<PoisonRow> = rows.into_values().collect();
    rows.retain(|row| row.sessions.is_some() || row.waits_since_start.is_some_and(|waits| waits > 0.0));
    rows
}

fn files(files: &[FileSums]) -> Vec<FileRow> {
    let mut files: Vec<&FileSums> = files.iter().collect();
    let sum = |of: fn(&IoSums) -> Option<f64>, file: &FileSums| {
        [file.reads, file.writes, file.syncs].iter().filter_map(of).sum::<f64>()
    };
    files.sort_by(|one, other| {
        sum(|io| io.ms, other)
            .total_cmp(&sum(|io| io.ms, one))
            .then(sum(|io| io.count, other).total_cmp(&sum(|io| io.count, one)))
            .then(one.name.cmp(&other.name))
    });
    let row = |file: &FileSums| FileRow {
        name: file.name.clone(),
        reads: file.reads.into(),
        writes: file.writes.into(),
        syncs: file.syncs.into(),
    };
    files.into_iter().map(row).collect()
}

fn latches(latches: &[LatchSums]) -> Vec<LatchRow> {
    let mut latches: Vec<&LatchSums> = latches.iter().collect();
    let cost = |one: &LatchSums| one.spins.unwrap_or(one.ms);
    latches.sort_by(|one, other| {
        let by_kind = (one.kind != LatchKind::Latch).cmp(&(other.kind != LatchKind::Latch));
        by_kind.then(cost(other).total_cmp(&cost(one))).then(one.name.cmp(&other.name))
    });
    let row = |one: &LatchSums| LatchRow {
        kind: one.kind,
        name: one.name.clone(),
        waits: one.count,
        wait_ms: one.ms,
        spins: one.spins,
        backoffs: one.backoffs,
    };
    latches.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::observation::{Observation, WaitSamples};

    use super::super::{CountedWait, StatementCounters, StatementPlan, StatementReading};
    use super::*;

    /// A server with one poison.
    struct Fake;

    impl ServerActivity for Fake {
        fn product(&mut self) -> Result<String, String> {
            Ok("Fake 1".into())
        }
        fn absent(&mut self) -> Vec<kelvin_measure::observation::UnavailableMetrics> {
            Vec::new()
        }
        fn read(&mut self) -> Result<ServerReading, String> {
            Ok(ServerReading::default())
        }
        fn blocked(&mut self) -> Result<Vec<BlockedSession>, String> {
            Ok(Vec::new())
        }
        fn poison(&self, _class: &str, event: &str) -> Option<&'static str> {
            (event == "pool").then_some("too few threads")
        }
        fn query_id(&self, query: i64) -> String {
            query.to_string()
        }
        fn statement_counters(&mut self) -> Result<StatementCounters, String> {
            Err("none".into())
        }
        fn statements(&mut self) -> Result<StatementReading, String> {
            Ok(StatementReading::new())
        }
        fn texts(&mut self, _queries: &[i64]) -> Result<HashMap<i64, String>, String> {
            Ok(HashMap::new())
        }
        fn plan(&mut self, _query: i64, _others: bool) -> Result<StatementPlan, String> {
            Err("none".into())
        }
    }

    fn group(backend: &str, kind: WaitKind, class: &str, event: &str, query: Option<i64>) -> WaitGroup {
        WaitGroup {
            backend: backend.into(),
            kind,
            class: class.into(),
            event: event.into(),
            query,
            object: None,
        }
    }

    fn wait(kind: WaitKind, event: &str, count: f64, ms: f64, signal: f64) -> CountedWait {
        CountedWait {
            kind,
            class: "Lock".into(),
            event: event.into(),
            count,
            total_ms: Some(ms),
            signal_ms: Some(signal),
        }
    }

    #[test]
    fn what_was_sampled_and_what_was_counted_come_together_by_class_and_event() {
        let mut samples = SessionSamples::default();
        let groups = vec![
            group("client backend", WaitKind::RowLock, "Lock", "row", Some(7)),
            group("client backend", WaitKind::Cpu, "CPU", "", Some(8)),
            group("client backend", WaitKind::IdleInTransaction, "Idle in transaction", "", None),
            group("checkpointer", WaitKind::DataWrite, "IO", "DataFileWrite", None),
        ];
        samples.take(&Observation::WaitGroups { first: 0, groups });
        samples.take(&Observation::StatementTexts { texts: vec![(7, "update t".into())] });
        let seen = vec![(0, 30), (1, 10), (2, 20), (3, 5)];
        samples.take(&Observation::Waits(WaitSamples { looks: 10, seen, ..WaitSamples::default() }));
        let interval = ServerReading {
            waits: vec![wait(WaitKind::RowLock, "row", 6.0, 30.0, 3.0)],
            files: vec![
                FileSums {
                    name: "idle".into(),
                    reads: IoSums { count: Some(9.0), ..IoSums::default() },
                    ..FileSums::default()
                },
                FileSums {
                    name: "hot".into(),
                    writes: IoSums { count: Some(4.0), bytes: None, ms: Some(8.0) },
                    ..FileSums::default()
                },
            ],
            latches: Vec::new(),
        };
        let since_start = ServerReading {
            waits: vec![
                wait(WaitKind::RowLock, "row", 60.0, 600.0, 30.0),
                wait(WaitKind::Other, "pool", 2.0, 4.0, 0.0),
            ],
            ..ServerReading::default()
        };
        let inputs = WaitInputs {
            samples: &samples,
            counts: samples.counts(),
            interval: &interval,
            since_start: &since_start,
            seconds: 1.0,
            blocked: Vec::new(),
        };
        let report = WaitReport::new(inputs, &Fake);
        assert_eq!((report.active_sessions, report.idle_in_transaction), (4.0, 2.0));
        let labels: Vec<_> = report.classes.iter().map(|one| one.label).collect();
        assert_eq!(labels, ["row locks", "CPU", "other"]);
        let locks = &report.classes[0];
        assert_eq!((locks.sums.sessions, locks.sums.share), (Some(3.0), Some(0.75)));
        assert_eq!((locks.sums.waits, locks.sums.average_ms), (Some(6.0), Some(5.0)));
        assert_eq!(locks.sums.signal_share, Some(0.1));
        let since = locks.sums.since_start.unwrap();
        assert_eq!((since.waits, since.total_ms, since.average_ms), (60.0, Some(600.0), Some(10.0)));
        assert_eq!(locks.events.len(), 1);
        assert_eq!(
            (locks.statements[0].query.as_str(), locks.statements[0].text.as_str()),
            ("7", "update t")
        );
        assert_eq!(report.background[0].event, "checkpointer: IO DataFileWrite");
        assert_eq!(report.background[0].sessions, Some(0.5));
        assert_eq!((report.poison[0].event.as_str(), report.poison[0].waits), ("Lock pool", Some(0.0)));
        let files: Vec<_> =
            report.files.iter().map(|one| (one.name.as_str(), one.writes.average_ms)).collect();
        assert_eq!(files, [("hot", Some(2.0)), ("idle", None)]);
    }

    #[test]
    fn an_interval_of_the_samples_is_what_came_after_it_began() {
        let mut samples = SessionSamples::default();
        let groups = vec![group("client backend", WaitKind::Cpu, "CPU", "", None)];
        samples.take(&Observation::WaitGroups { first: 0, groups });
        let look = |seen| Observation::Waits(WaitSamples { looks: 10, seen, ..WaitSamples::default() });
        samples.take(&look(vec![(0, 10)]));
        let before = samples.counts().clone();
        samples.take(&look(vec![(0, 25)]));
        let after = samples.counts().since(&before);
        assert_eq!((after.looks, after.seen[&0]), (10, 25));
        let quiet = samples.counts().since(samples.counts());
        assert!(quiet.seen.is_empty());
    }
}
