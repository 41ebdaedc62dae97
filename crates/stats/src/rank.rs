//! What the order of the values says: the median with its interval, and the Hodges-Lehmann shift.

/// The median; none when there are no values or one is not a number.
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values)?;
    middle(&sorted)
}

/// An interval of the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// Lower end: a measured value.
    pub low: f64,
    /// Upper end: a measured value.
    pub high: f64,
    /// The confidence reached, at least the one asked for: between two values there is none in between.
    pub confidence: f64,
}

/// The interval of the median between two of the values in their order, the k-th from below and from above: no
/// assumption but that they are independent (Thompson, Annals of Mathematical Statistics 7, 1936; Conover, Practical
/// Nonparametric Statistics, section 3.2). It holds the median unless fewer than k values lie on one side of it, which
/// has the probability 2·P(X < k) of n coins; k is the largest for which the confidence asked for is reached. None when
/// even the smallest and the largest value do not reach it: fewer than six values at 95 %.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<MedianInterval> {
    let sorted = sorted(values)?;
    let n = sorted.len();
    if !(confidence > 0.0 && confidence < 1.0) || n == 0 {
        return None;
    }
    // P(X < k) of n coins, in logarithms as 2ⁿ leaves the range of a number at n = 1024.
    let (mut outside, mut ln_term, mut found) = (0.0, -(n as f64) * std::f64::consts::LN_2, None);
    for k in 1..=n.div_ceil(2) {
        outside += f64::exp(ln_term);
        let reached = 1.0 - 2.0 * outside;
        if reached < confidence {
            break;
        }
        found = Some(MedianInterval { low: sorted[k - 1], high: sorted[n - k], confidence: reached });
        ln_term += ((n - k + 1) as f64 / k as f64).ln();
    }
    found
}

/// The shift of one sample of differences: the median of the means of all pairs of them, each with itself too (Hodges
/// and Lehmann, Annals of Mathematical Statistics 34, 1963). One outlier hardly moves it. None when there are no
/// differences or one is not a number.
pub fn hodges_lehmann_paired(differences: &[f64]) -> Option<f64> {
    let pairs = differences
        .iter()
        .enumerate()
        .flat_map(|(i, x)| differences[i..].iter().map(move |y| f64::midpoint(*x, *y)));
    median(&pairs.collect::<Vec<_>>())
}

/// The shift from `a` to `b`: the median of all differences b − a (Hodges and Lehmann 1963, as above). None when a
/// sample is empty or a value is not a number.
pub fn hodges_lehmann(a: &[f64], b: &[f64]) -> Option<f64> {
    median(&a.iter().flat_map(|x| b.iter().map(move |y| y - x)).collect::<Vec<_>>())
}

fn sorted(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    Some(if n % 2 == 1 { upper } else { f64::midpoint(sorted[n / 2 - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn medians_and_their_intervals_are_those_of_the_binomial_tables() {
        assert_eq!((median(&[3.0, 1.0, 2.0]), median(&[4.0, 1.0, 3.0, 2.0])), (Some(2.0), Some(2.5)));
        assert_eq!((median(&[]), median(&[1.0, f64::NAN])), (None, None));
        // 1 − 2·2⁻⁶ and 1 − 2·2⁻⁵; ten values: from the 2nd to the 9th, 1 − 22/1024.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let six = median_interval(&values[..6], 0.95).unwrap();
        assert_eq!((six.low, six.high), (1.0, 6.0));
        assert!((six.confidence - 0.96875).abs() < 1e-12);
        assert_eq!(median_interval(&values[..5], 0.95), None);
        assert!((median_interval(&values[..5], 0.9).unwrap().confidence - 0.9375).abs() < 1e-12);
        let ten = median_interval(&values, 0.95).unwrap();
        assert_eq!((ten.low, ten.high), (2.0, 9.0));
        assert!((ten.confidence - (1.0 - 22.0 / 1024.0)).abs() < 1e-12, "{ten:?}");
        // Many values, where 2⁻ⁿ alone is no longer a number: near the normal's ±1.96·√n/2 places.
        let many: Vec<f64> = (1..=4000).map(f64::from).collect();
        let found = median_interval(&many, 0.95).unwrap();
        assert!((found.high - found.low - 1.96 * 4000_f64.sqrt()).abs() < 3.0, "{found:?}");
        assert!((0.95..0.953).contains(&found.confidence), "{found:?}");
    }

    #[test]
    fn the_interval_of_the_median_covers_as_often_as_it_says() {
        let mut random = Resampler::new(8);
        for (n, least, most) in [(6, 0.955, 0.982), (10, 0.965, 0.991)] {
            let covered = (0..2000)
                .filter(|_| {
                    let values: Vec<f64> = (0..n).map(|_| random.normal().exp()).collect();
                    let found = median_interval(&values, 0.95).unwrap();
                    found.low <= 1.0 && 1.0 <= found.high
                })
                .count() as f64
                / 2000.0;
            assert!((least..=most).contains(&covered), "n = {n}: {covered}");
        }
    }

    #[test]
    fn one_outlier_hardly_moves_the_shift() {
        // Means of pairs of 1, 2, 9: 1, 1.5, 2, 5, 5.5, 9.
        assert_eq!(hodges_lehmann_paired(&[1.0, 2.0, 9.0]), Some(3.5));
        assert_eq!(hodges_lehmann_paired(&[1.0, 1.1, 0.9, 1.0, 1000.0]).map(|v| v < 1.2), Some(true));
        // Differences 3, 2, 8, 7: the middle two are 3 and 7.
        assert_eq!(hodges_lehmann(&[0.0, 1.0], &[3.0, 8.0]), Some(5.0));
        assert_eq!((hodges_lehmann_paired(&[]), hodges_lehmann(&[1.0], &[])), (None, None));
    }
}
