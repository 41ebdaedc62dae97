//! Scraping over HTTP: a real node_exporter, and servers that misbehave.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/support/port.rs"]
mod port;

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kelvin_measure::Clock;
use kelvin_measure::observation::{Metric, Observation, UnavailableMetrics};
use kelvin_observe::sample::Config;
use kelvin_observe::scrape::ScrapeWatcher;
use kelvin_observe::watch::{HostWatcher, Watch, Watcher};

/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_mins(1);

/// Observations by name.
#[derive(Debug, Default)]
struct Seen {
    metrics: HashMap<u32, Metric>,
    values: HashMap<String, Vec<f32>>,
    absent: Vec<UnavailableMetrics>,
    lost: Vec<UnavailableMetrics>,
    sources: Vec<String>,
}

impl Seen {
    fn add(&mut self, observation: Observation) {
        match observation {
            Observation::Observer(observer) => {
                self.sources.push(observer.source);
                self.absent.extend(observer.absent);
                self.metrics.extend((observer.first..).zip(observer.metrics));
            }
            Observation::Reading(reading) => {
                for (i, value) in (reading.first..).zip(reading.values) {
                    self.values.entry(self.metrics[&i].name.clone()).or_default().push(value);
                }
            }
            Observation::Lost(absent) => self.lost.push(absent),
            _ => {}
        }
    }

    fn mean(&self, name: &str) -> f64 {
        let known = self.known(name);
        known.iter().sum::<f64>() / known.len() as f64
    }

    fn median(&self, name: &str) -> f64 {
        let mut known = self.known(name);
        known.sort_by(f64::total_cmp);
        known[known.len() / 2]
    }

    fn known(&self, name: &str) -> Vec<f64> {
        let values = self.values.get(name).unwrap_or_else(|| panic!("no {name}"));
        let known: Vec<f64> = values.iter().filter(|v| v.is_finite()).map(|&v| f64::from(v)).collect();
        assert!(!known.is_empty(), "{name} was never known");
        known
    }
}

/// Watches until enough is seen, which a machine that stalls delays.
#[track_caller]
fn watch_until(watchers: Vec<Box<dyn Watcher>>, is_enough: impl Fn(&Seen) -> bool) -> Seen {
    let watch = Watch::start(watchers, &Clock::real()).unwrap();
    let (mut seen, begun) = (Seen::default(), Instant::now());
    while !is_enough(&seen) {
        assert!(begun.elapsed() < PATIENCE, "{seen:?}");
        std::thread::sleep(Duration::from_millis(20));
        watch.take().for_each(|observation| seen.add(observation));
    }
    let take = |observation| {
        seen.add(observation);
        Ok::<(), ()>(())
    };
    watch.finish(take).unwrap();
    seen
}

/// Whether something was lost, and time enough has passed to say so a second time.
fn is_lost(seen: &Seen) -> bool {
    std::thread::sleep(Duration::from_millis(300));
    !seen.lost.is_empty()
}

fn scrape(url: &str, interval: Duration) -> Box<dyn Watcher> {
    Box::new(ScrapeWatcher::new(url, interval).unwrap())
}

