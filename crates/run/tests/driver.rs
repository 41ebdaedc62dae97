//! The driver on a real SQLite database: windows, counts, invariants, stopping.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use kelvin_measure::Event;
use kelvin_measure::event::{KindCounts, LoadPart, Phase, Status};
use kelvin_workload::tproc_c::{Options, TprocC};
use kelvin_workload::{Stop, Workload};
use support::{Kept, Loaded, assert_invariants, loaded, run, spec};

#[test]
fn a_timed_window_counts_only_what_ended_in_it() {
    let loaded = loaded();
    let mut sink = Kept::default();
    let outcome = run(&loaded, &spec("3,1", "1s", "2s"), &Stop::new(), &mut sink).unwrap();
    assert_eq!(outcome.status, Status::Complete);
    assert_eq!(outcome.points.len(), 2);
    assert_invariants(&outcome);
    for (index, point) in outcome.points.iter().enumerate() {
        assert_eq!(point.window.elapsed, 2_000_000_000);
        assert_eq!(point.errors, 0);
        let seconds: Vec<_> = sink
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Second(second) if second.point == index as u32 => Some(second),
                _ => None,
            })
            .collect();
        let measured: u64 = seconds
            .iter()
            .filter(|s| s.part == LoadPart::Measured)
            .flat_map(|s| &s.kinds)
            .map(KindCounts::good)
            .sum();
        let total: u64 = point.totals.measured.iter().map(KindCounts::good).sum();
        assert_eq!(measured, total, "the events hold every counted transaction");
        assert!(seconds.iter().any(|s| s.part == LoadPart::RampUp && s.second == -1));
        assert!(seconds.iter().filter(|s| s.part == LoadPart::Measured).all(|s| (0..2).contains(&s.second)));
    }
    let phases: Vec<Phase> = sink
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Phase { phase, .. } => Some(*phase),
            _ => None,
        })
        .collect();
    assert_eq!(phases, [Phase::Connect, Phase::RampUp, Phase::Measure, Phase::Stop].repeat(2));
    assert!(matches!(sink.events.last(), Some(Event::Finished { status: Status::Complete, error: None })));
}

#[test]
fn a_count_ends_the_run_and_the_window_is_as_long_as_it_took() {
    let loaded = loaded();
    let mut spec = spec("2", "5s", "20s");
    spec.load.transactions = std::num::NonZeroU64::new(150);
    spec.check = true;
    let outcome = run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap();
    let point = &outcome.points[0];
    assert_eq!(point.totals.measured.iter().map(|k| k.good() + k.failed).sum::<u64>(), 300);
    assert_invariants(&outcome);
    assert_eq!(outcome.checks.len(), 12);
    assert!(outcome.checks.iter().all(|check| check.holds), "{:?}", outcome.checks);
}

#[test]
fn a_stop_closes_the_window_where_it_came() {
    let loaded = loaded();
    let stop = Stop::new();
    let mut sink = Kept { stop_after_seconds: Some((2, stop.clone())), ..Kept::default() };
    let outcome = run(&loaded, &spec("2", "500ms", "10m"), &stop, &mut sink).unwrap();
    assert_eq!(outcome.status, Status::Interrupted);
    let elapsed = outcome.points[0].window.elapsed;
    assert!((2_000_000_000..60_000_000_000).contains(&elapsed), "{elapsed}");
    assert_invariants(&outcome);
}

#[test]
fn keying_and_thinking_leave_littles_law_intact() {
    let loaded = loaded();
    let options = Options { keying_and_thinking: true, ..Options::default() };
    let mut workload = TprocC::new(options).unwrap();
    workload.inspect(&*loaded.engine).unwrap();
    let loaded = Loaded { workload: Arc::new(workload), ..loaded };
    let outcome = run(&loaded, &spec("40", "0s", "4s"), &Stop::new(), &mut Kept::default()).unwrap();
    assert_invariants(&outcome);
    assert!(outcome.points[0].window.idle > 100_000_000_000, "40 users keyed for most of 4 s");
}

#[test]
fn a_sink_that_cannot_keep_events_ends_the_run_with_its_reason() {
    let loaded = loaded();
    let mut sink = Kept { fail_after: Some(8), ..Kept::default() };
    let error = run(&loaded, &spec("2", "0s", "60s"), &Stop::new(), &mut sink).unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
}

#[test]
fn users_who_cannot_prepare_their_statements_stop_the_run_before_it_starts() {
    let loaded = loaded();
    loaded.engine.connect().unwrap().run("alter table stock rename to gone").unwrap();
    let error = run(&loaded, &spec("2", "0s", "30s"), &Stop::new(), &mut Kept::default()).unwrap_err();
    assert!(error.to_string().contains("stock"), "{error}");
}

#[test]
fn users_of_whom_nothing_succeeds_give_up_and_say_why() {
    let loaded = loaded();
    let refuse = "create trigger refuse before update on district begin select raise(abort, 'no more'); end";
    loaded.engine.connect().unwrap().run(refuse).unwrap();
    let spec = spec("2", "0s", "10m");
    // Only transactions that update a district.
    let options = Options { mix: "1/1/0/0/0".parse().unwrap(), ..Options::default() };
    let mut workload = TprocC::new(options).unwrap();
    workload.inspect(&*loaded.engine).unwrap();
    let loaded = Loaded { workload: Arc::new(workload), ..loaded };
    let outcome = run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap();
    assert_eq!(outcome.status, Status::Failed);
    assert!(outcome.error.unwrap().contains("no more"));
    let point = &outcome.points[0];
    assert_eq!(point.totals.all.iter().map(|k| k.failed).sum::<u64>(), 200, "a hundred each");
}

#[test]
fn a_short_run_by_count_holds_every_invariant() {
    let loaded = loaded();
    let mut spec = spec("3", "0s", "1s");
    for transactions in [1, 3, 10] {
        spec.load.transactions = std::num::NonZeroU64::new(transactions);
        for _ in 0..5 {
            assert_invariants(&run(&loaded, &spec, &Stop::new(), &mut Kept::default()).unwrap());
        }
    }
}
