use kelvin_measure::event::{StepKind, Stretch};
use kelvin_measure::{Random, SourceId};

use super::*;
use crate::tenants::TenantSecond;

/// A tenant at work from `from` to `to`, with the throughput and the mean time in milliseconds that `at` gives each second.
fn tenant(
    name: &str,
    (from, to): (i64, i64),
    at: impl Fn(i64) -> (f64, f64),
    random: &mut Random,
) -> TenantSeries {
    let nanos = |second: i64| second as u64 * SECOND;
    let stretch = Stretch {
        point: 0,
        from: nanos(from),
        to: nanos(to),
        users: 4,
        client_headline: 0,
        server_headline: None,
        schedule: None,
        poisson: false,
    };
    let second = |second: i64, random: &mut Random| {
        let (rate, mean) = at(second);
        let good = (rate + (rate.sqrt() * (random.exponential(1.0) - 1.0))).max(1.0) as u64;
        let mut service = Histogram::new();
        for _ in 0..good {
            service.record((random.exponential(mean * 1e6) as u64).max(1));
        }
        (second, TenantSecond { good, service, ..TenantSecond::default() })
    };
    let seconds = (from..to).map(|one| second(one, random)).collect();
    TenantSeries { source: SourceId(1), name: name.into(), stretches: vec![stretch], seconds, waits: None }
}

fn step(number: u32, at: u64, kind: StepKind, tenant: &str) -> Step {
    let (text, tenants) = (format!("step {number}"), vec![tenant.to_owned()]);
    Step { point: 0, number, at: at * SECOND, kind, tenants, text, annotated: true }
}

fn neighbours(after: (f64, f64), seed: u64) -> Vec<Interference> {
    let mut random = Random::part(seed, 1, 1);
    let shop = tenant("shop", (0, 120), |second| if second < 60 { (40.0, 5.0) } else { after }, &mut random);
    let scan = tenant("scan", (60, 120), |_| (30.0, 50.0), &mut random);
    let steps = [step(1, 0, StepKind::Start, "shop"), step(3, 60, StepKind::Start, "scan")];
    interference(&[shop, scan], &steps)
}

#[test]
fn a_neighbour_that_takes_a_third_is_named_and_the_intervals_hold_the_truth_as_often_as_they_say() {
    let mut held = [0; 3];
    for seed in 0..30 {
        let found = neighbours((27.0, 9.0), seed);
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.tenant.as_str(), one.causes.as_slice()), ("shop", &["scan".to_owned()][..]));
        assert_eq!((one.step, one.at_s, one.seconds.1), (3, 60.0, 60));
        assert_eq!(one.verdict, InterferenceVerdict::Worse);
        let truths = [(one.throughput, 27.0 / 40.0), (one.p50_us, 9.0 / 5.0), (one.p99_us, 9.0 / 5.0)];
        for (held, (change, truth)) in held.iter_mut().zip(truths) {
            *held += i32::from(change.low.unwrap() < truth && change.high.is_none_or(|high| truth < high));
        }
    }
    // Of 30 intervals at 95 % 25 or more hold the truth in 997 of 1000 cases.
    assert!(held.iter().all(|held| *held >= 25), "{held:?}");
}

#[test]
fn without_an_effect_nothing_is_shown_and_the_bound_is_small() {
    let mut shown = 0;
    for seed in 0..20 {
        let found = neighbours((40.0, 5.0), seed);
        match found[0].verdict {
            InterferenceVerdict::NotShown { throughput_percent, p99_percent } => {
                assert!(throughput_percent.unwrap() < 20.0 && p99_percent.unwrap() < 100.0, "{:?}", found[0]);
            }
            _ => shown += 1,
        }
    }
    // Three figures at 95 % each.
    assert!(shown <= 6, "{shown} of 20");
}

#[test]
fn a_load_that_ends_makes_it_better_and_short_stretches_say_so() {
    let mut random = Random::part(1, 1, 1);
    let shop = tenant("shop", (0, 90), |s| if s < 30 { (20.0, 9.0) } else { (40.0, 5.0) }, &mut random);
    let steps = [
        step(1, 0, StepKind::Start, "shop"),
        step(4, 30, StepKind::Stop, "scan"),
        step(5, 85, StepKind::Stop, "x"),
    ];
    let found = interference(&[shop], &steps);
    assert_eq!(found[0].verdict, InterferenceVerdict::Better);
    // Five seconds behind the last step.
    assert_eq!((found[1].seconds, found[1].throughput.low), ((55, 5), None));
}
