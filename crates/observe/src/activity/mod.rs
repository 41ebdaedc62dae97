//! What a server is doing, for whoever asks without a load of ours: what its sessions wait for, its files, its statements.
//!
//! The sessions are sampled by the run's own watcher ([`SessionSamples`] adds up what it sends). What a server counts besides is
//! read through [`ServerActivity`], which each engine implements in its folder; [`crate::engine::activity`] chooses. Nothing is
//! loaded or changed.

mod sessions;
mod statements;
mod waits;

use std::collections::HashMap;

use kelvin_measure::observation::{QueryPlan, UnavailableMetrics, WaitKind};
use serde::Serialize;

use crate::watch::Watcher;
pub use sessions::{SampleCounts, SessionSamples};
pub use statements::{
    Level, StatementKey, StatementReading, StatementSums, by_query, grown, total, total_ms,
};
pub use waits::{
    ClassRow, CountedSinceStart, EventRow, FileRow, LatchRow, Latency, PoisonRow, StatementShare, WaitInputs,
    WaitReport,
};

/// A server that can be asked.
pub struct Activity {
    /// Samples its sessions.
    pub sessions: Box<dyn Watcher>,
    /// Reads what it counts.
    pub server: Box<dyn ServerActivity>,
}

/// Reads a server's counters. Each method queries the server; errors are for people.
pub trait ServerActivity: Send {
    /// Product and version, such as "PostgreSQL 17.10".
    fn product(&mut self) -> Result<String, String>;

    /// What cannot be seen of waits and files, why, and what would show it.
    fn absent(&mut self) -> Vec<UnavailableMetrics>;

    /// Waits and files by the server's counters, since these began.
    fn read(&mut self) -> Result<ServerReading, String>;

    /// Who waits for whom now.
    fn blocked(&mut self) -> Result<Vec<BlockedSession>, String>;

    /// What a wait event that a healthy server does not have is a sign of; none for those that are a matter of load.
    fn poison(&self, class: &str, event: &str) -> Option<&'static str>;

    /// A statement's identifier as the server prints it.
    fn query_id(&self, query: i64) -> String;

    /// What the server counts by statement, or why it does not and how to make it.
    fn statement_counters(&mut self) -> Result<StatementCounters, String>;

    /// The counters of all statements of this database.
    fn statements(&mut self) -> Result<StatementReading, String>;

    /// Texts as the server normalised them; those that it does not know are not there.
    fn texts(&mut self, queries: &[i64]) -> Result<HashMap<i64, String>, String>;

    /// How the server would run a statement, without running it; the reason where that cannot be had. Planning may run functions
    /// of the statement: those of other roles only with `others`.
    fn plan(&mut self, query: i64, others: bool) -> Result<StatementPlan, String>;
}

/// What a server counts by statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatementCounters {
    /// Since when, as the server says it; none where it does not.
    pub since: Option<String>,
    /// Whether CPU time is counted.
    pub cpu: bool,
    /// Whether sampled sessions have the identifiers of the counted statements.
    pub sampled_by_id: bool,
    /// What [`StatementSums::reads`] counts: "pages read".
    pub reads: &'static str,
    /// What [`StatementSums::writes`] counts: "pages dirtied".
    pub writes: &'static str,
    /// Statements that are not counted, or that may not be seen, and why.
    pub absent: Vec<UnavailableMetrics>,
}

/// A plan, and what of it is worth a file.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementPlan {
    /// The plan.
    pub plan: QueryPlan,
    /// Files by the end of their names ("txt", "json"), without the statement's values.
    pub files: Vec<(&'static str, String)>,
}

/// A wait that a server counts. Sums since the counters began, or of an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedWait {
    /// What it is for.
    pub kind: WaitKind,
    /// Class and event as the sampled sessions of this server have them.
    pub class: String,
    /// The event.
    pub event: String,
    /// How often.
    pub count: f64,
    /// Time in milliseconds; none where only the number is counted.
    pub total_ms: Option<f64>,
    /// The part of that time after what was waited for was there: the wait for a CPU. None where the server
    /// does not distinguish it.
    pub signal_ms: Option<f64>,
}

