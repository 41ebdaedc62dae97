//! TPROC-H through the command: equal answers on three engines, the tests and their metrics, an interrupted build, and void
//! runs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../database/tests/mysql_support/mod.rs"]
mod mysql_support;
mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use kelvin_database::mysql::{Config, MysqlEngine};
use kelvin_database::postgres::PostgresEngine;
use kelvin_database::sqlite::SqliteEngine;
use kelvin_database::{Engine as _, Session};
use serde_json::Value;
use support::{Place, Server, text, wait_until};

/// Rows and digest of each query in the last run, with the judgement of its answer.
fn answers(place: &Place) -> BTreeMap<String, (u64, String)> {
    let report = place.report("last");
    let rows = report["queries"]["rows"].as_array().unwrap().clone();
    let row = |row: &Value| {
        let text = |name: &str| row[name].as_str().unwrap_or_default().to_owned();
        let digest = text("digest");
        assert_eq!((digest.len(), text("state").as_str()), (16, "unchecked"), "{row}");
        (text("query"), (row["rows"].as_u64().unwrap(), digest))
    };
    rows.iter().filter(|row| row["digest"].is_string()).map(row).collect()
}

/// Builds, checks, and runs the power test without refresh functions; returns the answers.
fn power_test(target: &str) -> (Place, BTreeMap<String, (u64, String)>) {
    let place = Place::new();
    let words = ["tproc-h", "--scale", "0.01", "--target", target];
    let with = |before: &[&'static str], after: &[&'static str]| {
        let words = [before, &words, after].concat();
        place.expect(0, &words)
    };
    let checked = with(&["build"], &["-q"]);
    assert!(!checked.contains("FAIL"), "{checked}");
    let shown = with(&["run"], &["--streams", "0", "--no-refresh", "--seed", "3"]);
    assert!(shown.contains("TPROC-H at scale factor 0.01: power"), "{shown}");
    let answers = answers(&place);
    (place, answers)
}

#[test]
fn the_22_answers_are_equal_on_sqlite_postgres_and_mariadb() {
    let (postgres, mariadb) = (Server::start(), mysql_support::Server::start());
    let mariadb_url = format!("mysql://root@/kelvin?socket={}", mariadb.socket().display());
    let directory = tempfile::tempdir().unwrap();
    let sqlite_url = format!("sqlite:{}", directory.path().join("h.db").display());
    let urls = [postgres.url(), mariadb_url, sqlite_url];
    let found = std::thread::scope(|scope| {
        let tests = urls.each_ref().map(|url| scope.spawn(move || power_test(url)));
        tests.map(|test| test.join().unwrap())
    });
    let [(place, postgres_answers), (maria, mariadb_answers), (sqlite, sqlite_answers)] = found;
    assert_eq!(postgres_answers.len(), 22);
    assert_eq!(postgres_answers["Q1"].0, 4);
    assert_eq!(mariadb_answers, postgres_answers);
    assert_eq!(sqlite_answers, postgres_answers);
    // PostgreSQL's plans are stored.
    let report = place.report("last");
    let plans = report["queries"]["rows"].as_array().unwrap().iter().filter(|row| row["plan"].is_string());
    assert_eq!(plans.count(), 22);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            hammerdbs_tables_on_mariadb(&maria, &urls[1], mariadb_answers);
            the_tests_on(&maria, &urls[1]);
        });
        the_tests_on(&place, &urls[0]);
    });
    a_tenant_on(&sqlite, &directory.path().join("h.db"));
    a_failure_on(&sqlite, &directory.path().join("h.db"));
}

