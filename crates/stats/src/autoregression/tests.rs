use super::*;
use crate::bootstrap::Resampler;
use crate::dependence::autoregressive;
use crate::student;

#[test]
fn where_neighbours_are_independent_the_interval_is_students() {
    // A belief in φ = 0 alone.
    let none = PhiDistribution {
        logs: grid().map(|phi| if phi == 0.0 { 0.0 } else { f64::NEG_INFINITY }).collect(),
    };
    let (a, b) = ([3.0, 5.0, 4.0, 6.0, 4.5], [4.0, 7.0, 6.5, 6.0]);
    let found = mean_interval(&a, &none, 0.95).unwrap();
    let (low, high) = student::mean_interval(&a, 0.95).unwrap();
    assert!(
        (found.low - low).abs() < 1e-8 && (found.high - high).abs() < 1e-8 && found.phi == 0.0,
        "{found:?}"
    );
    let found = difference_interval(&a, &b, &none, 0.9).unwrap();
    let exp = |values: &[f64]| values.iter().map(|v| v.exp()).collect::<Vec<_>>();
    let welch = student::welch_ratio(&exp(&a), &exp(&b), 0.9).unwrap();
    assert!(
        (found.low - welch.low.ln()).abs() < 1e-7 && (found.high - welch.high.ln()).abs() < 1e-7,
        "{found:?}"
    );
}

#[test]
fn a_fit_is_generalised_least_squares() {
    // Worked with the whole matrix (NumPy): φ = 0.5, values 1, 2, 4, 3, 5.
    let found = fit(&[1.0, 2.0, 4.0, 3.0, 5.0], 0.5);
    assert!((found.mean - 3.0).abs() < 1e-12, "{}", found.mean);
    // R⁻¹ = [4/3, −2/3; 5/3 within]: 1'R⁻¹1 = 7/3; the residuals −2, −1, 1, 0, 2 give 38/3, over 4·7/3.
    assert!((found.error - (38.0_f64 / 28.0).sqrt()).abs() < 1e-12, "{}", found.error);
}

#[test]
fn what_does_not_vary_is_known() {
    let found = mean_interval(&[2.0; 6], &PhiDistribution::default(), 0.95).unwrap();
    assert_eq!((found.low, found.high), (2.0, 2.0));
    let found = difference_interval(&[2.0; 6], &[2.0; 5], &PhiDistribution::default(), 0.95).unwrap();
    assert_eq!((found.low, found.high, found.p), (0.0, 0.0, 1.0));
    let one =
        difference_interval(&[2.0; 6], &[2.5, 2.6, 2.4, 2.5], &PhiDistribution::default(), 0.95).unwrap();
    assert!(one.low > 0.2 && one.high < 0.8, "{one:?}");
    assert_eq!(mean_interval(&[1.0], &PhiDistribution::default(), 0.95), None);
    assert_eq!(mean_interval(&[1.0, f64::NAN], &PhiDistribution::default(), 0.95), None);
    assert_eq!(mean_interval(&[1.0, 2.0], &PhiDistribution::default(), 1.0), None);
}

#[test]
fn earlier_series_teach_what_six_values_cannot_show() {
    let mut random = Resampler::new(8);
    for (phi, least, most) in [(0.0, 0.0, 0.25), (0.6, 0.4, 0.7)] {
        let mut belief = PhiDistribution::default();
        assert!((belief.phi() - LARGEST / 2.0).abs() < 0.01, "{}", belief.phi());
        for _ in 0..12 {
            belief = belief.updated_with(&autoregressive(6, phi, &mut random));
        }
        assert!((least..=most).contains(&belief.phi()), "{phi}: {}", belief.phi());
    }
}

#[test]
fn trial_a4_intervals_cover_where_runs_depend_on_each_other() {
    let mut random = Resampler::new(19);
    for (phi, least) in [(0.0, 0.96), (0.5, 0.89)] {
        let (mut mean, mut difference) = (0, 0);
        for _ in 0..200 {
            let (a, b) = (autoregressive(6, phi, &mut random), autoregressive(6, phi, &mut random));
            let of_a = mean_interval(&a, &PhiDistribution::default(), 0.95).unwrap();
            let of_both = difference_interval(&a, &b, &PhiDistribution::default(), 0.95).unwrap();
            mean += u32::from(of_a.low <= 0.0 && 0.0 <= of_a.high);
            difference += u32::from(of_both.low <= 0.0 && 0.0 <= of_both.high);
            assert_eq!(of_both.p < 0.05, of_both.low > 0.0 || of_both.high < 0.0);
        }
        let least = (200.0 * least) as u32;
        assert!(mean >= least && difference >= least, "φ {phi}: {mean} and {difference} of 200");
    }
}
