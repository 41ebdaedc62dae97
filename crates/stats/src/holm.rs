//! Many questions at once.

/// Holm's adjustment of the p of several tests (Scandinavian Journal of Statistics 6, 1979): reject those below α, and
/// the probability of one false alarm among all of them is at most α, however they depend on each other. The k-th
/// smallest of m is multiplied by m − k + 1, never to less than the one before it nor to more than 1. In the order
/// given. A p that is not a number stays one, and counts as a test all the same.
///
/// ```
/// assert_eq!(kelvin_stats::holm::adjust(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
/// ```
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut least: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        if !p[i].is_nan() {
            least = least.max((p[i] * (p.len() - rank) as f64).min(1.0));
            adjusted[i] = least;
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn an_adjusted_p_never_falls_behind_a_smaller_one() {
        // R: p.adjust(c(0.01, 0.02, 0.03, 0.04, 0.05), "holm") is 0.05 0.08 0.09 0.09 0.09.
        let found = adjust(&[0.05, 0.01, 0.04, 0.02, 0.03]);
        for (found, expected) in found.iter().zip([0.09, 0.05, 0.09, 0.08, 0.09]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(adjust(&[0.5, 0.9]), [1.0, 1.0]);
        assert!(adjust(&[]).is_empty());
        let with_gap = adjust(&[0.01, f64::NAN]);
        assert!(with_gap[0] == 0.02 && with_gap[1].is_nan());
    }

    #[test]
    fn one_false_alarm_among_ten_tests_is_as_rare_as_one_in_one() {
        let mut random = Resampler::new(14);
        let alarms = (0..4000)
            .filter(|_| {
                let p: Vec<f64> = (0..10).map(|_| random.unit()).collect();
                adjust(&p).iter().any(|p| *p < 0.05)
            })
            .count();
        // 1 − 0.995¹⁰ = 4.9 %: 196 ± 14.
        assert!((154..=238).contains(&alarms), "{alarms} of 4000");
    }
}
