//! Plans that `auto_explain` of a real PostgreSQL logs, in both of the formats that are read.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod postgres_support;

use kelvin_database::postgres::explain::{Node, Plan};
use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Watching, occurrences, readings};

#[test]
fn a_plan_in_the_servers_log_shows_the_rows_that_the_planner_missed() {
    assert_eq!(rows_missed("json"), rows_missed("text"));
}

/// What is reported about a statement whose plan is logged in a format: the subject, and the estimated and
/// actual rows.
fn rows_missed(format: &str) -> (String, f64, f64) {
    let server = Server::start_with("log_checkpoints=on", "local all all trust\n", |_| {});
    let mut session = server.session();
    // Two columns that are always the same: the planner takes their conditions for independent of each other.
    session
        .run(&format!(
            "CREATE TABLE parts (a int, b int, c int, filler text); \
             INSERT INTO parts SELECT id % 200, id % 200, id % 200, 'x' FROM generate_series(1, 400000) AS id; ANALYZE parts; \
             SET max_parallel_workers_per_gather = 0; LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET auto_explain.log_analyze = on; \
             SET auto_explain.log_format = '{format}'"
        ))
        .unwrap();
    let mut watching = Watching::start(server.unix(), &WatchPlan { looks: 20, ..WatchPlan::default() });
    watching.until("reading", |seen| readings(seen) >= 2);
    for _ in 0..3 {
        let rows = session.query("SELECT count(filler) FROM parts WHERE a = 7 AND b = 7 AND c = 7").unwrap();
        assert_eq!(rows.int(0, 0).unwrap(), 2000);
    }
    let is_reported = |seen: &[_]| occurrences(seen).any(|one| one.kind == "misestimate");
    watching.until("misestimate", is_reported);
    watching.for_seconds(1.0);
    watching.finish();
    let found: Vec<_> = watching.occurrences().into_iter().filter(|one| one.kind == "misestimate").collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].subject.contains("Seq Scan on parts: ") && found[0].subject.contains("a = ?"),
        "{found:?}"
    );
    let (estimated, actual) = (found[0].figures["estimated_rows"], found[0].figures["actual_rows"]);
    assert!(estimated <= 20.0 && actual >= 600.0, "{found:?}");
    (found[0].subject.clone(), estimated, actual)
}

#[test]
fn plans_in_a_log_that_cannot_be_read_are_reported_as_not_read_with_the_setting() {
    let not_read = |settings: &str| {
        let loaded = format!("session_preload_libraries=auto_explain\nlog_checkpoints=on\n{settings}");
        let server = Server::start_with(&loaded, "local all all trust\n", |_| {});
        let mut watching = Watching::start(server.unix(), &WatchPlan::default());
        watching.finish();
        let absent = watching.absent();
        let of_log = absent.iter().find(|one| one.what == "rows of plans in the server's log");
        of_log.map(|one| one.why.clone())
    };
    let threshold = "auto_explain.log_min_duration=100";
    let why = not_read(&format!("{threshold}\nauto_explain.log_format=yaml")).unwrap();
    assert!(
        why.contains("log_format is yaml; set it to text or json") && why.contains("log_analyze is off"),
        "{why}"
    );
    for format in ["text", "json"] {
        let read = format!("auto_explain.log_format={format}\nauto_explain.log_analyze=on");
        assert_eq!(not_read(&format!("{threshold}\n{read}")), None);
    }
    assert_eq!(not_read(""), None, "nothing is logged");
}

const TABLES: &str = "CREATE SCHEMA \"odd \"\"s\"; SET search_path = public, \"odd \"\"s\"; \
    CREATE TABLE parts (id int PRIMARY KEY, a int, f text); \
    INSERT INTO parts SELECT id, id % 100, repeat('x', 40) FROM generate_series(1, 20000) AS id; \
    CREATE TABLE \"odd \"\"s\".\"Of it's\" (\"i d\" int, g text); CREATE INDEX \"On it\" ON \"Of it's\" (\"i d\"); \
    INSERT INTO \"Of it's\" SELECT id, 'y' FROM generate_series(1, 5000) AS id; \
    CREATE TABLE whole (id int, v int) PARTITION BY RANGE (id); \
    CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (100); \
    CREATE TABLE high PARTITION OF whole FOR VALUES FROM (100) TO (200); \
    INSERT INTO whole SELECT id, id FROM generate_series(0, 199) AS id; \
    CREATE FUNCTION odd(int) RETURNS int LANGUAGE plpgsql STABLE AS 'BEGIN RETURN $1; END'";

