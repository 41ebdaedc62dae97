//! Scripts of HammerDB's command line, unchanged, on a real server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
mod support;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use kelvin_database::postgres::Host;
use support::{Place, Server, text};

/// A typical HammerDB script: build, check, timed runs, delete.
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

/// The same script in Python, line by line.
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
    // Other activity of the machine may have made a run void.
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

    // Everything that the script created is gone; the administrator's database remains.
    let url = server.url();
    let output = place.run(&["check", "tproc-c", "--target", &url.replace(&config.database, "orders")]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_be_run_is_refused_with_its_line_and_runs_nothing() {
    let place = Place::new();
    std::os::unix::fs::symlink("/nonexistent/file", place.path("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    // Nested expressions: each is within its limit, all together are not.
    let deep = (0..60)
        .fold("1".to_owned(), |inner, _| format!("[expr {{{}{inner}{}}}]", "(".repeat(80), ")".repeat(80)));
    let deep = format!("set x {deep}");
    for (script, line, message) in [
        ("dbset db pg\nexec rm -rf x\n", 2, "exec is refused"),
        ("dbset db pg\n\nopen ../../etc/passwd r\n", 3, "is refused: a script may use files below"),
        ("dbset db nope", 1, "there is no database system \"nope\""),
        ("dbset db ora\nbuildschema\n", 2, "cannot run buildschema on Oracle"),
        (
            "dbset db mssqls\ndiset connection mssqls_linux_authent windows\nbuildschema",
            3,
            "mssqls_linux_authent is \"windows\": this build logs in with mssqls_uid",
        ),
        ("dbset db pg\ndbset bm TPC-H\ndiset tpch pg_scale_fact x\nbuildschema", 4, "pg_scale_fact is \"x\""),
        ("file mkdir .ssh", 1, "a script writes no hidden files"),
        ("close [open .profile a]", 1, "a script writes no hidden files"),
        ("close [open dangling w]", 1, "a dangling link"),
        ("close [open pipe r]", 1, "not a regular file"),
        ("source pipe", 1, "not a regular file"),
        ("set i 0\nwhile {1} {set a([incr i]) [string repeat a 1000000]}", 2, "take more than 256 MiB"),
        ("set a [string repeat a 100000]\nstring map [list a $a] $a", 2, "longer than 16 MiB"),
        ("set l [string repeat {a } 100000]\njoin $l $l", 2, "longer than 16 MiB"),
        (deep.as_str(), 1, "nested too deeply"),
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
    // Not a traceback of Python itself.
    place.write("traceback.py", "raise SystemExit(7)\n");
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

/// Plans for TPROC-H and for SQL Server: the target, the arguments, the messages.
#[test]
fn other_workloads_and_servers_are_planned() {
    let place = Place::new();
    let planned = |script: &str| {
        place.write("plan.tcl", script);
        let output = place.run(&["hammerdb", "run", "plan.tcl", "--plan"]);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{out}{err}");
        (out.lines().map(str::to_owned).collect::<Vec<_>>(), err)
    };
    let (lines, notes) = planned(
        "dbset db pg\ndbset bm TPC-H\ndiset connection pg_host db1\ndiset tpch pg_scale_fact 10\n\
         diset tpch pg_num_tpch_threads 4\ndiset tpch pg_degree_of_parallel 8\ndiset tpch pg_total_querysets 3\n\
         diset tpch pg_raise_query_error true\nbuildschema\ncheckschema\nforeach z {1 2} {vuset vu $z; loadscript; vucreate; vurun; vudestroy}\n\
         diset tpch pg_refresh_on true\nvuset vu 3\nloadscript\nvucreate\nvurun\nvudestroy\ndiset tpch pg_total_querysets 1\n\
         vuset vu 1\nvucreate\nvurun\ndeleteschema\n",
    );
    let target = "--target 'postgres://tpch@db1:5432/tpch?sslmode=prefer'";
    let parallel = "--target 'postgres://tpch@db1:5432/tpch?sslmode=prefer&options=-c%20max_parallel_workers_per_gather%3D8'";
    assert_eq!(
        lines,
        [
            format!("kelvin build tproc-h {target} --scale 10 --loaders 4"),
            format!("kelvin check tproc-h {target}"),
            format!(
                "kelvin run tproc-h {parallel} --no-build --profile hammerdb --users 1 --query-sets 3 --no-refresh"
            ),
            format!(
                "kelvin run tproc-h {parallel} --no-build --profile hammerdb --users 2 --query-sets 3 --no-refresh"
            ),
            format!(
                "kelvin run tproc-h {parallel} --no-build --profile hammerdb --users 3 --query-sets 3 --trickle-refresh 1000"
            ),
            format!("kelvin run tproc-h {parallel} --no-build --streams 0"),
            format!("kelvin drop tproc-h {target} --yes"),
            format!(
                "# the same as one sweep: kelvin run tproc-h {parallel} --no-build --profile hammerdb --query-sets 3 --no-refresh --users 1,2"
            ),
        ]
    );
    assert!(notes.contains("pg_raise_query_error is ignored"), "{notes}");
    let (lines, notes) = planned(
        "dbset db mssqls\ndiset connection mssqls_linux_server sql1\\\\two\ndiset connection mssqls_tcp true\n\
         diset connection mssqls_uid bench\ndiset connection mssqls_pass s3cr3t\ndiset tpcc mssqls_count_ware 5\n\
         diset tpcc mssqls_imdb true\nbuildschema\nloadscript\nvucreate\nvurun\nprint dict\ndeleteschema\n",
    );
    let target =
        "--target 'sqlserver://bench@sql1:1433;two/tpcc?encrypt=mandatory&trustServerCertificate=true'";
    assert_eq!(
        lines[0],
        format!("kelvin build tproc-c {target} --profile hammerdb --warehouses 5 --loaders 1")
    );
    assert!(
        lines[1]
            .starts_with(&format!("kelvin run tproc-c {target} --profile hammerdb --no-build --users 1 "))
    );
    assert!(notes.contains("mssqls_imdb is ignored"), "{notes}");
    assert!(!lines.concat().contains("s3cr3t") && !notes.contains("s3cr3t"), "{lines:?}");
}

/// The script with TPROC-H on PostgreSQL, and with both workloads on MariaDB.
#[test]
fn scripts_build_check_run_and_delete_on_each_engine() {
    let (postgres, mariadb) = (Server::start(), mysql_support::Server::start());
    let config = postgres.instance.config();
    let Host::Unix(socket) = &config.host else { panic!("{:?}", config.host) };
    let run = "buildschema\ncheckschema\nvuset vu 2\nloadscript\nvucreate\nset jobid [vurun]\nvudestroy\n\
               set jobid [lindex [split $jobid =] 1]\njob $jobid result\njob $jobid timing\ndeleteschema\n";
    let queries = "dbset bm TPC-H\ndiset tpch P_scale_fact 0.01\ndiset tpch P_num_tpch_threads 2\n";
    let on_postgres = format!(
        "dbset db pg\n{queries}diset connection pg_host {}\ndiset connection pg_port {}\ndiset tpch pg_tpch_superuser {}\n\
         diset tpch pg_tpch_superuserpass \"\"\ndiset tpch pg_tpch_defaultdbase {}\n{run}",
        socket.display(),
        config.port,
        config.user,
        config.database
    );
    let on_mariadb = format!(
        "dbset db maria\ndiset connection maria_socket {}\ndiset tpcc maria_rampup 0\n{run}{queries}{run}",
        mariadb.socket().display()
    );
    let day = |script: String, prefix: &str, expected: &[&str]| {
        let place = Place::new();
        place.write("day.tcl", script.replace("P_", &format!("{prefix}_")));
        let output = place.run(&["hammerdb", "run", "day.tcl", "--scale-time", "0.01"]);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        // Other activity of the machine may have made a run void.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}\n{out}\n{err}", output.status);
        for part in expected {
            assert!(out.contains(part) || err.contains(part), "{part}: {out}\n{err}");
        }
    };
    let sets = ["Vuser 2:Completed 22 queries in", "Geometric mean of query times is", "\"Q22\""];
    let both =
        ["TEST RESULT : System achieved", "MariaDB TPM", "dropping database tpcc", "dropping database tpch"];
    std::thread::scope(|scope| {
        scope.spawn(|| day(on_postgres, "pg", &[&sets[..], &["dropping role tpch"]].concat()));
        scope.spawn(|| day(on_mariadb, "maria", &[&sets[..], &both].concat()));
    });
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
    // Input typed before the prompt appears may be discarded.
    for (typed, shown, prompt) in [
        // A command of two lines, an unknown command, and one that Ctrl-C discards.
        ("puts {one\r", "", "        >"),
        ("two}\r", "\none\r\ntwo\r\n", "hammerdb>"),
        ("nonsense\r", "unknown command \"nonsense\"", "hammerdb>"),
        ("puts {dropped\r", "", "        >"),
        ("\x03", "", "hammerdb>"),
        ("puts kept\r", "\nkept\r\n", "hammerdb>"),
        // The history of the arrow key has no passwords.
        ("diset tpcc {pg_pass} s3cr3t\r", "s3cr3t", "hammerdb>"),
        ("\x1b[A\r", "\nkept\r\n", "hammerdb>"),
    ] {
        keys.write_all(typed.as_bytes()).unwrap();
        wait_for(shown);
        wait_for(prompt);
    }
    keys.write_all(b"\x04").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn commands_of_a_pipe_end_with_their_status_and_have_bounds() {
    let place = Place::new();
    let piped = |commands: &[u8]| {
        let mut command = place.command(&["hammerdb"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The process may end before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(commands);
        let output = child.wait_with_output().unwrap();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    assert_eq!(piped(b"puts a\nexit\nputs b\n"), (Some(0), "a\n".into()));
    for (commands, message) in [
        (b"puts a\nexit 3\n".to_vec(), "exit 3"),
        (b"nonsense\n".to_vec(), "unknown command"),
        (b"puts {never closed\n".to_vec(), "never closed"),
        (b"puts \xff\n".to_vec(), "cannot read standard input"),
        (b"{\n".repeat(20_000), "has no end"),
        (b"x".repeat(2 << 20), "has no end"),
    ] {
        let (code, said) = piped(&commands);
        assert!(code == Some(2) && said.contains(message), "{message}: {code:?} {said}");
    }
}
