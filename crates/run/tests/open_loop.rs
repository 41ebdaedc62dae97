//! Open loops on a real SQLite database: schedules, queues, searches, sweeps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use kelvin_measure::event::{Arrivals, KindCounts, MaximumRate, SeriesRole, Status};
use kelvin_measure::{Event, Histogram};
use kelvin_run::RunOutcome;
use kelvin_workload::Stop;
use support::{Kept, assert_invariants, loaded, run, spec};

fn arrivals(sink: &Kept) -> Vec<Arrivals> {
    let arrivals = |event: &Event| match event {
        Event::Arrivals(arrivals) => Some(*arrivals),
        _ => None,
    };
    sink.events.iter().filter_map(arrivals).collect()
}

fn latencies(outcome: &RunOutcome, wanted: fn(&SeriesRole) -> bool) -> Histogram {
    let totals = &outcome.points[0].totals;
    let mut sum = Histogram::new();
    let series = totals.measured.iter().zip(&totals.roles).filter(|(_, role)| wanted(role));
    series.for_each(|(kind, _)| sum.add(&kind.latency));
    sum
}

#[test]
fn a_sustainable_rate_is_served_and_every_arrival_is_counted() {
    let loaded = loaded();
    let mut spec = spec("8", "1s", "3s");
    spec.load.rate = Some("100".parse().unwrap());
    let mut sink = Kept::default();
    let outcome = run(&loaded, &spec, &Stop::new(), &mut sink).unwrap();
    assert_invariants(&outcome);
    let point = &outcome.points[0];
    let schedule = point.window.schedule.unwrap();
    assert_eq!((schedule.rate, schedule.refused), (100.0, 0));
    let reported = arrivals(&sink);
    let in_window: u64 = reported.iter().filter(|a| a.second >= 0).map(|a| a.due).sum();
    assert_eq!(in_window, schedule.due, "the seconds hold every arrival");
    assert!(reported.iter().any(|a| a.second == -1 && a.due > 50), "the ramp-up has its arrivals, too");
    // A Poisson count with a mean of 300, within 5 standard deviations.
    assert!((215..385).contains(&schedule.due), "{schedule:?}");
    let good: u64 = point.totals.transactions(&point.totals.measured).map(KindCounts::good).sum();
    // Services are counted by their ends, responses by their intended starts. On a machine that stalls the
    // queue may be long at both edges of the window; arrivals that wait or are in progress there are only in
    // one of the counts.
    let waiting_at_close = schedule.waiting_at_close.unwrap();
    assert!(good <= schedule.due + 8 + schedule.longest, "{good} of {schedule:?}");
    assert!(good + 8 + waiting_at_close >= schedule.due, "{good} of {schedule:?}");
    let service = latencies(&outcome, |role| *role == SeriesRole::Transaction);
    let response = latencies(&outcome, |role| matches!(role, SeriesRole::Response { .. }));
    assert_eq!(service.count(), good);
    // `assert_invariants` has checked that every arrival is accounted for.
    let under_way = 2 * 8 + schedule.longest + waiting_at_close + schedule.cut_off;
    assert!(response.count().abs_diff(good) <= under_way, "{} and {good}, {schedule:?}", response.count());
    let entered = good.saturating_sub(response.count()) + under_way;
    let longest = u128::from(service.max().unwrap()) * u128::from(entered);
    assert!(response.sum() + longest >= service.sum(), "a response holds its service");
}

#[test]
fn an_arrival_that_finds_a_user_idle_has_a_lag() {
    let loaded = loaded();
    let mut spec = spec("8", "0s", "1s");
    spec.load.rate = Some("20".parse().unwrap());
    // Where the machine stalls, every arrival of a run may queue.
    let any = (0..10).any(|_| {
        let outcome = run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap();
        latencies(&outcome, |role| *role == SeriesRole::Lag).count() > 0
    });
    assert!(any, "no arrival of ten runs has a lag");
}

#[test]
fn the_same_seed_has_the_same_arrivals_whatever_the_database_does() {
    let loaded = loaded();
    let mut spec = spec("4", "0s", "2s");
    spec.load.rate = Some("150".parse().unwrap());
    let due = || {
        let mut sink = Kept::default();
        run(&loaded, &spec, &Stop::new(), &mut sink).unwrap();
        arrivals(&sink).iter().map(|a| (a.second, a.due)).filter(|&(_, due)| due > 0).collect::<Vec<_>>()
    };
    assert_eq!(due(), due());
}