/// Settings, and the statement. Those that change data change nothing, and one process does all of a parallel scan, so that both formats
/// show the same.
const STATEMENTS: [(&str, &str); 24] = [
    (
        "",
        "SELECT * FROM parts WHERE a = 7 AND f <> 'it''s\n  ->  Seq Scan on x  (cost=0.00..1.00 rows=1 width=4) (never executed)'",
    ),
    ("", "SELECT f\n\tFROM parts\n\nWHERE id = 5 -- Plan: 'x\n"),
    (
        "enable_seqscan=off",
        "SELECT \"i d\" FROM \"Of it's\" AS \"a\nb (\" WHERE \"i d\" BETWEEN 5 AND 9 LIMIT 4",
    ),
    (
        "enable_seqscan=off enable_indexscan=off",
        "SELECT * FROM \"Of it's\" WHERE \"i d\" < 50 OR \"i d\" = 77",
    ),
    ("", "SELECT * FROM parts ORDER BY id DESC LIMIT 3"),
    (
        "enable_hashjoin=off enable_mergejoin=off",
        "SELECT * FROM parts p JOIN parts q ON q.id = p.a WHERE p.a < 5",
    ),
    (
        "enable_hashjoin=off enable_mergejoin=off",
        "SELECT * FROM \"Of it's\" o LEFT JOIN parts q ON q.id = o.\"i d\" WHERE o.\"i d\" < 9",
    ),
    (
        "enable_hashjoin=off enable_nestloop=off",
        "SELECT * FROM parts p JOIN \"Of it's\" o ON o.\"i d\" = p.id AND o.g <> p.f",
    ),
    ("work_mem=64kB", "SELECT * FROM parts p JOIN parts q ON q.f = p.f AND q.id = p.id"),
    ("", "SELECT * FROM parts p WHERE NOT EXISTS (SELECT 1 FROM \"Of it's\" o WHERE o.\"i d\" = p.id)"),
    ("", "SELECT * FROM parts p FULL JOIN \"Of it's\" o ON o.\"i d\" = p.id"),
    ("work_mem=64kB", "SELECT id, a, f FROM parts ORDER BY f, id DESC"),
    ("work_mem=64kB enable_sort=off", "SELECT id, f, count(*) FROM parts GROUP BY id + 1, f, id"),
    (
        "",
        "WITH c AS MATERIALIZED (SELECT * FROM parts WHERE a = 3) SELECT (SELECT max(x.id) FROM parts x WHERE x.a = c.a), \
        (SELECT min(a) FROM parts) FROM c WHERE f <> 'q' LIMIT 2",
    ),
    (
        "",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 50) SELECT count(*) FROM r",
    ),
    ("", "SELECT * FROM generate_series(1, 30) AS s JOIN (VALUES (1), (2)) AS v (x) ON v.x = s, odd(s)"),
    ("", "SELECT v FROM whole WHERE id = odd(7) UNION ALL SELECT id FROM parts WHERE id < 3"),
    ("", "SELECT a FROM parts EXCEPT SELECT \"i d\" FROM \"Of it's\""),
    ("", "SELECT * FROM (SELECT a, row_number() OVER (ORDER BY id) AS n FROM parts) AS w WHERE n % 7 = 1"),
    ("", "UPDATE parts SET a = a WHERE id < 0"),
    ("", "DELETE FROM whole WHERE v < 0"),
    ("", "SELECT * FROM parts TABLESAMPLE SYSTEM (50) REPEATABLE (3) WHERE ctid <> '(0,1)'"),
    ("jit=on jit_above_cost=0", "SELECT count(*) FROM parts WHERE id = -1 AND a = 1"),
    (
        "parallel_setup_cost=0 parallel_tuple_cost=0 min_parallel_table_scan_size=0 min_parallel_index_scan_size=0 \
        max_parallel_workers_per_gather=1 parallel_leader_participation=off",
        "SELECT a, count(*) FROM parts GROUP BY a ORDER BY a",
    ),
];

