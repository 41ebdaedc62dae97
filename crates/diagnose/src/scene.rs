//! A synthetic run for tests, made of events like a real one.

use kelvin_measure::SECOND;
use kelvin_measure::event::{ArrivalSchedule, Event, KindCounts, LoadPart, Phase, Second, Series, Window};
use kelvin_measure::observation::{DatabaseDirectory, Metric, Observation, Observer, Reading, WaitSamples};
use kelvin_observe::postgres::wait_group;
use serde_json::json;

use crate::{Context, Evidence, Finding, Severity};

/// The value of a metric in a second where it is not the constant one.
type Spikes = Box<dyn Fn(u64) -> Option<f32>>;

/// A run of one point. Times are in seconds; the defaults are a healthy run of 4 users on 2 CPUs with 20 s measured after
/// a ramp-up of 5 s.
pub(crate) struct Scene {
    pub(crate) users: u32,
    /// Good transactions by second of the ramp-up and of the window.
    pub(crate) ramp: Vec<u64>,
    pub(crate) window: Vec<u64>,
    /// Of each second.
    pub(crate) failed: u64,
    pub(crate) retries: u64,
    /// CPUs used by the client, threads of it waiting for one.
    pub(crate) client_cpu: f64,
    pub(crate) client_delay: f64,
    /// Users within a transaction, on average.
    pub(crate) at_work: f64,
    /// So many transactions of the window's first second took so many seconds each.
    pub(crate) stopped: Option<(u64, f64)>,
    /// Class, event and sessions; none when the sessions are not looked at.
    pub(crate) sessions: Vec<(&'static str, &'static str, f64)>,
    /// Metric and its value, constant over the run.
    pub(crate) metrics: Vec<(String, f32)>,
    /// What is added to a metric in some seconds of the window.
    pub(crate) spikes: Option<(&'static str, Spikes)>,
    pub(crate) environment: serde_json::Value,
    pub(crate) spec: serde_json::Value,
    pub(crate) log_device: Option<&'static str>,
    pub(crate) schedule: Option<ArrivalSchedule>,
    pub(crate) more: Vec<Event>,
}

impl Scene {
    pub(crate) fn healthy() -> Self {
        let wiggle = |i: u64| 1000 + (i * 37 % 11) * 8;
        let metrics = [
            ("host.cpu.total.busy", 0.93),
            ("host.cpu.total.steal", 0.002),
            ("host.cpu.total.irq", 0.0),
            ("host.cpu.total.softirq", 0.01),
            ("host.run_queue.total.delay_share", 0.45),
            ("host.pressure.cpu.some", 0.6),
            ("host.pressure.io.some", 0.03),
            ("host.process.client.cpu.user", 0.4),
            ("host.process.client.cpu.system", 0.2),
            ("host.process.client.run_delay", 0.4),
            ("host.process.server.cpu.user", 0.9),
            ("host.process.server.cpu.system", 0.25),
            ("host.process.server.run_delay", 0.9),
        ];
        Self {
            users: 4,
            ramp: (0..5).map(wiggle).collect(),
            window: (0..20).map(wiggle).collect(),
            failed: 0,
            retries: 1,
            client_cpu: 0.6,
            client_delay: 0.4,
            at_work: 3.9,
            stopped: None,
            sessions: vec![
                ("CPU", "", 2.0),
                ("IO", "WALSync", 0.3),
                ("Idle in transaction", "ClientRead", 0.9),
            ],
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            spikes: None,
            environment: json!({
                "engine": "postgres",
                "client_host": { "name": "host", "cpu": { "threads": 2 } },
            }),
            spec: json!({ "workload": "tproc-c", "load": {} }),
            log_device: None,
            schedule: None,
            more: Vec::new(),
        }
    }

    /// With this value for a metric, instead of another or beside the others.
    pub(crate) fn metric(mut self, name: &str, value: f32) -> Self {
        self.metrics.retain(|(known, _)| known != name);
        self.metrics.push((name.to_owned(), value));
        self
    }

    /// Without the metrics that begin so.
    pub(crate) fn without(mut self, prefix: &str) -> Self {
        self.metrics.retain(|(name, _)| !name.starts_with(prefix));
        self
    }

    pub(crate) fn evidence(&self) -> Evidence {
        let mut context = Context::default();
        context.workload = "tproc-c".into();
        context.target = "postgres".into();
        context.series = vec![Series::transaction("New-Order", true)];
        let mut evidence =
            Evidence::new(context.with_environment(self.spec.clone(), self.environment.clone()));
        for event in self.events() {
            evidence.event(&event);
        }
        crate::findings::check_words(&evidence);
        evidence
    }

