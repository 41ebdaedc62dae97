//! TPROC-C on embedded SQLite, as a user runs it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use support::{Place, text, wait_until};

#[test]
fn a_run_measures_checks_and_reports() {
    let place = Place::new();
    let shown = place
        .expect(0, &["run", "tproc-c", "--ramp-up", "1s", "--duration", "3s", "--check", "--users", "2"]);
    for part in ["NOPM", "TPM", "state ", "p99", "More: ", "Report: "] {
        assert!(shown.contains(part), "no {part} in:\n{shown}");
    }
    // Including the prompt, the text fits 80 columns and 24 rows; the line with the path depends on the test.
    assert!(shown.lines().count() <= 23, "{shown}");
    assert!(shown.lines().filter(|line| !line.contains(": ")).all(|line| line.chars().count() <= 80));
    assert!(!shown.contains('\x1b'));
    // Each results file has a separate directory, because runs of two files have the same numbers.
    let name = place.store().file_name().unwrap().to_string_lossy().into_owned();
    assert!(place.path(&format!("reports/{name}/run-1.html")).exists());
    let run = place.report("last");
    assert_eq!(run["status"], "complete");
    assert_eq!(run["checks"].as_array().unwrap().len(), 12);
    let again = place.expect(0, &["show", "--brief"]);
    assert!(shown.starts_with(&again), "show --brief prints what run printed");
    let whole = place.expect(0, &["show"]);
    for part in ["New-Order", "Stock-Level", "p99.9", "self-audit", "consistency after the run"] {
        assert!(whole.contains(part), "no {part} in:\n{whole}");
    }
}

#[test]
fn the_conditions_hold_after_eight_users() {
    let (place, target) = Place::with_warehouse();
    let args = ["run", "tproc-c", "--target", &target, "--users", "8", "--check"];
    place.expect(0, &[&args[..], &["--ramp-up", "1s", "--duration", "10s"]].concat());
    let run = place.report("last");
    assert!(run["checks"].as_array().unwrap().iter().all(|check| check["holds"] == true));
}

#[test]
fn ctrl_c_in_a_check_is_an_interruption() {
    let (place, target) = Place::with_warehouse();
    let mut child =
        place.command(&["check", "tproc-c", "--target", &target]).stderr(Stdio::piped()).spawn().unwrap();
    let files = format!("/proc/{}/fd", child.id());
    let reads = || {
        let open = std::fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|path| path.ends_with("tpcc.db"))
    };
    wait_until("the check has opened the data", || reads() || child.try_wait().unwrap().is_some());
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    // On a fast machine the check may be complete already.
    assert!(matches!(output.status.code(), Some(130 | 0)), "{:?} {}", output.status, text(&output.stderr));
}

#[test]
fn several_numbers_of_users_run_in_turn() {
    let (place, target) = Place::with_warehouse();
    let args = ["run", "tproc-c", "--target", &target, "--users", "1,3"];
    place.expect(0, &[&args[..], &["--ramp-up", "0s", "--duration", "1s"]].concat());
    let run = place.report("1");
    let users: Vec<_> =
        run["points"].as_array().unwrap().iter().map(|p| p["users"].as_u64().unwrap()).collect();
    assert_eq!(users, [1, 3]);
}

#[test]
fn json_prints_events_and_nothing_else() {
    let (place, target) = Place::with_warehouse();
    let args = ["run", "tproc-c", "--target", &target, "--json", "--ramp-up", "0s", "--duration", "1s"];
    let out = place.expect(0, &args);
    let events: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    for kind in ["phase", "second", "window", "audit", "invariant", "finished"] {
        assert!(kinds.contains(&kind), "no {kind} among {kinds:?}");
    }
    assert_eq!(kinds[kinds.len() - 2..], ["finished", "summary"]);
}

#[test]
fn the_printed_specification_is_the_run() {
    let place = Place::new();
    let args = ["--users", "2", "--transactions", "50", "--seed", "9", "--mix", "1/1/1/1/1"];
    let file = place.expect(0, &[&["run", "tproc-c", "--print-spec"], &args[..]].concat());
    place.write("run.toml", &file);
    assert_eq!(place.expect(0, &["run", "run.toml", "--print-spec"]), file);
    place.expect(0, &["run", "run.toml"]);
    let run = place.report("last");
    assert_eq!(run["seed"], "9");
}

#[test]
fn ctrl_c_keeps_the_window_as_it_was() {
    let (place, target) = Place::with_warehouse();
    let mut child = place
        .command(&["run", "tproc-c", "--target", &target, "--ramp-up", "0s", "--duration", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_measuring(child.stderr.take().unwrap(), 2);
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stdout));
    let run = place.report("last");
    assert_eq!(run["status"], "interrupted");
    let elapsed = run["points"][0]["window_s"].as_f64().unwrap();
    assert!((1.0..60.0).contains(&elapsed), "a window of {elapsed} s");
}

