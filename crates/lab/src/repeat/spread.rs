//! What the values of one figure say together.

use kelvin_stats::rank::{MedianInterval, median, median_interval};
use kelvin_stats::student::{describe, mean_interval, quantile};
use serde::Serialize;

/// The confidence of every interval here.
pub(crate) const CONFIDENCE: f64 = 0.95;

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
    /// The 95 % interval of the mean, by Student's t on logarithms; none for fewer than two runs or when a value is not
    /// above 0.
    pub interval: Option<(f64, f64)>,
    /// Half of its width, as a share of the mean.
    pub half_width: Option<f64>,
    /// Standard deviation over mean.
    pub cv: Option<f64>,
}

impl Spread {
    /// Of some values; none when there are none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let sample = describe(values)?;
        let interval = logarithms(values)
            .and_then(|logs| mean_interval(&logs, CONFIDENCE))
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
pub(crate) fn needed(values: &[f64], half_width: f64) -> Option<u32> {
    let sd = describe(&logarithms(values)?)?.sd?;
    let wide = |n: u32| {
        let t = quantile(f64::midpoint(1.0, CONFIDENCE), f64::from(n - 1))?;
        Some((t * sd / f64::from(n).sqrt()).exp_m1())
    };
    (2..=FORESEEN).find(|&n| wide(n).is_some_and(|wide| wide <= half_width))
}
