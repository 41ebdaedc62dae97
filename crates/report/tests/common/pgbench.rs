//! Runs of one script in closed and open loops, over users and rates, on a simulated server with a capacity
//! and a queue.

use std::path::Path;

use kelvin_measure::Sink;
use kelvin_measure::event::{
    ArrivalSchedule, Arrivals, AuditLine, ErrorCount, Estimate, Event, KindCounts, LoadPart, MaximumRate,
    Phase, RateTrial, Scalability, ScalabilityPoint, Second, Series, SeriesRole, Status, Window,
};
use kelvin_measure::invariant::Invariant;
use kelvin_report::RunReport;
use kelvin_store::{NewRun, Store};

use super::Noise;

const STATEMENTS: [(&str, u64); 5] = [
    ("BEGIN;", 40),
    ("UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;", 310),
    ("SELECT abalance FROM pgbench_accounts WHERE aid = :aid;", 120),
    (
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);",
        150,
    ),
    ("END;", 700),
];
const SECOND: u64 = 1_000_000_000;
const QUEUE_LIMIT: u64 = 400;

/// The simulated run.
pub struct Plan {
    /// Users and, in an open loop, the rate of every point.
    pub points: Vec<(u32, Option<f64>)>,
    pub seconds: i64,
    /// Whether statements are timed.
    pub timed: bool,
    /// Events emitted before the end.
    pub concluded: Vec<Event>,
    /// Second in which the server stalls.
    pub stall: Option<i64>,
    /// Whether every transaction fails.
    pub failing: bool,
}

impl Plan {
    pub fn closed(users: &[u32]) -> Self {
        let points = users.iter().map(|u| (*u, None)).collect();
        Self { points, seconds: 6, timed: false, concluded: Vec::new(), stall: None, failing: false }
    }

    pub fn rates(users: u32, rates: &[f64]) -> Self {
        let points = rates.iter().map(|r| (users, Some(*r))).collect();
        Self { points, ..Self::closed(&[]) }
    }
}

/// Transactions per second that the server can execute for this many users.
pub fn capacity(users: u32) -> f64 {
    law().fitted(f64::from(users))
}

pub fn law() -> Scalability {
    let estimate = |value: f64| Estimate { value, low: Some(value * 0.9), high: Some(value * 1.1) };
    Scalability {
        lambda: estimate(400.0),
        sigma: estimate(0.06),
        kappa: estimate(0.0015),
        peak_users: Some(25.0),
        peak_below: false,
        r_squared: Some(0.9984),
        points: Vec::new(),
    }
}

pub fn fitted(users: &[u32]) -> Event {
    let point = |u: &u32| ScalabilityPoint {
        users: *u,
        throughput: capacity(*u) * if u.is_multiple_of(2) { 0.99 } else { 1.01 },
    };
    Event::Scalability(Scalability { points: users.iter().map(point).collect(), ..law() })
}

pub fn found() -> Event {
    let trial = |point, rate: f64, holds: bool, p99: &str| RateTrial {
        point,
        rate,
        achieved: rate * if holds { 0.999 } else { 0.91 },
        holds,
        void: Vec::new(),
        verdicts: vec![format!("p99 {p99} ms, allowed 20 ms"), "errors 0.00 %, allowed 0.10 %".into()],
    };
    Event::MaximumRate(MaximumRate {
        held: Some(1500.0),
        failed: Some(1750.0),
        slo: "p99<20ms,errors<0.1%".into(),
        trials: vec![
            trial(0, 1000.0, true, "3.10"),
            trial(1, 2000.0, false, "812.4"),
            trial(2, 1500.0, true, "7.92"),
            trial(3, 1750.0, false, "41.7"),
        ],
    })
}

pub fn series(open: bool, timed: bool) -> Vec<Series> {
    let mut series = vec![Series::transaction("tpcb-like", true)];
    if timed {
        let role = SeriesRole::Statement { of: 0 };
        series.extend(STATEMENTS.map(|(name, _)| Series { name: name.into(), headline: false, role }));
    }
    if open {
        let role = SeriesRole::Response { of: 0 };
        series.push(Series { name: "tpcb-like, response".into(), headline: false, role });
        series.push(Series { name: "schedule lag".into(), headline: false, role: SeriesRole::Lag });
    }
    series
}

pub fn stored(path: &Path, plan: &Plan) -> RunReport {
    let store = Store::open(path).unwrap();
    let open = plan.points[0].1.is_some();
    let mut writer = store
        .begin_run(&NewRun {
            workload: "pgbench".into(),
            target: "postgres://joe@localhost:5432/bench".into(),
            spec_toml: "[run]\nworkload = \"pgbench\"\n".into(),
            command: "kelvin run pgbench --target postgres://joe@localhost:5432/bench".into(),
            kinds: series(open, plan.timed),
            environment: serde_json::json!({"client_host": {"cpu": {"threads": 16}}}),
            ..super::new_run()
        })
        .unwrap();
    for event in events(plan) {
        writer.event(&event).unwrap();
    }
    let id = writer.id();
    drop(writer);
    RunReport::from_run(&store.load(id).unwrap()).unwrap()
}

