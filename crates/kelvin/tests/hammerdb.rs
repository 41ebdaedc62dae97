//! Scripts of HammerDB's command line, unchanged, on a real server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use kelvin_database::postgres::Host;
use support::{Place, Server, text};

/// The parts of a day with HammerDB, as its users write them.
const SCRIPT: &str = r#"#!/bin/tclsh
puts "SETTING CONFIGURATION"
dbset db pg
dbset bm TPC-C
diset connection pg_host SOCKET
diset connection pg_port PORT
diset connection port 5433
diset tpcc pg_superuser USER
diset tpcc pg_superuserpass ""
diset tpcc pg_defaultdbase DATABASE
diset tpcc pg_user tpcc
diset tpcc pg_pass s3cr3t
diset tpcc pg_dbase orders
diset tpcc pg_count_ware 1
diset tpcc pg_num_vu 4
diset tpcc pg_driver timed
diset tpcc pg_rampup 0
diset tpcc pg_duration 1
diset tpcc pg_timeprofile true
print dict
buildschema
checkschema
foreach z {1 2} {
    loadscript
    vuset vu $z
    vucreate
    tcstart
    set jobid [ vurun ]
    vudestroy
    tcstop
    puts "$z users: $jobid"
}
set of [ open $::env(TMP)/pg_tprocc w ]
puts $of $jobid
close $of
set ::outputfile $::env(TMP)/pg_tprocc
source ./scripts/tcl/generic/generic_tprocc_result.tcl
deleteschema
"#;

#[test]
fn a_script_builds_checks_runs_prints_and_deletes() {
    let place = Place::new();
    let server = Server::start();
    let config = server.instance.config();
    let Host::Unix(socket) = &config.host else { panic!("{:?}", config.host) };
    let script = SCRIPT
        .replace("SOCKET", socket.to_str().unwrap())
        .replace("PORT", &config.port.to_string())
        .replace("USER", &config.user)
        .replace("DATABASE", &config.database);
    place.write("day.tcl", script);
    let run = |more: &[&str]| {
        let mut command = place.command(&[&["hammerdb", "run", "day.tcl"], more].concat());
        command.env("TMP", place.directory()).output().unwrap()
    };

    let plan = run(&["--plan"]);
    let (out, err) = (text(&plan.stdout), text(&plan.stderr));
    assert_eq!(plan.status.code(), Some(0), "{out}{err}");
    let commands: Vec<_> = out.lines().filter(|line| line.starts_with("kelvin ")).collect();
    let verbs: Vec<_> = commands.iter().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(verbs, ["build", "check", "run", "run", "drop"], "{out}");
    assert!(commands[0].contains("--profile hammerdb --warehouses 1 --loaders 1"), "{out}");
    assert!(commands[3].contains("--users 2 --ramp-up 0s --duration 60s"), "{out}");
    assert!(out.contains("# pg_pass = ********") || out.contains("#  pg_pass = ********"), "{out}");
    assert!(!out.contains("s3cr3t") && !err.contains("s3cr3t"), "{out}{err}");
    let hint =
        "day.tcl:7: note: ignored: PostgreSQL's dictionary connection has no key port; did you mean pg_port?";
    assert!(err.contains(hint), "{err}");

    let done = run(&["--scale-time", "0.02"]);
    let (out, err) = (text(&done.stdout), text(&done.stderr));
    // What the machine did beside it may have made a run void.
    assert!(matches!(done.status.code(), Some(0 | 1)), "{:?}\n{out}\n{err}", done.status);
    assert!(!out.contains("s3cr3t") && !err.contains("s3cr3t"), "{out}{err}");
    for part in
        ["creating role tpcc", "creating database orders", "dropping database orders", "dropping role tpcc"]
    {
        assert!(err.contains(part), "{part}: {err}");
    }
    for part in
        ["users: Benchmark Run jobid=", "TEST RESULT : System achieved", "\"NEWORD\"", "PostgreSQL tpm"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let stored = place.report("last");
    let nopm = stored["points"][0]["headline_per_minute"].as_f64().unwrap();
    assert!(nopm > 0.0 && out.contains(&format!("achieved {nopm:.0} NOPM")), "{nopm}: {out}");
    assert_eq!(stored["points"][0]["users"], 2);

    // Everything that the script made is gone, the administrator's database is not.
    let url = server.url();
    let output = place.run(&["check", "tproc-c", "--target", &url.replace(&config.database, "orders")]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_run_is_refused_with_its_line_and_runs_nothing() {
    let place = Place::new();
    for (script, line, message) in [
        ("dbset db pg\nexec rm -rf x\n", 2, "exec is refused"),
        ("dbset db pg\n\nopen ../../etc/passwd r\n", 3, "is refused: a script may use files below"),
        ("dbset db nope", 1, "there is no database system \"nope\""),
        ("dbset db ora\nbuildschema\n", 2, "cannot run buildschema on Oracle"),
        ("dbset db pg\ndbset bm TPC-H\nbuildschema", 3, "buildschema of TPC-H is not supported"),
        ("dbset db pg\ndiset tpcc pg_count_ware many\nbuildschema", 3, "pg_count_ware is \"many\""),
        ("vurun", 1, "there are no virtual users"),
        ("while {1} {set x 1}", 1, "does not end"),
        ("puts {never closed", 1, "a brace { is never closed"),
        ("vuset vu -3", 1, "at least 1"),
        ("nonsense 1", 1, "unknown command \"nonsense\""),
    ] {
        place.write("bad.tcl", script);
        let output = place.run(&["hammerdb", "run", "bad.tcl"]);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{script}: {err}");
        assert!(err.contains(&format!("bad.tcl:{line}: ")) && err.contains(message), "{script}: {err}");
    }
    assert!(!place.store().exists(), "nothing was measured");
}
