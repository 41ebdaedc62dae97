//! Stored events are returned unchanged.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{as_json, merged, new_run, open_loop, open_series, whole_run};
use kelvin_measure::event::{LoadPart, RatePeriod, Status};
use kelvin_measure::{Event, Sink};
use kelvin_store::{Judgement, Liveness, NewRun, RunId, Store};
use proptest::prelude::*;

fn replay(events: &[Event]) -> (Vec<String>, u64) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kelvin.db");
    let store = Store::open(&path).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    drop(writer);
    let run = store.load(RunId(1)).unwrap();
    let back: Vec<Event> = run.events().collect::<Result<_, _>>().unwrap();
    drop(store);
    (as_json(&back), std::fs::metadata(path).unwrap().len())
}

#[test]
fn a_replay_gives_the_events_that_the_live_view_saw() {
    let events = whole_run(1, 20, 60);
    assert_eq!(replay(&events).0, as_json(&merged(&events)));
}

/// A store with one open loop, and the events written to it.
fn with_open_loop(path: &std::path::Path) -> (Store, Vec<Event>) {
    let store = Store::open(path).unwrap();
    let new = NewRun { kinds: open_series(), headline_per: RatePeriod::Second, ..new_run(None) };
    let mut writer = store.begin_run(&new).unwrap();
    let events = open_loop(4);
    for event in &events {
        writer.event(event).unwrap();
    }
    (store, events)
}

#[test]
fn an_open_loop_comes_back_as_it_was_and_no_transaction_counts_twice() {
    let dir = tempfile::tempdir().unwrap();
    let (store, events) = with_open_loop(&dir.path().join("k.db"));
    let run = store.load(RunId(1)).unwrap();
    let back: Vec<Event> = run.events().collect::<Result<_, _>>().unwrap();
    assert_eq!(as_json(&back), as_json(&events));
    assert_eq!((&run.info.kinds, run.info.headline_per), (&open_series(), RatePeriod::Second));

    let figures = run.point_statistics(0).unwrap();
    let alone = &figures.kinds[0];
    assert_eq!(figures.headline, alone.committed);
    assert_eq!(
        (figures.all.good(), figures.all.failed, figures.all.retries),
        (alone.good(), alone.failed, alone.retries)
    );
    assert_eq!(figures.all.latency.sum(), alone.latency.sum());
    assert_eq!(figures.response.latency.sum(), figures.kinds[2].latency.sum());
    assert_eq!(figures.lag.sum(), figures.kinds[3].latency.sum());
    assert_eq!(figures.headline_per(RatePeriod::Second).unwrap(), figures.headline as f64 / 5.0);
    assert_eq!(figures.headline_per(RatePeriod::Minute).unwrap(), figures.headline as f64 * 12.0);
    let arrivals = figures.arrivals.unwrap();
    assert_eq!((arrivals.due, arrivals.refused, arrivals.waiting), (230, 15, Some(9)));
    let row = &figures.series[2];
    assert_eq!((row.good.len(), row.failed), (1, row_failed(&events, 2)));
    assert_eq!(row.arrivals.map(|a| (a.due, a.refused, a.waiting)), Some((46, 3, Some(9))));
    assert!(row.response.percentiles[0] > row.all.percentiles[0]);
    assert!(run.cross_checks(0, &figures).iter().all(|i| i.holds));
    assert!(run.scalability().is_some() && run.maximum_rate().is_some());
    let listed = &store.runs().unwrap()[0];
    assert_eq!(listed.best().unwrap().asked_per_second, Some(45.5));
    assert_eq!((listed.held, listed.best().unwrap().overloaded), (Some(0), true));
    assert_eq!(listed.best().unwrap().rate(listed.headline_per), figures.headline as f64 / 5.0);
}

#[test]
fn the_list_shows_the_rate_found_and_not_one_that_held_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("k.db")).unwrap();
    let mut writer = store.begin_run(&NewRun { kinds: open_series(), ..new_run(None) }).unwrap();
    for mut event in open_loop(4) {
        if let Event::MaximumRate(found) = &mut event {
            let first = found.trials[0].clone();
            found.trials.push(kelvin_measure::event::RateTrial { point: 1, rate: 60.0, ..first });
        }
        writer.event(&event).unwrap();
    }
    drop(writer);
    assert_eq!(store.runs().unwrap()[0].held, Some(0));
}

