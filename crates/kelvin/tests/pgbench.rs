//! pgbench's workload and user scripts on a real PostgreSQL, as a user runs them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use kelvin_database::Engine;
use kelvin_database::postgres::{Config, PostgresEngine};
use support::{Place, Server, text, wait_until};

/// Runs PostgreSQL's pgbench on this server.
fn pgbench(server: &Server, args: &[&str]) -> Output {
    // libpq reads the same URL.
    let output = Command::new(program()).args(args).arg(server.url()).output().unwrap();
    assert!(output.status.success(), "pgbench {args:?}\n{}", text(&output.stderr));
    output
}

/// The newest pgbench in Debian's directories, otherwise the one in PATH.
fn program() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin/pgbench")).filter(|path| path.exists());
    found.max().unwrap_or_else(|| Path::new("pgbench").to_owned())
}

/// The counts of the run's transaction types within the window.
fn counts(run: &serde_json::Value) -> Vec<(String, u64)> {
    let names = run["kinds"].as_array().unwrap().iter().map(|kind| kind["name"].as_str().unwrap().to_owned());
    let latency = run["points"][0]["latency"].as_array().unwrap();
    // A type that never ran may have no row.
    let count = |name: &str| {
        let row = latency.iter().find(|row| row["kind"] == name);
        row.map_or(0, |row| row["committed"].as_u64().unwrap())
    };
    names.map(|name| (name.clone(), count(&name))).collect()
}

const SHORT: [&str; 5] = ["--ramp-up", "0", "-T", "2", "--check"];

#[test]
fn kelvin_builds_what_pgbench_drives() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    let built = place.run(&["build", "pgbench", "-s", "2", "--target", &url]);
    let stderr = text(&built.stderr);
    assert!(
        built.status.success() && stderr.contains("scale 2 is") && stderr.contains("shared_buffers"),
        "{stderr}"
    );
    for args in [&["-S"][..], &["-N", "-M", "prepared"], &[]] {
        let output = pgbench(&server, &[args, &["-T", "1", "-c", "2"]].concat());
        assert!(text(&output.stdout).contains("scaling factor: 2"));
    }
    // pgbench emptied the history: the conditions over everything since the load cannot hold, and report the reason.
    let shown = place.expect(1, &["check", "pgbench", "--target", &url]);
    assert!(shown.contains("pgbench empties the history"), "{shown}");
    // A run compares the changes since it began.
    place.expect(0, &[&["run", "pgbench", "--target", &url, "-c", "2"], &SHORT[..]].concat());
    place.expect(2, &["run", "pgbench", "--target", &url, "-s", "3"]);
    place.expect(2, &["drop", "pgbench", "--target", &url]);
    place.expect(0, &["drop", "pgbench", "--target", &url, "--yes"]);
    place.expect(2, &["run", "pgbench", "--target", &url, "--no-build"]);
}

#[test]
fn trial_b8_b12_the_result_describes_the_tables_and_a_failure_names_the_action() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    place.expect(0, &["build", "pgbench", "-F", "90", "--unlogged-tables", "--target", &url]);
    let run = ["run", "pgbench", "-n", "-t", "1", "-c", "1", "--target", &url];
    for asked in [&["--foreign-keys"][..], &["-F", "80"]] {
        let output = place.run(&[&run[..], asked].concat());
        assert_eq!(output.status.code(), Some(2), "{asked:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("pgbench's tables in the database do not match the options"), "{stderr}");
    }
    place.expect(2, &["build", "pgbench", "--foreign-keys", "--target", &url]);
    place.expect(0, &run);
    let spec = place.report("last")["spec_toml"].as_str().unwrap().to_owned();
    for true_of_it in ["fillfactor = 90", "unlogged-tables = true", "foreign-keys = false"] {
        assert!(spec.contains(true_of_it), "{spec}");
    }
    // Fails before the load.
    let engine = PostgresEngine::new(Config::parse(&url).unwrap());
    engine.connect().unwrap().run("create role reader login").unwrap();
    let (user, rest) = url.split_once('@').unwrap();
    let reader = format!("{}reader@{rest}", &user[..user.find("//").unwrap() + 2]);
    let output = place.run(&["run", "pgbench", "-n", "-t", "1", "-c", "1", "--target", &reader]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("looking for the workload's tables: permission denied"), "{stderr}");
}

