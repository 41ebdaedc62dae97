//! A run composed of events with known values, and the client that scrapes it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part, and fails by panicking"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use kelvin_measure::event::{
    Arrivals, ErrorCount, KindCounts, LoadPart, Phase, RatePeriod, Second, Series, SeriesRole, Window,
};
use kelvin_measure::observation::{Metric, Observation, Observer, Occurrence, Reading, WaitSamples};
use kelvin_measure::{Event, Sink};
use kelvin_observe::postgres::wait_group;
use kelvin_observe::sample::{Config, HostSampler, Process, SystemTree};
use kelvin_serve::{MetricsEndpoint, MetricsSink, RunInfo};

/// PostgreSQL's metrics with their units, as its watcher names them.
const POSTGRES: [(&str, &str); 5] = [
    ("postgres.wal.bytes", "B/s"),
    ("postgres.blocks.hit", "1/s"),
    ("postgres.blocks.read", "1/s"),
    ("postgres.blocks.read_ms", "ms/s"),
    ("postgres.sessions.active", "1"),
];

const SQLITE: [(&str, &str); 6] = [
    ("sqlite.wal.bytes", "B"),
    ("sqlite.wal.pending", "B"),
    ("sqlite.wal.written", "B/s"),
    ("sqlite.checkpoints", "1/s"),
    ("sqlite.busy", "s/s"),
    ("sqlite.database.bytes", "B"),
];

/// A running run.
pub struct Run {
    pub endpoint: MetricsEndpoint,
    pub sink: MetricsSink,
    /// Number of the observers' metrics.
    pub metrics: usize,
    second: i64,
}

impl Run {
    /// Starts an open loop in its measured window, with every observer.
    pub fn start() -> Self {
        let (endpoint, mut sink) = MetricsEndpoint::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let new_order = Series::transaction("New-Order", true);
        let response = SeriesRole::Response { of: 0 };
        let statement = SeriesRole::Statement { of: 0 };
        sink.begin(RunInfo {
            run: "20261121-\"a\\b\"".into(),
            workload: "tproc-c".into(),
            headline: "NOPM".into(),
            per: RatePeriod::Minute,
            series: vec![
                new_order.clone(),
                Series::transaction("Payment", false),
                Series { name: "New-Order, response".into(), role: response, ..new_order.clone() },
                Series { name: "select\nitems".into(), headline: false, role: statement },
                Series { name: "schedule lag".into(), headline: false, role: SeriesRole::Lag },
            ],
        });
        for phase in [Phase::Connect, Phase::RampUp, Phase::Measure] {
            sink.event(&Event::Phase { point: 0, phase, at: 0, users: 4, planned: None }).unwrap();
        }
        let metrics = observed();
        let count = metrics.len();
        sink.event(&Event::Observed(Observation::Observer(Observer {
            source: "host".into(),
            metrics,
            ..Observer::default()
        })))
        .unwrap();
        let group = |class, event, query| wait_group("client backend", class, event, query);
        sink.event(&Event::Observed(Observation::WaitGroups {
            first: 0,
            groups: vec![
                group("IO", "WALSync", Some(1)),
                group("IO", "WALSync", Some(2)),
                group("CPU", "", None),
            ],
        }))
        .unwrap();
        let mut run = Self { endpoint, sink, metrics: count, second: 0 };
        run.occurrence(1, Some(9));
        run.occurrence(2, None);
        run
    }

    fn occurrence(&mut self, id: u32, to: Option<u64>) {
        self.sink
            .event(&Event::Observed(Observation::Occurrence(Occurrence {
                id,
                kind: "checkpoint".into(),
                subject: "timed".into(),
                from: 1,
                to,
                figures: std::collections::BTreeMap::new(),
            })))
            .unwrap();
    }

