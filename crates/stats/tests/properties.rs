//! What must hold whatever the values are.

#![allow(clippy::unwrap_used)]

use kelvin_stats::change_points::{self, Options};
use kelvin_stats::compare::{ChangeVerdict, ComparedSamples, compare, detectable, ruled_out};
use kelvin_stats::factorial::{Analysis, Design, Observation};
use kelvin_stats::fractional::Fraction;
use kelvin_stats::sequential::Boundary;
use kelvin_stats::{holm, noncentral, permutation, power, rank, scatter, student};
use proptest::collection::vec;
use proptest::prelude::*;

/// Anything a measurement may come to, and what it should never.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 1e-3..1e9_f64,
        1 => prop::sample::select(vec![0.0, -1.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, f64::MAX, 5e-324]),
        1 => any::<f64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_values_make_the_statistics_panic_or_a_probability_leave_its_range(
        a in vec(any_value(), 0..9),
        b in vec(any_value(), 0..9),
        confidence in prop_oneof![0.5..0.999_f64, any::<f64>()],
    ) {
        let all = [ComparedSamples::Paired { a: &a, b: &b }, ComparedSamples::Independent { a: &a, b: &b }, ComparedSamples::Consecutive { a: &a, b: &b }];
        for sides in all {
            ruled_out(sides, confidence);
            detectable(sides, 0.01, confidence, 0.9);
            if let Some(found) = compare(sides, 0.01, confidence) {
                prop_assert!((0.0..=1.0).contains(&found.p), "{found:?}");
                prop_assert!(!found.ratio.ratio.is_nan());
            }
        }
        for p in [permutation::sign_flip(&a), permutation::two_samples(&a, &b)] {
            prop_assert!(p.is_none_or(|p| p > 0.0 && p <= 1.0 + 1e-12), "{p:?}");
        }
        if let Some(found) = rank::median_interval(&a, confidence) {
            prop_assert!(found.low <= found.high && found.confidence >= confidence);
            let median = rank::median(&a).unwrap();
            prop_assert!(found.low <= median && median <= found.high);
        }
        student::mean_interval(&a, confidence);
        scatter::coefficient(&a, confidence);
        prop_assert_eq!(holm::adjust(&a).len(), a.len());
    }

    #[test]
    fn a_change_of_unit_is_no_change(
        a in vec(10.0..1000.0_f64, 4..8),
        b in vec(10.0..1000.0_f64, 4..8),
        unit in 1e-6..1e6_f64,
    ) {
        let scaled = |values: &[f64]| values.iter().map(|v| v * unit).collect::<Vec<_>>();
        let found = compare(ComparedSamples::Independent { a: &a, b: &b }, 0.01, 0.95).unwrap();
        let other = compare(ComparedSamples::Independent { a: &scaled(&a), b: &scaled(&b) }, 0.01, 0.95).unwrap();
        prop_assert!((found.ratio.ratio / other.ratio.ratio - 1.0).abs() < 1e-9);
        prop_assert!((found.p - other.p).abs() < 1e-9);
        prop_assert_eq!(found.verdict, other.verdict);
        prop_assert_ne!(found.verdict, ChangeVerdict::NotTestable);
    }

    #[test]
    fn change_points_part_the_history(values in vec(any_value(), 0..130), window in 0..80_usize) {
        let found = change_points::find(&values, &Options { window, ..Options::default() });
        prop_assert!(found.windows(2).all(|w| w[0].index < w[1].index));
        prop_assert!(found.iter().all(|point| point.index > 0 && point.index < values.len() && point.p < 0.001));
    }

    #[test]
    fn a_generator_is_read_or_refused(factors in 0..20_usize, generators in vec("[A-F=-]{0,6}", 0..4)) {
        let generators: Vec<&str> = generators.iter().map(String::as_str).collect();
        if let Ok(found) = Fraction::new(factors, &generators) {
            prop_assert_eq!(found.runs().len(), 1 << (factors - generators.len()));
            prop_assert!(found.resolution() >= 3);
        }
    }

    #[test]
    fn a_study_is_analysed_or_refused(
        levels in vec(0..4_usize, 0..4),
        runs in vec((vec(0..4_usize, 0..4), 0..3_u32, any_value()), 0..60),
        complete in any::<bool>(),
    ) {
        let design = Design::new(&levels);
        let mut observations: Vec<Observation> =
            runs.into_iter().map(|(cell, block, value)| Observation { cell, block, value }).collect();
        if complete {
            observations.retain(|o| o.value.is_finite() && o.value.abs() < 1e100);
            for observation in &mut observations {
                observation.cell = design.cells().first().cloned().unwrap_or_default();
            }
            observations.extend(design.cells().into_iter().enumerate().map(|(i, cell)| Observation {
                cell,
                block: 0,
                value: i as f64,
            }));
        }
        if let Ok(found) = Analysis::from_observations(&design, &observations, 0.95) {
            prop_assert_eq!(found.residuals.len(), observations.len());
            prop_assert!(found.error.sum_of_squares <= found.total.sum_of_squares * (1.0 + 1e-6) + 1e-6);
            prop_assert!(found.effects.iter().all(|e| e.p.is_none_or(|p| (0.0..=1.0).contains(&p))));
        }
    }

    #[test]
    fn the_looks_together_spend_no_more_than_there_is(
        steps in vec(1..9_u32, 1..8),
        alpha in 0.001..0.2_f64,
    ) {
        let looks: Vec<u32> =
            steps.iter().scan(3, |at, step| { *at += step; Some(*at) }).collect();
        let found = Boundary::normal(&looks, alpha).unwrap();
        let for_t = Boundary::new(&looks, alpha).unwrap();
        prop_assert!((0..looks.len()).all(|look| for_t.nominal(look) <= found.nominal(look)));
        let nominal: Vec<f64> = (0..looks.len()).map(|look| found.nominal(look)).collect();
        prop_assert!(nominal.iter().all(|p| (0.0..=alpha * (1.0 + 1e-6)).contains(p)), "{nominal:?}");
        // Bonferroni from the other side: together they are at least alpha.
        prop_assert!(nominal.iter().sum::<f64>() >= alpha * 0.999_999, "{nominal:?}");
    }

    #[test]
    fn the_noncentral_t_rises_with_t_and_falls_with_the_shift(
        t in -20.0..20.0_f64,
        df in 1.0..300.0_f64,
        shift in -10.0..10.0_f64,
    ) {
        let at = |t: f64, shift: f64| noncentral::below(t, df, shift).unwrap();
        prop_assert!(at(t, shift) <= at(t + 0.1, shift) + 1e-10);
        prop_assert!(at(t, shift + 0.1) <= at(t, shift) + 1e-10);
    }

    #[test]
    fn planning_answers_or_refuses(cv in any_value(), effect in -2.0..2.0_f64, wanted in -0.1..1.1_f64) {
        prop_assert!(power::runs_a_side(cv, effect, wanted, 0.95).is_none_or(|n| n >= 4));
        prop_assert!(power::pairs(cv, effect, wanted, 0.95).is_none_or(|n| n >= 4));
        prop_assert!(power::runs_for_interval(cv, wanted, 0.95).is_none_or(|n| n >= 2));
    }
}