#[test]
fn a_full_queue_reports_refusals_and_waiting_time() {
    let loaded = loaded();
    let mut spec = spec("1", "0s", "2s");
    spec.load.rate = Some("50000".parse().unwrap());
    spec.load.queue = 40;
    let mut sink = Kept::default();
    let outcome = run(&loaded, &spec, &Stop::new(), &mut sink).unwrap();
    assert_invariants(&outcome);
    let point = &outcome.points[0];
    let schedule = point.window.schedule.unwrap();
    let responses = point.totals.measured_of(|role| matches!(role, SeriesRole::Response { .. }));
    let started = responses.good() + responses.failed;
    assert_eq!(schedule.due, started + schedule.never_begun(), "{schedule:?}");
    assert!(schedule.refused > schedule.due / 2 && schedule.waiting <= 41, "{schedule:?}");
    assert_eq!(arrivals(&sink).iter().map(|a| a.refused).sum::<u64>(), schedule.refused);
    // 40 arrivals cover 0.8 ms of the schedule, so a served arrival waited at most about that long.
    let response = latencies(&outcome, |role| matches!(role, SeriesRole::Response { .. }));
    let service = latencies(&outcome, |role| *role == SeriesRole::Transaction);
    assert!(response.sum() > service.sum());
}

#[test]
fn counts_agree_after_a_stopped_open_loop() {
    let loaded = loaded();
    let stop = Stop::new();
    let mut sink = Kept { stop_after_seconds: Some((1, stop.clone())), ..Kept::default() };
    let mut spec = spec("20", "0s", "10m");
    spec.load.rate = Some("60".parse().unwrap());
    let outcome = run(&loaded, &spec, &stop, &mut sink).unwrap();
    assert_eq!(outcome.status, Status::Interrupted);
    assert_invariants(&outcome);
    let point = &outcome.points[0];
    let schedule = point.window.schedule.unwrap();
    let expected = point.window.elapsed as f64 / 1e9 * 60.0;
    assert!((schedule.due as f64 - expected).abs() < 6.0 * expected.sqrt(), "{schedule:?}");
}

#[test]
fn the_highest_rate_that_meets_an_objective_is_found() {
    let loaded = loaded();
    let mut spec = spec("1", "0s", "600ms");
    spec.load.slo = Some("p50<1s,errors<10%".parse().unwrap());
    spec.load.find_max = true;
    spec.load.rate = Some("40".parse().unwrap());
    spec.load.queue = 10;
    spec.load.resolution = 60.0;
    let search = || {
        let mut sink = Kept::default();
        let outcome = run(&loaded, &spec, &Stop::new(), &mut sink).unwrap();
        let found = sink.events.iter().find_map(|event| match event {
            Event::MaximumRate(found) => Some(found.clone()),
            _ => None,
        });
        let found = found.unwrap();
        assert_eq!(found.trials.len(), outcome.points.len());
        found
    };
    let is_met = |found: &MaximumRate| found.held.is_some_and(|held| held >= 20.0);
    // An objective is missed when the machine stalls, but not in every attempt.
    let found = (0..5).map(|_| search()).find(is_met).expect("20 a second can be served");
    assert!(found.failed > found.held, "one user cannot do everything: {found:?}");
    assert!(found.trials.iter().any(|trial| !trial.holds && trial.verdicts.len() >= 2));
}

#[test]
fn a_sweep_has_a_fitted_model() {
    let loaded = loaded();
    let mut spec = spec("1", "0s", "20s");
    spec.load.transactions = std::num::NonZeroU64::new(100);
    spec.load.sweep = Some("users=1,2,3,4".parse().unwrap());
    let mut sink = Kept::default();
    let outcome = run(&loaded, &spec, &Stop::new(), &mut sink).unwrap();
    assert_invariants(&outcome);
    let model = sink.events.iter().find_map(|event| match event {
        Event::Scalability(model) => Some(model.clone()),
        _ => None,
    });
    let model = model.unwrap();
    assert_eq!(model.points.iter().map(|point| point.users).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(model.lambda.value > 0.0 && model.sigma.value >= 0.0 && model.kappa.value >= 0.0);
    assert!(model.peak_users.is_none_or(|users| users <= 8.0), "nothing is said beyond twice the range");
}
