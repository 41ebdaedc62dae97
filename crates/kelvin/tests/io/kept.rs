//! Stored runs.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::support::{text, undisturbed, wait_for_a_second};
use super::{JOB, LONG, place};

#[test]
fn a_run_is_kept_and_known_to_every_command() {
    let run = || {
        let place = place(JOB);
        place.expect(0, &["io", "job.fio", "--no-observe", "--label", "one", "--branch", "main"]);
        place
    };
    let (place, report) = undisturbed(run, |place| place.report("one"));
    place.expect(0, &["run", "io", "--job", "job.fio", "--set", "bs=8k", "--no-observe", "--label", "two"]);
    let point = &report["points"][0];
    assert_eq!((report["workload"].as_str(), report["valid"].as_bool()), (Some("io"), Some(true)));
    assert_eq!((report["headline"].as_str(), point["headline_count"].as_u64()), (Some("IOPS"), Some(100)));
    let target = &report["jobs"][0]["targets"][0];
    assert_eq!((target["ios"].as_u64(), target["bytes"].as_u64()), (Some(100), Some(100 * 4096)));
    assert_eq!(place.report("two")["jobs"][0]["targets"][0]["bytes"], 100 * 8192);
    assert!(report["spec_toml"].as_str().unwrap().contains("number_ios=100"));
    let shown = place.expect(0, &["show", "one"]);
    for part in
        ["IOPS", "job reader: random reads of 4 KiB, through the page cache", "closed loop", "counted"]
    {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let compared = place.expect(0, &["compare", "one", "two"]);
    assert!(
        compared.contains("IOPS") && compared.contains("reader") | compared.contains("read"),
        "{compared}"
    );
    assert!(place.expect(0, &["runs"]).contains("one"));
    assert!(place.expect(0, &["history", "main"]).contains("IOPS"));
    place.expect(0, &["report", "one", "--html", "--output", "page.html"]);
    // The specification alone repeats the run.
    let spec = place.expect(0, &["io", "job.fio", "--print-spec"]);
    place.write("run.toml", spec);
    std::fs::remove_file(place.path("job.fio")).unwrap();
    place.expect(0, &["run", "run.toml", "--no-observe"]);
    assert_eq!(place.report("last")["points"][0]["headline_count"], 100);
    place.expect(
        0,
        &["io", "--no-store", "--name=a", "--filename=data", "--rw=read", "--size=64k", "--no-observe"],
    );
    assert_eq!(place.report("last")["run"], 3, "that one was not kept");
}

#[test]
fn runs_repeat_and_compare() {
    let place = place(JOB);
    let shown = place.expect(0, &["io", "job.fio", "--no-observe", "--repeat", "2", "--label", "twice"]);
    assert!(shown.contains("group 1 \"twice\"") && shown.contains("IOPS"), "{shown}");
    // Each block uses different offsets.
    assert_eq!(
        (place.report("1")["seed"].clone(), place.report("2")["seed"].clone()),
        ("1".into(), "2".into())
    );
    place.write("a.toml", place.expect(0, &["io", "job.fio", "--print-spec", "--no-observe"]));
    place.write(
        "b.toml",
        place
            .expect(0, &["run", "io", "--job", "job.fio", "--set", "bs=16k", "--print-spec", "--no-observe"]),
    );
    let shown = place.expect(0, &["ab", "a.toml", "b.toml", "--blocks", "2", "--no-control"]);
    assert!(shown.contains("IOPS"), "{shown}");
}

/// Stored values of I/O jobs are compared with their sums, and the maximum time with the one in fio's format.
#[test]
fn a_figure_that_changed_in_the_store_voids_the_run() {
    let place = place(JOB);
    let run = || place.expect(0, &["io", "job.fio", "--no-observe", "--output-format=json"]);
    let (json, report) = undisturbed(run, |_| place.report("last"));
    let json: Value = serde_json::from_str(&json).unwrap();
    let longest = json["jobs"][0]["read"]["clat_ns"]["max"].as_u64().unwrap();
    assert_eq!(report["state"], "counted");
    // The text has a fraction, which may lose its last digit.
    let stored = report["points"][0]["latency_all"]["max_us"].as_f64().unwrap();
    assert_eq!((stored * 1e3).round() as u64, longest);
    let store = rusqlite::Connection::open(place.store()).unwrap();
    for (column, name) in
        [("latency_sum", "latency in nanoseconds"), ("latency_max", "longest latency in nanoseconds")]
    {
        let change =
            |by: &str| store.execute(&format!("UPDATE second SET {column} = {column} {by}"), []).unwrap();
        change("+ 1");
        let report = place.report("last");
        let reason = report["reasons"][0].as_str().unwrap_or_default();
        assert!(
            report["state"] == "void" && reason.contains(&format!("collector's sum: {name}")),
            "{reason}"
        );
        change("- 1");
    }
    assert_eq!(place.report("last")["state"], "counted");
}

#[test]
fn trial_d3_jobs_that_were_stopped_within_their_window_are_void_and_say_so() {
    let place = place(&LONG.replace("runtime=60", "runtime=6"));
    let child = place.command(&["io", "job.fio", "--no-observe"]).stdout(Stdio::piped()).spawn().unwrap();
    wait_for_a_second(&place);
    let signal = |name: &str| {
        let sent = Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    };
    signal("STOP");
    std::thread::sleep(Duration::from_millis(700));
    signal("CONT");
    let shown = text(&child.wait_with_output().unwrap().stdout);
    assert!(shown.contains("void") && shown.contains("never held up"), "{shown}");
    let report = place.report("last");
    let reasons = report["reasons"].to_string();
    assert!(report["state"] == "void" && reasons.contains("it was stopped"), "{reasons}");
}

#[test]
fn a_store_that_is_deleted_ends_the_run_and_is_rescued() {
    let place = place(LONG);
    let child = place
        .command(&["io", "job.fio", "--no-observe"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_a_second(&place);
    std::fs::remove_file(place.store()).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = text(&output.stderr);
    assert!(!output.status.success() && stderr.contains("was deleted during the run"), "{stderr}");
    let rescued = format!("{}.rescued", place.store().display());
    let listed = place.expect(0, &["--store", &rescued, "runs"]);
    assert!(listed.contains("partial"), "{listed}");
}

#[test]
fn findings_of_runs_without_observation_are_listed() {
    let place = place("[hole]\nfilename=sparse\nsize=4m\nrw=randread\nnumber_ios=200\nioengine=psync\n");
    std::fs::File::create(place.path("sparse")).unwrap().set_len(4 << 20).unwrap();
    place.expect(0, &["-q", "io", "job.fio", "--no-observe"]);
    let listed = place.expect(0, &["runs"]);
    assert!(listed.contains("io-holes") || listed.contains(" red"), "{listed}");
}