#[test]
fn kill_9_loses_at_most_the_last_seconds() {
    let (place, target) = Place::with_warehouse();
    let mut child = place
        .command(&["run", "tproc-c", "--target", &target, "--ramp-up", "0s", "--duration", "60s"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let seen = wait_for_measuring(child.stderr.take().unwrap(), 6);
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = place.expect(0, &["show", "last"]);
    assert!(shown.to_lowercase().contains("partial"), "{shown}");
    let run = place.report("last");
    let seconds = run["points"][0]["seconds"].as_array().unwrap().len();
    // One second waits for its commit and one is being committed; a stalling machine may delay some more.
    assert!(seconds + 5 >= seen, "{seconds} seconds kept of {seen} seen");
    // The store accepts more runs.
    place.expect(0, &["run", "tproc-c", "--target", &target, "--transactions", "20", "--users", "1"]);
}

#[test]
fn built_data_is_used_again_checked_and_dropped() {
    let place = Place::new();
    let target = format!("sqlite:{}", place.path("tpcc.db").display());
    place.expect(0, &["build", "tproc-c", "--target", &target]);
    place.expect(
        0,
        &["run", "tproc-c", "--target", &target, "--no-build", "--transactions", "100", "--users", "2"],
    );
    assert!(place.expect(0, &["check", "tproc-c", "--target", &target]).contains("all 12 conditions hold"));
    a_stored_figure_that_was_changed_is_found(&place);
    place.expect(2, &["drop", "tproc-c", "--target", &target]);
    place.expect(0, &["drop", "tproc-c", "--target", &target, "--yes"]);
    place.expect(2, &["run", "tproc-c", "--target", &target, "--no-build"]);
}

#[test]
fn scans_count_what_they_read() {
    let (place, target) = Place::with_warehouse();
    let queries = ["--queries", "stock-value,customers-by-district"];
    let args = [&["run", "scan", "--target", &target, "--no-build", "--users", "2"], &queries[..]].concat();
    let shown = place.expect(0, &[&args[..], &["--transactions", "6"]].concat());
    assert!(shown.contains(" scans/s") && shown.contains(" rows/s · "), "{shown}");
    let point = &place.report("last")["points"][0];
    let figure = |name: &str| point[name].as_f64().unwrap();
    // Three executions of each query by each user: 100,000 rows of stock, 30,000 customers.
    assert_eq!((figure("rows_per_second") * figure("window_s")).round(), 780_000.0, "{point}");
    let bytes_of_a_row = figure("table_bytes_per_second") / figure("rows_per_second");
    assert!((200.0..800.0).contains(&bytes_of_a_row), "{bytes_of_a_row}");
    let file = place.expect(0, &[&args[..], &["--print-spec"]].concat());
    place.write("scan.toml", &file);
    assert_eq!(place.expect(0, &["run", "scan.toml", "--print-spec"]), file);
    let output = place.run(&["run", "scan", "--queries", "stock"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("choose from stock-value, order-lines-by-item"));
}

/// The stored seconds of every run are checked against the collector's own sums.
fn a_stored_figure_that_was_changed_is_found(place: &Place) {
    let failed = || {
        let report = place.report("last");
        let laws = report["points"][0]["invariants"].as_array().unwrap();
        let name = |law: &serde_json::Value| law["name"].as_str().unwrap().to_owned();
        assert!(laws.iter().any(|law| name(law).contains("the collector's sum")), "{laws:?}");
        laws.iter().filter(|law| law["holds"] == false).map(name).collect::<Vec<_>>().join(", ")
    };
    assert!(!failed().contains("the stored per-second records"), "{}", failed());
    let store = rusqlite::Connection::open(place.store()).unwrap();
    let changed = store.execute(
        "update second set retries = retries + 1 where rowid = (select max(rowid) from second where part = 1 and kind = 0)",
        [],
    );
    assert_eq!(changed.unwrap(), 1);
    assert!(
        failed().contains("the stored per-second records add up to the collector's sum: retries"),
        "{}",
        failed()
    );
    assert!(place.expect(0, &["show", "last"]).contains("FAIL the stored per-second records add up"));
}

#[test]
fn a_lost_update_makes_check_fail_with_its_condition() {
    let (place, target) = Place::with_warehouse();
    let database = rusqlite::Connection::open(place.path("tpcc.db")).unwrap();
    database.execute("update warehouse set w_ytd = w_ytd + 1", []).unwrap();
    drop(database);
    let shown = place.expect(1, &["check", "tproc-c", "--target", &target]);
    assert!(shown.contains("  1  FAILS"), "{shown}");
}

#[test]
fn completions_and_man_pages_are_written() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(place.expect(0, &["completions", shell]).contains("kelvin"));
    }
    place.expect(0, &["man", "pages"]);
    assert!(place.path("pages/kelvin-run.1").exists());
}

/// Reads the plain status lines until `seconds` measured ones are printed; returns their number.
fn wait_for_measuring(stderr: impl std::io::Read + Send + 'static, seconds: usize) -> usize {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.starts_with("measure ") {
                // Reading continues without a receiver, so that the command does not block on a full pipe.
                let _ = sender.send(());
            }
        }
    });
    let mut seen = 0;
    wait_until("the load is measured", || {
        seen += receiver.try_iter().count();
        seen >= seconds
    });
    seen
}

