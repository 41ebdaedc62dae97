//! A real SQLite file under load, watched.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine, TransactionControl, Value};
use kelvin_measure::Clock;
use kelvin_measure::observation::{CaptureTime, Observation, Observer, Occurrence, Relation};
use kelvin_observe::sqlite::watchers;
use kelvin_observe::watch::Watch;

const WRITERS: u32 = 4;

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// Its outcome, next to the truth.
struct Watched {
    seen: Vec<Observation>,
    /// The number of WAL restarts, according to its header.
    restarts: u32,
    /// Time that writers took to begin a transaction, summed.
    beginning: Duration,
    /// Bytes that all of this process's writing came to.
    written: u64,
    took: Duration,
    /// CPU time of the thread that watched.
    cpu: Duration,
}

/// Writes for so many seconds, and until the WAL was restarted so many times.
fn load(directory: &Path, seconds: u64, restarts: u32) -> Watched {
    let path = directory.join("load.db");
    let engine: Arc<dyn Engine> = Arc::new(SqliteEngine::open(&path).unwrap());
    let mut session = engine.connect().unwrap();
    session.run("CREATE TABLE lines (id INTEGER PRIMARY KEY, writer INTEGER, text TEXT); CREATE INDEX by_writer ON lines (writer, id); INSERT INTO lines VALUES (1, 0, 'first')").unwrap();
    let clock = Clock::real();
    let watch = Watch::start(watchers(&engine, Duration::from_millis(250)), &clock).unwrap();
    let mut seen = wait_for(&watch, |o| matches!(o, Observation::Relations { .. }));
    let (before, wrote_before) = (salt(&path), written());
    let (stop, beginning) = (AtomicBool::new(false), AtomicU64::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (engine, stop, beginning) = (&engine, &stop, &beginning);
            scope.spawn(move || {
                let mut session = engine.connect().unwrap();
                let insert = session.prepare("INSERT INTO lines (writer, text) VALUES (?, ?)").unwrap();
                let text = "x".repeat(2000);
                let mut rows = kelvin_database::Rows::new();
                while !stop.load(Relaxed) {
                    let asked = Instant::now();
                    session.control(TransactionControl::Begin).unwrap();
                    beginning.fetch_add(asked.elapsed().as_nanos() as u64, Relaxed);
                    for _ in 0..20 {
                        let values = [Value::Int(i64::from(writer)), Value::Text(&text)];
                        session.execute(insert, &values, &mut rows).unwrap();
                    }
                    session.control(TransactionControl::Commit).unwrap();
                }
            });
        }
        std::thread::sleep(Duration::from_secs(seconds));
        while salt(&path).wrapping_sub(before) < restarts && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
        }
        stop.store(true, Relaxed);
    });
    let took = began.elapsed();
    // The reading after the end of the load.
    std::thread::sleep(Duration::from_millis(300));
    let cpu = watcher_cpu();
    let (after, wrote) = (salt(&path), written() - wrote_before);
    watch
        .finish(|observation| {
            seen.push(observation);
            Ok::<(), ()>(())
        })
        .unwrap();
    Watched {
        seen,
        restarts: after.wrapping_sub(before),
        beginning: Duration::from_nanos(beginning.into_inner()),
        written: wrote,
        took,
        cpu,
    }
}

/// CPU time of the watcher that has used most.
fn watcher_cpu() -> Duration {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path());
    let watchers = tasks
        .filter(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("see ")));
    let times = watchers.filter_map(|task| std::fs::read_to_string(task.join("schedstat")).ok());
    let nanos = times.filter_map(|text| text.split(' ').next()?.parse().ok());
    Duration::from_nanos(nanos.max().unwrap())
}

fn wait_for(watch: &Watch, wanted: impl Fn(&Observation) -> bool) -> Vec<Observation> {
    let mut seen = Vec::new();
    let until = Instant::now() + PATIENCE;
    while !seen.iter().any(&wanted) {
        assert!(Instant::now() < until, "{seen:?}");
        std::thread::sleep(Duration::from_millis(5));
        seen.extend(watch.take());
    }
    seen
}

