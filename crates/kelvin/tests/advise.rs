//! Advice for a real PostgreSQL that is not under a Kelvin load: what misestimates of statements and predicates suggest,
//! applied and undone.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kelvin_database::postgres::PostgresEngine;
use kelvin_database::postgres::explain::Plan;
use kelvin_database::{Engine, Session};
use serde_json::Value;
use support::{Place, Server};

/// The second column always equals the first: 2000 of 200,000 rows meet both conditions, and the planner expects 20.
const TABLES: &str = "create extension pg_stat_statements; \
    create table parts as select i % 100 as a, i % 100 as b, i % 20000 as other from generate_series(1, 200000) as i; \
    create table others as select i as id, i as value from generate_series(0, 19999) as i; \
    alter table others add primary key (id); analyze parts; analyze others";

const QUERY: &str = "select sum(value) from parts, others where a = 7 and b = 7 and id = other";

fn plan(session: &mut dyn Session) -> Plan {
    let rows = session.query(&format!("explain (analyze, verbose, format json) {QUERY}")).unwrap();
    Plan::parse(&rows.texts(0).unwrap().join("\n")).unwrap()
}

/// The node types of the plan, and the estimated rows of the scan of parts.
fn shape(session: &mut dyn Session) -> (Vec<String>, f64) {
    let plan = plan(session);
    let nodes = plan.nodes();
    let scan = nodes.iter().find(|node| node.relation.as_deref() == Some("public.parts")).unwrap();
    (nodes.iter().map(|node| node.kind.clone()).collect(), scan.estimated)
}

