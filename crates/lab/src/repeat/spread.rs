//! The distribution of a metric over the runs.

use kelvin_stats::autoregression::{PhiDistribution, mean_interval};
use kelvin_stats::power::runs_for_interval;
use kelvin_stats::rank::{MedianInterval, median, median_interval};
use kelvin_stats::scatter::coefficient;
use kelvin_stats::student::describe;
use serde::Serialize;

/// The confidence of the intervals of median and CV.
const CONFIDENCE: f64 = 0.95;

/// The maximum number of runs that is considered when estimating how many are needed.
const FORESEEN: u32 = 1000;

/// The distribution of a metric over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Spread {
    /// Number of runs.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// The order-statistic interval of the median and its actual confidence; none with fewer than six runs.
    pub median_interval: Option<(f64, f64, f64)>,
    /// Geometric mean, the center of the interval; the arithmetic mean if a value is not above 0.
    pub mean: f64,
    /// The interval of the mean, by t on logarithms, which allows for runs that depend on the previous ones
    /// ([`kelvin_stats::autoregression`]); none for fewer than two runs, or if a value is not above 0.
    pub interval: Option<(f64, f64)>,
    /// Its confidence.
    pub confidence: f64,
    /// Half its width, as a share of the mean.
    pub half_width: Option<f64>,
    /// Standard deviation divided by arithmetic mean.
    pub cv: Option<f64>,
    /// Its 95 % interval, assuming independent runs.
    pub cv_interval: Option<(f64, f64)>,
}

impl Spread {
    /// The distribution of values in the order of their runs. `belief` is the assumed dependence between runs. None
    /// without values.
    pub fn of(values: &[f64], belief: &PhiDistribution, confidence: f64) -> Option<Self> {
        let sample = describe(values)?;
        let logs = logarithms(values);
        let interval = logs
            .as_ref()
            .and_then(|logs| mean_interval(logs, belief, confidence))
            .map(|found| (found.low.exp(), found.high.exp()));
        let of_median = median_interval(values, CONFIDENCE);
        Some(Self {
            n: sample.n,
            median: median(values)?,
            median_interval: of_median
                .map(|MedianInterval { low, high, confidence }| (low, high, confidence))
                .filter(|(_, _, confidence)| *confidence >= CONFIDENCE),
            mean: logs.and_then(|logs| describe(&logs)).map_or(sample.mean, |logs| logs.mean.exp()),
            interval,
            confidence,
            half_width: interval.map(|(low, high)| half_width(low, high)),
            cv: sample.sd.map(|sd| sd / sample.mean).filter(|cv| cv.is_finite()),
            cv_interval: coefficient(values, CONFIDENCE).map(|found| (found.low, found.high)),
        })
    }
}

/// Half the width of an interval as a share of its center, both on the logarithmic scale.
pub(crate) fn half_width(low: f64, high: f64) -> f64 {
    ((high / low).ln() / 2.0).exp_m1()
}

/// The logarithms of the values; none unless every value is above 0.
pub(crate) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().all(|value| *value > 0.0).then(|| values.iter().map(|value| value.ln()).collect())
}

/// The total number of runs for an interval as narrow as `half_width`, if scatter and dependence of the values remain
/// the same. None if unknown, or above a thousand.
pub(crate) fn needed(
    values: &[f64],
    belief: &PhiDistribution,
    half_width: f64,
    confidence: f64,
) -> Option<u32> {
    let logs = logarithms(values)?;
    // With many runs, (1 + φ)/(1 − φ) of them are equivalent to one independent run, where φ is the correlation of
    // adjacent runs.
    let phi = belief.clone().updated_with(&logs).phi();
    let sd = describe(&logs)?.sd? * ((1.0 + phi) / (1.0 - phi)).sqrt();
    runs_for_interval(sd, half_width.ln_1p(), confidence).filter(|n| *n <= FORESEEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trial_a9_the_mean_is_the_one_that_the_interval_is_of() {
        let found = Spread::of(&[100.0, 400.0, 50.0, 200.0], &PhiDistribution::default(), 0.95).unwrap();
        // The fourth root of 100·400·50·200; the arithmetic mean is 187.5.
        assert!((found.mean - 141.421_356).abs() < 1e-6, "{found:?}");
        assert_eq!(Spread::of(&[1.0, 0.0], &PhiDistribution::default(), 0.95).unwrap().mean, 0.5);
    }

    #[test]
    fn the_spread_allows_for_dependence_and_the_cv_has_its_interval() {
        let logs = [-0.02_f64, 0.0, 0.02, -0.01];
        let values: Vec<f64> = logs.iter().map(|log| 100.0 * log.exp()).collect();
        let found = Spread::of(&values, &PhiDistribution::default(), 0.95).unwrap();
        let (low, high) = kelvin_stats::student::mean_interval(&logs, 0.95).unwrap();
        let independent = ((high - low) / 2.0).exp_m1();
        assert_eq!((found.n, found.median_interval), (4, None));
        assert!(found.half_width.unwrap() > 1.1 * independent, "{found:?}");
        let wide = Spread::of(&values, &PhiDistribution::default(), 0.97).unwrap();
        assert!(wide.half_width > found.half_width);
        let (low, high) = found.cv_interval.unwrap();
        assert!((found.cv.unwrap() - 0.0171).abs() < 1e-3 && low < 0.011 && high > 0.05, "{found:?}");
        // With the estimated number of independent runs of this scatter, the interval is as narrow as requested.
        let n = needed(&values, &PhiDistribution::default(), 0.01_f64.exp_m1(), 0.95).unwrap();
        assert!((20..60).contains(&n), "{n}");
        assert_eq!(needed(&values, &PhiDistribution::default(), 1e-9, 0.95), None);
    }

    #[test]
    fn six_values_have_a_median_with_an_interval() {
        let belief = PhiDistribution::default();
        let found = Spread::of(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0], &belief, 0.95).unwrap();
        assert_eq!(found.median, 3.5);
        assert_eq!(found.median_interval, Some((1.0, 6.0, 1.0 - 2.0 * 0.5_f64.powi(6))));
        assert_eq!(Spread::of(&[1.0, 0.0], &belief, 0.95).unwrap().interval, None);
        assert_eq!(Spread::of(&[], &belief, 0.95), None);
    }
}