/// The first salt in the WAL's header, which is incremented at each restart; the sequence number beside it differs
/// between connections. SQLite holds no locks on this file, so it may be opened.
fn salt(path: &Path) -> u32 {
    let log = std::fs::read(path.with_extension("db-wal")).unwrap();
    u32::from_be_bytes(log[16..20].try_into().unwrap())
}

fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap().parse().unwrap()
}

impl Watched {
    fn observer(&self) -> &Observer {
        self.seen.iter().find_map(|o| if let Observation::Observer(o) = o { Some(o) } else { None }).unwrap()
    }

    /// The sum over the readings of value × time.
    fn integral(&self, name: &str) -> f64 {
        let at = self.observer().metrics.iter().position(|m| m.name == name).unwrap();
        let (mut last, mut sum) = (None, 0.0);
        for observation in &self.seen {
            let Observation::Reading(reading) = observation else { continue };
            if let Some(last) = last {
                sum += f64::from(reading.values[at]) * (reading.at - last) as f64 / 1e9;
            }
            last = Some(reading.at);
        }
        sum
    }

    fn last(&self, name: &str) -> f64 {
        let at = self.observer().metrics.iter().position(|m| m.name == name).unwrap();
        let mut readings =
            self.seen.iter().filter_map(|o| if let Observation::Reading(r) = o { Some(r) } else { None });
        f64::from(readings.next_back().unwrap().values[at])
    }

    fn checkpoints(&self) -> Vec<&Occurrence> {
        let all =
            self.seen.iter().filter_map(|o| if let Observation::Occurrence(o) = o { Some(o) } else { None });
        all.filter(|o| o.to.is_some()).collect()
    }

    fn relations(&self, wanted: CaptureTime) -> &[Relation] {
        let found = self.seen.iter().find_map(|o| match o {
            Observation::Relations { when, relations, .. } if *when == wanted => Some(relations),
            _ => None,
        });
        found.unwrap()
    }
}

#[test]
fn the_log_its_checkpoints_and_the_queue_are_seen_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let watched = load(directory.path(), 4, 3);

    // Checkpoints: one before each restart of the WAL, and the last may have none.
    let restarts = f64::from(watched.restarts);
    assert!(restarts >= 2.0, "the load was too small: {restarts}");
    let counted = watched.integral("sqlite.checkpoints");
    assert!((counted - restarts).abs() <= 2.0, "{counted} checkpoints counted, {restarts} restarts");
    // The long ones are reported separately.
    let checkpoints = watched.checkpoints();
    assert!(checkpoints.len() as f64 <= restarts + 1.0, "{checkpoints:?}");
    for one in &checkpoints {
        let took = (one.to.unwrap() - one.from) as f64 / 1e9;
        assert!(one.kind == "checkpoint" && took >= 0.1 && took < watched.took.as_secs_f64(), "{one:?}");
        assert!(one.figures["frames"] > 0.0 && one.figures["bytes"] == one.figures["frames"] * 4096.0);
    }
    let moved: f64 = checkpoints.iter().map(|one| one.figures["bytes"]).sum();

    // The WAL: frames that were moved were written before, and only this process wrote.
    let log = watched.integral("sqlite.wal.written");
    assert!(log >= 0.9 * moved, "{log} B written, {moved} B moved");
    assert!(log <= 1.01 * watched.written as f64, "{log} B of {} B", watched.written);
    assert!(log >= restarts * 4000.0 * 4120.0 * 0.9, "{log}");
    assert!(watched.last("sqlite.wal.bytes") >= 4000.0 * 4120.0);
    assert!(watched.last("sqlite.wal.pending") <= watched.last("sqlite.wal.bytes"));

    // The queue: nearly all of the time that beginning a transaction takes.
    let busy = watched.integral("sqlite.busy");
    let beginning = watched.beginning.as_secs_f64();
    assert!(busy > 0.7 * beginning && busy < 1.05 * beginning, "{busy} s of {beginning} s");

    let names: Vec<_> = watched.observer().metrics.iter().map(|m| m.name.as_str()).collect();
    assert!(names.contains(&"sqlite.database.bytes"), "{names:?}");
    let absent = &watched.observer().absent;
    assert!(absent.iter().any(|a| a.what == "sqlite.cache" && a.why.contains("rusqlite")), "{absent:?}");
    let lost = watched.seen.iter().find(|o| matches!(o, Observation::Lost(_)));
    assert!(lost.is_none(), "{lost:?}");
}

