//! What the values of one figure say together.

use kelvin_stats::power::runs_for_interval;
use kelvin_stats::rank::{MedianInterval, median, median_interval};
use kelvin_stats::student::{describe, mean_interval};
use serde::Serialize;

/// The confidence of the median's interval.
const CONFIDENCE: f64 = 0.95;

/// How far ahead the runs that are still needed are counted.
const FORESEEN: u32 = 1000;

/// The values of one figure over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spread {
    /// Number of runs.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// The order-statistic interval of the median and the confidence that it reaches; none with fewer than six runs.
    pub median_interval: Option<(f64, f64, f64)>,
    /// Mean.
    pub mean: f64,
    /// The interval of the mean, by Student's t on logarithms; none for fewer than two runs or when a value is not above
    /// 0.
    pub interval: Option<(f64, f64)>,
    /// Its confidence.
    pub confidence: f64,
    /// Half of its width, as a share of the mean.
    pub half_width: Option<f64>,
    /// Standard deviation over mean.
    pub cv: Option<f64>,
}

impl Spread {
    /// Of some values; none when there are none.
    pub fn of(values: &[f64], confidence: f64) -> Option<Self> {
        let sample = describe(values)?;
        let interval = logarithms(values)
            .and_then(|logs| mean_interval(&logs, confidence))
            .map(|(low, high)| (low.exp(), high.exp()));
        let of_median = median_interval(values, CONFIDENCE);
        Some(Self {
            n: sample.n,
            median: median(values)?,
            median_interval: of_median
                .map(|MedianInterval { low, high, confidence }| (low, high, confidence))
                .filter(|(_, _, confidence)| *confidence >= CONFIDENCE),
            mean: sample.mean,
            interval,
            confidence,
            half_width: interval.map(|(low, high)| half_width(low, high)),
            cv: sample.sd.map(|sd| sd / sample.mean).filter(|cv| cv.is_finite()),
        })
    }
}

/// Half of an interval's width as a share of its middle, both on the logarithmic scale.
pub(crate) fn half_width(low: f64, high: f64) -> f64 {
    ((high / low).ln() / 2.0).exp_m1()
}

/// The logarithms, when every value is above 0.
pub(crate) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().all(|value| *value > 0.0).then(|| values.iter().map(|value| value.ln()).collect())
}

/// Runs, in all, with which the interval would be as narrow as `half_width` if the values went on to scatter as they do.
/// None when that cannot be told, or takes more than a thousand.
pub(crate) fn needed(values: &[f64], half_width: f64, confidence: f64) -> Option<u32> {
    let sd = describe(&logarithms(values)?)?.sd?;
    runs_for_interval(sd, half_width.ln_1p(), confidence).filter(|n| *n <= FORESEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_the_one_worked_by_hand() {
        // Logarithms −0.02, 0, 0.02: sd 0.02, t(0.975, 2) = 4.3027: half 0.04968.
        let values: Vec<f64> = [-0.02_f64, 0.0, 0.02].iter().map(|log| 100.0 * log.exp()).collect();
        let found = Spread::of(&values, 0.95).unwrap();
        assert_eq!((found.n, found.median, found.median_interval), (3, 100.0, None));
        assert!((found.half_width.unwrap() - 0.04968_f64.exp_m1()).abs() < 1e-4, "{found:?}");
        assert!((found.cv.unwrap() - 0.02).abs() < 1e-4);
        let wide = Spread::of(&values, 0.97).unwrap();
        assert!(wide.half_width > found.half_width);
        // t·0.02/√n ≤ 0.01 first at n = 18: 2.110·0.02/√18 = 0.00995.
        assert_eq!(needed(&values, 0.01_f64.exp_m1(), 0.95), Some(18));
        assert_eq!(needed(&values, 1e-9, 0.95), None);
    }

    #[test]
    fn six_values_have_a_median_with_an_interval() {
        let found = Spread::of(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0], 0.95).unwrap();
        assert_eq!(found.median, 3.5);
        assert_eq!(found.median_interval, Some((1.0, 6.0, 1.0 - 2.0 * 0.5_f64.powi(6))));
        assert_eq!(Spread::of(&[1.0, 0.0], 0.95).unwrap().interval, None);
        assert_eq!(Spread::of(&[], 0.95), None);
    }
}
