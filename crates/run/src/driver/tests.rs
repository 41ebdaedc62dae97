use std::collections::BTreeMap;
use std::time::Duration;

use kelvin_database::sqlite::SqliteEngine;
use kelvin_measure::SinkError;
use kelvin_measure::event::LoadPart;
use kelvin_workload::pgbench::{Options, Pgbench, ScriptChoice};

use super::*;
use crate::spec::Span;

mod fleet;
mod hosts;

/// Stores all events.
#[derive(Default)]
struct Kept(Vec<(SourceId, Event)>);

impl Sink for Kept {
    fn event_from(&mut self, source: SourceId, event: &Event) -> Result<(), SinkError> {
        self.0.push((source, event.clone()));
        Ok(())
    }
}

/// The values that each user wrote.
type Drawn = BTreeMap<i64, Vec<i64>>;

/// A database in which every transaction stores its user's number and a random value, and the workload that
/// does so.
struct Bench {
    _directory: tempfile::TempDir,
    engine: Arc<dyn Engine>,
    workload: Arc<dyn Workload>,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let engine = SqliteEngine::open(directory.path().join("test.db")).unwrap();
        engine.connect().unwrap().run("create table drawn(client int, value int)").unwrap();
        let text = "\\set value random(1, 1000000000)\ninsert into drawn values (:client_id, :value)";
        let script = ScriptChoice { name: "draw.sql".into(), weight: 1, text: Some(text.into()) };
        let pgbench = Pgbench::new(Options { scripts: vec![script], ..Options::default() }).unwrap();
        Self { _directory: directory, engine: Arc::new(engine), workload: Arc::new(pgbench) }
    }

    fn drawn(&self) -> Drawn {
        let mut session = self.engine.connect().unwrap();
        let rows = session.query("select client, value from drawn order by client, rowid").unwrap();
        let mut drawn = Drawn::new();
        for row in 0..rows.len() {
            drawn.entry(rows.int(row, 0).unwrap()).or_default().push(rows.int(row, 1).unwrap());
        }
        drawn
    }
}

/// Ten transactions per user.
fn by_count() -> Load {
    Load {
        transactions: std::num::NonZeroU64::new(10),
        ramp_up: Span::from_duration(Duration::ZERO),
        seed: 42,
        ..Load::default()
    }
}

/// A point of eight users.
fn point<'a>(load: &'a Load, clock: &'a Clock, stop: &'a Stop) -> Point<'a> {
    Point {
        index: 0,
        users: 8,
        most_users: 8,
        rate: None,
        load,
        accept_noise: true,
        observed: false,
        clock,
        stop,
        control: None,
        fleet: None,
    }
}

/// Runs eight users of ten transactions each on generators with these ranges. Returns each user's values, the
/// result and the events.
fn run(ranges: &[(u32, u32)]) -> (Drawn, PointResult, Vec<(SourceId, Event)>) {
    let (bench, load) = (Bench::new(), by_count());
    let (clock, stop) = (Clock::real(), Stop::new());
    let ranges: Vec<UserRange> =
        ranges.iter().map(|&(first, end)| UserRange::part(first..end, 8).unwrap()).collect();
    let mut kept = Kept::default();
    let point = point(&load, &clock, &stop);
    let result = point.run_on(&ranges, &bench.engine, &bench.workload, &mut kept).unwrap();
    (bench.drawn(), result, kept.0)
}

#[test]
fn two_generators_do_what_one_does_and_their_seconds_add_up() {
    let (whole, one, local) = run(&[(0, 8)]);
    assert!(local.iter().all(|(source, event)| source.is_local() && event.name() != "source"));
    let (parts, two, events) = run(&[(0, 4), (4, 8)]);
    assert_eq!(parts, whole, "each user draws what it draws with one generator");
    for result in [&one, &two] {
        assert_eq!((result.totals.samples, result.totals.all[0].committed), (80, 80));
        let broken: Vec<_> = result.invariants.iter().filter(|invariant| !invariant.holds).collect();
        assert!(broken.iter().all(|invariant| invariant.name.contains("generator")), "{broken:?}");
        assert_eq!(result.window.users, 8);
    }
    let mut sum = ([0; 2], 0);
    for (source, event) in &events {
        let Event::Second(second) = event else { continue };
        let good: u64 = second.kinds.iter().map(KindCounts::good).sum();
        sum.0[usize::from(source.0)] += good;
        sum.1 += if second.part == LoadPart::Measured { good } else { 0 };
    }
    assert_eq!(sum, ([40, 40], two.totals.measured[0].good()));
    let notes = events.iter().filter(
        |(_, event)| matches!(event, Event::Note { text, .. } if text.starts_with("4 virtual users")),
    );
    assert_eq!(notes.count(), 2, "each generator says what its users run on");
}
