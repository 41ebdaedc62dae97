//! Runs made of synthetic events, written through the real store.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "shared by tests and the example")]

pub mod observed;
pub mod open;
pub mod pgbench;
pub mod scenario;

use std::path::Path;

use kelvin_measure::event::Series;
use kelvin_measure::event::{
    AuditLine, CheckLine, ClockEnd, ErrorCount, Event, HostClock, HostLoad, KindCounts, LoadPart, Phase,
    RatePeriod, Second, Status, Window,
};
use kelvin_measure::invariant::littles_law;
use kelvin_measure::{Sink, Source, SourceId};
use kelvin_report::RunReport;
use kelvin_store::{NewRun, Store};

/// Values common to the runs; each test states the target.
fn new_run() -> NewRun {
    NewRun {
        workload: String::new(),
        target: String::new(),
        label: None,
        spec_toml: String::new(),
        command: String::new(),
        seed: 1,
        random_algorithm: "Xoshiro256++".into(),
        kelvin_version: "0.1.0".into(),
        kinds: Vec::new(),
        headline: "tps".into(),
        headline_per: RatePeriod::Second,
        counter_names: Vec::new(),
        notes: Vec::new(),
        environment: serde_json::json!({}),
        started: "2026-11-21T10:00:00Z".parse().unwrap(),
    }
}

/// The kind of run.
#[derive(Clone, Copy)]
pub struct Shape {
    pub users: &'static [u32],
    pub seconds: i64,
    pub ramp_up: i64,
    pub new_orders: u64,
    pub errors: bool,
    pub valid: bool,
    pub finished: bool,
    pub seed: u64,
    /// Number of hosts of a fleet, by point; empty for a run without a fleet.
    pub hosts: &'static [u16],
}

pub const GOOD: Shape = Shape {
    users: &[8],
    seconds: 20,
    ramp_up: 3,
    new_orders: 200,
    errors: false,
    valid: true,
    finished: true,
    seed: 1,
    hosts: &[],
};

pub struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }

    fn latency(&mut self, typical_us: u64) -> u64 {
        // A narrow distribution with a long tail.
        let body = typical_us * (500 + self.below(500) + self.below(500)) / 1000;
        let tail = if self.below(100) < 3 { typical_us * self.below(9) } else { 0 };
        (body + tail) * 1000 + self.below(1000)
    }
}

pub fn stored(path: &Path, shape: Shape, label: Option<&str>) -> RunReport {
    stored_with(path, shape, label, None, false)
}

/// The same from two sources, each with every other transaction type.
pub fn of_two_sources(path: &Path, shape: Shape) -> RunReport {
    stored_with(path, shape, None, None, true)
}

/// The same with observations.
pub fn observed(path: &Path, shape: Shape, label: Option<&str>) -> RunReport {
    stored_with(path, shape, label, Some(observed::observations), false)
}

/// The same with block requests traced by stream.
pub fn traced(path: &Path, shape: Shape) -> RunReport {
    stored_with(path, shape, None, Some(observed::with_streams), false)
}

/// Observations from the start of the clock, for a window that opens and ends at these seconds.
type Observations = fn(&mut Noise, u64, u64) -> Vec<Event>;

/// The event as one source, or divided between two.
fn parted(event: Event, apart: bool) -> Vec<(SourceId, Event)> {
    let second = match event {
        Event::Errors(_) if apart => return vec![(SourceId(1), event)],
        Event::Second(second) if apart => second,
        _ => return vec![(SourceId::LOCAL, event)],
    };
    let part = |source: u16| {
        let mut part = second.clone();
        let others = part.kinds.iter_mut().zip(second.second..);
        let others = others.filter(|(_, place)| place.rem_euclid(2) + 1 != i64::from(source));
        others.for_each(|(counts, _)| *counts = KindCounts::default());
        (SourceId(source), Event::Second(part))
    };
    vec![part(1), part(2)]
}

/// The load of one of several hosts: the first started 40 µs late, each further one 20 µs later.
fn host_load(point: u32, (number, hosts): (u16, u16), users: u32, shape: Shape) -> HostLoad {
    let users = users / u32::from(hosts);
    HostLoad {
        point,
        first_user: users * u32::from(number - 1),
        users,
        client_headline: 1000,
        times: None,
        client_cpu: Some(shape.seconds as u64 * 500_000_000),
        cpus: 2.0,
        late: Some(20_000 + 20_000 * u64::from(number)),
        clock: Some(HostClock {
            offset: 3_000_123_000,
            bound: 100_000,
            drift_ppb: 50_000,
            start_error: 0,
            end: Some(ClockEnd { error: 3_000_000 * i64::from(number), bound: 150_000 }),
            exchanges: 32,
            round_trip: 200_000,
            synchronisation: None,
        }),
        lost: (!shape.valid && number == 2).then(|| "no beat for 10 s".into()),
        elapsed: None,
    }
}