fn statements(change: &Value, which: &str) -> Vec<String> {
    change["change"][which].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// The advice for the server under these statements, each in a separate session.
fn advise(server: &Server, place: &Place, engine: &PostgresEngine, statements: &[&str]) -> String {
    let done = AtomicBool::new(false);
    let url = server.url();
    let words = ["advise", "--target", &url, "--duration", "3s", "--format", "json", "-q", "--explain"];
    std::thread::scope(|scope| {
        let load = |sql: &&str| {
            let (mut session, sql, done) = (engine.connect().unwrap(), (*sql).to_owned(), &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    session.run(&sql).unwrap();
                    std::thread::sleep(Duration::from_millis(10));
                }
            })
        };
        let loads: Vec<_> = statements.iter().map(load).collect();
        let list = catch_unwind(AssertUnwindSafe(|| place.expect(0, &words)));
        // Otherwise the scope waits for the sessions for ever.
        done.store(true, Ordering::Relaxed);
        for load in loads {
            load.join().unwrap();
        }
        list.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

#[test]
fn columns_that_depend_on_each_other_are_found_and_their_statistics_correct_the_plan() {
    // No parallel workers, so that the scan's rows are those of one loop.
    let settings =
        [("shared_preload_libraries", "pg_stat_statements"), ("max_parallel_workers_per_gather", "0")];
    let server = Server::start_with(&settings);
    let place = Place::new();
    let engine = PostgresEngine::new(server.instance.config());
    let mut session = engine.connect().unwrap();
    session.run(TABLES).unwrap();
    let (before, estimated) = shape(session.as_mut());
    assert!(before.contains(&"Nested Loop".to_owned()) && estimated < 40.0, "{before:?} {estimated}");

    let loads = [QUERY, "update others set value = value + 1 where id = 1"];
    let list = advise(&server, &place, &engine, &loads);
    let advice: Value = serde_json::from_str(&list).unwrap();
    let changes = advice["changes"].as_array().unwrap();
    let title = "statistics on public.parts (a, b)";
    let change = changes.iter().find(|change| change["title"] == title).unwrap_or_else(|| panic!("{list}"));
    let reason = change["reason"].as_str().unwrap();
    assert!(reason.contains("Seq Scan on public.parts") && reason.contains("2,000 found"), "{reason}");
    assert!(!list.contains("a = 7"), "values are not shown: {list}");
    let refused = advice["not_explained"].to_string();
    assert!(refused.contains("update others") && refused.contains("it changes data"), "{refused}");

    for sql in statements(change, "apply") {
        session.run(&sql).unwrap();
    }
    let (after, right) = shape(session.as_mut());
    assert!(
        (1500.0..2500.0).contains(&right) && after.contains(&"Hash Join".to_owned()),
        "{after:?} {right}"
    );
    // Applied twice it does no harm; undone twice, the state is as before.
    for sql in statements(change, "apply").iter().chain(&statements(change, "undo")) {
        session.run(sql).unwrap();
    }
    assert!(shape(session.as_mut()).1 < 40.0);
}

/// At first one of a hundred rows has a seven, later nearly all: 200,020 rows meet the condition, and the planner expects
/// 2,020.
const STALE: [&str; 3] = [
    "create extension pg_stat_statements; create table parts (a int, pad text) with (autovacuum_enabled = off); \
     insert into parts select i % 100, 'x' from generate_series(1, 2000) as i",
    "analyze parts",
    "insert into parts select 7, 'x' from generate_series(1, 200000)",
];

#[test]
fn statistics_from_before_the_rows_came_are_named_and_renewed() {
    let settings =
        [("shared_preload_libraries", "pg_stat_statements"), ("max_parallel_workers_per_gather", "0")];
    let server = Server::start_with(&settings);
    let place = Place::new();
    let engine = PostgresEngine::new(server.instance.config());
    // A session's counters are visible after it has ended.
    for sql in STALE {
        engine.connect().unwrap().run(sql).unwrap();
    }
    let query = "select count(pad) from parts where a = 7";
    let list = advise(&server, &place, &engine, &[query, "select count(*) from parts where a = 7"]);
    let advice: Value = serde_json::from_str(&list).unwrap();
    let changes = advice["changes"].as_array().unwrap();
    let change = changes.iter().find(|change| change["title"] == "analyze public.parts");
    let change = change.unwrap_or_else(|| panic!("{list}"));
    assert_eq!(change["finding"], "misestimate");
    let reason = change["reason"].as_str().unwrap();
    assert!(reason.starts_with("public.parts: 200,000 changes since ANALYZE "), "{reason}");
    assert!(reason.ends_with(" ago, 202,000 rows now"), "{reason}");
    assert!(statements(change, "undo").is_empty(), "old statistics cannot be put back");

    for sql in statements(change, "apply") {
        engine.connect().unwrap().run(&sql).unwrap();
    }
    let list = advise(&server, &place, &engine, &[query]);
    assert!(!list.contains("misestimate"), "{list}");
}

/// Two joined tables without an index.
const PARCELS: &str = "create extension pg_stat_statements; \
    create table parcels as select i % 50000 as sender, i % 49999 as receiver, 'x'::text as pad from generate_series(1, 200000) as i; \
    create table people as select i as id, 'n' || i as name from generate_series(1, 50000) as i; analyze parcels; analyze people";

#[test]
fn alternatives_and_joins_get_indexes_that_the_planner_takes() {
    let settings =
        [("shared_preload_libraries", "pg_stat_statements"), ("max_parallel_workers_per_gather", "0")];
    let server = Server::start_with(&settings);
    let place = Place::new();
    let engine = PostgresEngine::new(server.instance.config());
    let mut session = engine.connect().unwrap();
    session.run(PARCELS).unwrap();
    let either = "select count(pad) from parcels where sender = 5 or receiver = 7";
    let joined =
        "select count(p.pad) from people join parcels p on p.sender = people.id where people.name = 'n7'";
    let list = advise(&server, &place, &engine, &[either, joined]);
    let advice: Value = serde_json::from_str(&list).unwrap();
    let changes = advice["changes"].as_array().unwrap();
    let mut plan_with = |title: &str, sql: &str| {
        let change = changes.iter().find(|change| change["title"] == title);
        let change = change.unwrap_or_else(|| panic!("no {title}: {list}"));
        for sql in statements(change, "apply") {
            session.run(&sql).unwrap();
        }
        let rows = session.query(&format!("explain {sql}")).unwrap();
        let plan = rows.texts(0).unwrap().join("\n");
        for sql in statements(change, "undo") {
            session.run(&sql).unwrap();
        }
        plan
    };
    let plan = plan_with("indexes on public.parcels (sender) and (receiver)", either);
    assert!(plan.contains("BitmapOr") && !plan.contains("Seq Scan"), "{plan}");
    let plan = plan_with("index on public.parcels (sender)", joined);
    assert!(plan.contains("kelvin_advice_parcels_sender_"), "{plan}");
    let plan = plan_with("index on public.people (name, id)", joined);
    assert!(plan.contains("kelvin_advice_people_name_id_"), "{plan}");
    let left = "select count(*)::int8 from pg_indexes where indexname like 'kelvin%'";
    assert_eq!(session.query(left).unwrap().int(0, 0).unwrap(), 0);
}
