//! `kelvin waits` and `kelvin top-sql` on real servers: planted problems are found, named and shown without values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "support/own_statements.rs"]
mod own_statements;
#[path = "../../database/tests/support/mod.rs"]
mod postgres_support;
#[allow(dead_code, reason = "its engine is for other tests")]
#[path = "../../diagnose/tests/sqlserver/recording.rs"]
mod recording;
#[path = "waits/sqlserver_replay.rs"]
mod sqlserver_replay;
mod support;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kelvin_database::Session;
use serde_json::Value;
use support::{Place, text};

/// A session that repeats a statement with pauses, until dropped.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(mut session: Box<dyn Session>, statements: &'static [&'static str], pause: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for sql in statements {
                    session.query(sql).unwrap();
                }
                std::thread::sleep(Duration::from_millis(pause));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _panicked = self.thread.take().unwrap().join();
    }
}

fn json(place: &Place, args: &[&str]) -> Value {
    let stdout = place.expect(0, &[args, &["--json", "-q"]].concat());
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

fn words(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// One session locks a row and is idle in its transaction, another one waits for it: both are named, and the wait is a row
/// lock.
#[track_caller]
fn row_lock_is_seen(
    place: &Place,
    target: &str,
    mut open: impl FnMut() -> Box<dyn Session>,
    id: &str,
    relation: &str,
) -> Value {
    let mut holder = open();
    let mut waiter = open();
    let [blocker, blocked] =
        [&mut holder, &mut waiter].map(|session| session.query(id).unwrap().int(0, 0).unwrap());
    holder.run("BEGIN").unwrap();
    holder.run("UPDATE hot SET n = n + 1 WHERE id = 1").unwrap();
    let waiting =
        std::thread::spawn(move || waiter.run("UPDATE hot SET n = n + 2 WHERE id = 1 AND 'hush' = 'hush'"));
    let seen = json(place, &["waits", "--target", target, "--duration", "3s"]);
    let shown = place.expect(0, &["waits", "--target", target, "--duration", "2s", "-q"]);
    holder.run("ROLLBACK").unwrap();
    waiting.join().unwrap().unwrap();

    let class = &seen["classes"][0];
    assert_eq!(class["class"], "row-lock", "{seen:#}");
    assert!(class["share"].as_f64().unwrap() > 0.9, "{class:#}");
    assert!((0.7..1.2).contains(&class["sessions"].as_f64().unwrap()), "{class:#}");
    let statement = words(&class["statements"][0]["text"]).to_lowercase();
    assert!(statement.contains("hot") && statement.contains('n'), "{statement}");
    assert!(seen["idle_in_transaction"].as_f64().unwrap() > 0.7, "{seen:#}");
    let pair = &seen["blocked"][0];
    assert_eq!(
        (pair["session"].as_i64(), pair["blocker"].as_i64()),
        (Some(blocked), Some(blocker)),
        "{seen:#}"
    );
    assert_eq!(pair["waits_for"], format!("row of {relation}"));
    assert_eq!(pair["blocker_doing"], "idle in transaction");
    assert!(pair["waited_ms"].as_f64().unwrap() >= 1000.0, "{pair:#}");
    assert!(words(&pair["statement"]).starts_with("UPDATE hot SET n = n + ?"), "{pair:#}");
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["row locks", "Blocked sessions", &format!("row of {relation}"), "Statements behind each class"]
    {
        assert!(flat.contains(part), "no {part} in\n{shown}");
    }
    assert!(!shown.contains("hush") && !seen.to_string().contains("hush"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    seen
}

/// The statement in a list that contains this text.
#[track_caller]
fn find<'a>(top: &'a Value, part: &str) -> &'a Value {
    let all = top["statements"].as_array().unwrap();
    let found = all.iter().find(|one| words(&one["text"]).to_lowercase().contains(part));
    found.unwrap_or_else(|| panic!("no {part} in {top:#}"))
}

/// A plan that differs from the one in a saved measurement is shown with the earlier one.
#[track_caller]
fn plan_change_is_seen(place: &Place, target: &str, part: &str, drop_index: impl FnOnce()) {
    let look = ["top-sql", "--target", target, "--plans=all", "--limit", "50", "-d", "2s"];
    let before = json(place, &[&look[..], &["--save", "look.json", "--save-plans", "plans"]].concat());
    drop_index();
    let after = json(place, &[&look[..], &["--since", "look.json"]].concat());
    let [then, now] = [&before, &after].map(|top| find(top, part));
    assert_eq!(then["query"], now["query"]);
    assert!(then["plan"].is_string() && then["plan"] != now["plan"], "{then:#} {now:#}");
    let changes = after["since"]["changes"].as_array().unwrap();
    let change = changes.iter().find(|one| one["query"] == now["query"]).unwrap();
    assert_eq!((&change["plan"]["before"], &change["plan"]["now"]), (&then["plan"], &now["plan"]));
    assert_eq!(change["plan"]["before_text"], then["plan_text"]);
    let saved = place.path("look.json");
    assert_eq!(std::fs::metadata(&saved).unwrap().permissions().mode() & 0o777, 0o600);
    let plan = format!("plans/{}-{}.txt", words(&then["query"]), words(&then["plan"]));
    assert_eq!(std::fs::read_to_string(place.path(&plan)).unwrap().trim_end(), words(&then["plan_text"]));
    let shown = place.expect(0, &["top-sql", "--target", target, "-d", "1s", "--since", "look.json", "-q"]);
    assert!(shown.contains("give --plans to compare plans as well"), "{shown}");
}

#[test]
fn a_postgres_server_reports_waits_and_statements() {
    let settings =
        "shared_preload_libraries='pg_stat_statements'\nmax_parallel_workers_per_gather=0\nautovacuum=off";
    let server = postgres_support::Server::start_with(settings, "local all all trust\n", |_| {});
    let mut session = server.session();
    session
        .run(
            "CREATE EXTENSION pg_stat_statements; CREATE ROLE plain LOGIN; \
             CREATE TABLE hot (id int PRIMARY KEY, n int); INSERT INTO hot VALUES (1, 0); \
             CREATE TABLE wide (id int, pad text); INSERT INTO wide SELECT i, repeat('x', 50) FROM generate_series(1, 20000) i; \
             CREATE INDEX wide_id ON wide (id); ANALYZE wide",
        )
        .unwrap();
    session.run("CREATE DATABASE bare").unwrap();
    let place = Place::new();
    let config = server.unix();
    let target = config.to_string();
    let of = |user: &str, database: &str| {
        let mut other = config.clone();
        (other.user, other.database) = (user.into(), database.into());
        other.to_string()
    };
    let seen =
        row_lock_is_seen(&place, &target, || server.session(), "SELECT pg_backend_pid()", "public.hot");
    assert_eq!(seen["counted"], false);
    let plain = json(&place, &["waits", "--target", &of("plain", "postgres"), "--duration", "1s"]);
    assert!(plain["not_seen"].to_string().contains("pg_monitor"), "{plain:#}");
    let plain = json(&place, &["top-sql", "--target", &of("plain", "postgres"), "--since-start"]);
    assert!(plain["not_seen"].to_string().contains("pg_monitor"), "{plain:#}");
    watching_ends_with_the_totals(&place, &target);
    own_statements::are_left_out(&place, &config);

    let heavy = Load::start(
        server.session(),
        &["SELECT sum(sqrt(i)) FROM generate_series(1, 100000) AS i WHERE 'hush' <> ''"],
        0,
    );
    let light = Load::start(server.session(), &["SELECT id FROM wide WHERE id = 77"], 5);
    let top = json(&place, &["top-sql", "--target", &target, "-d", "2s"]);
    assert!(words(&top["statements"][0]["text"]).contains("sqrt"), "{top:#}");
    assert!(top["statements"][0]["share"].as_f64().unwrap() > 0.5, "{top:#}");
    assert_eq!(top["statements"][0]["waits"][0][0], "CPU", "{top:#}");
    let by_calls =
        json(&place, &["top-sql", "--target", &target, "-d", "1s", "--by", "calls", "--limit", "1"]);
    assert!(!words(&by_calls["statements"][0]["text"]).contains("sqrt"), "{by_calls:#}");
    let since_start = place.expect(0, &["top-sql", "--target", &target, "--since-start", "-q"]);
    assert!(since_start.contains("since the counters began at 20"), "{since_start}");

    // Without the extension, the statements are those sampled from the sessions.
    let bare = of("kelvin", "bare");
    let sampled = json(&place, &["top-sql", "--target", &bare, "-d", "2s"]);
    assert_eq!(sampled["counted"], false);
    assert!(words(&sampled["not_counted"]).contains("CREATE EXTENSION pg_stat_statements"), "{sampled:#}");
    assert!(find(&sampled, "sqrt")["elapsed_ms"].as_f64().unwrap() > 500.0, "{sampled:#}");
    for refused in ["--by=reads", "--since-start"] {
        let output = place.run(&["top-sql", "--target", &bare, refused]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("CREATE EXTENSION"), "{}", text(&output.stderr));
    }
    for shown in [&top.to_string(), &sampled.to_string(), &since_start] {
        assert!(!shown.contains("hush"), "{shown}");
    }
    drop(heavy);
    plan_change_is_seen(&place, &target, "from wide where id", || session.run("DROP INDEX wide_id").unwrap());
    drop(light);
}

/// Without a terminal, a line for each interval; after Ctrl-C, the totals.
fn watching_ends_with_the_totals(place: &Place, target: &str) {
    let mut command = place.command(&["waits", "--target", target, "--watch", "1s"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.contains("sessions by class"), "{line}");
    line.clear();
    out.read_line(&mut line).unwrap();
    assert!(line.trim().split(' ').next().unwrap().parse::<f64>().unwrap() >= 1.0, "{line}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(rest.contains("Waits by class") && rest.contains("active sessions on average"), "{rest}");
}

#[test]
fn a_mariadb_server_reports_waits_and_statements() {
    let server = mysql_support::Server::start_with(&["--performance-schema=ON"], |_| {});
    let mut session = server.session();
    session.run("CREATE TABLE hot (id INT PRIMARY KEY, n INT); INSERT INTO hot VALUES (1, 0)").unwrap();
    let place = Place::new();
    let target = format!("mysql://root@/kelvin?socket={}", server.socket().display());
    let id = "SELECT CAST(CONNECTION_ID() AS SIGNED)";
    let seen = row_lock_is_seen(&place, &target, || server.session(), id, "kelvin.hot");
    assert_eq!(seen["counted"], true);
    assert!(seen["classes"][0]["since_start"]["waits"].as_f64().unwrap() >= 1.0, "{seen:#}");
    let _heavy = Load::start(server.session(), &["SELECT BENCHMARK(200000, SHA1('hush'))"], 0);
    let _light = Load::start(server.session(), &["CREATE TABLE scratch (a INT)", "DROP TABLE scratch"], 20);
    let _quick = Load::start(server.session(), &["SELECT n FROM hot WHERE id = 1"], 20);
    let top = json(&place, &["top-sql", "--target", &target, "-d", "2s", "--plans"]);
    // MySQL keeps a sample of each counted statement; MariaDB has no values.
    let by = if mysql_support::is_mariadb() { "planned with '1' in the place of each value\n" } else { "" };
    let plan = words(&find(&top, "from `hot`")["plan_text"]);
    assert_eq!(plan, format!("{by}hot: const on PRIMARY (id), 1 rows"));
    assert!(words(&top["statements"][0]["text"]).to_lowercase().contains("benchmark"), "{top:#}");
    assert!(top["counted"] == true && !top.to_string().contains("hush"), "{top:#}");
    let files = json(&place, &["waits", "--target", &target, "-d", "2s"]);
    let timed = |file: &&Value| {
        ["reads", "writes", "syncs"].iter().any(|io| file[io]["total_ms"].as_f64() > Some(0.0))
    };
    let files = files["files"].as_array().unwrap();
    assert!(files.iter().any(|file| timed(&file)), "{files:#?}");
    // File names are relative to the data directory.
    assert!(files.iter().all(|file| !words(&file["name"]).contains("/data/")), "{files:#?}");
}

/// MariaDB's default: statements are sampled, and explained with the sampled text.
#[test]
fn a_mariadb_server_without_performance_schema_is_sampled() {
    let server = mysql_support::Server::start();
    let mut session = server.session();
    session
        .run("CREATE TABLE wide (id INT, pad VARCHAR(50)); INSERT INTO wide SELECT seq, REPEAT('x', 50) FROM seq_1_to_3000; CREATE INDEX wide_id ON wide (id)")
        .unwrap();
    let place = Place::new();
    let target = format!("mysql://root@/kelvin?socket={}", server.socket().display());
    let _load = Load::start(
        server.session(),
        &["SELECT SUM(a.id) FROM wide a JOIN wide b ON b.id = a.id WHERE a.pad <> 'hush'"],
        0,
    );
    let top = json(&place, &["top-sql", "--target", &target, "-d", "1s"]);
    assert_eq!(top["counted"], false);
    assert!(
        words(&top["not_counted"]).contains("performance_schema=ON") && !top.to_string().contains("hush")
    );
    assert!(words(&find(&top, "join wide")["text"]).contains("<> ?"), "{top:#}");
    plan_change_is_seen(&place, &target, "join wide", || session.run("DROP INDEX wide_id ON wide").unwrap());
}

/// No SQL Server is available here: a recording answers over its protocol as its views are documented.
#[test]
fn a_recorded_sql_server_reports_waits_and_statements() {
    let place = Place::new();
    let run = |name: &str, args: &[&str]| {
        let target =
            format!("sqlserver://sa@127.0.0.1:{}/tpcc?encrypt=optional", sqlserver_replay::serve(name));
        let mut command = place.command(&[&[args[0], "--target", &target], &args[1..]].concat());
        let output = command.env("MSSQL_PASSWORD", "hush").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = run("hot-page", &["waits", "-d", "2s", "-q"]);
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "SQL Server 16.0.4135.4",
        // The beginning of a long name is cut.
        "LATCH_EX of dbo.warehouse (warehouse_i1)",
        "signal",
        "row of dbo.warehouse",
        "tpcc log tpcc_log",
        "latch BUFFER",
        "spinlock LOCK_HASH",
    ] {
        assert!(flat.contains(part), "no {part} in\n{shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
    let top =
        run("slow-plan", &["top-sql", "-d", "2s", "-q", "--by", "cpu", "--json", "--save-plans", "plans"]);
    let top: Value = serde_json::from_str(top.lines().last().unwrap()).unwrap();
    let slow = find(&top, "count(distinct s_i_id)");
    assert_eq!((words(&slow["query"]), &top["counted"]), ("0000000000000FA3", &Value::Bool(true)));
    // Four parallel threads: CPU time exceeds elapsed time.
    assert!(slow["cpu_ms"].as_f64() > slow["elapsed_ms"].as_f64(), "{slow:#}");
    let file = place.path(&format!("plans/0000000000000FA3-{}.sqlplan", words(&slow["plan"])));
    let plan = std::fs::read_to_string(&file).unwrap();
    assert!(plan.starts_with("<ShowPlanXML") && plan.contains("CardinalityEstimationModelVersion=\"160\""));
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    for seen in [&shown, &top.to_string(), &plan] {
        assert!(!seen.contains("hush"), "{seen}");
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let place = Place::new();
    rusqlite::Connection::open(place.path("a.db"))
        .unwrap()
        .execute_batch("pragma journal_mode = wal; create table t (a)")
        .unwrap();
    place.write("other.json", "{\"kind\": \"something\"}");
    let nobody = "postgres://u@127.0.0.1:1/db";
    let mut seen = String::new();
    for args in [
        &["waits"][..],
        &["waits", "--target", "sqlite:a.db"],
        &["waits", "--target", nobody, "--watch", "100ms"],
        &["waits", "--target", nobody, "--watch", "1s", "--format", "csv"],
        &["waits", "--target", nobody, "--duration", "0s"],
        &["waits", "--target", nobody, "--sample-rate", "0"],
        &["waits", "--target", "postgres://u:hush@127.0.0.1/db"],
        &["top-sql", "--target", nobody, "--by", "heat"],
        &["top-sql", "--target", nobody, "--limit", "0"],
        &["top-sql", "--target", nobody, "--duration", "0s"],
        &["top-sql", "--target", nobody, "--duration", "1s", "--since-start"],
        &["top-sql", "--target", nobody, "--since", "absent.json"],
        &["top-sql", "--target", nobody, "--since", "other.json"],
        &["top-sql", "--target", nobody, "--plans=theirs"],
    ] {
        let output = place.run(args);
        let stderr = text(&output.stderr).replace(place.directory().to_str().unwrap(), "DIR");
        assert_eq!(output.status.code(), Some(2), "{args:?}\n{stderr}");
        assert!(!stderr.contains("panicked") && !stderr.contains("hush"), "{args:?}\n{stderr}");
        writeln!(seen, "## kelvin {}\n{}\n", args.join(" "), stderr.trim_end()).unwrap();
    }
    insta::assert_snapshot!(seen);
}
