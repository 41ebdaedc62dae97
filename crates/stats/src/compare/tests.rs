use super::*;
use crate::bootstrap::Resampler;
use crate::dependence::autoregressive;

fn paired<'a>(a: &'a [f64], b: &'a [f64]) -> MeasuredChange {
    compare(ComparedSamples::Paired { a, b }, 0.01, 0.95).unwrap()
}

fn independent<'a>(a: &'a [f64], b: &'a [f64]) -> MeasuredChange {
    compare(ComparedSamples::Independent { a, b }, 0.01, 0.95).unwrap()
}

#[test]
fn the_verdicts_are_distinguished() {
    let a = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
    let scaled = |by: f64| a.map(|v| v * by);
    let jitter = [1.001, 0.999, 1.0005, 0.9995, 1.0, 1.0002];
    let b = |by: f64| -> Vec<f64> { scaled(by).iter().zip(jitter).map(|(v, j)| v * j).collect() };
    assert_eq!(paired(&a, &b(1.0)).verdict, ChangeVerdict::NoChange);
    assert_eq!(paired(&a, &b(1.005)).verdict, ChangeVerdict::WithinNoise);
    assert_eq!(paired(&a, &b(1.03)).verdict, ChangeVerdict::Changed);
    assert_eq!(paired(&a, &b(0.97)).verdict, ChangeVerdict::Changed);
    assert_eq!(paired(&a[..3], &b(1.5)[..3]).verdict, ChangeVerdict::NotTestable);
    // Independent sides do not see through what the pairs share.
    assert_eq!(independent(&a, &b(1.005)).verdict, ChangeVerdict::NoChange);
    assert_eq!(independent(&a, &b(1.03)).verdict, ChangeVerdict::Changed);
    let found = paired(&a, &b(1.03));
    assert_eq!((found.n, found.p), ((6, 6), 2.0 / 64.0));
    assert!((found.hodges_lehmann - 1.03).abs() < 0.001 && (found.ratio.ratio - 1.03).abs() < 0.001);
}

#[test]
fn a_change_up_is_judged_as_the_same_change_down() {
    let mut random = Resampler::new(21);
    for _ in 0..200 {
        let a: Vec<f64> = (0..5).map(|_| (0.02 * random.normal()).exp()).collect();
        let b: Vec<f64> = (0..5).map(|_| 1.02 * (0.02 * random.normal()).exp()).collect();
        for (there, back) in [(paired(&a, &b), paired(&b, &a)), (independent(&a, &b), independent(&b, &a))] {
            assert_eq!((there.verdict, there.p), (back.verdict, back.p));
            assert!((there.ratio.low * back.ratio.high - 1.0).abs() < 1e-12);
            assert!((there.hodges_lehmann * back.hodges_lehmann - 1.0).abs() < 1e-12);
        }
    }
}

#[test]
fn counts_that_never_vary_are_compared_as_they_are() {
    // Instructions per transaction can be the same to the digit in every run.
    let same = independent(&[7.0; 5], &[7.0; 5]);
    assert_eq!((same.verdict, same.p), (ChangeVerdict::NoChange, 1.0));
    let more = independent(&[100.0; 5], &[103.0; 5]);
    assert_eq!(more.verdict, ChangeVerdict::Changed);
    assert!((more.ratio.low - 1.03).abs() < 1e-12 && (more.p - 2.0 / 252.0).abs() < 1e-12);
    assert_eq!(paired(&[100.0; 6], &[103.0; 6]).verdict, ChangeVerdict::Changed);
    assert_eq!(paired(&[100.0; 6], &[100.0; 6]).verdict, ChangeVerdict::NoChange);
}

#[test]
fn what_cannot_be_compared_is_not() {
    let good = [1.0, 2.0, 3.0, 4.0];
    for bad in [&[1.0][..], &[1.0, 2.0, 3.0], &[1.0, 2.0, 0.0, 3.0], &[1.0, 2.0, f64::NAN, 3.0]] {
        assert!(compare(ComparedSamples::Paired { a: &good, b: bad }, 0.01, 0.95).is_none());
    }
    for bad in [&[1.0][..], &[], &[1.0, -2.0], &[1.0, f64::INFINITY]] {
        assert!(compare(ComparedSamples::Independent { a: &good, b: bad }, 0.01, 0.95).is_none());
    }
    let sides = ComparedSamples::Paired { a: &good, b: &good };
    for (noise, confidence) in [(-0.01, 0.95), (f64::NAN, 0.95), (0.01, 1.0), (0.01, 0.0)] {
        assert!(compare(sides, noise, confidence).is_none());
    }
}

