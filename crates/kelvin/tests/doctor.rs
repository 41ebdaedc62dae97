//! `kelvin doctor` and `kelvin observe`, as a user runs them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::Value;
use support::{Place, Server, text};

#[test]
fn two_doctors_are_compared_and_both_kept() {
    let place = Place::new();
    let first = place.expect(0, &["doctor", "--quiet"]);
    assert!(first.starts_with("Doctor report 1 of ") && first.contains("nothing to compare with"), "{first}");
    let second: Value =
        serde_json::from_str(&place.expect(0, &["doctor", "--json", "--target", "sqlite"])).unwrap();
    assert_eq!((&second["number"], &second["against"]["number"]), (&2.into(), &1.into()));
    let figure = |name: &str| {
        let all = second["figures"].as_array().unwrap();
        all.iter().find(|figure| figure["name"] == name).and_then(|figure| figure["value"].as_f64()).unwrap()
    };
    assert!(figure("processor.single-thread") > 1.0 && figure("database.round-trip.p50") > 0.01, "{second}");
    let lines = second["against"]["lines"].as_array().unwrap();
    // Every machine has a processor; whether memory is measured depends on its caches and its free memory.
    assert!(lines.iter().any(|line| line["name"] == "processor.single-thread"), "{second}");
    let third = place.expect(0, &["doctor", "--quiet", "--against", "1", "--disk", "."]);
    assert!(
        third.contains("\"was\" is doctor report 1,") && third.contains("disk, random 8 kB read p50"),
        "{third}"
    );
    let left: Vec<_> =
        std::fs::read_dir(place.directory()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("kelvin.db")), "{left:?}");
}

#[test]
fn a_server_is_looked_at_from_its_settings_to_its_disk() {
    let server = Server::start();
    let place = Place::new();
    let shown = place.expect(0, &["doctor", "--quiet", "--target", &server.url()]);
    for word in ["round trip of select 1 p50", "synchronous_commit", "fdatasync of 8 kB p50", "PostgreSQL 1"]
    {
        assert!(shown.contains(word), "{word}\n{shown}");
    }
}

#[test]
fn watching_ends_with_a_summary_and_keeps_its_events() {
    let place = Place::new();
    let file = place.path("seen.jsonl");
    let args = ["observe", "--duration", "2s", "--interval", "500ms", "--output", file.to_str().unwrap()];
    let shown = place.expect(0, &args);
    let lines = shown.lines().skip(1).take_while(|line| !line.is_empty()).count();
    assert!((1..=5).contains(&lines), "{shown}");
    // On a busy machine the last sample is late.
    let over: f64 = shown.split_once("Over ").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!(over >= 2.0, "{shown}");
    for word in ["busy, of all CPUs", "w_await", "rxkB/s", "Not observed"] {
        assert!(shown.contains(word), "{word}\n{shown}");
    }
    let events: Vec<Value> = std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(events.len() >= 5 && events.iter().all(|event| event["event"] == "observed"), "{}", events[0]);
    let printed = place.expect(0, &["observe", "--duration", "500ms", "--interval", "100ms", "--json"]);
    assert!(printed.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{printed}");
    place.expect(2, &["observe", "--interval", "1ms"]);
}

#[test]
fn what_cannot_be_is_said() {
    let place = Place::new();
    let output = place.run(&["doctor", "--against", "7"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("there is no doctor report 7 in "), "{}", text(&output.stderr));
    let output = place.run(&["doctor", "--target", "postgres://nobody@127.0.0.1:1/none"]);
    assert_eq!(output.status.code(), Some(2));
    let shown = place.expect(0, &["doctor", "--quiet", "--disk", "/no/such/directory"]);
    assert!(shown.contains("Not measured") && shown.contains("/no/such/directory"), "{shown}");
}
