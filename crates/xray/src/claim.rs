//! What a scenario claims of its results, and what it should claim.
//!
//! X-Ray draws `rate ± 1.96 √rate` around the points of a fixed-rate workload whose arrivals are a Poisson process. That
//! is the 95 % prediction interval of a point that counts one second. A point that counts Δ seconds scatters less:
//! `rate ± z √(rate / Δ)`. For bytes, X-Ray multiplies that interval by the mean size; the variance of a compound
//! Poisson process is the sum of rate × size², so that large I/Os among small ones widen it.

use crate::job::Arrivals;
use crate::result::{Band, ResultMeasure};

/// X-Ray's points are this many seconds apart, where a scenario does not say it.
pub(crate) const POINT: f64 = 5.0;

/// A band of a scenario, beside the one that follows from its arrivals.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// The band's name: 95%.
    pub name: String,
    /// What the scenario says.
    pub claimed: (f64, f64),
    /// What follows from the arrivals; none where they are not known to be Poisson arrivals, or the share is not known.
    pub computed: Option<(f64, f64)>,
}

/// The bands of an expected value, for points that each count `width` seconds.
pub(crate) fn claims(
    measure: ResultMeasure,
    expected: f64,
    bands: &[Band],
    arrivals: Option<&Arrivals>,
    width: f64,
) -> Vec<Claim> {
    let deviation = arrivals.and_then(|arrivals| deviation(measure, expected, arrivals, width));
    bands
        .iter()
        .map(|band| Claim {
            name: band.name.clone(),
            claimed: (band.lower, band.upper),
            computed: normal_quantile(&band.name)
                .zip(deviation)
                .map(|(z, deviation)| (expected - z * deviation, expected + z * deviation)),
        })
        .collect()
}

/// The standard deviation of a point.
fn deviation(measure: ResultMeasure, expected: f64, arrivals: &Arrivals, width: f64) -> Option<f64> {
    if !arrivals.poisson || expected <= 0.0 || width <= 0.0 {
        return None;
    }
    let variance = match measure {
        ResultMeasure::Iops => expected,
        // Scaled to the expected rate, which may be that of several machines.
        ResultMeasure::Bandwidth => arrivals.squares * expected / arrivals.bytes,
        _ => return None,
    };
    Some((variance / width).sqrt())
}

/// How many standard deviations hold a share of a normal distribution around its mean.
fn normal_quantile(name: &str) -> Option<f64> {
    // Of the standard normal distribution, to the places that X-Ray uses.
    match name.trim().trim_end_matches('%').trim() {
        "68" => Some(0.994),
        "90" => Some(1.645),
        "95" => Some(1.96),
        "99" => Some(2.576),
        "99.9" => Some(3.291),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn band(lower: f64, upper: f64) -> Vec<Band> {
        vec![Band { name: "95%".into(), lower, upper }]
    }

    #[test]
    fn a_point_of_many_seconds_scatters_less() {
        let arrivals = Arrivals { rate: 4200.0, bytes: 1.0, squares: 1.0, poisson: true };
        let bands = band(4072.98, 4327.02);
        let computed = |width: f64| {
            claims(ResultMeasure::Iops, 4200.0, &bands, Some(&arrivals), width)[0].computed.unwrap()
        };
        let (lower, upper) = computed(1.0);
        assert!((lower - 4072.98).abs() < 0.01 && (upper - 4327.02).abs() < 0.01);
        let (lower, upper) = computed(30.0);
        assert!((upper - lower) * 30f64.sqrt() - 254.04 < 0.01);
        let even = Arrivals { poisson: false, ..arrivals };
        assert_eq!(claims(ResultMeasure::Iops, 4200.0, &bands, Some(&even), 1.0)[0].computed, None);
        assert_eq!(claims(ResultMeasure::Iops, 4200.0, &bands, None, 1.0)[0].computed, None);
        assert_eq!(claims(ResultMeasure::Latency, 4200.0, &bands, Some(&arrivals), 1.0)[0].computed, None);
    }

    #[test]
    fn the_scatter_of_bytes_is_that_of_a_compound_process() {
        // 720 I/Os of 1 MiB and 200 of 32 KiB a second, as a decision support system's data and log.
        let (data, log) = (1_048_576.0_f64, 32_768.0_f64);
        let arrivals = Arrivals {
            rate: 920.0,
            bytes: 720.0 * data + 200.0 * log,
            squares: 720.0 * data.powi(2) + 200.0 * log.powi(2),
            poisson: true,
        };
        let expected = arrivals.bytes;
        let claims = claims(ResultMeasure::Bandwidth, expected, &band(7.12e8, 8.11e8), Some(&arrivals), 1.0);
        let (lower, upper) = claims[0].computed.unwrap();
        let half = 1.96 * arrivals.squares.sqrt();
        assert!((upper - expected - half).abs() < 1.0 && (expected - lower - half).abs() < 1.0);
        // One size: the mean size times the root of the rate.
        assert!(half > 1.96 * 920f64.sqrt() * expected / 920.0);
    }
}