/// Ends with the test.
struct Exporter(Child);

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn node_exporter() -> (Exporter, u16) {
    let program = ["prometheus-node-exporter", "node_exporter"].into_iter().find(|name| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    let program = program.expect("node_exporter is not installed: apt-get install prometheus-node-exporter");
    let port = port::spare();
    let child = Command::new(program)
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let exporter = Exporter(child);
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "node_exporter does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    (exporter, port)
}

#[test]
fn a_real_node_exporter_says_what_the_sampler_says() {
    let (_exporter, port) = node_exporter();
    let interval = Duration::from_millis(500);
    let watchers = vec![
        scrape(&format!("127.0.0.1:{port}"), interval),
        Box::new(HostWatcher::new(Config::default(), interval)) as Box<dyn Watcher>,
    ];
    let seen = watch_until(watchers, |seen| {
        let of_cpus = seen.values.iter().filter(|(name, _)| name.ends_with("host.cpu.total.busy"));
        of_cpus.filter(|(_, values)| values.len() >= 8).count() == 2
    });
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
    let label = format!("127.0.0.1:{port}/");
    // Each decides which devices it lists.
    let general = |name: &str| {
        let parts: Vec<&str> = name.split('.').collect();
        match parts[..] {
            ["host", group @ ("disk" | "network"), _, last] => format!("host.{group}.*.{last}"),
            _ => name.to_owned(),
        }
    };
    let units = |remote: bool| -> HashMap<String, String> {
        let here = seen.metrics.values().filter(|metric| metric.name.starts_with(&label) == remote);
        here.map(|m| (general(m.name.strip_prefix(&label).unwrap_or(&m.name)), m.unit.clone())).collect()
    };
    let (theirs, ours) = (units(true), units(false));
    for (name, unit) in &theirs {
        assert_eq!(ours.get(name), Some(unit), "{name}");
    }
    for group in
        ["host.cpu.total.user", "host.memory.available", "host.disk.*.w_await", "host.network.*.rx_bytes"]
    {
        assert!(theirs.contains_key(group), "{group}");
    }
    assert!(theirs.len() > 80, "{} series", theirs.len());
    // The two sample at different moments of the same seconds.
    for (name, near) in
        [("host.memory.total", 1.0), ("host.memory.huge_pages.size", 1.0), ("host.cpu.total.busy", 0.2)]
    {
        let (theirs, ours) = (seen.mean(&format!("{label}{name}")), seen.mean(name));
        assert!((theirs - ours).abs() <= near, "{name}: {theirs} there and {ours} here");
    }
    let shares: f64 = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]
        .iter()
        .map(|share| seen.mean(&format!("{label}host.cpu.total.{share}")))
        .sum();
    assert!((shares - 1.0).abs() < 0.01, "{shares}");
    let left_out = seen.absent.iter().find(|absent| label.starts_with(&absent.what)).unwrap();
    assert!(left_out.why.contains("ignored"), "{left_out:?}");
    assert!(seen.sources.contains(&format!("http://127.0.0.1:{port}/metrics")));
}

/// Answers each connection's requests, until the test ends, with `answer` applied to the request's head.
fn server(answer: impl Fn(usize, &str) -> Vec<u8> + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut head = String::new();
            while stream.read_line(&mut head).is_ok_and(|n| n > 2) {}
            let _gone = stream.get_mut().write_all(&answer(count, &head));
        }
    });
    port
}

fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

#[test]
fn a_password_opens_the_endpoint_and_shows_nowhere() {
    let port = server(|count, head| {
        // user:pa ss
        if head.to_ascii_lowercase().contains("authorization: basic dxnlcjpwysbzcw==") {
            ok(&format!("pg_stat_database_xact_commit{{datname=\"a\"}} {}\n", 1000 * count))
        } else {
            b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()
        }
    });
    let url = format!("http://user@127.0.0.1:{port}/metrics");
    let with = |password| {
        let watcher = ScrapeWatcher::with_password(&url, Some(password), Duration::from_millis(100));
        Box::new(watcher.unwrap()) as Box<dyn Watcher>
    };
    let commits = format!("127.0.0.1:{port}/postgres.transactions.commit");
    let is_enough = |seen: &Seen| seen.values.get(&commits).is_some_and(|values| values.len() >= 9);
    let seen = watch_until(vec![with("pa ss")], is_enough);
    let rate = seen.median(&commits);
    // A thousand in a tenth of a second; a machine with other things to do skips turns, and the next comes sooner then.
    assert!(rate > 2_000.0 && rate < 30_000.0, "{rate}");
    let wrong = watch_until(vec![with("wrong-one")], is_lost);
    assert_eq!(wrong.lost.len(), 1, "said once");
    assert!(wrong.lost[0].why.contains("KELVIN_SCRAPE_PASSWORD"), "{:?}", wrong.lost);
    let all = format!("{seen:?} {wrong:?}");
    assert!(!all.contains("pa ss") && !all.contains("pa%20ss") && !all.contains("wrong-one"));
}