#[test]
fn tables_that_are_not_complete_and_not_ours_are_kept() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    // The steps of pgbench -i before it creates keys, which takes hours at a large scale.
    pgbench(&server, &["-i", "-q", "-s", "2", "-I", "dtg"]);
    for command in ["run", "build", "check"] {
        let output = place.run(&[command, "pgbench", "--target", &url]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {stderr}");
        assert!(
            stderr.contains("missing primary keys: pgbench_accounts") && stderr.contains("-I p"),
            "{stderr}"
        );
    }
    pgbench(&server, &["-i", "-q", "-I", "p"]);
    let shown = place.expect(0, &["run", "pgbench", "-S", "-t", "5", "--verbose", "--target", &url]);
    assert!(shown.contains("scale 2 is"), "{shown}");
    pgbench(&server, &["-i", "-q", "-I", "dtg"]);
    place.expect(0, &["drop", "pgbench", "--target", &url, "--yes"]);
    place.expect(0, &["run", "pgbench", "-S", "-t", "5", "--target", &url]);
}

#[test]
fn pgbench_builds_what_kelvin_drives_in_every_mode() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    pgbench(&server, &["-i", "-q", "-s", "3"]);
    for (mode, script) in [("simple", "tpcb-like"), ("extended", "simple-update"), ("prepared", "tpcb-like")]
    {
        let args =
            ["run", "pgbench", "--target", &url, "-M", mode, "-b", script, "-c", "2", "-j", "2", "--verbose"];
        let shown = place.expect(0, &[&args, &SHORT[..]].concat());
        assert!(shown.contains("tps") && shown.contains("scale 3 is"), "{shown}");
        assert!(shown.contains("kelvin chooses its threads itself"), "{shown}");
        let run = place.report("last");
        assert_eq!(run["workload"], "pgbench");
        // The detected scale is in the result, so that the file repeats the run.
        assert!(run["spec_toml"].as_str().unwrap().contains("scale = 3"), "{}", run["spec_toml"]);
        let checks = run["checks"].as_array().unwrap();
        assert!(checks.len() >= 2 && checks.iter().all(|check| check["holds"] == true), "{checks:?}");
        let seen = counts(&run);
        assert!(seen.len() == 1 && seen[0].0 == script && seen[0].1 > 0, "{seen:?}");
    }
    let shown = place.expect(0, &["check", "pgbench", "--target", &url]);
    assert!(shown.contains("all 2 conditions hold"), "{shown}");
}

#[test]
fn several_scripts_of_all_kinds_are_chosen_by_their_weights() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    place.write(
        "mine.sql",
        "\\set aid random(1, 100000 * :scale)\nselect abalance + :plus as b from pgbench_accounts where aid = :aid \\gset\n",
    );
    place.write("never.sql", "select 1/0;\n");
    for mode in ["simple", "extended", "prepared"] {
        let args = ["run", "pgbench", "--target", &url, "-M", mode, "-c", "3", "-D", "plus=1"];
        let scripts = ["-S", "-f", "mine.sql@8", "-f", "never.sql@0", "-b", "tpcb@1"];
        let shown = place.expect(0, &[&args[..], &scripts, &["-t", "200"]].concat());
        let run = place.report("last");
        let seen = counts(&run);
        let names: Vec<&str> = seen.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["select-only", "mine.sql", "never.sql", "tpcb-like"]);
        let [select, mine, never, tpcb] = [seen[0].1, seen[1].1, seen[2].1, seen[3].1];
        let share = mine as f64 / (select + mine + tpcb) as f64;
        assert!(never == 0 && tpcb > 0 && (0.7..0.9).contains(&share), "{seen:?}\n{shown}");
    }
    place.expect(0, &["run", "pgbench", "-S", "-t", "50", "--target", &url]);
    place.expect(0, &["run", "pgbench", "-S", "-t", "50", "--check", "--target", &url]);
    let notes = place.report("last")["notes"].to_string();
    assert!(notes.contains("none was checked"), "{notes}");
}

