use super::*;

#[test]
fn a_schedule_is_kept_while_only_the_last_moment_waits() {
    let schedule = |due, refused, waiting| ArrivalSchedule {
        rate: 1.0,
        due,
        refused,
        waiting,
        ..ArrivalSchedule::default()
    };
    assert!(!schedule(1000, 0, 10).overloaded() && !schedule(20, 0, 1).overloaded());
    assert!(schedule(1000, 0, 11).overloaded() && schedule(1000, 1, 0).overloaded());
    assert!(schedule(20, 0, 2).overloaded());
    let drained = ArrivalSchedule { waiting_at_close: Some(11), ..schedule(1000, 0, 0) };
    assert!(drained.overloaded(), "what waited at the closing counts, also when it was served later");
}

#[test]
fn the_highest_rate_is_one_that_held() {
    let trial = |point, rate, holds| RateTrial {
        point,
        rate,
        achieved: rate,
        holds,
        void: Vec::new(),
        verdicts: Vec::new(),
    };
    let mut found = MaximumRate {
        held: Some(15.0),
        failed: Some(17.5),
        slo: "p99<20ms".into(),
        trials: vec![
            trial(0, 10.0, true),
            trial(1, 20.0, false),
            trial(2, 15.0, true),
            trial(3, 17.5, false),
        ],
    };
    assert_eq!(found.highest_held(), Some(2));
    // 17.5 holds when it is tried again: unstable, not found. 15 is confirmed: its last trial counts.
    found.trials.extend([trial(4, 17.5, true), trial(5, 15.0, true), trial(6, 15.0, false)]);
    assert_eq!(found.highest_held(), Some(5));
    found.held = None;
    assert_eq!(found.highest_held(), None);
    found.held = Some(15.0);
    found.trials.retain(|t| !t.holds);
    assert_eq!(found.highest_held(), None);
}

#[test]
fn the_law_gives_what_its_coefficients_say() {
    let estimate = |value| Estimate { value, low: None, high: None };
    let fit = |sigma, kappa| Scalability {
        lambda: estimate(100.0),
        sigma: estimate(sigma),
        kappa: estimate(kappa),
        peak_users: None,
        peak_below: false,
        r_squared: None,
        points: Vec::new(),
    };
    assert_eq!((fit(0.0, 0.0).fitted(8.0), fit(1.0, 0.0).fitted(8.0)), (800.0, 100.0));
    assert_eq!(fit(0.0, 0.5).fitted(2.0), 100.0);
}
