//! Open loops whose arrivals are all known.

use kelvin_measure::Sink;
use kelvin_measure::event::{
    ArrivalSchedule, Event, KindCounts, LoadPart, Phase, Second, Series, SeriesRole, Status, Window,
};
use kelvin_store::{NewRun, RunId, Store};

const SECOND: u64 = 1_000_000_000;

/// The arrivals of a window of ten seconds.
#[derive(Clone)]
pub struct Arrivals {
    /// By type: its name, the response times of answered arrivals in µs, and the number of failed ones.
    pub ended: Vec<(&'static str, Vec<u64>, u64)>,
    pub refused: u64,
    pub waiting: u64,
    pub cut_off: u64,
    /// Per type, transactions that ended in the window but were scheduled before it.
    pub left_over: u64,
}

impl Arrivals {
    /// `answered` arrivals of one type, the i-th with a response time of i · 100 µs, and `waiting` that still
    /// waited.
    pub fn rising(answered: u64, waiting: u64) -> Self {
        let times = (1..=answered).map(|i| i * 100).collect();
        Self { ended: vec![("read", times, 0)], refused: 0, waiting, cut_off: 0, left_over: 0 }
    }
}

/// A run with these arrivals that ended as planned.
pub fn stored(store: &Store, arrivals: &Arrivals) -> RunId {
    let types = arrivals.ended.len();
    let mut kinds: Vec<Series> =
        arrivals.ended.iter().map(|(name, ..)| Series::transaction(name, true)).collect();
    kinds.extend(arrivals.ended.iter().enumerate().map(|(of, (name, ..))| Series {
        name: format!("{name}, response"),
        headline: false,
        role: SeriesRole::Response { of: of as u16 },
    }));
    let mut writer = store
        .begin_run(&NewRun {
            workload: "script".into(),
            target: "sqlite:x.db".into(),
            spec_toml: "[run]\nworkload = \"script\"\n".into(),
            command: "kelvin run script x.sql --rate 500".into(),
            kinds,
            ..super::new_run()
        })
        .unwrap();
    let mut good = 0;
    writer
        .event(&Event::Phase { point: 0, phase: Phase::Measure, at: SECOND, users: 4, planned: None })
        .unwrap();
    for second in 0..10 {
        let mut kinds = vec![KindCounts::default(); 2 * types];
        for (index, (_, times, failed)) in arrivals.ended.iter().enumerate() {
            for time in times.iter().skip(second).step_by(10) {
                for place in [index, types + index] {
                    kinds[place].committed += 1;
                    kinds[place].latency.record(time * 1000);
                }
                good += 1;
            }
            let left_over = if second == 0 { arrivals.left_over } else { 0 };
            for _ in 0..left_over {
                kinds[index].committed += 1;
                kinds[index].latency.record(1_000_000);
                good += 1;
            }
            if second == 0 {
                kinds[index].failed = *failed;
                kinds[types + index].failed = *failed;
            }
        }
        let second = second as i64;
        writer.event(&Event::Second(Second { point: 0, second, part: LoadPart::Measured, kinds })).unwrap();
    }
    let ended: u64 = arrivals.ended.iter().map(|(_, times, failed)| times.len() as u64 + failed).sum();
    let Arrivals { refused, waiting, cut_off, .. } = *arrivals;
    let due = ended + refused + waiting + cut_off;
    let schedule = ArrivalSchedule {
        rate: due as f64 / 10.0,
        due,
        refused,
        waiting,
        cut_off,
        longest: 9,
        ..ArrivalSchedule::default()
    };
    let window = Window {
        point: 0,
        users: 4,
        elapsed: 10 * SECOND,
        idle: 0,
        client_headline: good,
        server_headline: None,
        server_transactions: None,
        client_cpu: SECOND,
        client_run_delay: None,
        schedule: Some(schedule),
    };
    writer.event(&Event::Window(window)).unwrap();
    writer.event(&Event::Finished { status: Status::Complete, error: None }).unwrap();
    let id = writer.id();
    drop(writer);
    id
}
