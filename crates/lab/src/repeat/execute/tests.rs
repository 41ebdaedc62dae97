use std::cell::Cell;

use kelvin_stats::bootstrap::Resampler;
use kelvin_store::GroupId;

use super::*;
use crate::repeat::RepeatSummary;
use crate::simulated::studies::dependent;
use crate::simulated::{Simulated, Simulation};
use kelvin_run::spec::WorkloadName;

fn spec() -> Spec {
    Spec::new(WorkloadName::TprocC)
}

/// Repeats runs on a bench where the n-th run returns `of(n)`.
fn repeat_runs(plan: &RepeatPlan, of: impl Fn(u32) -> Simulation) -> (Ran, Vec<u64>) {
    let seeds = std::cell::RefCell::new(Vec::new());
    let count = Cell::new(0);
    let mut bench = Simulated::new(|planned: &Planned<'_>| {
        seeds.borrow_mut().push(planned.spec.load.seed);
        assert_eq!(planned.slot.place, count.get());
        count.set(count.get() + 1);
        Ok(of(count.get() - 1))
    });
    let ran = run(plan, &spec(), GroupId(1), &mut bench, &|_| String::new()).unwrap();
    drop(bench);
    (ran, seeds.into_inner())
}

#[test]
fn a_void_run_is_kept_and_replaced_with_the_same_seed() {
    let (ran, seeds) = repeat_runs(&RepeatPlan::fixed(&spec(), 6), |n| {
        let run = Simulation::new(100.0);
        if n == 2 { run.void("steal") } else { run }
    });
    assert!(matches!(ran.ended, RepeatEnd::Done));
    assert_eq!(ran.rows.len(), 7);
    assert_eq!(seeds, [1, 2, 3, 3, 4, 5, 6]);
    assert_eq!(ran.rows[2].void.as_deref(), Some("void: steal"));
}

#[test]
fn more_void_runs_than_may_be_end_it() {
    let mut plan = RepeatPlan::fixed(&spec(), 6);
    plan.replace = 2;
    let (ran, _) =
        repeat_runs(
            &plan,
            |n| if n >= 2 { Simulation::new(1.0).void("steal") } else { Simulation::new(1.0) },
        );
    assert!(matches!(ran.ended, RepeatEnd::TooManyVoid));
    assert_eq!(ran.rows.len(), 5);
}

#[test]
fn the_rule_ends_it_as_soon_as_the_interval_is_narrow_and_never_before_six() {
    let plan = RepeatPlan::until(&spec(), 6, 30, 0.01);
    // ± 0.1 %: six are sufficient. ± 1.5 %: more are needed. ± 20 %: even thirty are not enough.
    let of = |size: f64| {
        repeat_runs(&plan, move |n| Simulation::new(100.0 + if n.is_multiple_of(2) { size } else { -size })).0
    };
    assert_eq!(of(0.1).rows.len(), 6);
    let some = of(1.5).rows;
    assert!((10..=20).contains(&some.len()), "{}", some.len());
    assert!(RepeatSummary::from_runs(&plan, &some).answer.correct);
    assert!(
        !RepeatSummary::from_runs(&plan, &some[..some.len() - 1]).answer.correct,
        "it would have ended before"
    );
    assert_eq!(of(20.0).rows.len(), 30);
}

#[test]
fn somebody_who_stops_keeps_what_there_is() {
    let mut bench = Simulated::new(|_: &Planned<'_>| Ok(Simulation::new(100.0)));
    bench.stop_after = Some(3);
    let words = |progress: &RepeatEvent<'_>| match progress {
        RepeatEvent::Ran { counted, of, left, .. } => format!("{counted} of {of}, {} s left", left.as_secs()),
        RepeatEvent::Failed { error } => error.clone(),
    };
    let ran = run(&RepeatPlan::fixed(&spec(), 6), &spec(), GroupId(1), &mut bench, &words).unwrap();
    assert!(matches!(ran.ended, RepeatEnd::Interrupted));
    assert_eq!(ran.rows.len(), 3);
    assert_eq!(bench.messages, ["1 of 6, 50 s left", "2 of 6, 40 s left", "3 of 6, 30 s left"]);
}

