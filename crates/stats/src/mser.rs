//! Where a series has left its beginning behind: MSER-5.
//!
//! The values are taken in batches of five, and as many batches are cut from the beginning as make the standard error of
//! the mean of the others smallest: z(d) = Σ(zⱼ − z̄)²/(m − d)² over the batches j ≥ d (White, Simulation 69, 1997; White,
//! Cobb and Spratt, WSC 2000). When more than half would have to go, the series is too short for a decision.
//!
//! It trims too little where the noise is large against the start's error (Wang and Glynn, WSC 2016): so it never stands
//! alone here.

/// Batches that always remain: of the last few the statistic is small by chance.
const FEWEST: usize = 5;

/// Where to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// Values to leave out at the beginning.
    pub values: usize,
    /// Whether at most half of the series has to go: otherwise no steady part was found.
    pub settled: bool,
}

/// The truncation with batches of five values; none for fewer than 25.
pub fn mser5(values: &[f64]) -> Option<Truncation> {
    mser(values, 5)
}

/// The same with batches of `batch` values, for short series; none for fewer than five batches.
pub fn mser(values: &[f64], batch: usize) -> Option<Truncation> {
    if batch == 0 || values.len() / batch < FEWEST {
        return None;
    }
    let means: Vec<f64> = values.chunks_exact(batch).map(|c| c.iter().sum::<f64>() / batch as f64).collect();
    let m = means.len();
    let statistic = |d: usize| {
        let rest = &means[d..];
        let mean = rest.iter().sum::<f64>() / rest.len() as f64;
        rest.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    let best = (0..=m - FEWEST).map(|d| (d, statistic(d))).min_by(|a, b| a.1.total_cmp(&b.1))?.0;
    Some(Truncation { values: best * batch, settled: best * 2 <= m })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn a_start_that_is_lower_is_cut_off() {
        let mut random = Resampler::new(3);
        let mut values: Vec<f64> = (0..100).map(|_| 100.0 + random.normal()).collect();
        for (i, value) in values.iter_mut().take(15).enumerate() {
            *value -= 60.0 - 4.0 * i as f64;
        }
        let found = mser5(&values).unwrap();
        assert!(found.settled && (10..=20).contains(&found.values), "{found:?}");
    }

    #[test]
    fn what_rises_to_its_end_has_not_settled() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(!mser5(&values).unwrap().settled);
        assert_eq!(mser5(&values[..24]), None);
        assert_eq!(mser(&values, 0), None);
    }

    #[test]
    fn the_statistic_is_worked_by_hand() {
        // Without the first: 0/25; with it mean 8.33, squares (8.33² + 5·1.67²) = 83.3, by 36.
        assert_eq!(
            mser(&[0.0, 10.0, 10.0, 10.0, 10.0, 10.0], 1),
            Some(Truncation { values: 1, settled: true })
        );
        assert_eq!(mser(&[7.0; 20], 1), Some(Truncation { values: 0, settled: true }));
    }
}