/// Messages with plans in a server's log, without the tabs.
fn logged(log: &str) -> Vec<String> {
    let mut plans: Vec<String> = Vec::new();
    let mut is_plan = false;
    for line in log.split('\n') {
        match line.strip_prefix('\t') {
            Some(line) if is_plan => plans.last_mut().unwrap().extend([line, "\n"]),
            Some(_) => {}
            None => {
                is_plan = line.ends_with(" plan:");
                plans.extend(is_plan.then(String::new));
            }
        }
    }
    plans
}

/// Leaves out what differs from execution to execution, or what the text does not have.
fn alike(plan: &mut Plan, is_verbose: bool) {
    fn node(one: &mut Node, is_verbose: bool) {
        // Which process finds a block, or how many hint bits it sets, is a matter of the moment.
        one.blocks = [one.blocks[0] + one.blocks[1], 0, one.blocks[2]];
        if one.workers.is_some() || one.kind == "Aggregate" {
            one.blocks = [0; 3];
        }
        if !is_verbose || one.kind != "Nested Loop" {
            one.is_inner_unique = false;
        }
        if one.kind == "ModifyTable" {
            // PostgreSQL 13 says "Member".
            one.below.iter_mut().for_each(|below| below.relationship = "Outer".into());
        }
        one.below.iter_mut().for_each(|below| node(below, is_verbose));
    }
    plan.jit_ms = plan.jit_ms.map(|_| 0.0);
    node(&mut plan.root, is_verbose);
}

#[test]
fn a_plan_as_text_has_the_facts_that_it_has_as_json() {
    let settings = "autovacuum=off\nlog_line_prefix='%m [%p] %q%a:%u@%d plan: '\njit=off";
    let server = Server::start_with(settings, "local all all trust\n", |_| {});
    let mut session = server.session();
    session.run(TABLES).unwrap();
    session.run("VACUUM ANALYZE").unwrap();
    session
        .run("LOAD 'auto_explain'; SET auto_explain.log_analyze = on; SET auto_explain.log_buffers = on")
        .unwrap();
    let (mut pairs, mut different) = (0, Vec::new());
    for (verbose, timing) in [("on", "on"), ("off", "off")] {
        session
            .run(&format!("SET auto_explain.log_verbose = {verbose}; SET auto_explain.log_timing = {timing}"))
            .unwrap();
        for (settings, statement) in STATEMENTS {
            let settings: Vec<_> =
                settings.split_whitespace().filter_map(|one| one.split_once('=')).collect();
            for (name, value) in &settings {
                session.run(&format!("SET {name} = '{value}'")).unwrap();
            }
            // Once more before, so that both find the same blocks.
            session.run(statement).unwrap();
            let [text, json] = ["text", "json"].map(|format| {
                let before = logged(&server.log()).len();
                session
                    .run(&format!(
                        "SET auto_explain.log_format = {format}; SET auto_explain.log_min_duration = 0"
                    ))
                    .unwrap();
                session.run(statement).unwrap();
                session.run("SET auto_explain.log_min_duration = -1").unwrap();
                let mut plans = logged(&server.log()).split_off(before);
                assert_eq!(plans.len(), 1, "{statement}: {plans:#?}");
                plans.remove(0)
            });
            for (name, _) in &settings {
                session.run(&format!("RESET {name}")).unwrap();
            }
            let value: serde_json::Value = serde_json::from_str(&json).unwrap();
            let mut wanted = Plan::from_value(&value).unwrap();
            pairs += 1;
            let Some((query, mut plan)) = Plan::of_logged_text(&text) else {
                different.push(text);
                continue;
            };
            let is_verbose = text.contains("Output: ") || text.contains("Inner Unique: ");
            alike(&mut wanted, is_verbose);
            alike(&mut plan, is_verbose);
            assert_eq!(query.trim(), value["Query Text"].as_str().unwrap().trim());
            if plan != wanted {
                different.push(format!("{text}{plan:#?}\nas JSON {wanted:#?}"));
            }
        }
    }
    assert_eq!(pairs, 2 * STATEMENTS.len());
    assert!(different.is_empty(), "{} of {pairs}: {}", different.len(), different.join("\n"));
}
