//! What observers would send over a run.

use kelvin_measure::Event;
use kelvin_measure::observation::{
    CaptureTime, DatabaseDirectory, Metric, Observation, Observer, Occurrence, Reading, UnavailableMetrics,
    WaitGroup, WaitKind, WaitSamples,
};

use super::Noise;

/// How the values of the metrics go on from reading to reading: of ten metrics of a host under load, three never
/// change, two are counters that seldom do, and five are rates, whose last digits are noise.
pub struct Series {
    noise: Noise,
    pub values: Vec<f32>,
}

impl Series {
    pub fn new(seed: u64, metrics: usize) -> Self {
        let mut noise = Noise(seed);
        let values =
            (0..metrics).map(|i| if i % 10 == 0 { f32::NAN } else { noise.next(1000) as f32 }).collect();
        Self { noise, values }
    }

    pub fn next(&mut self) -> Vec<f32> {
        for (i, value) in self.values.iter_mut().enumerate() {
            match i % 10 {
                0..3 => {}
                3 | 4 => {
                    if self.noise.next(8) == 0 {
                        *value = self.noise.next(5000) as f32;
                    }
                }
                _ => *value = 100.0 * (self.noise.next(1 << 30) as f32 / 5e8 + i as f32),
            }
        }
        self.values.clone()
    }
}

pub fn observer(source: &str, first: u32, metrics: usize) -> Event {
    let metric = |i: usize| Metric {
        name: format!("{source}.some.thing.number{i}"),
        unit: "1/s".into(),
        help: "what such a thing is, in about as many words as there will be".into(),
    };
    Event::Observed(Observation::Observer(Observer {
        source: source.into(),
        first,
        metrics: (0..metrics).map(metric).collect(),
        absent: vec![UnavailableMetrics { what: "host.psi".into(), why: "the kernel has none".into() }],
        places: vec![DatabaseDirectory {
            role: "wal".into(),
            path: "/wal".into(),
            device: Some("vdb".into()),
            mount: "/wal".into(),
            filesystem: "ext4".into(),
            queue: None,
        }],
    }))
}

pub fn groups(first: u32, count: u32) -> Event {
    let group = |i: u32| WaitGroup {
        backend: "client backend".into(),
        class: if i.is_multiple_of(3) { "CPU" } else { "LWLock" }.into(),
        event: format!("Event{i}"),
        kind: if i.is_multiple_of(3) { WaitKind::Cpu } else { WaitKind::Latch },
        query: i.is_multiple_of(2).then_some(i64::MIN + i64::from(i) * 104_729),
        object: i.is_multiple_of(5).then(|| "dbo.warehouse".to_owned()),
    };
    Event::Observed(Observation::WaitGroups { first, groups: (first..first + count).map(group).collect() })
}

pub fn waits(noise: &mut Noise, at: u64, states: u32) -> Event {
    let seen = (0..states).filter(|_| noise.next(2) == 0).collect::<Vec<_>>();
    Event::Observed(Observation::Waits(WaitSamples {
        at,
        looks: 10,
        seen: seen.into_iter().map(|state| (state, 1 + noise.next(40) as u32)).collect(),
        rows: vec![("public.warehouse".into(), noise.next(9) as u32)],
        lock_looks: 1,
    }))
}

pub fn occurrence(id: u32, from: u64, to: Option<u64>) -> Event {
    Event::Observed(Observation::Occurrence(Occurrence {
        id,
        kind: "checkpoint".into(),
        subject: "requested".into(),
        from,
        to,
        figures: [("buffers".to_owned(), 1234.5)].into(),
    }))
}

/// Readings `each` nanoseconds apart over `seconds`, and 10 Hz waits once a second.
pub fn observations(seed: u64, seconds: u64, metrics: usize, each: u64) -> Vec<Event> {
    let mut noise = Noise(seed);
    let mut host = Series::new(seed, metrics);
    let mut events = vec![observer("host", 0, metrics), groups(0, 40)];
    for at in 1..=seconds {
        for reading in 0..1_000_000_000 / each {
            let at = at * 1_000_000_000 + reading * each + noise.next(1000);
            events.push(Event::Observed(Observation::Reading(Reading { at, first: 0, values: host.next() })));
        }
        events.push(waits(&mut noise, at * 1_000_000_000, 30));
        if at % 60 == 0 {
            let id = (at / 60) as u32;
            events.push(occurrence(id, (at - 5) * 1_000_000_000, None));
            events.push(occurrence(id, (at - 5) * 1_000_000_000, Some(at * 1_000_000_000)));
            events.push(groups(39 + id, 1));
        }
    }
    events.push(Event::Observed(Observation::Settings {
        values: [("fsync".to_owned(), "on".to_owned())].into(),
    }));
    events.push(Event::Observed(Observation::Relations {
        when: CaptureTime::After,
        relations: Vec::new(),
        database_bytes: u64::MAX / 4,
    }));
    events
}