fn row_failed(events: &[Event], wanted: i64) -> u64 {
    let failed = |e: &Event| match e {
        Event::Second(s) if s.second == wanted => Some(s.kinds[0].failed),
        _ => None,
    };
    events.iter().find_map(failed).unwrap()
}

#[test]
fn a_lost_response_is_found_beside_correct_transactions() {
    let dir = tempfile::tempdir().unwrap();
    let (store, events) = with_open_loop(&dir.path().join("k.db"));
    let figures = store.load(RunId(1)).unwrap().point_statistics(0).unwrap();
    drop(events);
    let new = NewRun { kinds: open_series(), ..new_run(None) };
    for lost in [None, Some(0), Some(2)] {
        let mut writer = store.begin_run(&new).unwrap();
        let id = writer.id();
        for event in open_loop(4) {
            writer.event(&event).unwrap();
        }
        let mut kinds = figures.kinds.clone();
        if let Some(kind) = lost {
            kinds[kind].committed += 1;
        }
        let totals = kelvin_measure::Totals {
            roles: vec![kelvin_measure::event::SeriesRole::Transaction; kinds.len()],
            measured: kinds.clone(),
            all: kinds,
            samples: 1,
            last_end: 0,
        };
        writer.set_totals(0, &totals).unwrap();
        drop(writer);
        let run = store.load(id).unwrap();
        let checks = run.cross_checks(0, &run.point_statistics(0).unwrap());
        let failed: Vec<_> = checks.iter().filter(|i| !i.holds).map(|i| i.name.clone()).collect();
        let of_responses = failed.iter().filter(|name| name.contains("responses")).count();
        let expected = match lost {
            None => (0, 0),
            Some(0) => (1, 0),
            Some(_) => (1, 1),
        };
        assert_eq!((failed.len(), of_responses), expected, "{failed:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn any_order_of_late_seconds_adds_up(seed in any::<u64>(), order in Just((0..30_usize).collect::<Vec<_>>()).prop_shuffle()) {
        let mut noise = common::Noise(seed);
        let events: Vec<Event> = order
            .into_iter()
            .map(|i| noise.second(i as u32 % 2, i as i64 % 5 - 1, if i % 5 == 0 { LoadPart::RampUp } else { LoadPart::Measured }, i as u64 % 9))
            .collect();
        prop_assert_eq!(replay(&events).0, as_json(&merged(&events)));
    }
}

#[test]
fn ten_minutes_of_five_types_stay_under_two_megabytes() {
    // 300 New-Orders and 300 Payments a second: 18,000 NOPM, 40,000 TPM.
    let size = replay(&whole_run(2, 600, 300)).1;
    assert!(size < 2_000_000, "{size} bytes");
}

#[test]
fn figures_are_those_of_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("k.db")).unwrap();
    let events = whole_run(3, 10, 50);
    let mut writer = store.begin_run(&new_run(Some("base"))).unwrap();
    for event in &events {
        writer.event(event).unwrap();
    }
    drop(writer);
    let run = store.load(store.find("base").unwrap()).unwrap();
    assert_eq!((run.status, run.liveness, run.info.seed), (Status::Complete, Liveness::Ended, u64::MAX - 1));
    assert_eq!(run.info.notes, ["profile spec"]);
    let figures = run.point_statistics(0).unwrap();
    let expected = common::headline(&events, 0);
    assert_eq!(figures.headline, expected);
    assert_eq!(figures.headline_per(RatePeriod::Minute).unwrap(), expected as f64 * 6.0);
    assert_eq!(figures.measured().count(), 10);
    assert_eq!(
        figures.all.latency.count(),
        figures.kinds.iter().map(kelvin_measure::event::KindCounts::good).sum::<u64>()
    );
    assert!(run.cross_checks(0, &figures).iter().all(|i| i.holds));
    let point = &run.points()[0];
    assert_eq!((point.users, point.ramp_up, point.notes.len(), run.checks().len()), (4, 2.0, 1, 1));
    assert_eq!(run.errors(None)[0].count, 2);
    let listed = &store.runs().unwrap()[0];
    assert_eq!((listed.status, listed.errors, listed.failed), (Status::Complete, 2, run.failed()));
    // It has not been judged; findings are stored with it.
    assert_eq!(listed.judgement, None);
    let void = Judgement::from_reasons(vec!["the machine was shared".into()]);
    store.keep_judgement(run.id, &void).unwrap();
    assert_eq!(store.runs().unwrap()[0].judgement, Some(void));
    assert_eq!(listed.best().unwrap().per_minute, expected as f64 * 6.0);
}