#[test]
fn like_compared_with_like_is_changed_in_one_of_twenty_at_most() {
    // 5 % of 2000 are 100 ± 10; the noise of 0 leaves the test alone to decide.
    let mut random = Resampler::new(77);
    let mut alarms = [0; 2];
    for _ in 0..2000 {
        let mut draw = || -> Vec<f64> { (0..6).map(|_| 5000.0 * (0.02 * random.normal()).exp()).collect() };
        let (a, b) = (draw(), draw());
        for (i, sides) in
            [ComparedSamples::Paired { a: &a, b: &b }, ComparedSamples::Independent { a: &a, b: &b }]
                .into_iter()
                .enumerate()
        {
            alarms[i] += u32::from(compare(sides, 0.0, 0.95).unwrap().verdict != ChangeVerdict::NoChange);
        }
    }
    assert!(alarms.iter().all(|a| (70..=130).contains(a)), "{alarms:?}");
}

#[test]
fn trial_a6_a_change_is_ruled_out_as_seldom_as_asked_where_there_is_one() {
    let steady = [100.0, 100.1, 99.9, 100.05, 99.95, 100.0];
    let (a, b) = (&steady, &steady.map(|v| v * 1.001));
    let within = ruled_out(ComparedSamples::Independent { a, b }, 0.95).unwrap();
    assert!(within > 0.001 && within < 0.0025, "{within}");
    assert_eq!(ruled_out(ComparedSamples::Independent { a: &a[..3], b }, 0.95), None);
    assert_eq!(ruled_out(ComparedSamples::Independent { a, b }, 0.5), None);
    // The truth lies at the margin itself: 5 % of 2000, a little fewer as the other bound must hold too.
    let mut random = Resampler::new(4);
    let shown = (0..2000)
        .filter(|_| {
            let a: Vec<f64> = (0..8).map(|_| (0.006 * random.normal()).exp()).collect();
            let b: Vec<f64> = (0..8).map(|_| 1.01 * (0.006 * random.normal()).exp()).collect();
            ruled_out(ComparedSamples::Independent { a: &a, b: &b }, 0.95).unwrap() < 0.01
        })
        .count();
    assert!((65..=135).contains(&shown), "{shown}");
}

#[test]
fn trial_a6_the_detectable_effect_is_the_one_that_is_found() {
    let mut random = Resampler::new(12);
    let mut side = |at: f64| -> Vec<f64> { (0..8).map(|_| at * (0.01 * random.normal()).exp()).collect() };
    let mut sum = 0.0;
    for _ in 0..200 {
        let (a, b) = (side(1.0), side(1.0));
        sum += detectable(ComparedSamples::Independent { a: &a, b: &b }, 0.0, 0.95, 0.9).unwrap().ln_1p();
    }
    let planned = power::smallest_effect(0.9, |e| power::detection_power(8, 0.01, e, 0.95)).unwrap().ln_1p();
    assert!((sum / 200.0 / planned - 1.0).abs() < 0.05, "{} {planned}", sum / 200.0);
    let one = side(1.0);
    let (few, all) = (&one[..3], &one[..]);
    assert_eq!(detectable(ComparedSamples::Independent { a: few, b: all }, 0.0, 0.95, 0.9), None);
}

#[test]
fn trial_a4_groups_measured_in_one_go_are_not_changed_by_a_level_that_lasts() {
    let mut random = Resampler::new(23);
    let mut group = |phi: f64, at: f64| -> Vec<f64> {
        autoregressive(6, phi, &mut random).into_iter().map(|log| at * (0.01 * log).exp()).collect()
    };
    let (mut changed, mut before, mut undetermined) = (0, 0, 0);
    for _ in 0..300 {
        let (a, b) = (group(0.5, 1.0), group(0.5, 1.0));
        let found = compare(ComparedSamples::Consecutive { a: &a, b: &b }, 0.01, 0.95).unwrap();
        changed += u32::from(found.verdict == ChangeVerdict::Changed);
        undetermined += u32::from(found.verdict == ChangeVerdict::Undetermined);
        before += u32::from(independent(&a, &b).verdict == ChangeVerdict::Changed);
        assert!(found.phi.is_some_and(|phi| (0.0..=0.7).contains(&phi)));
    }
    // 5 % of 300 and two standard errors are 22.
    assert!(changed <= 22 && before > 40 && undetermined > 20, "{changed}, before {before}; {undetermined}");
    // A change that is there is found.
    let found = (0..40)
        .filter(|_| {
            let (a, b) = (group(0.0, 1.0), group(0.0, 0.95));
            compare(ComparedSamples::Consecutive { a: &a, b: &b }, 0.01, 0.95).unwrap().verdict
                == ChangeVerdict::Changed
        })
        .count();
    assert!(found >= 36, "{found} of 40");
}