#[test]
fn a_run_that_cannot_be_made_counts_as_void_unless_it_is_the_first() {
    let count = Cell::new(0);
    let attempt = |fails: fn(u32) -> bool| {
        count.set(0);
        let mut bench = Simulated::new(|_: &Planned<'_>| {
            count.set(count.get() + 1);
            if fails(count.get()) {
                Err(BenchError::Failed("no server".into()))
            } else {
                Ok(Simulation::new(1.0))
            }
        });
        run(&RepeatPlan::fixed(&spec(), 6), &spec(), GroupId(1), &mut bench, &|_| String::new())
    };
    assert!(matches!(attempt(|n| n == 1), Err(BenchError::Failed(_))));
    let ran = attempt(|n| n == 3).unwrap();
    assert!(matches!(ran.ended, RepeatEnd::Done));
    assert_eq!((ran.rows.len(), count.get()), (6, 7));
    let ran = attempt(|n| n >= 3).unwrap();
    assert!(matches!(ran.ended, RepeatEnd::Failed(_)));
    assert_eq!((ran.rows.len(), count.get()), (2, 5));
}

#[test]
fn a_stopped_interval_covers_what_it_says() {
    trial_a4_stopped(0.0, [(0.008, 1), (0.015, 2)], 200, 150, 16);
}

#[test]
fn trial_a4_a_stopped_interval_covers_what_it_says_where_runs_depend_on_each_other() {
    // The earlier method covered 48 % at φ = 0.8, which is beyond the prior.
    trial_a4_stopped(0.5, [(0.01, 4), (0.008, 5)], 100, 60, 12);
    trial_a4_stopped(0.8, [(0.01, 6), (0.008, 7)], 60, 10, 35);
}

/// Simulates `studies` groups for each setting, with the correlation `phi` between adjacent runs. At least `least` of
/// them reach the precision, and at most `most` per cent of their intervals miss the true mean.
fn trial_a4_stopped(phi: f64, settings: [(f64, u64); 2], studies: u32, least: u32, most: u32) {
    for (sd, seed) in settings {
        let plan = RepeatPlan::until(&spec(), 6, 30, 0.01);
        let mut random = Resampler::new(seed);
        let (mut said_yes, mut wrong) = (0_u32, 0_u32);
        for _ in 0..studies {
            let draws = dependent(sd, phi)(&mut random, 30);
            let rows = repeat_runs(&plan, |n| Simulation::new(draws[n as usize])).0.rows;
            let values = counted_values(&rows, None);
            let spread = Spread::from_values(&values, &plan.belief(), plan.confidence()).unwrap();
            if spread.half_width.unwrap() <= plan.precision {
                said_yes += 1;
                let (low, high) = spread.interval.unwrap();
                wrong += u32::from(low > 1.0 || high < 1.0);
            }
        }
        assert!(
            said_yes >= least && 100 * wrong <= most * said_yes,
            "φ {phi}, sd {sd}: {wrong} of {said_yes} wrong"
        );
    }
}

#[test]
fn the_first_run_says_that_the_figure_has_too_few_samples() {
    let mut plan = RepeatPlan::fixed(&spec(), 6);
    plan.figure = Some("p99".into());
    let (ran, _) = repeat_runs(&plan, |_| {
        let mut run = Simulation::new(100.0).with_figure("p99", 0.0);
        run.figures[1].value = None;
        run
    });
    let RepeatEnd::Failed(why) = &ran.ended else { panic!("{:?}", ran.ended) };
    let why = why.to_string();
    assert!(ran.rows.len() == 1 && why.contains("no p99") && why.contains("1000 are needed"), "{why}");
    // If the first run has the metric, a later run without it is no error.
    let (ran, _) = repeat_runs(&plan, |n| {
        let run = Simulation::new(100.0).with_figure("p99", 5.0);
        if n == 1 { Simulation::new(100.0) } else { run }
    });
    assert!(matches!(ran.ended, RepeatEnd::Done));
}