/// Operations on a file or a class of files.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IoSums {
    /// How many; none where they are not counted.
    pub count: Option<f64>,
    /// Bytes; none where they are not counted.
    pub bytes: Option<f64>,
    /// Time in milliseconds; none where it is not measured.
    pub ms: Option<f64>,
}

/// A file, or a class of files that the server does not distinguish.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileSums {
    /// Its name within the data directory, or what the class is.
    pub name: String,
    /// Reads.
    pub reads: IoSums,
    /// Writes, and extends where they are counted apart.
    pub writes: IoSums,
    /// Syncs; where the server counts them together with opens and closes, all of them.
    pub syncs: IoSums,
}

/// Which of a server's short locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatchKind {
    /// Whoever waits for it sleeps.
    #[default]
    Latch,
    /// Whoever waits for it spins on its CPU, and sleeps (backs off) only at times.
    Spinlock,
}

impl LatchKind {
    /// "latch".
    pub fn word(self) -> &'static str {
        match self {
            Self::Latch => "latch",
            Self::Spinlock => "spinlock",
        }
    }

    /// "latches".
    pub fn plural(self) -> &'static str {
        match self {
            Self::Latch => "latches",
            Self::Spinlock => "spinlocks",
        }
    }
}

/// A class of latches or spinlocks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatchSums {
    /// Which of them.
    pub kind: LatchKind,
    /// Its name on the server.
    pub name: String,
    /// Waits for a latch; collisions of a spinlock.
    pub count: f64,
    /// Milliseconds asleep.
    pub ms: f64,
    /// Rounds of spinning; none of a latch.
    pub spins: Option<f64>,
    /// How often a spinning task went to sleep; none of a latch.
    pub backoffs: Option<f64>,
}

/// One reading of a server's counters.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerReading {
    /// Waits; empty where the server counts none. Those of idle sessions and idle background threads are left out.
    pub waits: Vec<CountedWait>,
    /// Files that were used.
    pub files: Vec<FileSums>,
    /// Latches and spinlocks; empty where the server counts none by class.
    pub latches: Vec<LatchSums>,
}

/// A session that waits for another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BlockedSession {
    /// The session that waits, by the number that the server gives it.
    pub session: i64,
    /// The name that its client has given itself, or its user; empty where it has none or it may not be seen.
    pub application: String,
    /// What it waits for: "row of public.stock", "relation public.stock".
    pub waits_for: String,
    /// Since when, in milliseconds; none where that may not be seen.
    pub waited_ms: Option<f64>,
    /// Its statement without values; empty where it may not be seen.
    pub statement: String,
    /// The session that it waits for.
    pub blocker: i64,
    /// That one's application or user.
    pub blocker_application: String,
    /// What that one does: "CPU", "idle in transaction", or what it waits for itself.
    pub blocker_doing: String,
    /// Milliseconds since that one's transaction began; none where that may not be seen.
    pub blocker_transaction_ms: Option<f64>,
    /// That one's statement without values; of one that is idle in a transaction the last.
    pub blocker_statement: String,
}

impl ServerReading {
    /// What was counted since an earlier reading. Counters that went backwards have begun anew in between.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let waits: HashMap<(&str, &str), &CountedWait> =
            earlier.waits.iter().map(|one| ((one.class.as_str(), one.event.as_str()), one)).collect();
        let files: HashMap<&str, &FileSums> =
            earlier.files.iter().map(|one| (one.name.as_str(), one)).collect();
        let wait = |now: &CountedWait| {
            let then = waits.get(&(now.class.as_str(), now.event.as_str()));
            let then = then.filter(|then| then.count <= now.count);
            CountedWait {
                count: now.count - then.map_or(0.0, |then| then.count),
                total_ms: less(now.total_ms, then.and_then(|then| then.total_ms)),
                signal_ms: less(now.signal_ms, then.and_then(|then| then.signal_ms)),
                ..now.clone()
            }
        };
        let file = |now: &FileSums| {
            let then = files.get(now.name.as_str()).copied().cloned().unwrap_or_default();
            FileSums {
                name: now.name.clone(),
                reads: now.reads.since(then.reads),
                writes: now.writes.since(then.writes),
                syncs: now.syncs.since(then.syncs),
            }
        };
        let latch = |now: &LatchSums| {
            let then = earlier.latches.iter().find(|then| (then.kind, &then.name) == (now.kind, &now.name));
            let then = then.filter(|then| then.count <= now.count);
            LatchSums {
                count: now.count - then.map_or(0.0, |then| then.count),
                ms: (now.ms - then.map_or(0.0, |then| then.ms)).max(0.0),
                spins: less(now.spins, then.and_then(|then| then.spins)),
                backoffs: less(now.backoffs, then.and_then(|then| then.backoffs)),
                ..now.clone()
            }
        };
        Self {
            waits: self.waits.iter().map(wait).filter(|one| one.count > 0.0).collect(),
            files: self.files.iter().map(file).filter(FileSums::is_used).collect(),
            latches: self.latches.iter().map(latch).filter(|one| one.count > 0.0).collect(),
        }
    }
}

