//! Runs, their output and how they end.

use std::process::Stdio;

use serde_json::Value;

use super::support::{text, wait_until};
use super::{JOB, LONG, place};

#[test]
fn all_formats_agree_and_machines_get_nothing_else() {
    let place = place(JOB);
    let normal = place.expect(0, &["io", "job.fio", "--no-observe"]);
    for part in ["reader: (g=0): rw=randread", "read: IOPS=", "stored as run 1: kelvin show 1"] {
        assert!(normal.contains(part), "no {part} in\n{normal}");
    }
    let json = place.expect(0, &["io", "job.fio", "--no-observe", "--output-format=json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let job = &json["jobs"][0];
    assert_eq!((job["jobname"].as_str(), job["read"]["total_ios"].as_u64()), (Some("reader"), Some(100)));
    let terse = place.expect(0, &["io", "--minimal", "job.fio", "--no-observe"]);
    assert!(terse.starts_with("3;") && terse.lines().count() == 1, "{terse}");
    // With --output, standard output has no part of the result.
    let printed =
        place.expect(0, &["io", "job.fio", "--no-observe", "--output=out.json", "--output-format=json+"]);
    assert!(!printed.contains("IOPS"), "{printed}");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path("out.json")).unwrap()).unwrap();
    assert!(written["jobs"][0]["read"]["clat_ns"]["bins"].as_object().is_some_and(|bins| !bins.is_empty()));
    let explained = place.expect(0, &["io", "explain", "out.json"]);
    assert!(explained.contains("reader"), "{explained}");
}

#[test]
fn fios_words_make_the_same_run_as_its_file() {
    let place = place(JOB);
    let words = "io --no-observe --filename=data --size=1m --bs=4k --ioengine=psync --name=reader --rw=randread --number_ios=100";
    place.expect(0, &words.split(' ').collect::<Vec<_>>());
    let report = place.report("last");
    assert_eq!(report["points"][0]["headline_count"], 100);
    let shown = place.expect(0, &["io", "--showcmd", "job.fio"]);
    assert!(shown.starts_with("kelvin io ") && shown.contains("--name=reader"), "{shown}");
    assert_eq!(place.expect(0, &["io", "--parse-only", "job.fio"]), "");
    assert!(place.expect(0, &["io", "--cmdhelp=bs"]).contains("bs"));
    assert!(place.expect(0, &["io", "--enghelp"]).contains("io_uring"));
}

#[test]
fn bad_input_ends_with_fios_code_and_a_location() {
    let place = place("[a]\nfilename=data\nrw=sideways\n");
    let output = place.run(&["io", "job.fio"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("job.fio:3") && stderr.contains("sideways"), "{stderr}");
    for words in [
        &["io"][..],
        &["io", "none.fio"],
        &["io", "--name=a", "--no_such_option=1"],
        &["io", "--label"],
        &["io", "--readonly", "--name=a", "--filename=data", "--rw=write", "--size=4k"],
        &["io", "sweep", "--name=a", "--filename=data", "--size=4k"],
        &["io", "sweep", "--iodepth", "1,x", "--name=a", "--filename=data", "--size=4k"],
    ] {
        let output = place.run(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}\n{}", text(&output.stderr));
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{words:?}");
    }
    // Otherwise Kelvin's own exit codes apply.
    assert_eq!(place.run(&["io", "explain", "none.json"]).status.code(), Some(2));
    assert_eq!(place.run(&["run", "io", "--job", "job.fio"]).status.code(), Some(2));
    place.write("load.toml", "workload = \"io\"\n[load]\nusers = 3\n[io]\njob = \"[a]\\nsize=4k\"\n");
    let output = place.run(&["run", "load.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("[load] does not apply"), "{}", text(&output.stderr));
    assert_eq!(place.run(&["build", "load.toml"]).status.code(), Some(2));
}

#[test]
fn a_job_that_fails_counts_in_the_exit_code() {
    let place = place(
        "[global]\nsize=64k\nbs=4k\nioengine=psync\n[full]\nfilename=/dev/full\nrw=write\n[good]\nfilename=data\nrw=read\n",
    );
    let output = place.run(&["io", "job.fio", "--no-observe"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{}\n{stderr}", text(&output.stdout));
    assert!(stderr.contains("full"), "{stderr}");
    let report = place.report("last");
    assert_eq!(report["status"], "failed");
}

#[test]
fn a_signal_ends_the_run_and_keeps_its_results() {
    let place = place(LONG);
    let mut child = place
        .command(&["io", "job.fio", "--no-observe", "--output-format=json", "--eta=always"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The run is in progress once its first second is in the store.
    let store = place.store();
    wait_until("the first second is kept", || {
        rusqlite::Connection::open(&store)
            .and_then(|store| store.query_row("SELECT count(*) FROM second", [], |row| row.get::<_, i64>(0)))
            .is_ok_and(|seconds| seconds > 0)
    });
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(128));
    let mut out = String::new();
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut out).unwrap();
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(json["jobs"][0]["read"]["total_ios"].as_u64().unwrap() > 0, "{out}");
    let report = place.report("last");
    assert_eq!(report["status"], "interrupted");
    assert_eq!(report["open_loop"], true);
    assert_eq!(report["points"][0]["schedule"]["asked_per_second"], 200.0);
}

#[test]
fn holes_are_found_before_the_run_and_after_it() {
    let place = place("[hole]\nfilename=sparse\nsize=4m\nrw=randread\nnumber_ios=200\nioengine=psync\n");
    let file = std::fs::File::create(place.path("sparse")).unwrap();
    file.set_len(4 << 20).unwrap();
    let output = place.run(&["io", "job.fio", "--no-observe", "--notes"]);
    let (out, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("before the run") && stderr.contains("hole"), "{stderr}");
    assert!(out.contains("kelvin: findings") && out.contains("hole"), "{out}");
    let report = place.report("last");
    let ids: Vec<&str> =
        report["findings"].as_array().unwrap().iter().filter_map(|f| f["id"].as_str()).collect();
    assert!(ids.iter().any(|id| id.starts_with("io-")), "{ids:?}");
}

/// Remarks about a file describe it as the jobs find it, after layout.
#[test]
fn files_are_looked_at_after_they_are_laid_out() {
    let place = place("[made]\nfilename=fresh\nsize=2m\nrw=randread\nnumber_ios=100\nioengine=psync\n");
    let output = place.run(&["io", "job.fio", "--no-observe", "--json-events"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let events: Vec<Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts = events.iter().find(|event| event["what"] == "facts").expect("the facts of the run");
    let target = &facts["body"]["targets"][0];
    assert_eq!(target["kind"], "file", "{target}");
    assert_eq!(target["size"], 2 << 20, "{target}");
}
