//! A run with everything in it, made from a seed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, unreachable_pub, reason = "shared by several test files")]

pub mod observed;

use kelvin_measure::Event;
use kelvin_measure::event::Series;
use kelvin_measure::event::{
    ArrivalSchedule, Arrivals, AuditLine, CheckLine, ErrorCount, Estimate, KindCounts, LoadPart, MaximumRate,
    Phase, RateTrial, Scalability, ScalabilityPoint, Second, SeriesRole, Status, Window,
};
use kelvin_measure::invariant::Invariant;
use kelvin_store::NewRun;

pub const KINDS: [&str; 5] = ["New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"];

pub fn new_run(label: Option<&str>) -> NewRun {
    NewRun {
        workload: "tproc-c".into(),
        target: "postgres://joe@localhost/tpcc".into(),
        label: label.map(Into::into),
        spec_toml: "[run]\nworkload = \"tproc-c\"\n".into(),
        command: "kelvin run tproc-c --users 4".into(),
        seed: u64::MAX - 1,
        random_algorithm: "Xoshiro256++".into(),
        kelvin_version: "0.1.0".into(),
        kinds: KINDS.iter().enumerate().map(|(i, n)| Series::transaction(n, i == 0)).collect(),
        headline: "NOPM".into(),
        headline_per: kelvin_measure::event::RatePeriod::Minute,
        counter_names: vec!["lines".into(), "remote lines".into()],
        notes: vec!["profile spec".into()],
        environment: serde_json::json!({"cpu": {"model": "x", "cores": 2}}),
        started: "2026-11-21T10:00:00Z".parse().unwrap(),
    }
}

/// A small generator: the tests need variety, not quality.
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }

    pub fn kind(&mut self, count: u64, typical_ns: u64) -> KindCounts {
        let mut counts = KindCounts { retries: self.next(3), failed: self.next(2), ..KindCounts::default() };
        for _ in 0..count {
            if self.next(100) == 0 {
                counts.rolled_back += 1;
            } else {
                counts.committed += 1;
            }
            counts.latency.record(typical_ns / 2 + self.next(typical_ns) + self.next(typical_ns / 4));
        }
        counts
    }

    pub fn second(&mut self, point: u32, second: i64, part: LoadPart, new_orders: u64) -> Event {
        let counts = [new_orders, new_orders, new_orders / 10, new_orders / 10, new_orders / 10];
        let typical = [8_000_000, 3_000_000, 2_000_000, 20_000_000, 5_000_000];
        let kinds = (0..5).map(|k| self.kind(counts[k], typical[k])).collect();
        Event::Second(Second { point, second, part, kinds })
    }
}

pub fn phase(point: u32, phase: Phase, at: u64, users: u32) -> Event {
    Event::Phase { point, phase, at: at * 1_000_000_000, users, planned: None }
}

pub fn headline(events: &[Event], of: u32) -> u64 {
    let measured = |e: &Event| match e {
        Event::Second(s) if s.part == LoadPart::Measured && s.point == of => s.kinds[0].committed,
        _ => 0,
    };
    events.iter().map(measured).sum()
}

/// A whole run of one point with every sort of event.
pub fn whole_run(seed: u64, seconds: i64, new_orders: u64) -> Vec<Event> {
    let mut noise = Noise(seed);
    let mut events = vec![
        phase(0, Phase::Build, 0, 0),
        Event::Progress { what: "loading warehouses".into(), done: 1, total: 1, rows: 500_000 },
        phase(0, Phase::CheckBefore, 5, 0),
        Event::Check {
            phase: Phase::CheckBefore,
            line: CheckLine {
                number: 1,
                name: "w_ytd = sum of d_ytd".into(),
                holds: true,
                detail: String::new(),
                exempt: None,
            },
        },
        phase(0, Phase::Connect, 6, 4),
        phase(0, Phase::RampUp, 7, 4),
    ];
    events.push(noise.second(0, -2, LoadPart::RampUp, new_orders));
    events.push(noise.second(0, -1, LoadPart::RampUp, new_orders));
    events.push(phase(0, Phase::Measure, 9, 4));
    for second in 0..seconds {
        events.push(noise.second(0, second, LoadPart::Measured, new_orders));
        if second % 7 == 3 {
            // A sample that was late.
            events.push(noise.second(0, second - 1, LoadPart::Measured, 1));
            events.push(Event::Errors(ErrorCount {
                point: 0,
                second,
                kind: Some(1),
                class: "deadlock".into(),
                code: "40P01".into(),
                message: "deadlock detected".into(),
                retried: true,
                count: 2,
            }));
            events.push(Event::Note { point: 0, second, text: "user 3 lost its connection <x>".into() });
        }
        events.push(Event::Counters { point: 0, values: vec![second as u64 * 100, second as u64] });
    }
    events.push(phase(0, Phase::Stop, 9 + seconds as u64, 4));
    events.push(noise.second(0, seconds, LoadPart::Tail, 3));
    let client_headline = headline(&events, 0);
    events.push(Event::Window(Window {
        point: 0,
        users: 4,
        elapsed: seconds as u64 * 1_000_000_000,
        idle: 0,
        client_headline,
        server_headline: Some(client_headline + 1),
        server_transactions: None,
        client_cpu: 1_000_000,
        client_run_delay: None,
        schedule: None,
    }));
    // All digits of a double are to come back.
    let lines = (0..20).map(|_| AuditLine {
        name: "rollbacks".into(),
        value: noise.next(1 << 31) as f64 / 3e9,
        low: f64::NEG_INFINITY,
        high: 1.1,
        unit: "%".into(),
        samples: 5000,
        valid: true,
    });
    events.push(Event::Audit { point: 0, lines: lines.collect() });
    events.push(Event::Invariant { point: 0, invariant: Invariant::new("Little's law", true, "4 and 4") });
    events.push(Event::Finished { status: Status::Complete, error: None });
    events
}