/// HammerDB's tables on MariaDB have upper-case names, latin1 texts, shorter decimals, and integers for quantities and supply
/// costs. These are rounded, which changes three answers.
fn hammerdbs_tables_on_mariadb(
    place: &Place,
    url: &str,
    mut answers_of_ours: BTreeMap<String, (u64, String)>,
) {
    let mut session = MysqlEngine::new(Config::parse(url).unwrap()).connect().unwrap();
    session.run("create database hammer").unwrap();
    for table in ["region", "nation", "supplier", "part", "partsupp", "customer", "orders", "lineitem"] {
        let theirs = format!("hammer.{}", table.to_uppercase());
        session.run(&format!("create table {theirs} like kelvin.{table}")).unwrap();
        session.run(&format!("insert into {theirs} select * from kelvin.{table}")).unwrap();
        session
            .run(&format!("alter table {theirs} convert to character set latin1 collate latin1_bin"))
            .unwrap();
    }
    for change in [
        "LINEITEM modify L_QUANTITY int not null, modify L_EXTENDEDPRICE decimal(10,2) not null, \
         modify L_DISCOUNT decimal(10,2) not null, modify L_TAX decimal(10,2) not null",
        "PARTSUPP modify PS_SUPPLYCOST int not null",
        "ORDERS modify O_TOTALPRICE decimal(10,2)",
    ] {
        session.run(&format!("alter table hammer.{change}")).unwrap();
    }
    let target = url.replace("/kelvin?", "/hammer?");
    let words = ["tproc-h", "--target", &target];
    place.expect(2, &[&["run"], &words[..], &["--streams", "0"]].concat());
    let run = ["--streams", "0", "--no-refresh", "--seed", "3"];
    place.expect(0, &[&["run"], &words[..], &run].concat());
    let mut found = answers(place);
    assert_eq!(found.len(), 22);
    for query in ["Q2", "Q9", "Q11"] {
        found.remove(query);
        answers_of_ours.remove(query);
    }
    assert_eq!(found, answers_of_ours);
    let checked = place.expect(0, &[&["check"], &words[..]].concat());
    assert!(checked.contains("every line has an order"), "{checked}");
    let refused = text(&place.run(&[&["drop"], &words[..], &["--yes"]].concat()).stderr);
    assert!(refused.contains("does not remove them"), "{refused}");
}

/// A tenant beside another load, which the timeline ends.
fn a_tenant_on(place: &Place, file: &Path) {
    let target = format!("sqlite:{}", file.display());
    let scenario = format!(
        "scenario = \"reports\"\n[tenants.h]\nworkload = \"tproc-h\"\ntarget = \"{target}\"\n\
         [tenants.h.tproc-h]\nprofile = \"hammerdb\"\nquery-sets = SETS\nqueries = [6]\n\
         [tenants.h.load]\nusers = 2\n\
         [[steps]]\nstart = \"h\"\n[[steps]]\nwait = \"3s\"\n[[steps]]\nstop = \"h\"\n"
    );
    place.write("ends.toml", scenario.replace("SETS", "1"));
    let refused = text(&place.run(&["run", "ends.toml"]).stderr);
    assert!(refused.contains("query-sets = 0"), "{refused}");
    place.write("tenant.toml", scenario.replace("SETS", "0"));
    let output = place.run(&["run", "tenant.toml"]);
    let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert!(matches!(output.status.code(), Some(0 | 3)) || place.is_noise(), "{shown}");
    let csv = place.expect(0, &["report", "last", "--csv"]);
    assert!(csv.contains("Q6"), "{csv}");
}

/// A query that fails voids the metric and is named; the later queries are executed.
fn a_failure_on(place: &Place, file: &Path) {
    let engine = SqliteEngine::open(file).unwrap();
    engine.connect().unwrap().run("alter table region rename column r_name to renamed").unwrap();
    let target = format!("sqlite:{}", file.display());
    let words = ["run", "tproc-h", "--target", &target, "--streams", "0", "--queries", "5,7", "--no-refresh"];
    let output = place.run(&words);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("Q5 of stream 0 failed: ") && shown.contains("no result"), "{shown}");
    let report = place.report("last");
    assert_eq!((&report["queries"]["power"], report["state"].as_str()), (&Value::Null, Some("void")));
    let states =
        report["queries"]["rows"].as_array().unwrap().iter().map(|row| row["state"].as_str().unwrap());
    assert_eq!(states.collect::<Vec<_>>(), ["failed", "unchecked"]);
}

