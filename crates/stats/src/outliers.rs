//! Values that do not belong to the rest. They are flagged and looked into, never dropped: a slow run is data too.

use crate::student::{describe, quantile};

/// The outliers of `values`, at most `most` of them, as their places, the most extreme first: the generalised extreme
/// Studentized deviate (Rosner, Technometrics 25, 1983), which finds several where one would hide another, and by chance
/// finds one in `alpha` of all samples. It takes the rest to be normal: give it logarithms where those are. None of them
/// with fewer than three values beyond `most`, with a value that is not finite, or `alpha` not within (0, 1); good from
/// 25 values on, and usable from 15 (Rosner).
pub fn find(values: &[f64], most: usize, alpha: f64) -> Vec<usize> {
    if values.iter().any(|v| !v.is_finite()) || !(alpha > 0.0 && alpha < 1.0) || values.len() < most + 3 {
        return Vec::new();
    }
    let mut rest: Vec<usize> = (0..values.len()).collect();
    let (mut removed, mut outliers) = (Vec::new(), 0);
    for _ in 0..most {
        let kept: Vec<f64> = rest.iter().map(|i| values[*i]).collect();
        let Some((mean, sd)) = describe(&kept).and_then(|s| Some((s.mean, s.sd?))) else { break };
        let distance = |i: usize| (values[i] - mean).abs();
        let farthest = (0..rest.len()).max_by(|&i, &j| distance(rest[i]).total_cmp(&distance(rest[j])));
        let Some(farthest) = farthest.filter(|_| sd > 0.0) else { break };
        let n = rest.len() as f64;
        let Some(t) = quantile(1.0 - alpha / (2.0 * n), n - 2.0) else { break };
        let critical = (n - 1.0) * t / ((n - 2.0 + t * t) * n).sqrt();
        let i = rest.remove(farthest);
        removed.push(i);
        // The last that is beyond its bound makes outliers of all before it.
        if distance(i) / sd > critical {
            outliers = removed.len();
        }
    }
    removed.truncate(outliers);
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn rosners_example() {
        // NIST/SEMATECH e-Handbook 1.3.5.17.3, Rosner's 54 values: R₁ and R₂ are within their bounds, R₃ = 3.179 is
        // beyond 3.144: three outliers.
        let values = [
            -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65,
            1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24,
            2.26, 2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59,
            3.68, 4.30, 4.64, 5.34, 5.42, 6.01,
        ];
        assert_eq!(find(&values, 10, 0.05), [53, 52, 51]);
        assert!(find(&values, 2, 0.05).is_empty(), "one hides behind the other when only two are looked for");
    }

    #[test]
    fn a_normal_sample_has_one_as_seldom_as_asked() {
        let mut random = Resampler::new(10);
        let found = (0..1000)
            .filter(|_| {
                let values: Vec<f64> = (0..30).map(|_| random.normal()).collect();
                !find(&values, 5, 0.05).is_empty()
            })
            .count();
        assert!((28..=75).contains(&found), "{found} of 1000");
    }

    #[test]
    fn too_few_values_and_equal_ones_have_none() {
        assert!(find(&[1.0, 1.0, 900.0, 1.0], 2, 0.05).is_empty());
        assert!(find(&[1.0; 40], 5, 0.05).is_empty());
        assert!(find(&[1.0, f64::NAN, 3.0, 4.0, 5.0], 1, 0.05).is_empty());
        assert!(find(&[1.0, 2.0, 3.0, 4.0, 5.0], 1, 0.0).is_empty());
    }
}
