//! Statistics for the tests of the stream's distributions.

use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Pearson's test of counts against weights: the probability of a deviation at least as large. Adjacent classes with
/// fewer than 5 expected counts are merged, which reduces the degrees of freedom.
pub(crate) fn chi_squared(seen: &[u64], weights: &[f64], freedom: u64) -> f64 {
    assert_eq!(seen.len(), weights.len());
    let (count, weight) = (seen.iter().sum::<u64>() as f64, weights.iter().sum::<f64>());
    let mut lost = 0;
    let mut sum = 0.0;
    let (mut here, mut expected) = (0.0, 0.0);
    let mut last = None;
    for (i, (n, part)) in seen.iter().zip(weights).enumerate() {
        here += *n as f64;
        expected += part / weight * count;
        if expected >= 5.0 || i + 1 == seen.len() {
            if expected > 0.0 {
                sum += (here - expected) * (here - expected) / expected;
            } else {
                assert!(here == 0.0, "class {i} was observed, but has probability 0");
                lost += 1;
            }
            last = Some(expected);
            (here, expected) = (0.0, 0.0);
        } else {
            lost += 1;
        }
    }
    assert!(last.is_some());
    let freedom = freedom.saturating_sub(lost);
    if freedom == 0 { 1.0 } else { 1.0 - ChiSquared::new(freedom as f64).unwrap().cdf(sum) }
}