#[test]
fn a_second_in_which_the_database_stood_still_is_a_zero_not_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("k.db")).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    let mut noise = common::Noise(5);
    for second in [1, 4] {
        writer.event(&noise.second(0, second, LoadPart::Measured, 10)).unwrap();
    }
    writer.event(&noise.second(0, 7, LoadPart::Tail, 1)).unwrap();
    writer
        .event(&Event::Window(kelvin_measure::event::Window {
            point: 0,
            users: 1,
            elapsed: 6_500_000_000,
            idle: 0,
            client_headline: 20,
            server_headline: None,
            server_transactions: None,
            client_cpu: 0,
            client_run_delay: None,
            schedule: None,
        }))
        .unwrap();
    drop(writer);
    let figures = store.load(RunId(1)).unwrap().point_statistics(0).unwrap();
    let rows: Vec<_> = figures.measured().map(|r| (r.second, r.width, r.good[0])).collect();
    assert_eq!(
        rows,
        [(0, 1.0, 0), (1, 1.0, 10), (2, 1.0, 0), (3, 1.0, 0), (4, 1.0, 10), (5, 1.0, 0), (6, 0.5, 0)]
    );
    assert!(
        (figures.headline_per(RatePeriod::Minute).unwrap() - figures.headline as f64 * 60.0 / 6.5).abs()
            < 1e-9
    );
}

/// The thread that drains the users' rings passes events on, and must not wait for a disk, which is blocked forever
/// here.
#[test]
fn a_store_that_cannot_be_written_for_a_while_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("k.db");
    let store = Store::open(&path).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    let slow = rusqlite::Connection::open(&path).unwrap();
    slow.execute_batch("BEGIN IMMEDIATE").unwrap();
    let events = whole_run(1, 10, 50);
    for event in &events[..events.len() - 1] {
        // A wait for the store's lock would last ten seconds, and end with an error.
        writer.event(event).unwrap();
    }
    slow.execute_batch("ROLLBACK").unwrap();
    writer.event(&events[events.len() - 1]).unwrap();
    assert_eq!(store.load(RunId(1)).unwrap().status, Status::Complete);
}

#[test]
fn totals_that_disagree_with_the_seconds_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("k.db")).unwrap();
    let mut writer = store.begin_run(&new_run(None)).unwrap();
    let Event::Second(second) = common::Noise(1).second(0, 0, LoadPart::Measured, 10) else { unreachable!() };
    writer.event(&Event::Second(second.clone())).unwrap();
    let mut totals = kelvin_measure::Totals {
        roles: vec![kelvin_measure::event::SeriesRole::Transaction; second.kinds.len()],
        measured: second.kinds.clone(),
        all: second.kinds,
        samples: 10,
        last_end: 0,
    };
    writer.set_totals(0, &totals).unwrap();
    writer.flush().unwrap();
    let run = store.load(RunId(1)).unwrap();
    assert!(run.cross_checks(0, &run.point_statistics(0).unwrap()).iter().all(|i| i.holds));
    totals.measured[2].committed += 1;
    writer.set_totals(0, &totals).unwrap();
    let run = store.load(RunId(1)).unwrap();
    assert!(run.cross_checks(0, &run.point_statistics(0).unwrap()).iter().any(|i| !i.holds));
}
