//! `kelvin vioperf` from end to end, in a few seconds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::Path;
use std::process::Stdio;

use support::{Place, text, wait_until};

/// Flags for a small test: 2 MiB in files of 1 MiB.
const SMALL: [&str; 8] =
    ["--working-set", "2m", "--max-buffer-size", "64k", "--thread-count", "2", "--log-file", "log.json"];

fn vioperf<'a>(more: &[&'a str]) -> Vec<&'a str> {
    ["vioperf"].into_iter().chain(SMALL).chain(more.iter().copied()).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Replaces numbers by N, combines blanks, and removes lines that are then duplicates.
fn shape(shown: &str, place: &Place) -> String {
    let shown = shown.replace(&*place.directory().to_string_lossy(), "PLACE");
    let mut lines: Vec<String> = Vec::new();
    for line in shown.lines() {
        let mut out = String::new();
        for word in line.split_whitespace() {
            let figure = |part: &str| !part.is_empty() && part.parse::<f64>().is_ok();
            let word = if word.split('+').all(figure) {
                word.split('+').map(|_| "N").collect::<Vec<_>>().join("+")
            } else {
                word.into()
            };
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(&word);
        }
        if lines.last() != Some(&out) {
            lines.push(out);
        }
    }
    lines.join("\n")
}

#[test]
fn the_help_teaches() {
    let place = Place::new();
    let output = place.command(&["vioperf", "--help"]).env("COLUMNS", "100").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    insta::assert_snapshot!(shown);
}

#[test]
fn four_tests_a_table_a_log_and_a_verdict() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    place.write("data/canary", "sings");
    let output = place.run(&vioperf(&["--duration", "1600ms", "--log-interval", "100ms", "data"]));
    let shown = text(&output.stdout);
    let verdict = shown.lines().last().unwrap();
    // The speed of the storage is unknown; exit code and text must agree.
    let expected = i32::from(!verdict.starts_with("PASS: "));
    assert_eq!(output.status.code(), Some(expected), "{shown}\n{}", text(&output.stderr));
    assert!(expected == 0 || verdict.starts_with("FAIL: "), "{shown}");
    let table: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.starts_with("test"))
        .take_while(|line| !line.is_empty())
        .collect();
    insta::assert_snapshot!(shape(&table.join("\n"), &place));
    assert_eq!(names(&place.path("data")), ["canary"]);
    assert_eq!(std::fs::read(place.path("data/canary")).unwrap(), b"sings");

    let log: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.path("log.json")).unwrap()).unwrap();
    let entries = log.as_array().unwrap();
    let (result, rows) = entries.split_last().unwrap();
    assert_eq!(rows.len(), table.len() - 3);
    for (name, test) in [("Write", 0), ("SkipRead", 3)] {
        assert_eq!(result["result"]["tests"][test]["test"], name);
    }
    assert!(rows[0]["counter_value"]["write_mb_s"].as_f64().unwrap() > 0.0);
    assert_eq!(rows[0]["directory"], "data");
    assert!(result["result"]["extend"]["bytes"].as_u64().unwrap() <= 2 << 20);
    assert!(result["result"]["notes"].is_array());
}

#[test]
fn a_condensed_log_is_a_line_an_entry_and_a_verdict_can_be_asked_for() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    let args = ["--duration", "1s", "--condense-log", "--disable-crc", "--disable-direct-io", "-q", "data"];
    let output = place.run(&vioperf(&args));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", text(&output.stderr));
    let log = std::fs::read_to_string(place.path("log.json")).unwrap();
    let entries: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = &entries.last().unwrap()["result"];
    assert_eq!(result["plan"]["crc"], false);
    assert_eq!(result["costs"][0]["crc_us_per_mb"], serde_json::Value::Null);
    assert!(names(&place.path("data")).is_empty());
    assert!(!text(&output.stdout).contains("directory"));
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_leaves_no_file() {
    let place = Place::new();
    std::fs::create_dir(place.path("data")).unwrap();
    let args = vioperf(&["--duration", "1h", "--log-interval", "100ms", "--condense-log", "data"]);
    let child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("a row is in the log", || {
        std::fs::read_to_string(place.path("log.json")).is_ok_and(|log| log.lines().count() > 1)
    });
    assert_eq!(names(&place.path("data")).len(), 2);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.ends_with("Interrupted: not all tests completed, so there is no verdict\n"), "{shown}");
    assert!(shown.contains("extending"), "{shown}");
    assert!(names(&place.path("data")).is_empty());
}

#[test]
fn what_cannot_be_is_refused_with_code_2() {
    let place = Place::new();
    let refusal = |args: &[&str]| {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        text(&output.stderr)
    };
    assert!(refusal(&vioperf(&["none"])).contains("none cannot be used: No such file or directory"));
    assert!(
        refusal(&vioperf(&["--duration", "10ms", "."]))
            .contains("a --duration of 10ms is not between 1s and 24h")
    );
    assert!(refusal(&["vioperf", "--max-buffer-size", "5000", "."]).contains("not a multiple of 4096"));
    assert!(refusal(&["vioperf", "--working-set", "1x", "."]).contains("is not a size"));
    assert!(refusal(&["vioperf"]).contains("<DIR>"));
    assert!(
        refusal(&["vioperf", "--log-file", "/no/such/log", "."])
            .contains("cannot create the log /no/such/log")
    );
    assert!(names(place.directory()).iter().all(|name| !name.starts_with(".kelvin-vioperf")));
}
