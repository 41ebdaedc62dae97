//! What `kelvin waits` and `kelvin top-sql` are made of, and what is said where the views are missing.

use std::sync::Arc;

use kelvin_database::Engine;
use kelvin_measure::Clock;
use kelvin_observe::activity::{SessionSamples, WaitInputs, WaitReport, by_query, grown, total_ms};
use kelvin_observe::engine::{WatchPlan, activity, watchers};
use kelvin_observe::watch::Feed;

use super::recording::Replay;

fn engine(name: &str, clock: &Clock) -> Arc<dyn Engine> {
    Arc::new(Replay::new(name, clock.clone()))
}

#[test]
fn waits_are_counted_with_their_signal_part_and_sampled_with_their_page() {
    let clock = Clock::mock();
    let mut open = activity(&engine("hot-page", &clock), 10).unwrap();
    assert_eq!(open.server.product().unwrap(), "SQL Server 16.0.4135.4");
    let (mut feed, seen) = Feed::detached(clock.clone());
    let began = open.server.read().unwrap();
    open.sessions.begin(&mut feed);
    for look in 1..=100 {
        clock.sleep_until(look * 100_000_000);
        open.sessions.sample(&mut feed).unwrap();
    }
    let mut samples = SessionSamples::default();
    for one in seen.try_iter() {
        samples.take(&one);
    }
    let now = open.server.read().unwrap();
    let inputs = WaitInputs {
        samples: &samples,
        counts: samples.counts(),
        interval: &now.since(&began),
        since_start: &now,
        seconds: 10.0,
        blocked: open.server.blocked().unwrap(),
    };
    let report = WaitReport::new(inputs, open.server.as_ref());
    assert!(report.counted);
    assert_eq!(report.classes[0].label, "pages");
    let first = &report.classes[0].events[0];
    assert_eq!(first.event, "Buffer Latch PAGELATCH_EX of dbo.warehouse (warehouse_i1)");
    assert!(first.sessions.unwrap() > 6.0, "{first:?}");
    let log = report.classes.iter().find(|class| class.label == "log flush").unwrap();
    assert_eq!((log.sums.waits, log.sums.average_ms), (Some(10_000.0), Some(0.4)));
    assert!((log.sums.signal_share.unwrap() - 0.075).abs() < 1e-9, "{log:?}");
    assert!(
        !report.classes.iter().flat_map(|class| &class.events).any(|one| one.event.contains("LAZYWRITER"))
    );
    let file = report.files.iter().find(|file| file.name == "tpcc log tpcc_log").unwrap();
    assert_eq!(file.writes.average_ms, Some(0.5));
    // 80,000 waits of a millisecond for pages, 100 of half a one for an index's root; no other latch was waited for.
    let latches: Vec<_> = report
        .latches
        .iter()
        .filter(|one| one.spins.is_none())
        .map(|one| (one.name.as_str(), one.waits, one.wait_ms))
        .collect();
    assert_eq!(latches, [("BUFFER", 80_000.0, 80_000.0), ("ACCESS_METHODS_HOBT_VIRTUAL_ROOT", 100.0, 50.0)]);
    let spinlock = report.latches.iter().find(|one| one.name == "LOCK_HASH").unwrap();
    assert_eq!((spinlock.waits, spinlock.spins, spinlock.backoffs), (200.0, Some(50_000.0), Some(3.0)));
    let pair = &report.blocked[0];
    assert_eq!((pair.waits_for.as_str(), pair.blocker_doing.as_str()), ("row of dbo.warehouse", "CPU"));
    assert_eq!(pair.statement, "UPDATE dbo.warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?");
}

#[test]
fn statements_have_their_cpu_time_and_a_plan_that_can_be_opened() {
    let clock = Clock::mock();
    let mut server = activity(&engine("slow-plan", &clock), 10).unwrap().server;
    let counters = server.statement_counters().unwrap();
    assert!(counters.cpu && counters.since.unwrap().starts_with("2026-11-23 09:00:05"));
    let opened = server.statements().unwrap();
    clock.sleep_until(10_000_000_000);
    let grown = grown(&opened, &server.statements().unwrap());
    let top = by_query(&grown);
    let queries: Vec<i64> = top.iter().map(|(query, _)| *query).collect();
    let texts = server.texts(&queries).unwrap();
    // The procedure and, within it, the statement.
    assert_eq!(texts[&queries[0]], "EXEC dbo.slev");
    assert!(texts[&queries[1]].starts_with("/* in slev */ SELECT COUNT(DISTINCT s_i_id)"), "{texts:?}");
    assert!(texts.values().all(|text| !text.contains("hush")), "{texts:?}");
    assert_eq!((top[1].1.calls, top[1].1.cpu_ms), (220.0, Some(34_000.0)));
    assert_eq!(total_ms(&grown), 28_000.0, "each counted once");
    assert_eq!(server.query_id(queries[1]), "0000000000000FA3");
    let plan = server.plan(queries[1], false).unwrap();
    assert!(plan.plan.text.starts_with("with plan 0x00000000000000A1 it took 2 ms"), "{}", plan.plan.text);
    assert!(plan.plan.text.contains("Clustered Index Scan on dbo.stock"), "{}", plan.plan.text);
    let file = &plan.files.iter().find(|(end, _)| *end == "sqlplan").unwrap().1;
    assert!(file.starts_with("<ShowPlanXML") && !file.contains("hush"), "{file}");
    assert!(server.plan(queries[0], false).unwrap_err().contains("each of its statements"));
}

#[test]
fn a_server_without_the_views_is_rejected_with_what_would_show_them() {
    let clock = Clock::mock();
    for (name, why, help) in [
        ("babelfish", "Babelfish has none", "postgres://"),
        ("low-permission", "the login lacks the permission", "GRANT VIEW SERVER STATE"),
        ("sql-server-2014", "does not count waits by session", "2016"),
    ] {
        let error = watchers(&engine(name, &clock), &WatchPlan::default()).err().unwrap().to_string();
        assert!(error.contains(why) && error.contains(help), "{name}: {error}");
    }
    // 2017 has all but the pages' tables.
    let found = watchers(&engine("sql-server-2017", &clock), &WatchPlan::default()).unwrap();
    let (mut feed, seen) = Feed::detached(clock.clone());
    for mut watcher in found.watchers {
        watcher.begin(&mut feed);
    }
    let absent = seen.try_iter().filter_map(|one| match one {
        kelvin_measure::observation::Observation::Observer(observer) => Some(observer.absent),
        _ => None,
    });
    let absent: Vec<String> = absent.flatten().map(|one| format!("{}: {}", one.what, one.why)).collect();
    assert_eq!(
        absent,
        [
            "tables and indexes of pages: SQL Server 14.0.3456.2 does not have sys.dm_db_page_info; SQL Server 2019 and \
          later have it"
        ]
    );
}
