//! The endpoint's answers to its clients.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use kelvin_measure::Sink;
use kelvin_measure::event::{Event, Phase, Status};
use kelvin_measure::observation::{Observation, Reading};
use kelvin_serve::MetricsEndpoint;
use support::{Run, ask, body, dashboard, get, queries};

#[test]
fn the_figures_are_those_of_the_events() {
    let mut run = Run::start();
    run.second();
    run.second();
    for (sample, expected) in [
        (r#"kelvin_run_info{run="20261121-\"a\\b\"",workload="tproc-c",headline="NOPM"}"#, 1.0),
        (r#"kelvin_run_phase{phase="measure"}"#, 1.0),
        (r#"kelvin_run_phase{phase="ramp-up"}"#, 0.0),
        ("kelvin_users", 4.0),
        (r#"kelvin_headline_throughput{headline="NOPM"}"#, 99.0 * 60.0),
        (r#"kelvin_transactions_total{type="New-Order",outcome="committed",part="measured"}"#, 198.0),
        (r#"kelvin_transactions_total{type="New-Order",outcome="rolled_back",part="measured"}"#, 2.0),
        (r#"kelvin_transactions_total{type="Payment",outcome="failed",part="measured"}"#, 2.0),
        (r#"kelvin_transaction_retries_total{type="Payment",part="measured"}"#, 4.0),
        (r#"kelvin_errors_total{type="New-Order",class="deadlock",retried="true"}"#, 4.0),
        ("kelvin_arrivals_due_total", 220.0),
        ("kelvin_arrivals_refused_total", 6.0),
        ("kelvin_arrivals_waiting", 7.0),
        (r#"kelvin_transaction_service_seconds_count{type="New-Order",part="measured"}"#, 200.0),
        (r#"kelvin_transaction_service_seconds_bucket{le="0.002",type="New-Order",part="measured"}"#, 0.0),
        (r#"kelvin_transaction_service_seconds_bucket{le="0.003",type="New-Order",part="measured"}"#, 200.0),
        (r#"kelvin_transaction_service_seconds_bucket{le="+Inf",type="New-Order",part="measured"}"#, 200.0),
        (r#"kelvin_transaction_service_seconds_sum{type="New-Order",part="measured"}"#, 0.6),
        (r#"kelvin_transaction_response_seconds_bucket{le="0.005",type="New-Order",part="measured"}"#, 200.0),
        (
            r#"kelvin_statement_seconds_count{type="New-Order",statement="select\nitems",part="measured"}"#,
            200.0,
        ),
        (r#"kelvin_start_lag_seconds_count{part="measured"}"#, 200.0),
        // Two statements with the same wait.
        (r#"kelvin_sessions{backend="client backend",class="IO",event="WALSync"}"#, 1.5),
        (r#"kelvin_sessions{backend="client backend",class="CPU",event=""}"#, 2.0),
        (r#"kelvin_occurrences_total{kind="checkpoint"}"#, 1.0),
        (r#"kelvin_occurrences_going_on{kind="checkpoint"}"#, 1.0),
    ] {
        let value = run.value(sample);
        assert!((value - expected).abs() < 1e-9, "{sample}: {value} and not {expected}");
    }
    // The window's count and its elapsed time replace whole seconds.
    run.window();
    assert!((run.value(r#"kelvin_headline_throughput{headline="NOPM"}"#) - 200.0 * 60.0 / 2.5).abs() < 1e-9);
    run.sink.event(&Event::Finished { status: Status::Complete, error: None }).unwrap();
    assert_eq!(run.value(r#"kelvin_run_status{status="complete"}"#), 1.0);
    assert_eq!(run.value(r#"kelvin_run_phase{phase="measure"}"#), 0.0);
}

#[test]
fn observations_have_base_units_and_unknown_ones_are_omitted() {
    let mut run = Run::start();
    run.second();
    let page = run.scrape();
    assert!(page.contains("# UNIT kelvin_host_disk_written_bytes_per_second bytes_per_second\n"), "{page}");
    assert!(page.contains("# TYPE kelvin_sqlite_wal_bytes gauge\n"), "{page}");
    // No duplicate sample, which Prometheus would refuse.
    let samples: Vec<&str> =
        page.lines().filter(|l| !l.starts_with('#')).map(|l| l.rsplit_once(' ').unwrap().0).collect();
    assert_eq!(samples.len(), samples.iter().collect::<BTreeSet<_>>().len());
    // No observer's metric is missing because another has its name.
    let observed = samples.iter().filter(|s| s.contains("host=\"local\"")).count();
    let unknown = f32::NAN;
    assert_eq!(observed, run.metrics);
    assert!(observed > 150, "{observed}");
    run.sink
        .event(&Event::Observed(Observation::Reading(Reading { at: 0, first: 0, values: vec![unknown; 50] })))
        .unwrap();
    let fewer = run.scrape().lines().filter(|s| s.contains("host=\"local\"")).count();
    assert_eq!(fewer, observed - 50);
}

#[test]
fn only_get_metrics_is_answered_and_in_bounded_time() {
    let run = Run::start();
    let address = run.address();
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("GET /metricsx HTTP/1.1\r\n\r\n", "HTTP/1.1 404"),
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 405"),
        ("nonsense\r\n\r\n", "HTTP/1.1 400"),
    ] {
        let answer = ask(address, request);
        assert!(answer.starts_with(expected), "{request}: {answer}");
    }
    // Without a request for OpenMetrics, the older format.
    let answer = get(address, "/metrics", "");
    assert!(answer.contains("text/plain; version=0.0.4") && !answer.contains("# EOF"), "{answer}");
    assert!(body(&answer).contains("# TYPE kelvin_transactions_total counter"));

    let mut endless = TcpStream::connect(address).unwrap();
    let began = Instant::now();
    let mut answer = String::new();
    // Data sent after the answer may be refused, and the answer lost with them.
    let _sent = endless.write_all(format!("GET /metrics HTTP/1.1\r\nX: {}", "x".repeat(9000)).as_bytes());
    endless.read_to_string(&mut answer).unwrap_or_default();
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let mut silent = TcpStream::connect(address).unwrap();
    answer.clear();
    silent.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    assert!(began.elapsed() < Duration::from_mins(1));
    assert!(run.scrape().ends_with("# EOF\n"));
}

#[test]
fn an_address_is_released_and_one_in_use_is_reported() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = MetricsEndpoint::start(address).unwrap_err().to_string();
    assert_eq!(error, format!("cannot serve metrics at {address}: another program is listening there"));
    drop(taken);
    let (endpoint, sink) = MetricsEndpoint::start(address).unwrap();
    drop(endpoint);
    drop(sink);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let mut run = Run::start();
    run.second();
    let page = run.scrape();
    let exported: BTreeSet<&str> = page
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(['{', ' ']).next().unwrap())
        .collect();
    for query in queries() {
        let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let mut names = query.split(word).filter(|word| word.starts_with("kelvin_")).peekable();
        assert!(names.peek().is_some(), "{query}");
        for name in names {
            assert!(exported.contains(name), "{name} of {query} is not exported");
        }
    }
}

#[test]
fn the_dashboard_is_put_together_as_grafana_wants_it() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["uid"].is_string());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let variables: BTreeSet<&str> =
        variables.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    assert_eq!(variables, BTreeSet::from(["datasource", "instance", "job"]));
    let (mut ids, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: its id is taken");
        let at = |field: &str| panel["gridPos"][field].as_u64().unwrap();
        assert!(at("w") > 0 && at("x") + at("w") <= 24, "{title}: wider than the page");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{title} lies over another panel");
            }
        }
        if panel["type"] == "row" {
            continue;
        }
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title}: figures without a unit");
        let targets = panel["targets"].as_array().unwrap();
        let letters: BTreeSet<&str> =
            targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert!(!targets.is_empty() && letters.len() == targets.len(), "{title}");
        assert!(targets.iter().all(|target| target["legendFormat"].as_str().unwrap() != ""), "{title}");
    }
}

mod machine {
    use super::*;

    #[test]
    #[ignore = "judges the machine: cargo xtask machine"]
    fn a_run_never_waits_long_for_a_scrape() {
        let mut run = Run::start();
        run.second();
        let address = run.address();
        std::thread::scope(|scope| {
            let scraper = scope.spawn(|| (0..50).map(|_| get(address, "/metrics", "").len()).min());
            let mut longest = Duration::ZERO;
            while !scraper.is_finished() {
                let began = Instant::now();
                let phase = Event::Phase { point: 0, phase: Phase::Measure, at: 0, users: 4, planned: None };
                run.sink.event(&phase).unwrap();
                longest = longest.max(began.elapsed());
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(scraper.join().unwrap() > Some(1000));
            // Generous, since the machine may be shared.
            assert!(longest < Duration::from_millis(100), "{longest:?}");
        });
    }
}
