//! Debian's Prometheus scrapes a run and answers the dashboard's queries.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../../database/tests/support/port.rs"]
mod port;
mod support;

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Run, body, get, program, queries};

/// Time limit of each expected effect.
const PATIENCE: Duration = Duration::from_mins(2);

/// A Prometheus server that ends with the test.
struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    fn start(directory: &Path, target: SocketAddr) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port::spare()));
        let config = directory.join("prometheus.yml");
        std::fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\n\
                 scrape_configs: [{{job_name: kelvin, static_configs: [{{targets: [\"{target}\"]}}]}}]\n"
            ),
        )
        .unwrap();
        let log = std::fs::File::create(directory.join("log")).unwrap();
        let child = Command::new(program("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let prometheus = Self { child, address };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() || !get(address, "/-/ready", "").contains(" 200 OK") {
            let log = || std::fs::read_to_string(directory.join("log")).unwrap();
            assert!(Instant::now() < until, "{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        prometheus
    }

    /// The result of a query: one element per series.
    fn query(&self, query: &str) -> Vec<Value> {
        let encoded = query.bytes().fold(String::new(), |text, byte| text + &format!("%{byte:02X}"));
        let answer =
            get(self.address, &format!("/api/v1/query?query={encoded}"), "Accept-Encoding: identity\r\n");
        // A long answer comes in chunks.
        let json = body(&answer);
        let json = json.get(json.find('{').unwrap()..=json.rfind('}').unwrap()).unwrap();
        let json: Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}: {answer}"));
        assert_eq!(json["status"], "success", "{query}: {json}");
        json["data"]["result"].as_array().unwrap().clone()
    }

    fn values(&self, query: &str) -> Vec<f64> {
        let each = self.query(query).into_iter();
        each.map(|one| one["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn prometheus_scrapes_a_run_and_answers_every_query_of_the_dashboard() {
    let mut run = Run::start();
    let directory = tempfile::tempdir().unwrap();
    run.second();
    let prometheus = Prometheus::start(directory.path(), run.address());
    let samples = |run: &Run| run.scrape().lines().filter(|line| !line.starts_with('#')).count() as f64;
    // All New-Orders took 3 ms, which is in the bucket from 2 to 3 ms.
    let p95 = r#"histogram_quantile(0.95, sum by (le) (rate(kelvin_transaction_service_seconds_bucket{type="New-Order"}[10s])))"#;
    // A rate needs two scrapes, and a scrape that fails on a busy machine is repeated.
    let began = Instant::now();
    loop {
        run.second();
        std::thread::sleep(Duration::from_millis(1500));
        let latest =
            run.value(r#"kelvin_transactions_total{type="New-Order",outcome="committed",part="measured"}"#);
        let expected = [
            ("up", 1.0..=1.0),
            (r#"kelvin_transactions_total{type="New-Order",outcome="committed"}"#, latest..=latest),
            ("scrape_samples_scraped", samples(&run)..=samples(&run)),
            (p95, 0.002..=0.003),
        ];
        let seen = expected.each_ref().map(|(query, _)| prometheus.values(query));
        if expected.iter().zip(&seen).all(|((_, wanted), seen)| seen.len() == 1 && wanted.contains(&seen[0]))
        {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "{seen:?} and not {expected:?}");
    }
    for query in queries() {
        let filled =
            query.replace("$__rate_interval", "10s").replace("$job", "kelvin").replace("$instance", ".*");
        assert!(!prometheus.query(&filled).is_empty(), "nothing for {filled}");
    }
}

#[test]
fn promtool_finds_nothing_wrong() {
    let mut run = Run::start();
    run.second();
    let mut promtool = Command::new(program("promtool"))
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let page = body(&get(run.address(), "/metrics", ""));
    promtool.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.is_empty(), "{said}");
}