    fn events(&self) -> Vec<Event> {
        let (ramp, window) = (self.ramp.len() as u64, self.window.len() as u64);
        let open = 1 + ramp;
        let phase = |phase, at: u64| Event::Phase {
            point: 0,
            phase,
            at: at * SECOND,
            users: self.users,
            planned: None,
        };
        let mut events = vec![phase(Phase::Connect, 0)];
        if ramp > 0 {
            events.push(phase(Phase::RampUp, 1));
        }
        events.push(phase(Phase::Measure, open));
        self.observer(&mut events);
        for at in 0..=open + window {
            self.looks(at, &mut events);
        }
        let all = self
            .ramp
            .iter()
            .map(|count| (LoadPart::RampUp, *count))
            .chain(self.window.iter().map(|c| (LoadPart::Measured, *c)));
        for (i, (part, count)) in all.enumerate() {
            let mut kind = KindCounts {
                committed: count,
                failed: self.failed,
                retries: self.retries,
                ..KindCounts::default()
            };
            for _ in 0..count {
                kind.latency.record((self.at_work * 1e9 / count as f64) as u64);
            }
            if let Some((number, seconds)) = self.stopped.filter(|_| i == self.ramp.len()) {
                kind.committed += number;
                (0..number).for_each(|_| kind.latency.record((seconds * 1e9) as u64));
            }
            events.push(Event::Second(Second {
                point: 0,
                second: i as i64 - ramp as i64,
                part,
                kinds: vec![kind],
            }));
        }
        events.extend(self.more.iter().cloned());
        events.push(phase(Phase::Stop, open + window));
        let nanos = |cores: f64| (cores * window as f64 * 1e9) as u64;
        events.push(Event::Window(Window {
            point: 0,
            users: self.users,
            elapsed: window * SECOND,
            idle: 0,
            client_headline: self.window.iter().sum(),
            server_headline: None,
            server_transactions: None,
            client_cpu: nanos(self.client_cpu),
            client_run_delay: Some(nanos(self.client_delay)),
            schedule: self.schedule,
        }));
        events
    }

    fn observer(&self, events: &mut Vec<Event>) {
        let metric =
            |(name, _): &(String, f32)| Metric { name: name.clone(), unit: "1".into(), help: String::new() };
        let place = |device: &str| DatabaseDirectory {
            role: "wal".into(),
            path: "/data/pg_wal".into(),
            device: Some(device.into()),
            mount: "/data".into(),
            filesystem: "ext4".into(),
            queue: None,
        };
        events.push(Event::Observed(Observation::Observer(Observer {
            source: "host".into(),
            first: 0,
            metrics: self.metrics.iter().map(metric).collect(),
            absent: Vec::new(),
            places: self.log_device.map(place).into_iter().collect(),
        })));
        let groups =
            self.sessions.iter().map(|(class, event, _)| wait_group("client backend", class, event, None));
        events.push(Event::Observed(Observation::WaitGroups { first: 0, groups: groups.collect() }));
    }

    fn looks(&self, at: u64, events: &mut Vec<Event>) {
        // A reading is of the second before it.
        let second = at.checked_sub(2 + self.ramp.len() as u64);
        let more = |name: &str| {
            let (_, of) = self.spikes.as_ref().filter(|(of, _)| *of == name)?;
            of(second?)
        };
        let values = self.metrics.iter().map(|(name, value)| value + more(name).unwrap_or(0.0)).collect();
        events.push(Event::Observed(Observation::Reading(Reading { at: at * SECOND, first: 0, values })));
        if !self.sessions.is_empty() && at > 0 {
            // A little more in one second and a little less in the next, as looks are.
            let wiggle = [1.05, 0.97, 1.0, 0.98, 1.0][at as usize % 5];
            let seen = self.sessions.iter().enumerate();
            let seen =
                seen.map(|(i, (.., sessions))| (i as u32, (sessions * 100.0 * wiggle) as u32)).collect();
            let waits = WaitSamples { at: at * SECOND, looks: 100, seen, rows: Vec::new(), lock_looks: 0 };
            events.push(Event::Observed(Observation::Waits(waits)));
        }
    }
}

/// The severities of what was found.
pub(crate) fn severities(found: &[Finding]) -> Vec<Severity> {
    found.iter().map(|finding| finding.severity).collect()
}