#[test]
fn what_is_no_exporter_is_reported_by_name() {
    let html = server(|_, _| ok("<html>\n"));
    let other = server(|_, _| ok("go_threads 5\n"));
    let endless = server(|_, _| {
        let mut text = b"HTTP/1.1 200 OK\r\ncontent-length: 17000000\r\nconnection: close\r\n\r\n".to_vec();
        text.resize(17_000_100, b'\n');
        text
    });
    let missing =
        server(|_, _| b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec());
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for (port, part) in [
        (html, "line 1"),
        (other, "none of its 1 metrics"),
        (endless, "more than 16 MiB"),
        (missing, "does not exist"),
        (closed, "onnection refused"),
    ] {
        let watcher = scrape(&format!("127.0.0.1:{port}"), Duration::from_millis(200));
        let seen = watch_until(vec![watcher], is_lost);
        let lost = seen.lost.first().unwrap_or_else(|| panic!("{part}: {seen:?}"));
        assert!(lost.why.contains(part) && lost.why.contains(&port.to_string()), "{lost:?}");
        assert!(seen.values.is_empty());
    }
}

#[test]
fn after_a_gap_the_next_rate_is_unknown_and_the_one_after_it_known() {
    // The third answer fails.
    let port =
        server(
            |count, _| {
                if count == 2 { Vec::new() } else { ok(&format!("node_forks_total {}\n", 100 * count)) }
            },
        );
    let forks = format!("127.0.0.1:{port}/host.forks");
    let watcher = scrape(&format!("127.0.0.1:{port}"), Duration::from_millis(150));
    let seen =
        watch_until(vec![watcher], |seen| seen.values.get(&forks).is_some_and(|values| values.len() >= 4));
    let values = &seen.values[&forks];
    assert!(values[0].is_nan() && values[1] > 0.0 && values[2].is_nan() && values[3] > 0.0, "{values:?}");
    assert_eq!(seen.lost.len(), 1);
}

/// `cargo test --release -p kelvin-observe --test scrape -- --ignored --nocapture cost`
#[test]
#[ignore = "measures"]
#[allow(clippy::print_stdout)]
fn cost_of_a_scrape() {
    let (_exporter, port) = node_exporter();
    let before = kelvin_observe::cpu_time();
    let watcher = scrape(&format!("127.0.0.1:{port}"), Duration::from_millis(100));
    let seen = watch_until(vec![watcher], |seen| seen.values.values().any(|values| values.len() >= 100));
    let used = kelvin_observe::cpu_time().saturating_sub(before).as_secs_f64();
    let looks = seen.values.values().map(Vec::len).max().unwrap_or(0);
    println!(
        "{} series, {looks} scrapes, CPU per scrape {:.0} µs",
        seen.values.len(),
        used / looks as f64 * 1e6
    );
}

/// A self-signed certificate, a server that has it, and a client whose system trusts it: the test runs itself again, as
/// the process for which the variable is set.
#[test]
fn https_is_trusted_as_the_system_trusts() {
    let directory = tempfile::tempdir().unwrap();
    let openssl = |arguments: &[&str]| {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn().expect("openssl is not installed: apt-get install openssl")
    };
    let made = openssl(&[
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "key",
        "-out",
        "certificate",
        "-subj",
        "/CN=db1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
    ]);
    assert!(Exporter(made).0.wait().unwrap().success());
    std::fs::write(directory.path().join("metrics"), ok("node_forks_total 5\n")).unwrap();
    let port = port::spare();
    let accept = port.to_string();
    let _server = Exporter(openssl(&[
        "s_server",
        "-accept",
        &accept,
        "-cert",
        "certificate",
        "-key",
        "key",
        "-HTTP",
        "-quiet",
    ]));
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < PATIENCE, "openssl s_server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let url = format!("https://127.0.0.1:{port}");
    let trusting = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "the_trusting_client"])
        .env("SSL_CERT_FILE", directory.path().join("certificate"))
        .env("KELVIN_TEST_URL", &url)
        .output()
        .unwrap();
    assert!(trusting.status.success(), "{}", String::from_utf8_lossy(&trusting.stdout));
    let seen = watch_until(vec![scrape(&url, Duration::from_millis(300))], is_lost);
    assert!(seen.values.is_empty() && seen.lost[0].why.contains("ertificate"), "{:?}", seen.lost);
}

#[test]
#[ignore = "a part of https_is_trusted_as_the_system_trusts"]
fn the_trusting_client() {
    let Ok(url) = std::env::var("KELVIN_TEST_URL") else { return };
    let has_forks = |seen: &Seen| seen.values.keys().any(|name| name.ends_with("host.forks"));
    watch_until(vec![scrape(&url, Duration::from_millis(300))], has_forks);
}
