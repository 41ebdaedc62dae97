//! Whether the beginning of a series is at another level than the rest.

use crate::ess::precision;
use crate::student::describe;
use crate::student::two_sided;

/// Two parts of a series and their difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// Mean of the first part.
    pub first: f64,
    /// Mean of the rest.
    pub rest: f64,
    /// The first part's mean, of the rest's.
    pub ratio: f64,
    /// The probability of a difference as large as this one, up or down, if the first part were like the rest.
    pub p: f64,
}

/// Compares the first `count` values with the following ones, like future values with known ones: the scatter is that
/// of the rest alone, since that of a part that is still changing is meaningless. The difference of the means has the
/// variance s²·τ·(1/k + 1/m), with k values in the first part, m in the rest, and τ the rest's autocorrelation time.
/// `None` when the rest has fewer than five values or its mean is not above 0.
pub fn change(values: &[f64], count: usize) -> Option<LevelChange> {
    if count == 0 || values.len() < count + 5 {
        return None;
    }
    let (first, rest) = values.split_at(count);
    let (first, known, whole) = (describe(first)?.mean, precision(rest)?, describe(rest)?);
    let error = (whole.sd?.powi(2) * known.tau * (1.0 / count as f64 + 1.0 / rest.len() as f64)).sqrt();
    let p = if error > 0.0 {
        two_sided((first - whole.mean) / error, (known.ess - 1.0).max(1.0))?
    } else {
        f64::from(first == whole.mean)
    };
    (whole.mean > 0.0).then_some(LevelChange { first, rest: whole.mean, ratio: first / whole.mean, p })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn a_change_is_worked_by_hand() {
        // The rest: mean 10, s² = 10/4 (τ = 1, as there are too few for batches). The first: 5 and 5. Error
        // √(2.5·(1/2 + 1/5)) = 1.3229, t = −3.7796 at 4 degrees of freedom: p = 0.01943.
        let found = change(&[5.0, 5.0, 8.0, 9.0, 10.0, 11.0, 12.0], 2).unwrap();
        assert_eq!((found.first, found.rest, found.ratio), (5.0, 10.0, 0.5));
        assert!((found.p - 0.01943).abs() < 1e-4, "{}", found.p);
        assert_eq!(change(&[1.0; 6], 2), None);
        assert_eq!(change(&[1.0; 7], 2).unwrap().p, 1.0);
        assert_eq!(change(&[0.5, 1.0, 1.0, 1.0, 1.0, 1.0], 1).unwrap().p, 0.0);
    }

    #[test]
    fn noise_alone_is_a_change_as_often_as_asked() {
        let mut random = Resampler::new(11);
        let found = (0..2000)
            .filter(|_| {
                let values: Vec<f64> = (0..30).map(|_| 100.0 + random.normal()).collect();
                change(&values, 3).unwrap().p < 0.05
            })
            .count();
        assert!((40..=120).contains(&found), "{found} of 2000 at 5 %");
    }
}