fn stored_with(
    path: &Path,
    shape: Shape,
    label: Option<&str>,
    observed: Option<Observations>,
    apart: bool,
) -> RunReport {
    let store = Store::open(path).unwrap();
    let kinds = ["New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"];
    let mut writer = store
        .begin_run(&NewRun {
            workload: "tproc-c".into(),
            target: "postgres://joe@localhost:5432/tpcc".into(),
            label: label.map(Into::into),
            spec_toml: format!(
                "[run]\nworkload = \"tproc-c\"\ntarget = \"postgres://joe@localhost:5432/tpcc\"\nusers = {:?}\n\
                 ramp-up = \"{} s\"\nduration = \"{} s\"\n\n[tproc-c]\nprofile = \"spec\"\nwarehouses = 10\n",
                shape.users, shape.ramp_up, shape.seconds
            ),
            command: "kelvin run tproc-c --target postgres://joe@localhost:5432/tpcc --users 8".into(),
            seed: shape.seed,
            kinds: kinds.iter().enumerate().map(|(i, n)| Series::transaction(n, i == 0)).collect(),
            headline: "NOPM".into(),
            headline_per: RatePeriod::Minute,
            notes: vec!["profile spec: rules of TPC-C clauses 2 and 4; <not> a TPC result & never will be".into()],
            environment: serde_json::json!({
                "cpu": {"model": "AMD EPYC 7763", "cores": 2}, "kernel": "6.1.0-18-amd64",
                "database": {"version": "PostgreSQL 15.6", "settings": {"shared_buffers": "1GB", "fsync": "on"}},
                "seed of the data": shape.seed
            }),
            ..new_run()
        })
        .unwrap();
    for (id, tenant) in [(1, "shop"), (2, "bank")].into_iter().filter(|_| apart) {
        let source = Source { tenant: Some(tenant.into()), host: Some("load2".into()), ..Source::default() };
        writer.event(&Event::Source { id: SourceId(id), source }).unwrap();
    }
    for number in 1..=shape.hosts.iter().max().copied().unwrap_or(0) {
        let source =
            Source { generator: Some(number - 1), host: Some(format!("load{number}")), ..Source::default() };
        writer.event(&Event::Source { id: SourceId(number), source }).unwrap();
    }
    let mut noise = Noise(shape.seed);
    let mut clock = 0;
    for (point, users) in shape.users.iter().enumerate() {
        let scale = f64::from(*users) / (f64::from(*users) + 4.0) * 1.5;
        let new_orders = (shape.new_orders as f64 * scale) as u64;
        for event in point_events(point as u32, *users, new_orders, shape, &mut noise, &mut clock) {
            for (source, event) in parted(event, apart) {
                writer.event_from(source, &event).unwrap();
            }
        }
        let hosts = shape.hosts.get(point).copied().unwrap_or(0);
        for number in 1..=hosts {
            let load = host_load(point as u32, (number, hosts), *users, shape);
            writer.event_from(SourceId(number), &Event::HostLoad(Box::new(load))).unwrap();
        }
    }
    if let Some(observations) = observed {
        let mut noise = Noise(shape.seed);
        for event in observations(&mut noise, 1 + shape.ramp_up as u64, clock) {
            writer.event(&event).unwrap();
        }
    }
    if shape.finished {
        for number in 1..=12 {
            let holds = shape.valid || number != 10;
            let line = CheckLine {
                number,
                name: format!("condition number {number}"),
                holds,
                detail: if holds {
                    String::new()
                } else {
                    "district 3 of warehouse 1: 10.00 is not 12.00".into()
                },
                exempt: None,
            };
            writer.event(&Event::Check { phase: Phase::CheckAfter, line }).unwrap();
        }
        writer.event(&Event::Finished { status: Status::Complete, error: None }).unwrap();
    }
    let id = writer.id();
    drop(writer);
    RunReport::from_run(&store.load(id).unwrap()).unwrap()
}

