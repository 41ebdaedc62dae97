//! Generic and custom plans of prepared statements on a real PostgreSQL.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod postgres_support;

use kelvin_database::Rows;
use kelvin_measure::event::Phase;
use kelvin_measure::observation::{Observation, StatementTotals};
use kelvin_observe::comparable;
use kelvin_observe::engine::WatchPlan;
use postgres_support::server::Server;
use postgres_support::{Watching, readings};

/// Executions in the window. The first five have a value for which a scan is right, and make the generic plan look good.
const CALLS: u64 = 45;
/// Plans that a prepared statement has by then: five for values, and the generic one.
const PLANS: u64 = 6;

fn statement<'a>(seen: &'a [Observation], wanted: u32, text: &str) -> &'a StatementTotals {
    let of = |one| match one {
        &Observation::Statements { point, ref statements, .. } if point == wanted => Some(statements),
        _ => None,
    };
    let all = seen.iter().find_map(of).unwrap();
    all.iter().find(|one| one.text.contains(text)).unwrap()
}

#[test]
fn a_generic_plan_for_skewed_values_is_seen_with_the_cost_of_the_other_and_takes_longer() {
    let server = Server::start_with(
        "shared_preload_libraries='pg_stat_statements'\npg_stat_statements.track_planning=on",
        "local all all trust\n",
        |_| {},
    );
    let mut session = server.session();
    // Three states that are spread over the table, and one of a row in a thousand: a hash join for those, a nested loop for this one.
    session
        .run(
            "CREATE TABLE jobs (id int PRIMARY KEY, state text NOT NULL, filler text); INSERT INTO jobs \
             SELECT i, CASE WHEN i % 1000 = 0 THEN 'new' ELSE chr(97 + (hashint4(i) & 1048575) % 3) END, repeat('x', 100) \
             FROM generate_series(1, 200000) i; CREATE INDEX ON jobs (state); \
             CREATE TABLE details (id int PRIMARY KEY, cost int); INSERT INTO details SELECT i, i FROM generate_series(1, 200000) i; \
             ANALYZE jobs; ANALYZE details",
        )
        .unwrap();
    let plan = WatchPlan { create_extension: true, ..WatchPlan::default() };
    let mut watching = Watching::start(server.unix(), &plan);
    watching.until("reading", |seen| readings(seen) >= 2);
    let mut rows = Rows::new();
    let select =
        session.prepare("SELECT sum(cost) FROM jobs JOIN details USING (id) WHERE state = $1").unwrap();
    for point in 0..2 {
        if point == 1 {
            session.run("SET plan_cache_mode = force_custom_plan").unwrap();
        }
        watching.stage(point, Phase::Measure);
        watching.for_seconds(0.5);
        for call in 0..CALLS {
            let state = if call < PLANS - 1 { "a" } else { "new" };
            session.execute(select, &[state.into()], &mut rows).unwrap();
        }
        watching.stage(point, Phase::Stop);
        let reports = |seen: &[Observation]| {
            seen.iter().filter(|one| matches!(one, Observation::Statements { .. })).count()
        };
        watching.until("statements", |seen| reports(seen) == point as usize + 1);
    }
    watching.finish();
    assert!(watching.lost().is_empty(), "{:?}", watching.lost());

    let of_jobs = |point| statement(&watching.seen, point, "FROM jobs JOIN details");
    let (generic, custom) = (of_jobs(0), of_jobs(1));
    assert_eq!((generic.calls, custom.calls), (CALLS, CALLS));
    assert_eq!(generic.planning.unwrap().plans, PLANS, "{generic:?}");
    let cheaper = generic.custom_plan.as_ref().unwrap();
    assert_eq!(cheaper.values, "a rare value of jobs.state");
    assert!(cheaper.cost < 0.5 * cheaper.generic_cost, "{cheaper:?}");
    assert_ne!(cheaper.hash, generic.plan.as_ref().unwrap().hash);
    // The remedy is one: with a plan for each execution the same calls take less time, planning included.
    let planning = custom.planning.unwrap();
    assert_eq!((planning.plans, &custom.custom_plan), (CALLS, &None));
    assert!(planning.ms > 0.0 && custom.total_ms + planning.ms < generic.total_ms, "{generic:?} {custom:?}");

    // The session itself knows it without the extension, since 14.
    let version =
        session.query("SELECT current_setting('server_version_num')::int8").unwrap().int(0, 0).unwrap();
    let plans = session.prepared_plans().unwrap();
    if version >= 140_000 {
        let [of_jobs] = plans.as_slice() else { panic!("{plans:?}") };
        assert_eq!((of_jobs.generic, of_jobs.custom), (CALLS - PLANS + 1, CALLS + PLANS - 1));
        assert_eq!(comparable(&of_jobs.text), comparable(&generic.text));
    } else {
        assert!(plans.is_empty(), "{plans:?}");
    }
}

/// Its cost is that of all partitions, and it reads one.
#[test]
fn a_generic_plan_that_leaves_partitions_out_when_it_is_executed_is_not_compared() {
    let server = Server::start_with(
        "shared_preload_libraries='pg_stat_statements'\npg_stat_statements.track_planning=on",
        "local all all trust\n",
        |_| {},
    );
    let mut session = server.session();
    let partitions = [0, 1, 2, 3]
        .map(|one| format!("CREATE TABLE parts_{one} PARTITION OF parts FOR VALUES IN ({one}); "))
        .concat();
    session
        .run(&format!(
            "CREATE TABLE parts (key int NOT NULL, v int) PARTITION BY LIST (key); {partitions} \
             INSERT INTO parts SELECT i % 4, i FROM generate_series(1, 20000) i; ANALYZE parts"
        ))
        .unwrap();
    let plan = WatchPlan { create_extension: true, ..WatchPlan::default() };
    let mut watching = Watching::start(server.unix(), &plan);
    watching.until("reading", |seen| readings(seen) >= 2);
    session.run("SET plan_cache_mode = force_generic_plan").unwrap();
    let mut rows = Rows::new();
    let of_parts = session.prepare("SELECT sum(v) FROM parts WHERE key = $1").unwrap();
    watching.stage(0, Phase::Measure);
    watching.for_seconds(0.5);
    for _ in 0..CALLS {
        session.execute(of_parts, &[1.into()], &mut rows).unwrap();
    }
    watching.stage(0, Phase::Stop);
    let is_seen = |seen: &[Observation]| seen.iter().any(|one| matches!(one, Observation::Statements { .. }));
    watching.until("statements", is_seen);
    watching.finish();
    let of_parts = statement(&watching.seen, 0, "FROM parts");
    assert!(of_parts.plan.is_some() && of_parts.is_planned_each_time() == Some(false), "{of_parts:?}");
    assert_eq!(of_parts.custom_plan, None);
}