fn signal(pid: u32, name: &str) {
    let sent =
        std::process::Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn trial_d3_a_generator_that_was_stopped_within_the_window_is_named_and_the_run_void() {
    let place = Place::new();
    let target = format!("--target=sqlite:{}", place.path("own.db").display());
    let script = place.write("one.sql", "select 1;\n");
    let args = ["run", "script", script.to_str().unwrap(), &target, "-c", "2", "--rate", "100"];
    let times = ["--ramp-up", "0s", "--duration", "5s"];
    let mut child = place.command(&[&args[..], &times].concat()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_measuring(child.stderr.take().unwrap(), 1);
    signal(child.id(), "STOP");
    std::thread::sleep(Duration::from_millis(1200));
    signal(child.id(), "CONT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let run = place.report("last");
    let held_up =
        |invariant: &&serde_json::Value| invariant["name"] == "the load generator was never held up";
    let invariants = run["points"][0]["invariants"].as_array().unwrap();
    let found = invariants.iter().find(held_up).unwrap();
    assert_eq!(found["holds"], false, "{found}");
    assert!(found["evidence"].as_str().unwrap().contains("it was stopped"), "{found}");
    let named =
        run["findings"].as_array().unwrap().iter().find(|one| one["id"] == "client-saturated").unwrap();
    assert!(named["title"].as_str().unwrap().contains("was held up"), "{named}");
    assert_eq!(named["severity"], "red");
    let network = |one: &serde_json::Value| one["id"] == "network-round-trips" && one["severity"] == "red";
    assert!(!run["findings"].as_array().unwrap().iter().any(network));
}

#[test]
fn a_file_does_not_allow_itself_shell_commands() {
    let place = Place::new();
    let (target, script) =
        ("--target=sqlite:own.db", place.write("touch.sql", "\\shell touch ran\nselect 1;\n"));
    let script = script.to_str().unwrap();
    let args = ["run", "script", script, target, "--allow-shell", "-t", "2", "-c", "1"];
    let file = place.expect(0, &[&args[..], &["--print-spec"]].concat());
    assert!(file.contains("allow-shell = true"), "{file}");
    place.write("sent.toml", &file);
    assert_eq!(place.expect(0, &["run", "sent.toml", "--print-spec"]), file);

    let refused = place.run(&["run", "sent.toml"]);
    let stderr = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("add --allow-shell"), "{stderr}");
    assert!(!place.path("ran").exists() && !place.path("own.db").exists());

    place.expect(0, &["run", "sent.toml", "--allow-shell"]);
    assert!(place.path("ran").exists());

    let pgbench = "workload = \"pgbench\"\n[pgbench]\nallow-shell = true\n";
    place.write("pgbench.toml", pgbench);
    let stderr = text(&place.run(&["run", "pgbench.toml"]).stderr);
    assert!(stderr.contains("add --allow-shell"), "{stderr}");
}

#[test]
fn own_scripts_of_the_workload_pgbench_run_without_a_scale() {
    let place = Place::new();
    place.write("own.sql", "select :scale;\n");
    let shown = place
        .expect(0, &["run", "pgbench", "-f", "own.sql", "--target", "sqlite:own.db", "-t", "5", "-c", "1"]);
    assert!(shown.contains("tps"), "{shown}");
}

/// The flags of a short run.
const SHORT: [&str; 6] = ["run", "tproc-c", "--transactions", "50", "--users", "2"];

#[test]
fn results_have_every_form_and_runs_are_labelled_filtered_and_removed() {
    let place = Place::new();
    let shown = place.expect(0, &[&SHORT[..], &["--format", "pgbench"]].concat());
    for line in ["tps = ", "latency average = ", "latency stddev = ", "initial connection time = "] {
        assert!(shown.contains(line), "no {line} in\n{shown}");
    }
    assert!(shown.contains("number of transactions actually processed: 100\n"), "{shown}");
    assert_eq!(place.expect(0, &["show", "1", "--format", "pgbench"]), shown);
    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(parsed(&place.expect(0, &["show", "--format", "json"]))["run"], 1);
    assert_eq!(parsed(&place.expect(0, &["show", "--json"]))["run"], 1);
    assert!(place.expect(0, &["show", "--format", "csv"]).starts_with("run,label,"));
    assert!(place.expect(0, &["show", "--format", "markdown"]).contains("| time (ms) | count |"));

    assert_eq!(place.expect(0, &["tag", "last", "first"]), "run 1 is \"first\"\n");
    place.expect(2, &["tag", "1", "12"]);
    place.expect(0, &[&SHORT[..], &["--label", "second\x1b[31m"]].concat());
    let listed = parsed(&place.expect(0, &["runs", "--format", "json", "--label", "first"]));
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["id"]), (1, &1.into()));
    let count = |filter: &[&str]| {
        let lines = place.expect(0, &[&["runs", "--json"], filter].concat());
        lines.lines().count()
    };
    assert_eq!([count(&[]), count(&["--limit", "1"]), count(&["--since", "1h"])], [2, 1, 2]);
    assert_eq!([count(&["--workload", "pgbench"]), count(&["--target", "temporary.db"])], [0, 2]);
    assert_eq!([count(&["--state", "failed"]), count(&["--since", "2026-01-01"])], [0, 2]);
    let table = place.expect(0, &["runs"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for command in [&["runs", "--wide"][..], &["show", "2"], &["show", "2", "--brief"]] {
        let shown = place.expect(0, command);
        assert!(shown.contains("second [31m") && !shown.contains('\x1b'), "{shown:?}");
    }
    assert!(place.expect(0, &["runs", "--format", "csv"]).starts_with("run,started,"));

    let page = place.path("reports/kelvin.db/run-1.html");
    let mode = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!([mode(&page), mode(&place.store()), mode(page.parent().unwrap())], [0o600, 0o600, 0o700]);
    place.expect(2, &["rm", "first"]);
    place.expect(0, &["rm", "first", "--yes"]);
    assert!(!page.exists() && count(&[]) == 1);
    place.expect(2, &["rm", "1", "--yes"]);
}

#[test]
fn every_transaction_is_a_line_of_the_log() {
    let (place, target) = Place::with_warehouse();
    let args = [&SHORT[..], &["--target", &target, "--transaction-log", "log.csv"]].concat();
    place.expect(0, &args);
    let log = std::fs::read_to_string(place.path("log.csv")).unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("end_unix_us,point,user,type,result,service_us,response_us,retries"));
    let run = place.report("last");
    let rows = run["points"][0]["latency"].as_array().unwrap();
    let mut by_type = vec![0_u64; rows.len()];
    let mut by_user = [0, 0];
    for line in lines {
        let fields: Vec<u64> = line.split(',').map(|field| field.parse().unwrap_or(0)).collect();
        assert!(fields[0] > 1_700_000_000_000_000 && fields[6] == fields[5], "{line}");
        by_user[fields[2] as usize] += 1;
        by_type[fields[3] as usize] += 1;
    }
    assert_eq!(by_user, [50, 50]);
    let counted =
        |row: &serde_json::Value| row["committed"].as_u64().unwrap() + row["rolled_back"].as_u64().unwrap();
    assert_eq!(by_type, rows.iter().map(counted).collect::<Vec<_>>());
    let refused = place.run(&args);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(std::fs::read_to_string(place.path("log.csv")).unwrap(), log);
}

#[test]
fn trial_d10_a_run_ends_with_its_terminal() {
    let (place, target) = Place::with_warehouse();
    let args = ["run", "tproc-c", "--target", &target, "--ramp-up", "0s", "--duration", "10m"];
    let mut child = place.command(&args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().starts_with("measure ")));
    // From now on its output is not read, as after a hang-up.
    drop(lines);
    signal(child.id(), "HUP");
    let mut code = None;
    wait_until("the run has ended", || {
        code = child.try_wait().unwrap();
        code.is_some()
    });
    assert_eq!(code.unwrap().code(), Some(130));
    assert_eq!(place.report("last")["state"], "partial");
}

/// One run gets the number of warehouses as a flag, the other detects it: their specifications are equal.
#[test]
fn trial_d9_warehouses_that_were_found_are_those_of_the_specification() {
    let place = Place::new();
    let target = format!("sqlite:{}", place.path("own.db").display());
    let load =
        ["run", "tproc-c", "--target", &target, "-u", "1", "--transactions", "20", "--no-observe", "-q"];
    place.expect(0, &[&load[..], &["-w", "2"]].concat());
    place.expect(0, &load);
    assert!(place.report("last")["spec_toml"].as_str().unwrap().contains("warehouses = 2"));
    let shown = place.expect(0, &["compare", "1", "2"]);
    assert!(!shown.contains("warehouses"), "{shown}");
}