#[test]
fn own_sql_runs_on_own_tables_and_its_printed_file_repeats_it() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    place.write("plain.sql", "select count(*) from pg_class;\nselect 'it''s';\n");
    place.write("draws.sql", "\\set n random(1, :most)\nselect :n::int;\n");
    let args = ["run", "script", "plain.sql", "draws.sql@3", "-D", "most=10", "--target", &url];
    let short = ["-c", "2", "--ramp-up", "0s", "-T", "2"];
    let file = place.expect(0, &[&args[..], &short, &["--print-spec"]].concat());
    for mode in ["simple", "extended", "prepared"] {
        let shown = place.expect(0, &[&args[..], &short, &["-M", mode]].concat());
        assert!(shown.contains("tps") && !shown.contains("scale"), "{shown}");
        let run = place.report("last");
        assert_eq!(run["workload"], "script");
        let seen = counts(&run);
        assert!(seen.len() == 2 && seen.iter().all(|(_, count)| *count > 0), "{seen:?}");
    }
    std::fs::remove_file(place.path("plain.sql")).unwrap();
    std::fs::remove_file(place.path("draws.sql")).unwrap();
    place.write("run.toml", &file);
    assert_eq!(place.expect(0, &["run", "run.toml", "--print-spec"]), file);
    place.expect(0, &["run", "run.toml", "-T", "1"]);
    let missing = place.run(&["run", "script", "plain.sql", "--target", &url]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn the_printed_specification_repeats_a_run_of_scripts_without_their_files() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    place.write("mine.sql", "\\set n random(1, :most)\nselect :n::int, 'it''s \"three\"';\n");
    let args = ["run", "pgbench", "-f", "mine.sql@3", "-D", "most=10", "--target", &url, "-t", "5"];
    let file = place.expect(0, &[&args[..], &["--print-spec"]].concat());
    std::fs::remove_file(place.path("mine.sql")).unwrap();
    place.write("run.toml", &file);
    assert_eq!(place.expect(0, &["run", "run.toml", "--print-spec"]), file);
}

/// Transactions that wait for one row, and are retried, until the end of the run, which cuts them off. None of them
/// failed permanently, so the exit code must not report failures.
#[test]
fn trial_b5_transactions_cut_off_while_being_repeated_have_not_failed() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    let args = ["run", "pgbench", "--target", &url, "-n"];
    place.write("make.sql", "create table if not exists b5 as select 1 as id, 0 as v;\n");
    place.expect(0, &[&args[..], &["-c", "1", "-t", "1", "-f", "make.sql"]].concat());
    place.write(
        "ser.sql",
        "begin isolation level repeatable read;\nupdate b5 set v = v + 1 where id = 1;\nselect pg_sleep(0.002);\ncommit;\n",
    );
    place.expect(
        0,
        &[&args[..], &["-c", "8", "-T", "2", "--ramp-up", "0", "-f", "ser.sql", "--max-tries", "1000"]]
            .concat(),
    );
    let run = place.report("last");
    assert_eq!((run["failed"].as_u64(), run["status"].as_str()), (Some(0), Some("complete")));
    let errors = run["points"][0]["errors"].as_array().unwrap();
    let serialization = errors.iter().find(|error| error["code"] == "40001").unwrap();
    assert_eq!(serialization["count"], serialization["retried"], "none of them ended its transaction");
    let notes = run["points"][0]["timeline"].to_string();
    assert!(notes.contains("cut off during a retry by the end of the load"), "{notes}");

    // In an open loop such an arrival is counted as cut off; every arrival is accounted for.
    let open =
        ["-c", "8", "-T", "2", "--ramp-up", "0", "-f", "ser.sql", "--max-tries", "1000", "--rate", "2000"];
    place.expect(0, &[&args[..], &open].concat());
    assert!(place.report("last")["points"][0]["schedule"]["cut_off"].as_u64().unwrap() > 0);
}

/// Ten transactions that all fail take some milliseconds: metrics that cannot be resolved in that time are not judged,
/// and the exit code is that of a run with failed transactions.
#[test]
fn trial_b6_a_short_failing_run_shows_no_impossible_figure() {
    let server = Server::start();
    let (place, url) = (Place::new(), server.url());
    place.write("d.sql", "select 1/0;\n");
    let shown =
        place.expect(3, &["run", "pgbench", "--target", &url, "-c", "1", "-t", "10", "-n", "-f", "d.sql"]);
    assert!(!shown.contains("FAIL") && !shown.contains("of 2 CPUs"), "{shown}");
    let run = place.report("last");
    let point = &run["points"][0];
    let law =
        point["invariants"].as_array().unwrap().iter().find(|i| i["name"].to_string().contains("Little"));
    let law = law.unwrap();
    assert!(law["holds"] == true && !law["evidence"].to_string().contains('-'), "{law}");
    let cores = point["generator"]["cpu_cores"].as_f64();
    let threads = std::thread::available_parallelism().unwrap().get() as f64;
    assert!(cores.is_none_or(|cores| cores <= threads * 1.05), "{cores:?} cores of {threads}");
    assert_eq!(run["failed"], 10);
}