    /// Emits one more second: 100 New-Orders of 3 ms, one of which rolled back, and 50 Payments of 0.8 ms.
    pub fn second(&mut self) {
        let kind = |committed: u64, rolled_back: u64, nanos: u64| {
            let mut counts =
                KindCounts { committed, rolled_back, failed: 1, retries: 2, ..KindCounts::default() };
            for _ in 0..committed + rolled_back {
                counts.latency.record(nanos);
            }
            counts
        };
        let (point, second) = (0, self.second);
        self.sink
            .event(&Event::Second(Second {
                point,
                second,
                part: LoadPart::Measured,
                kinds: vec![
                    kind(99, 1, 3_000_000),
                    kind(50, 0, 800_000),
                    kind(99, 1, 5_000_000),
                    kind(100, 0, 200_000),
                    kind(100, 0, 30_000),
                ],
            }))
            .unwrap();
        self.sink
            .event(&Event::Arrivals(Arrivals { point, second, due: 110, refused: 3, waiting: Some(7) }))
            .unwrap();
        self.sink
            .event(&Event::Errors(ErrorCount {
                point,
                second,
                kind: Some(0),
                class: "deadlock".into(),
                code: "40P01".into(),
                message: "deadlock detected".into(),
                retried: true,
                count: 2,
            }))
            .unwrap();
        let values = (0..self.metrics).map(|at| at as f32 + 0.5).collect();
        self.sink.event(&Event::Observed(Observation::Reading(Reading { at: 0, first: 0, values }))).unwrap();
        self.sink
            .event(&Event::Observed(Observation::Waits(WaitSamples {
                looks: 10,
                seen: vec![(0, 5), (1, 10), (2, 20)],
                ..WaitSamples::default()
            })))
            .unwrap();
        self.second += 1;
    }

    pub fn window(&mut self) {
        self.sink
            .event(&Event::Window(Window {
                point: 0,
                users: 4,
                elapsed: 2_500_000_000,
                idle: 0,
                client_headline: 200,
                server_headline: None,
                server_transactions: None,
                client_cpu: 0,
                client_run_delay: None,
                schedule: None,
            }))
            .unwrap();
    }

    pub fn address(&self) -> SocketAddr {
        self.endpoint.address()
    }

    /// The page in OpenMetrics.
    pub fn scrape(&self) -> String {
        let answer =
            get(self.address(), "/metrics", "Accept: application/openmetrics-text; version=1.0.0\r\n");
        assert!(answer.contains("application/openmetrics-text; version=1.0.0"), "{answer}");
        body(&answer)
    }

    /// The value of the only sample with this beginning.
    pub fn value(&self, sample: &str) -> f64 {
        let page = self.scrape();
        let found: Vec<_> =
            page.lines().filter_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')).collect();
        let family = sample.split('{').next().unwrap();
        let near: Vec<_> = page.lines().filter(|line| line.contains(family)).collect();
        assert_eq!(found.len(), 1, "{sample} among {near:#?}");
        found[0].parse().unwrap()
    }
}

/// All metrics of the observers of the recorded host, of PostgreSQL and of SQLite.
fn observed() -> Vec<Metric> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../observe/tests/recorded/first");
    let process = |name: &str| Process { name: name.into(), pid: 4242, children: false };
    let config = Config { processes: vec![process("client"), process("server")], ..Config::default() };
    let host = HostSampler::from_tree(&SystemTree::at(recorded), &config);
    let host = host.series().iter().map(|s| (s.name.clone(), s.unit.to_owned(), s.help.to_owned()));
    let others = POSTGRES.iter().chain(&SQLITE).map(|(name, unit)| {
        ((*name).to_owned(), (*unit).to_owned(), "a \"quoted\" text\nof two lines, with a \\".to_owned())
    });
    host.chain(others).map(|(name, unit, help)| Metric { name, unit, help }).collect()
}

/// An answer including its headers.
pub fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Connection: close\r\n\r\n"))
}

pub fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_mins(1)).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn body(answer: &str) -> String {
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The dashboard for Grafana.
pub fn dashboard() -> serde_json::Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana/kelvin.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The dashboard's queries, with those of its annotations.
pub fn queries() -> Vec<String> {
    let mut found = Vec::new();
    collect(&dashboard(), &mut found);
    assert!(found.len() > 40, "{found:?}");
    found
}

fn collect(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            found.extend(fields.get("expr").and_then(|e| e.as_str()).map(str::to_owned));
            fields.values().for_each(|field| collect(field, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// A program of Debian's prometheus package.
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found =
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file());
    found
        .unwrap_or_else(|| panic!("{name} is not installed: apt-get install prometheus, or cargo xtask test"))
}