fn point_events(
    point: u32,
    users: u32,
    new_orders: u64,
    shape: Shape,
    noise: &mut Noise,
    clock: &mut u64,
) -> Vec<Event> {
    let phase = |phase, at: u64| Event::Phase { point, phase, at: at * 1_000_000_000, users, planned: None };
    let mut events = vec![phase(Phase::Connect, *clock), phase(Phase::RampUp, *clock + 1)];
    let opens = *clock + 1 + shape.ramp_up as u64;
    let mut sums = [0_u64, 0, 0];
    for second in -shape.ramp_up..=shape.seconds {
        if second == 0 {
            events.push(phase(Phase::Measure, opens));
        }
        if second == shape.seconds {
            events.push(phase(Phase::Stop, opens + shape.seconds as u64));
        }
        let part = match second {
            s if s < 0 => LoadPart::RampUp,
            s if s == shape.seconds => LoadPart::Tail,
            _ => LoadPart::Measured,
        };
        let warm =
            if second < 0 { (shape.ramp_up + second + 1) as f64 / (shape.ramp_up + 1) as f64 } else { 1.0 };
        let stalled = shape.errors && (shape.seconds / 2..shape.seconds / 2 + 3).contains(&second);
        let pace = if part == LoadPart::Tail || stalled { 3 } else { (new_orders as f64 * warm) as u64 };
        let kinds = counts(pace, users, stalled, noise);
        if part == LoadPart::Measured {
            sums[0] += kinds[0].committed;
            sums[1] += kinds.iter().map(KindCounts::good).sum::<u64>();
            sums[2] += kinds.iter().map(|counts| counts.latency.sum() as u64).sum::<u64>();
        }
        events.push(Event::Second(Second { point, second, part, kinds }));
        if stalled {
            events.extend(stall(point, second));
        }
    }
    *clock = opens + shape.seconds as u64 + 1;
    if shape.finished {
        events.extend(end(point, users, shape, sums));
    }
    events
}

/// The counts of a second, by transaction type.
fn counts(pace: u64, users: u32, stalled: bool, noise: &mut Noise) -> Vec<KindCounts> {
    let types = [(10, 9_000), (10, 3_500), (1, 1_800), (1, 21_000), (1, 6_000)].into_iter().enumerate();
    let each = types.map(|(kind, (share, typical))| {
        let mut counts = KindCounts::default();
        for _ in 0..pace * share / 10 + noise.below(pace * share / 60 + 1) {
            if kind == 0 && noise.below(100) == 0 {
                counts.rolled_back += 1;
            } else {
                counts.committed += 1;
            }
            let latency = noise.latency(typical) * u64::from(users).max(4) / 8 * if stalled { 30 } else { 1 };
            counts.latency.record(latency);
        }
        if stalled {
            counts.failed = 1;
            counts.retries = 2;
        }
        counts
    });
    each.collect()
}

/// The events of a stalled second.
fn stall(point: u32, second: i64) -> [Event; 3] {
    let error = |kind, class: &str, code: &str, message: &str, retried, count| {
        let (class, code, message) = (class.into(), code.into(), message.into());
        Event::Errors(ErrorCount { point, second, kind, class, code, message, retried, count })
    };
    [
        error(Some(1), "deadlock", "40P01", "deadlock detected", true, 7),
        error(None, "connection", "08006", "server closed the connection <b>unexpectedly</b>", false, 2),
        Event::Note { point, second, text: "user 3 lost its connection </script><script>alert(1)".into() },
    ]
}

/// The end of the window and its checks, from the counts of New-Orders and transactions, and the length in
/// nanoseconds.
fn end(point: u32, users: u32, shape: Shape, sums: [u64; 3]) -> [Event; 3] {
    let window = Window {
        point,
        users,
        elapsed: shape.seconds as u64 * 1_000_000_000,
        idle: 0,
        client_headline: sums[0],
        server_headline: Some(sums[0] + 3),
        server_transactions: Some(sums[1] + 41),
        client_cpu: sums[1] * 55_000,
        client_run_delay: None,
        schedule: None,
    };
    let audit = |name: &str, value, low, high, unit: &str, samples, valid| {
        let (name, unit) = (name.into(), unit.into());
        AuditLine { name, value, low, high, unit, samples, valid }
    };
    let rolled_back = if shape.valid { 1.02 } else { 0.0 };
    let lines = vec![
        audit("New-Order share of the mix", 43.6, 42.1, 44.8, "%", sums[1], true),
        audit("New-Orders rolled back", rolled_back, 0.9, 1.1, "%", sums[0], shape.valid),
        audit("lines per order", 10.01, 9.5, 10.5, "", sums[0], true),
        audit("deliveries skipped", 0.0, f64::NEG_INFINITY, 1.0, "%", 400, true),
    ];
    let in_system = sums[2] as f64 / 1e9;
    let busy = in_system / shape.seconds as f64 / f64::from(users);
    let invariant = littles_law(users, busy, in_system, shape.seconds as f64);
    [Event::Window(window), Event::Audit { point, lines }, Event::Invariant { point, invariant }]
}