/// Two kelvin processes that drive one server: the sessions of each are foreign to the other.
#[test]
fn another_kelvin_in_the_same_server_is_a_red_finding() {
    let server = Server::start();
    let (place, beside, url) = (Place::new(), Place::new(), server.url());
    let run = |place: &Place, seconds: &str| {
        place.write("sleep.sql", "select pg_sleep(0.02);\n");
        let args = ["run", "pgbench", "--target", &url, "-n", "-f", "sleep.sql", "-c", "2", "--ramp-up", "0"];
        place.command(&[&args[..], &["-T", seconds]].concat()).output().unwrap()
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(&beside, "12"));
        let mut session = PostgresEngine::new(server.instance.config().clone()).connect().unwrap();
        wait_until("the other one is at work", || {
            let sleeping = "select count(*) from pg_stat_activity where query like '%pg_sleep%' and state = 'active' \
                            and pid <> pg_backend_pid()";
            session.query(sleeping).unwrap().int(0, 0).unwrap() > 0
        });
        run(&place, "3");
        other.join().unwrap();
    });
    let run = place.report("last");
    let found =
        run["findings"].as_array().unwrap().iter().find(|one| one["id"] == "foreign-sessions").unwrap();
    assert_eq!(found["severity"], "red");
    assert!(found["title"].as_str().unwrap().contains("another Kelvin"), "{found}");
    assert_eq!(run["state"], "void", "a figure of two loads");
}

#[test]
fn trial_b11_pgbenchs_own_words_name_the_server_and_make_partitions() {
    let server = Server::start();
    let place = Place::new();
    let config = server.instance.config();
    let kelvin_database::postgres::Host::Unix(socket) = &config.host else { panic!("a socket") };
    let (socket, port) = (socket.display().to_string(), config.port.to_string());
    let connection = ["-h", &socket, "-p", &port, "-U", &config.user, "-d", &config.database];
    let run =
        |code: i32, args: &[&str]| place.expect(code, &[&["run", "pgbench"], args, &connection].concat());
    run(0, &["-i", "-I", "dtgvp", "-s", "1", "--partitions", "3", "--partition-method", "hash"]);
    let partitions = "select count(*) from pg_inherits where inhparent = 'pgbench_accounts'::regclass";
    let mut session = kelvin_database::postgres::PostgresEngine::new(config.clone()).connect().unwrap();
    assert_eq!(session.query(partitions).unwrap().int(0, 0).unwrap(), 3);
    let logged = ["-S", "-t", "20", "-c", "2", "-l"];
    let more = ["-v", "--format", "pgbench", "--random-seed=rand", "--max-tries", "1"];
    let shown = run(0, &[&logged[..], &more].concat());
    assert!(shown.contains("number of transactions actually processed: 40\n"), "{shown}");
    let spec = place.report("last")["spec_toml"].to_string();
    assert!(spec.contains("partitions = 3") && spec.contains("partition-method = \\\"hash\\\""), "{spec}");
    // User and transaction numbers are those of PostgreSQL's pgbench, and so are the columns.
    let prefix = place.path("theirs").display().to_string();
    pgbench(&server, &[&logged[..], &["-n", "--log-prefix", &prefix]].concat());
    let log = |name: &str| {
        let mut files = std::fs::read_dir(place.directory()).unwrap().map(|entry| entry.unwrap().path());
        let log = files.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(name)).unwrap();
        let log = std::fs::read_to_string(log).unwrap();
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields[0].to_owned(), fields[1].parse::<u32>().unwrap(), fields[3].to_owned(), fields.len())
        };
        let mut rows: Vec<_> = log.lines().map(row).collect();
        rows.sort();
        rows
    };
    let ours = log("pgbench_log.");
    assert_eq!((ours.len(), &ours), (40, &log("theirs.")));
    // The existing scale and the requested one must agree.
    run(2, &["-S", "-t", "1", "--partitions", "4"]);
    place.write("gset.sql", "select 1 \\gset\n");
    run(3, &["-f", "gset.sql", "-t", "1", "-c", "1"]);
    let errors = place.report("last")["points"][0]["errors"].to_string();
    assert!(errors.contains("not a valid variable name"), "{errors}");
    for refused in [&["-I", "tg", "-i"][..], &["-P", "0"], &["-h", "x", "--target", "postgres"]] {
        place.expect(2, &[&["run", "pgbench"], refused].concat());
    }
    assert!(place.expect(0, &["run", "pgbench", "--show-script", "select"]).contains("SELECT abalance"));
}