/// All events of the run.
pub fn events(plan: &Plan) -> Vec<Event> {
    let mut noise = Noise(7);
    let mut clock = 0;
    let mut events = Vec::new();
    let mut before = 0.0;
    for (point, (users, rate)) in plan.points.iter().enumerate() {
        // On the way down the server is still slower because of the preceding overload.
        let tired = if rate.is_some_and(|r| r < before) { 0.93 } else { 1.0 };
        before = rate.unwrap_or(0.0);
        events.extend(one_point(plan, point as u32, *users, *rate, tired, &mut noise, &mut clock));
    }
    events.extend(plan.concluded.iter().cloned());
    events.push(Event::Finished { status: Status::Complete, error: None });
    events
}

fn one_point(
    plan: &Plan,
    point: u32,
    users: u32,
    rate: Option<f64>,
    tired: f64,
    noise: &mut Noise,
    clock: &mut u64,
) -> Vec<Event> {
    let phase = |phase, at| Event::Phase { point, phase, at, users, planned: None };
    let ramp_up = 2;
    let mut events = vec![phase(Phase::Connect, *clock), phase(Phase::RampUp, *clock + SECOND)];
    let capacity = capacity(users) * tired;
    let (mut good, mut due_sum, mut refused_sum, mut queue, mut longest) = (0, 0, 0, 0_u64, 0);
    let kinds = series(rate.is_some(), plan.timed);
    for second in -ramp_up..plan.seconds {
        if second == 0 {
            events.push(phase(Phase::Measure, *clock + 3 * SECOND));
        }
        let measured = second >= 0;
        let can = if plan.stall == Some(second) {
            0
        } else {
            (capacity * 0.97) as u64 + noise.below((capacity * 0.06) as u64)
        };
        let (mut refused, mut served, mut due) = (0, can, 0);
        let mut waited = 0;
        if let Some(rate) = rate {
            due = (rate * 0.98) as u64 + noise.below((rate * 0.04) as u64 + 1);
            served = (queue + due).min(can);
            waited = queue;
            queue = queue + due - served;
            if queue > QUEUE_LIMIT {
                refused = queue - QUEUE_LIMIT;
                queue = QUEUE_LIMIT;
            }
            longest = longest.max(queue);
        }
        let busy = rate.map_or(0.0, |r| (r / capacity).min(0.98));
        let mut counts = vec![KindCounts::default(); kinds.len()];
        let failed = if plan.failing { std::mem::take(&mut served) } else { 0 };
        if failed > 0 {
            for (series, counts) in kinds.iter().zip(&mut counts) {
                counts.failed = if series.is_transaction() { failed } else { 0 };
            }
            events.push(Event::Errors(ErrorCount {
                point,
                second,
                kind: Some(0),
                class: "data".into(),
                code: "22012".into(),
                message: "division by zero".into(),
                retried: false,
                count: failed,
            }));
        }
        let typical = if rate.is_some() { 1600 } else { (f64::from(users) * 1e6 / capacity) as u64 };
        let crowd = (1600.0 * busy / (1.0 - busy) / f64::from(users)) as u64;
        for _ in 0..served {
            let service = noise.latency(typical);
            let wait = noise.latency(crowd.max(1)) + waited.max(queue) * SECOND / capacity as u64;
            record(&kinds, &mut counts, service, wait, noise);
        }
        let part = if measured { LoadPart::Measured } else { LoadPart::RampUp };
        events.push(Event::Second(Second { point, second, part, kinds: counts }));
        if rate.is_some() {
            events.push(Event::Arrivals(Arrivals { point, second, due, refused, waiting: Some(queue) }));
        }
        if measured {
            good += served;
            due_sum += due;
            refused_sum += refused;
        }
    }
    let elapsed = plan.seconds as u64 * SECOND;
    *clock += 3 * SECOND + elapsed;
    events.push(phase(Phase::Stop, *clock));
    let schedule = rate.map(|rate| ArrivalSchedule {
        rate,
        due: due_sum,
        refused: refused_sum,
        waiting: queue,
        longest,
        ..ArrivalSchedule::default()
    });
    events.push(Event::Window(Window {
        point,
        users,
        elapsed,
        idle: 0,
        client_headline: good,
        server_headline: None,
        server_transactions: Some(good + 12),
        client_cpu: good * 38_000,
        client_run_delay: Some(good * 4_000),
        schedule,
    }));
    events.extend(judgements(point, good, due_sum));
    events
}

/// Records a transaction with the service time `service`, after waiting for `wait`.
fn record(kinds: &[Series], counts: &mut [KindCounts], service: u64, wait: u64, noise: &mut Noise) {
    for (series, counts) in kinds.iter().zip(counts) {
        let took = match series.role {
            SeriesRole::Transaction => service,
            SeriesRole::Response { .. } => service + wait,
            SeriesRole::Lag if noise.below(3) > 0 => 20_000 + noise.below(60_000) * noise.below(4),
            SeriesRole::Lag => continue,
            SeriesRole::Statement { .. } => {
                let typical = STATEMENTS.iter().find(|(name, _)| *name == series.name).unwrap().1;
                service * typical / 1400
            }
        };
        counts.committed += 1;
        counts.latency.record(took);
    }
}

fn judgements(point: u32, good: u64, due: u64) -> [Event; 2] {
    let line = AuditLine {
        name: "accounts touched per transaction".into(),
        value: 1.0,
        low: 1.0,
        high: 1.0,
        unit: String::new(),
        samples: good,
        valid: true,
    };
    let invariant = Invariant::new(
        "every transaction that was due was served, refused, or waited at the end",
        true,
        format!("{due} due"),
    );
    [Event::Audit { point, lines: vec![line] }, Event::Invariant { point, invariant }]
}