/// What a replay must give: seconds that came in parts as one, where the first part was.
pub fn merged(events: &[Event]) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for event in events {
        if let Event::Second(new) = event {
            let earlier = out.iter_mut().find_map(|e| match e {
                Event::Second(s) if (s.point, s.second, s.part) == (new.point, new.second, new.part) => {
                    Some(s)
                }
                _ => None,
            });
            if let Some(earlier) = earlier {
                for (sum, kind) in earlier.kinds.iter_mut().zip(&new.kinds) {
                    sum.add(kind);
                }
                continue;
            }
        }
        out.push(event.clone());
    }
    out
}

pub fn as_json(events: &[Event]) -> Vec<String> {
    events.iter().map(|e| serde_json::to_string(e).unwrap()).collect()
}

/// The series of an open loop of one timed transaction type.
pub fn open_series() -> Vec<Series> {
    let series = |name: &str, role| Series { name: name.into(), headline: false, role };
    vec![
        Series::transaction("a", true),
        series("SELECT 1", SeriesRole::Statement { of: 0 }),
        series("a, response", SeriesRole::Response { of: 0 }),
        series("schedule lag", SeriesRole::Lag),
    ]
}

/// An open loop with everything that only such a run emits.
pub fn open_loop(seed: u64) -> Vec<Event> {
    let mut noise = Noise(seed);
    let mut events = vec![phase(0, Phase::Measure, 1, 8)];
    for second in 0..5 {
        let kinds = [1_000_000, 400_000, 3_000_000, 50_000].map(|typical| noise.kind(40, typical)).to_vec();
        events.push(Event::Second(Second { point: 0, second, part: LoadPart::Measured, kinds }));
        events.push(Event::Arrivals(Arrivals {
            point: 0,
            second,
            due: 45,
            refused: 2,
            waiting: Some(second as u64),
        }));
        // What was refused a moment later.
        events.push(Event::Arrivals(Arrivals { point: 0, second, due: 1, refused: 1, waiting: Some(9) }));
    }
    events.push(Event::Window(Window {
        point: 0,
        users: 8,
        elapsed: 5_000_000_000,
        idle: 0,
        client_headline: headline(&events, 0),
        server_headline: None,
        server_transactions: None,
        client_cpu: 1_000_000,
        client_run_delay: Some(20_000),
        schedule: Some(ArrivalSchedule {
            rate: 45.5,
            due: 230,
            refused: 15,
            waiting: 9,
            longest: 11,
            ..ArrivalSchedule::default()
        }),
    }));
    let estimate = |value| Estimate { value, low: Some(value / 2.0), high: None };
    events.push(Event::Scalability(Scalability {
        lambda: estimate(100.0),
        sigma: estimate(0.1),
        kappa: estimate(f64::NAN),
        peak_users: None,
        peak_below: false,
        r_squared: None,
        points: vec![ScalabilityPoint { users: 8, throughput: 40.0 }],
    }));
    events.push(Event::MaximumRate(MaximumRate {
        held: Some(45.5),
        failed: None,
        slo: "p99<20ms".into(),
        trials: vec![RateTrial {
            point: 0,
            rate: 45.5,
            achieved: 40.0,
            holds: true,
            void: Vec::new(),
            verdicts: vec!["p99 3 ms".into()],
        }],
    }));
    events.push(Event::Finished { status: Status::Complete, error: None });
    events
}