/// Power and throughput tests with refresh functions, on the data of [`power_test`].
fn the_tests_on(place: &Place, target: &str) {
    let words = ["run", "tproc-h", "--target", target, "--streams", "2", "--queries", "1,6,14"];
    let shown = place.expect(0, &words);
    assert!(shown.contains("composite"), "{shown}");
    let report = place.report("last");
    let limits = report["queries"]["limits"].as_array().unwrap();
    assert_eq!(limits[0], "power test with queries 1, 6, 14 only");
    let executions = report["queries"]["executions"].as_array().unwrap();
    let count = |test: &str, query: &str| {
        executions.iter().filter(|one| one["test"] == test && one["query"] == query).count()
    };
    assert_eq!([count("power", "RF1"), count("power", "Q6"), count("power", "RF2")], [1, 1, 1]);
    assert_eq!(
        [count("throughput", "RF1"), count("throughput", "Q6"), count("throughput", "RF2")],
        [2, 2, 2]
    );
    // The 15 orders of a window, with 1 to 7 lines each, were inserted and deleted three times; the check knows this.
    let changed = |query: &str| {
        executions
            .iter()
            .filter(|one| one["query"] == query)
            .map(|one| one["rows"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(changed("RF1"), changed("RF2"));
    assert!(changed("RF2").iter().all(|rows| (30..=120).contains(rows)), "{:?}", changed("RF2"));
    let checked = place.expect(0, &["check", "tproc-h", "--target", target]);
    assert!(checked.contains("every order has a line"), "{checked}");
    let csv = place.expect(0, &["report", "last", "--csv=queries"]);
    assert_eq!(csv.lines().count(), 1 + executions.len());
    // As in HammerDB, users execute query sets.
    let words = [
        "run",
        "tproc-h",
        "--target",
        target,
        "--profile",
        "hammerdb",
        "--users",
        "1,2",
        "--query-sets",
        "2",
        "--queries",
        "6,14",
    ];
    let shown = place.expect(0, &words);
    assert!(shown.contains("geometric mean of the queries with 2 users "), "{shown}");
    let queries = &place.report("last")["queries"];
    assert_eq!(queries["executions"].as_array().unwrap().len(), 12);
    assert_eq!(queries["geometric_mean"], Value::Null);
    let users = |point: usize| queries["point_means"][point]["users"].as_array().unwrap().len();
    assert_eq!([users(0), users(1)], [1, 2]);
    trickles_on(place, target);
    let dropped = place.expect(0, &["drop", "tproc-h", "--target", target, "--yes"]);
    assert!(!dropped.contains("error"), "{dropped}");
    place.expect(2, &["run", "tproc-h", "--target", target, "--no-build"]);
}

/// Trickle refresh beside the queries, in both profiles.
fn trickles_on(place: &Place, target: &str) {
    let words = ["run", "tproc-h", "--target", target, "--trickle-refresh", "1", "--queries", "1,6,14"];
    place.expect(2, &[&words[..], &["--streams", "0"]].concat());
    place.expect(2, &[&words[..], &["--profile", "hammerdb", "--users", "1"]].concat());
    place.expect(0, &[&words[..], &["--streams", "2"]].concat());
    let report = place.report("last");
    let executions = report["queries"]["executions"].as_array().unwrap();
    let of = |test: &str, query: &str| -> Vec<&Value> {
        executions.iter().filter(|one| one["test"] == test && one["query"] == query).collect()
    };
    assert_eq!((of("power", "RF1").len(), of("throughput", "RF1").len()), (1, 2));
    assert!(of("power", "RF1")[0]["detail"].is_null(), "{:?}", of("power", "RF1"));
    let first = of("throughput", "RF1")[0];
    assert!(first["detail"].as_str().is_some_and(|detail| detail.ends_with(" transactions")), "{first}");
    assert_eq!(first["rows"], of("throughput", "RF2")[0]["rows"]);
    assert!(report["queries"]["throughput"].is_f64(), "{report:#}");
    let hammerdb = ["--profile", "hammerdb", "--users", "3", "--query-sets", "2"];
    place.expect(0, &[&words[..], &hammerdb].concat());
    let report = place.report("last");
    let queries = &report["queries"];
    let point = &queries["point_means"][0];
    assert_eq!(point["users"].as_array().unwrap().len(), 2, "{point}");
    assert!(queries["geometric_mean"].is_f64(), "{queries}");
    assert!(queries["limits"].to_string().contains("during a trickle refresh"), "{}", queries["limits"]);
    let count = |query: &str| {
        queries["executions"].as_array().unwrap().iter().filter(|one| one["query"] == query).count()
    };
    assert_eq!((count("Q6"), count("RF1") > 0, count("RF1")), (4, true, count("RF2")));
    let checked = place.expect(0, &["check", "tproc-h", "--target", target]);
    assert!(checked.contains("every order has a line"), "{checked}");
}

/// A session of the server's superuser.
fn on(server: &Server) -> Box<dyn Session> {
    PostgresEngine::new(server.instance.config()).connect().unwrap()
}

/// The finding with this id in the last run, as text; empty if there is none. No other finding may be red, except that of a
/// plan that a fault has made slow.
fn finding(place: &Place, id: &str) -> String {
    let report = place.report("last");
    let findings = report["findings"].as_array().unwrap();
    let allowed = ["steal", "noisy-neighbour", "client-saturated", "changed-plan"];
    let bad = |one: &&Value| one["severity"] == "red" && !allowed.contains(&one["id"].as_str().unwrap());
    assert!(findings.iter().find(bad).is_none(), "{findings:#?}");
    findings.iter().find(|one| one["id"] == id).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn faults_that_are_planted_are_found_in_the_plans_of_the_queries() {
    let (server, place) = (Server::start(), Place::new());
    let url = server.url();
    place.expect(0, &["build", "tproc-h", "--scale", "0.03", "--target", &url, "--no-check", "-q"]);
    let words = ["run", "tproc-h", "--target", &url, "--streams", "0", "--no-refresh", "--queries", "1,9,18"];
    let set = |setting: &str| on(&server).run(&format!("alter database kelvin set {setting}")).unwrap();
    let reset = |name: &str| on(&server).run(&format!("alter database kelvin reset {name}")).unwrap();
    let run = |id: &str| {
        place.expect(0, &words);
        finding(&place, id)
    };
    // A healthy run: plans are stored, and there is no finding about them.
    assert_eq!(run("temporary-files"), "");
    let report = place.report("last");
    let analyses = report["queries"]["analyses"].as_array().unwrap();
    assert_eq!(analyses.len(), 3);
    for one in analyses {
        assert!(
            one["hit_bytes"].as_u64().unwrap() > 100_000 && one["took_ms"].as_f64().unwrap() > 0.0,
            "{one}"
        );
        assert!(one["waits"].as_array().is_some_and(|waits| waits[0]["ms"].as_f64() > Some(0.0)), "{one}");
        let same = |row: &&Value| row["query"] == one["query"] && row["plan"] == one["plan"];
        assert!(report["queries"]["rows"].as_array().unwrap().iter().find(same).is_some(), "{one}");
    }
    // The planner cannot know that no order of query 18 is large enough; the rows that query 1 reads are known.
    assert!(!finding(&place, "misestimate").contains("Q1 expected"));
    for id in ["parallel-workers", "changed-plan", "missing-statistics"] {
        assert_eq!(finding(&place, id), "", "{id}");
    }
    // Other parameters for the same queries, with the same plans.
    place.expect(0, &[&words[..], &["--no-analyze"]].concat());
    assert_eq!(place.report("last")["queries"]["analyses"], Value::Null);

    set("work_mem = '64kB'");
    let spilled = run("temporary-files");
    assert!(spilled.contains("Q9 spilled"), "{spilled}");
    assert!(spilled.contains("work_mem"), "{spilled}");
    reset("work_mem");

    on(&server)
        .run("update pg_class set reltuples = 1, relpages = 10000 where relname = 'lineitem'")
        .unwrap();
    let wrong = run("misestimate");
    assert!(wrong.contains("Q1 expected") && wrong.contains("public.lineitem"), "{wrong}");
    on(&server).run("delete from pg_statistic").unwrap();
    on(&server).run("analyze orders").unwrap();
    let missing = run("missing-statistics");
    assert!(missing.contains("public.lineitem") && !missing.contains("public.orders"), "{missing}");
    on(&server).run("vacuum analyze").unwrap();
    place.expect(0, &words);

    set("enable_hashjoin = off");
    let changed = run("changed-plan");
    assert!(changed.contains("different plan"), "{changed}");
    reset("enable_hashjoin");

    for setting in ["max_parallel_workers = 0", "min_parallel_table_scan_size = 0", "parallel_setup_cost = 0"]
    {
        set(setting);
    }
    let short = run("parallel-workers");
    assert!(short.contains("did not get") && short.contains("max_parallel_workers"), "{short}");
    for name in ["max_parallel_workers", "min_parallel_table_scan_size", "parallel_setup_cost"] {
        reset(name);
    }
    partitions(&place, &server);
    types_of_hammerdb(&place, &server);
}

/// Partitions by year help a query on the year of shipping, but not one on the year of receipt.
fn partitions(place: &Place, server: &Server) {
    on(server).run("create database parts").unwrap();
    let url = server.url().replace("@/kelvin?", "@/parts?");
    let target = ["tproc-h", "--target", &url];
    let with =
        |command: &'static str, more: &[&str]| place.expect(0, &[&[command], &target[..], more].concat());
    with("build", &["--scale", "0.01", "--partition", "-q"]);
    with("run", &["--streams", "0", "--no-refresh", "--queries", "6,12"]);
    let scanned = finding(place, "partition-scan");
    assert!(scanned.contains("Q12 read") && !scanned.contains("Q6"), "{scanned}");
    assert!(scanned.contains("7 partitions of lineitem"), "{scanned}");
    with("drop", &["--yes"]);
    // Tables without partitions have other plans, which is not a change of plans.
    with("build", &["--scale", "0.01", "-q"]);
    with("run", &["--streams", "0", "--no-refresh", "--queries", "6,12"]);
    assert_eq!(finding(place, "changed-plan"), "");
    with("drop", &["--yes"]);
    let columns = ["build", "tproc-h", "--scale", "0.01", "--colstore", "--target", &url];
    place.expect(2, &columns);
    let refused = ["build", "tproc-h", "--scale", "0.01", "--partition", "--target", "sqlite:p.db"];
    place.expect(2, &refused);
}

/// HammerDB's tables on PostgreSQL use numeric for keys and counts, and timestamps for dates. The answers are the same.
fn types_of_hammerdb(place: &Place, server: &Server) {
    let url = server.url();
    let run = ["run", "tproc-h", "--target", &url, "--streams", "0", "--no-refresh", "--no-analyze"];
    place.expect(0, &run);
    let ours = answers(place);
    let mut session = on(server);
    let columns = session
        .query(
            "select table_name, string_agg(format('alter column %I type %s', column_name, \
             case data_type when 'date' then 'timestamp' else 'numeric' end), ', ') from information_schema.columns \
             where table_schema = 'public' and table_name !~ 'kelvin' \
             and data_type in ('date', 'integer', 'bigint', 'numeric') group by 1",
        )
        .unwrap();
    assert_eq!(columns.len(), 8);
    for row in 0..8 {
        let (table, types) = (columns.text(row, 0).unwrap(), columns.text(row, 1).unwrap());
        session.run(&format!("alter table {table} {types}")).unwrap();
    }
    session.run("drop table kelvin_tproc_h, kelvin_tproc_h_loaded").unwrap();
    session.run("vacuum analyze").unwrap();
    place.expect(2, &["run", "tproc-h", "--target", &url, "--streams", "0"]);
    place.expect(0, &run);
    assert_eq!(answers(place), ours);
    assert_eq!(ours.len(), 22);
    place.expect(2, &["drop", "tproc-h", "--target", &url, "--yes"]);
}

/// The states of the queries and refresh functions of the last run.
fn states(place: &Place) -> BTreeMap<String, String> {
    let report = place.report("last");
    let rows = report["queries"]["rows"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(&row["query"]), text(&row["state"]))).collect()
}

#[test]
fn a_server_killed_in_query_9_voids_the_figure_and_loses_nothing_and_a_killed_build_goes_on() {
    let (mut server, place) = (Server::start(), Place::new());
    let url = server.url();
    // The build loads lineitem in two parts.
    let build = ["build", "tproc-h", "--scale", "0.09", "--target", &url, "--loaders", "1", "-q"];
    let mut child = place.command(&build).spawn().unwrap();
    let loaded = |server: &Server| {
        let mut session = on(server);
        let rows =
            session.query("select name, part, xmin::text::bigint from kelvin_tproc_h_loaded order by 3");
        let Ok(rows) = rows else { return Vec::new() };
        let row = |row| {
            (rows.text(row, 0).unwrap().to_owned(), rows.int(row, 1).unwrap(), rows.int(row, 2).unwrap())
        };
        (0..rows.len()).map(row).collect()
    };
    wait_until("a part is loaded", || !loaded(&server).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    place.expect(2, &["run", "tproc-h", "--target", &url, "--no-build"]);
    let before = loaded(&server);
    assert!(before.len() < 9 && before[0].0 == "lineitem", "{before:?}");
    place.expect(0, &build);
    let after = loaded(&server);
    // The parts loaded before are unchanged, including their transactions.
    assert_eq!((&after[..before.len()], after.len()), (&before[..], 9));

    // Only query 9 joins large tables: without indexes and hash joins it takes seconds.
    for name in ["hashjoin", "mergejoin", "indexscan", "bitmapscan", "indexonlyscan", "memoize", "material"] {
        on(&server).run(&format!("alter database kelvin set enable_{name} = off")).unwrap();
    }
    let run = ["run", "tproc-h", "--target", &url, "--streams", "0", "--queries", "1,6,9", "--no-analyze"];
    let child = place.command(&run).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let in_query_9 = "select count(*) from pg_stat_activity where state = 'active' and pid <> pg_backend_pid() \
        and query like '%p_name like%' and query not like 'explain%'";
    wait_until("query 9 is executed", || on(&server).query(in_query_9).unwrap().int(0, 0).unwrap() > 0);
    server.stop_immediately();
    server.start_again();
    let output = child.wait_with_output().unwrap();
    let shown = format!("{}\n{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("Q9 of stream 0 failed: "), "{shown}");
    let wanted = [("Q1", "unchecked"), ("Q6", "unchecked"), ("Q9", "failed")];
    let refreshed = [("RF1", "unchecked"), ("RF2", "unchecked")];
    let wanted: BTreeMap<_, _> = wanted
        .into_iter()
        .chain(refreshed)
        .map(|(query, state)| (query.to_owned(), state.to_owned()))
        .collect();
    assert_eq!(states(&place), wanted);
    let report = place.report("last");
    assert_eq!((&report["queries"]["power"], report["state"].as_str()), (&Value::Null, Some("void")));
    for name in ["hashjoin", "indexscan", "bitmapscan", "indexonlyscan"] {
        on(&server).run(&format!("alter database kelvin reset enable_{name}")).unwrap();
    }
    let checked = place.expect(0, &["check", "tproc-h", "--target", &url]);
    assert!(checked.contains("every order has a line"), "{checked}");
}

/// Tests that take minutes on a quiet machine.
mod machine {
    use super::*;

    #[test]
    #[ignore = "loads a gigabyte: cargo xtask machine"]
    fn at_scale_factor_1_the_answers_are_the_published_ones() {
        let (server, place) = (Server::start(), Place::new());
        place.expect(0, &["build", "tproc-h", "--scale", "1", "--target", &server.url(), "-q"]);
        let checked = place.expect(0, &["check", "tproc-h", "--target", &server.url(), "--validate"]);
        for query in 1..=22 {
            assert!(
                checked.contains(&format!("the answer to query {query} is the published one")),
                "{checked}"
            );
        }
    }
}