impl FileSums {
    fn is_used(&self) -> bool {
        [self.reads, self.writes, self.syncs]
            .iter()
            .any(|io| [io.count, io.bytes, io.ms].into_iter().flatten().any(|value| value > 0.0))
    }
}

impl IoSums {
    fn since(self, then: Self) -> Self {
        let then = if self.count < then.count { Self::default() } else { then };
        Self {
            count: less(self.count, then.count),
            bytes: less(self.bytes, then.bytes),
            ms: less(self.ms, then.ms),
        }
    }
}

/// A sum less an earlier one, which may not have been there.
pub(crate) fn less(now: Option<f64>, then: Option<f64>) -> Option<f64> {
    now.map(|now| (now - then.unwrap_or(0.0)).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(event: &str, count: f64, total_ms: f64) -> CountedWait {
        CountedWait {
            kind: WaitKind::Latch,
            class: "Wait".into(),
            event: event.into(),
            count,
            total_ms: Some(total_ms),
            signal_ms: None,
        }
    }

    fn latch(name: &str, count: f64, ms: f64) -> LatchSums {
        LatchSums { name: name.into(), count, ms, ..LatchSums::default() }
    }

    fn io(count: f64, ms: Option<f64>) -> IoSums {
        IoSums { count: Some(count), bytes: None, ms }
    }

    #[test]
    fn an_interval_is_a_difference_and_counters_that_begin_anew_are_taken_whole() {
        let file =
            |name: &str, reads, syncs| FileSums { name: name.into(), reads, syncs, ..FileSums::default() };
        let before = ServerReading {
            waits: vec![wait("a", 10.0, 100.0), wait("b", 5.0, 5.0), wait("c", 7.0, 7.0)],
            files: vec![
                file("f", io(10.0, Some(20.0)), io(1.0, None)),
                file("g", io(3.0, None), io(0.0, None)),
            ],
            latches: vec![latch("A", 10.0, 5.0), latch("B", 4.0, 1.0)],
        };
        let after = ServerReading {
            waits: vec![
                wait("a", 12.0, 130.0),
                wait("b", 5.0, 5.0),
                wait("c", 2.0, 4.0),
                wait("d", 1.0, 9.0),
            ],
            files: vec![
                file("f", io(14.0, Some(40.0)), io(1.0, None)),
                file("g", io(3.0, None), io(0.0, None)),
            ],
            latches: vec![latch("A", 10.0, 5.0), latch("B", 7.0, 3.0), latch("C", 2.0, 2.0)],
        };
        let grown = after.since(&before);
        assert_eq!(grown.latches, [latch("B", 3.0, 2.0), latch("C", 2.0, 2.0)]);
        let waits: Vec<_> =
            grown.waits.iter().map(|one| (one.event.as_str(), one.count, one.total_ms.unwrap())).collect();
        assert_eq!(waits, [("a", 2.0, 30.0), ("c", 2.0, 4.0), ("d", 1.0, 9.0)]);
        assert_eq!(grown.files, [file("f", io(4.0, Some(20.0)), io(0.0, None))]);
    }
}
