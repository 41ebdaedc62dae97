//! Squeezing from the command line. Requires root, and control groups that can be created.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use support::{Place, Server, text, wait_until};

/// The existing control groups of this process's squeezes.
fn groups(process: u32) -> Vec<PathBuf> {
    let name = format!("kelvin-squeeze-{process}-");
    let mut found = Vec::new();
    let mut look = vec![PathBuf::from("/sys/fs/cgroup")];
    while let Some(directory) = look.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(&name) {
                    found.push(entry.path());
                }
                look.push(entry.path());
            }
        }
    }
    found
}

/// Whether the group's CPU time is limited.
fn is_cut(group: &Path) -> bool {
    let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    read("cpu.max").is_some_and(|bound| !bound.starts_with("max"))
        || read("cpu.cfs_quota_us").is_some_and(|quota| quota.trim() != "-1")
}

fn group_of(process: u32) -> String {
    std::fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap()
}

#[test]
fn an_embedded_database_is_squeezed_and_the_outcome_is_kept() {
    let place = Place::new();
    let shown = place.expect(0, &["squeeze", "tproc-c", "--ramp-up", "1s", "--pairs", "2", "--slice", "2s"]);
    let answer = shown.lines().position(|line| line.starts_with("server CPU: elasticity "));
    assert!(answer == Some(1) && shown.lines().count() <= 24, "{shown}");
    let connection = rusqlite::Connection::open(place.store()).unwrap();
    let body: String =
        connection.query_row("SELECT body FROM event WHERE name = 'squeeze'", [], |row| row.get(0)).unwrap();
    let squeeze: Value = serde_json::from_str(&body).unwrap();
    let slices = squeeze["slices"].as_array().unwrap();
    let cut = |slice: &&Value| slice["resource"] == "server CPU" && slice["bound"].is_string();
    assert_eq!(slices.iter().filter(cut).count(), 2, "{squeeze}");
    assert!(slices.iter().all(|slice| slice["rate"].as_f64().is_some_and(|rate| rate > 0.0)), "{squeeze}");
    let all = place.expect(0, &["show"]);
    for word in [
        "resources were reduced during this run",
        "client CPU was not reduced: the database is in this process",
    ] {
        assert!(all.contains(word), "{word}\n{all}");
    }
    // The available means depend on the machine: control groups need root and a writable hierarchy.
    let means = squeeze["resources"][0]["means"].as_str().unwrap();
    assert!(["control group", "CPU affinity"].contains(&means), "{means}");
}

#[test]
fn without_control_groups_whole_cpus_are_taken_away_and_the_outcome_is_a_part_of_the_run() {
    let place = Place::new();
    let common = ["--ramp-up", "1s", "--pairs", "2", "--slice", "2s", "--cut", "50"];
    let squeeze = ["squeeze", "tproc-c", "--cpu-by", "affinity", "--verbose"];
    let shown = place.expect(0, &[&squeeze[..], &common[..]].concat());
    let cpus = rustix::thread::sched_getaffinity(None).unwrap().count();
    let share = format!("{} of {cpus} CPUs taken away", (cpus as f64 / 2.0).round());
    for word in ["Squeeze: response of the throughput to 50 % less", "by CPU affinity", &share] {
        assert!(unbroken(&shown).contains(word), "{word}\n{shown}");
    }
    assert!(unbroken(&place.expect(0, &["show"])).contains("server CPU: by CPU affinity"));
    let report: Value = serde_json::from_str(&place.expect(0, &["report", "--json"])).unwrap();
    let one = &report["squeeze"]["resources"][0];
    assert_eq!((&one["resource"], &one["means"]), (&"server CPU".into(), &"CPU affinity".into()), "{one}");
    assert!(one["low"].as_f64() < one["high"].as_f64() && one["pairs"] == 2, "{one}");
    assert!(place.expect(0, &["runs"]).contains("squeezed"));
}

/// A text without its line ends.
fn unbroken(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Number of stopped processes of a server.
fn stopped(server: u32) -> usize {
    let children = std::fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap();
    let is_stopped = |process: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    };
    children.split_ascii_whitespace().filter(|process| is_stopped(process)).count()
}

#[test]
fn a_server_that_was_stopped_for_a_rate_cap_goes_on_after_a_kill() {
    let server = Server::start();
    let place = Place::new();
    let url = server.url();
    place.expect(0, &["build", "tproc-c", "--target", &url, "--no-check"]);
    let mut child = place
        .command(&["squeeze", "tproc-c", "--target", &url, "--ramp-up", "0s", "--no-build", "--users", "4"])
        .args(["--cpu-by", "rate-cap", "--slice", "2s"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let process = server.instance.pid();
    wait_until("its processes are stopped", || stopped(process) > 2);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("they go on", || stopped(process) == 0);
    // A process that was stopped by then would stay stopped.
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(stopped(process), 0);
    place.expect(0, &["check", "tproc-c", "--target", &url]);
}

#[test]
fn a_server_goes_back_where_it_was_even_after_a_kill() {
    let server = Server::start();
    let place = Place::new();
    let url = server.url();
    place.expect(0, &["build", "tproc-c", "--target", &url, "--no-check"]);
    let before = group_of(server.instance.pid());
    for (signal, code) in [("-INT", Some(130)), ("-KILL", None)] {
        let mut child = place
            .command(&[
                "squeeze",
                "tproc-c",
                "--target",
                &url,
                "--ramp-up",
                "0s",
                "--no-build",
                "--slice",
                "2s",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let process = child.id();
        let moved = || group_of(server.instance.pid()).contains("kelvin-squeeze-");
        wait_until("the server is in its group", moved);
        wait_until("its CPU is cut", || groups(process).iter().any(|group| is_cut(group)));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(
            std::process::Command::new("kill")
                .args([signal, &process.to_string()])
                .status()
                .unwrap()
                .success()
        );
        let status = child.wait().unwrap();
        assert_eq!(status.code(), code, "{status}");
        wait_until("its groups are gone", || groups(process).is_empty());
        assert_eq!(group_of(server.instance.pid()), before, "after {signal}");
    }
}

#[test]
fn what_cannot_be_squeezed_is_refused() {
    let place = Place::new();
    for args in [
        &["squeeze", "tproc-c", "--rate", "100"][..],
        &["squeeze", "tproc-c", "--users", "1,2"],
        &["squeeze", "tproc-c", "--slice", "1500ms"],
        &["squeeze", "tproc-c", "--cut", "90"],
    ] {
        let output = place.run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{}", text(&output.stderr));
        assert!(!output.stderr.is_empty());
    }
}
