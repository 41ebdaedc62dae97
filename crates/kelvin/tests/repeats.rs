//! Repeated runs and comparisons on embedded SQLite, as a user makes them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::process::Stdio;

use serde_json::Value;
use support::{Place, text, wait_until};

/// The query needs no data and takes some tenths of a millisecond; with a shorter one, only Kelvin's own work would be
/// measured.
const QUERY: &str = "with recursive c(x) as (select 1 union all select x + 1 from c where x < 1000) select count(*) from c;\n";

fn last_line(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn repeated_runs_are_summed_up_the_same_way_at_any_time() {
    let place = Place::new();
    place.write("own.sql", QUERY);
    let run = ["run", "script", "own.sql", "--target", "sqlite:own.db", "--users", "1", "--no-observe"];
    let often = ["--ramp-up", "0s", "--duration", "1s", "--repeat", "2", "--label", "twice"];
    let shown = place.expect(0, &[&run[..], &often[..]].concat());
    for part in
        ["group 1 \"twice\"", "tps", "order", "reset   none: ", "--reset auto", "statistically sound: no, "]
    {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let again = place.expect(0, &["groups", "1"]);
    assert!(shown.starts_with(&again), "{again}\n{shown}");
    assert_eq!(place.expect(0, &["show", "group:1"]), again);
    let listed = place.expect(0, &["groups"]);
    assert!(listed.contains("repeat") && listed.contains("\"twice\""), "{listed}");
    let json = last_line(&place.expect(0, &["groups", "1", "--json"]));
    let runs = json["summary"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    // The second run has other random values, and the report of each is available.
    assert_eq!(
        (place.report("1")["seed"].clone(), place.report("2")["seed"].clone()),
        ("1".into(), "2".into())
    );
    assert_eq!((&json["plan"]["runs"], &json["reset"]), (&2.into(), &"none".into()));

    // A goal that cannot be reached by then: the output is the events and one summary line, and the exit code reports
    // failure.
    let until = ["--transactions", "50", "--until", "ci<0.01%", "--max-runs", "7", "--json"];
    let out = place.expect(1, &[&run[..], &until[..]].concat());
    let summary = last_line(&out);
    assert_eq!(
        (summary["event"].as_str(), summary["summary"]["counted"].as_u64()),
        (Some("repeats"), Some(7))
    );
    assert_eq!(out.lines().filter(|line| line.contains("\"event\":\"finished\"")).count(), 7);
    assert_eq!(place.expect(0, &["groups", "--json"]).lines().count(), 2);
}

#[test]
fn sides_run_in_blocks_with_a_control() {
    let place = Place::new();
    place.write(
        "burn.sql",
        "with recursive c(x) as (select 1 union all select x + 1 from c where x < :n) select count(*) from c;\n",
    );
    let spec = |n: &str| {
        let define = format!("n={n}");
        let run = ["run", "script", "burn.sql", "--target", "sqlite:own.db", "--users", "1", "--no-observe"];
        place.expect(0, &[&run[..], &["-D", &define, "--transactions", "100", "--print-spec"]].concat())
    };
    place.write("a.toml", spec("1000"));
    place.write("b.toml", spec("10000"));
    let shown = place.expect(0, &["ab", "a.toml", "b.toml", "--name", "ten times"]);
    for part in [
        "group 1 \"ten times\": A/B",
        "what was changed",
        "script.define.n",
        "control",
        "changed: B's tps is",
    ] {
        assert!(shown.contains(part), "no {part} in\n{shown}");
    }
    let again = place.expect(0, &["groups", "1"]);
    assert!(shown.starts_with(&again), "{again}\n{shown}");
    let summary = &last_line(&place.expect(0, &["groups", "1", "--json"]))["summary"];
    assert_eq!(summary["comparisons"][0]["verdict"], "changed");
    assert_eq!(summary["blocks"].as_array().unwrap().len(), 6);
    assert!(summary["comparisons"][0]["ratio"].as_f64().unwrap() < 0.7, "{summary}");
    let first = &summary["blocks"][0]["runs"];
    let seeds: Vec<Value> = (0..3).map(|i| place.report(&first[i].to_string())["seed"].clone()).collect();
    assert!(seeds.iter().all(|seed| *seed == seeds[0]), "{seeds:?}");
}

#[test]
fn ctrl_c_sums_up_what_there_is() {
    let place = Place::new();
    place.write("own.sql", QUERY);
    let run = ["run", "script", "own.sql", "--target", "sqlite:own.db", "--users", "1", "--ramp-up", "0s"];
    let child = place
        .command(&[&run[..], &["--duration", "1s", "--repeat", "60", "--no-observe"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the second run is there", || {
        text(&place.run(&["runs", "--json"]).stdout).lines().count() >= 2
    });
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(130), "{shown}");
    assert!(shown.contains("statistically sound: no") && shown.contains("interrupted"), "{shown}");
}

#[test]
fn what_cannot_be_repeated_or_compared_is_refused() {
    let place = Place::new();
    place.write("own.sql", QUERY);
    for (name, flags) in [
        ("a.toml", ["run", "tproc-c", "--print-spec", "--users", "2"]),
        ("b.toml", ["run", "tproc-c", "--print-spec", "--users", "1,2"]),
        ("p.toml", ["run", "pgbench", "--print-spec", "--users", "2"]),
        ("r.toml", ["run", "tproc-c", "--print-spec", "--rate", "10"]),
    ] {
        place.write(name, place.expect(0, &flags));
    }
    place.write("shell.toml", "workload = \"pgbench\"\n[pgbench]\nallow-shell = true\n");
    place.write("broken.toml", "workload = \"tproc-c\"\nusers = 3\n");
    let stderr = text(&place.run(&["ab", "a.toml", "broken.toml"]).stderr);
    assert!(stderr.contains("broken.toml: TOML parse error at line 2, column 1"), "{stderr}");
    place.expect(0, &["run", "script", "own.sql", "--target", "sqlite:own.db", "--transactions", "9"]);
    let mut seen = String::new();
    for line in [
        "run tproc-c --repeat 1",
        "run tproc-c --until ci<1",
        "run tproc-c --until cv<1%",
        "run tproc-c --repeat 3 --users 1,2",
        "run tproc-c --replacements 3",
        "run tproc-c --max-runs 9",
        "run tproc-c --until ci<1% --max-runs 4",
        "run tproc-c --repeat 3 --tui",
        "run tproc-c --repeat 3 --measure speed",
        "run tproc-c --repeat 3 --measure tps",
        "squeeze tproc-c --repeat 3",
        "ab a.toml",
        "ab a.toml a.toml",
        "ab a.toml absent.toml",
        "ab a.toml b.toml",
        "ab a.toml p.toml",
        "ab a.toml r.toml",
        "ab p.toml shell.toml",
        "ab a.toml b.toml --effect 3",
        "ab a.toml b.toml --power 0.9",
        "ab a.toml b.toml --effect 3% --blocks 9",
        "show group:x",
        "groups 7",
    ] {
        let args: Vec<&str> = line.split(' ').collect();
        let output = place.run(&args);
        assert_eq!(output.status.code(), Some(2), "{line}: {}{}", text(&output.stdout), text(&output.stderr));
        let stderr = text(&output.stderr).replace(&place.directory().display().to_string(), "DIR");
        seen.push_str(&format!("## kelvin {line}\n{stderr}\n"));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn the_help_of_comparisons_teaches_them() {
    let place = Place::new();
    let mut seen = String::new();
    for line in ["ab --help", "groups --help"] {
        let args: Vec<&str> = line.split(' ').collect();
        let output = place.command(&args).env("COLUMNS", "100").output().unwrap();
        let shown = text(&output.stdout);
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{line}\n{shown}");
        seen.push_str(&format!("## kelvin {line}\n{shown}\n"));
    }
    insta::assert_snapshot!(seen);
}