#[test]
fn sizes_and_settings_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let watched = load(directory.path(), 1, 1);
    let size = |when, name: &str| watched.relations(when).iter().find(|r| r.name == name).unwrap().bytes;
    assert_eq!(size(CaptureTime::Before, "lines"), 4096);
    let after = watched.relations(CaptureTime::After);
    assert!(size(CaptureTime::After, "lines") > 1 << 20);
    let index = after.iter().find(|r| r.name == "by_writer").unwrap();
    assert_eq!((index.kind.as_str(), index.table.as_deref()), ("index", Some("lines")));
    assert_eq!(index.analyzed, Some(false));
    let table = after.iter().find(|r| r.name == "lines").unwrap();
    assert!(table.bloat.is_some_and(|b| b > 0.0 && b < 0.5), "{table:?}");
    let values = watched.seen.iter().find_map(|o| match o {
        Observation::Settings { values } => Some(values),
        _ => None,
    });
    let setting = |name: &str| values.unwrap()[name].clone();
    assert_eq!(
        (setting("journal_mode"), setting("synchronous"), setting("page_size")),
        ("wal".into(), "normal".into(), "4096".into())
    );
    assert_eq!((setting("cache_size"), setting("wal_autocheckpoint")), ("67108864".into(), "4000".into()));
}

#[test]
fn the_users_locks_stay_while_they_are_watched() {
    // Closing a locked file anywhere in a process drops that process's locks on it, and lets another one in. The
    // kernel's list shows them.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks.db");
    let engine: Arc<dyn Engine> = Arc::new(SqliteEngine::open(&path).unwrap());
    let mut session = engine.connect().unwrap();
    session.run("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    session.run("BEGIN IMMEDIATE; INSERT INTO t VALUES (2)").unwrap();
    let look = || {
        use std::os::unix::fs::MetadataExt;
        let number = std::fs::metadata(directory.path().join("locks.db-shm")).unwrap().ino();
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        all.lines()
            .filter(|line| line.contains(&format!(":{number} ")))
            .filter(|l| l.contains("WRITE"))
            .count()
    };
    // The list is read in pieces, between which other processes lock and unlock, so that one reading may miss a line.
    // Dropped locks are in none of them.
    let locks = || (0..50).map(|_| look()).max().unwrap_or(0);
    // The writer's lock; SQLite holds others for a moment.
    assert!(locks() > 0);
    let watch = Watch::start(watchers(&engine, Duration::from_millis(20)), &Clock::real()).unwrap();
    let seen = wait_for(&watch, |o| matches!(o, Observation::Reading(_)));
    assert!(!seen.is_empty());
    assert!(locks() > 0);
    watch.finish(|_| Ok::<(), ()>(())).unwrap();
    assert!(locks() > 0);
    // And this is what must not happen.
    drop(std::fs::File::open(directory.path().join("locks.db-shm")).unwrap());
    assert_eq!(locks(), 0);
}

mod machine {
    use super::*;

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn watching_costs_less_than_a_hundredth_of_a_core() {
        let directory = tempfile::tempdir().unwrap();
        let watched = load(directory.path(), 4, 0);
        assert!(watched.cpu.as_secs_f64() < 0.01 * watched.took.as_secs_f64(), "{:?}", watched.cpu);
    }
}
