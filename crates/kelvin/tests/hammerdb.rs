//! Scripts of HammerDB's command line, unchanged, on a real server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

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

/// The script in Python, line by line.
fn in_python(script: &str) -> String {
    let line = |line: &str| match line.trim() {
        "foreach z {1 2} {" => "for z in [1, 2]:".into(),
        "set jobid [ vurun ]" => "    jobid = tclpy.eval('vurun')".into(),
        "puts \"$z users: $jobid\"" => "    print(f'{z} users: {jobid}')".into(),
        "set of [ open $::env(TMP)/pg_tprocc w ]" => {
            "import os; of = open(os.path.join(os.environ['TMP'], 'pg_tprocc'), 'w')".into()
        }
        "puts $of $jobid" => "of.write(jobid)".into(),
        "close $of" => "of.close()".into(),
        "set ::outputfile $::env(TMP)/pg_tprocc" => "outputfile = of.name".into(),
        "source ./scripts/tcl/generic/generic_tprocc_result.tcl" => {
            "exec(open('./scripts/python/generic/generic_tprocc_result.py').read())".into()
        }
        "puts \"SETTING CONFIGURATION\"" => "print('SETTING CONFIGURATION')".into(),
        "print dict" => "tclpy.eval('print dict')".into(),
        "}" | "#!/bin/tclsh" => "#".into(),
        call => {
            let mut words = call.split(' ');
            let name = words.next().unwrap();
            let quoted: Vec<_> = words
                .map(|word| if word == "$z" { "z".into() } else { format!("'{}'", word.trim_matches('"')) })
                .collect();
            let indent = if line.starts_with(' ') { "    " } else { "" };
            format!("{indent}{name}({})", quoted.join(", "))
        }
    };
    script.lines().map(|text| line(text) + "\n").collect()
}

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
    place.write("day.tcl", &script);
    place.write("day.py", in_python(&script));
    let run_file = |file: &str, more: &[&str]| {
        let mut command = place.command(&[&["hammerdb", "run", file], more].concat());
        command.env("TMP", place.directory()).output().unwrap()
    };
    let run = |more: &[&str]| run_file("day.tcl", more);

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
    let sweep = "# the same as one sweep: kelvin run tproc-c ";
    assert!(out.lines().any(|line| line.starts_with(sweep) && line.ends_with(" --sweep users=1,2")), "{out}");
    let python = run_file("day.py", &["--plan"]);
    assert_eq!(
        (text(&python.stdout), python.status.code()),
        (out.clone(), Some(0)),
        "{}",
        text(&python.stderr)
    );
    assert_eq!(text(&python.stderr).replace("day.py", "day.tcl"), err, "the same notes at the same lines");
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
    assert!(out.contains("sweep over users: runs 1 and 2\n"), "{out}");
    assert!(out.contains("no scalability model was fitted to the sweep"), "{out}");
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
    place.write("bad.py", "dbset('db', 'pg')\nvurun()\n");
    place.write("bad.txt", "");
    for (file, path, message) in [
        ("bad.py", None, "bad.py:2: there are no virtual users"),
        ("bad.py", Some("/nonexistent"), "cannot run python3, which runs scripts in Python"),
        ("bad.txt", None, "its name must end in .tcl or .py"),
    ] {
        let mut command = place.command(&["hammerdb", "run", file]);
        let output = command.envs(path.map(|path| ("PATH", path))).output().unwrap();
        let err = text(&output.stderr);
        assert!(output.status.code() == Some(2) && err.contains(message), "{file}: {err}");
    }
    assert!(!place.store().exists(), "nothing was measured");
}

#[test]
fn the_prompt_edits_lines_and_remembers_them() {
    let place = Place::new();
    let mut command = Command::new("script");
    command.args(["-qec", &format!("exec {} hammerdb", env!("CARGO_BIN_EXE_kelvin")), "/dev/null"]);
    command.current_dir(place.directory()).env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keys, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = String::new();
    let mut wait_for = |what: &str| {
        while !seen.contains(what) {
            let mut bytes = [0; 4096];
            let count = screen.read(&mut bytes).unwrap();
            assert!(count > 0, "no {what:?} before the end: {seen:?}");
            seen.push_str(&text(&bytes[..count]));
        }
        seen = seen.split_once(what).unwrap().1.to_owned();
    };
    wait_for("hammerdb>");
    for typed in ["puts abd\x7fc\r", "\x1b[A\r"] {
        keys.write_all(typed.as_bytes()).unwrap();
        wait_for("\nabc\r\n");
        wait_for("hammerdb>");
    }
    keys.write_all(b"exit\r").unwrap();
    assert!(child.wait().unwrap().success());
}
