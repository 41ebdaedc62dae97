//! The band in which the points of a load with Poisson arrivals of a fixed rate lie, by the seconds that a point counts.
//!
//! The count of a Poisson process over Δ seconds has the variance rate × Δ; divided by Δ it scatters by √(rate / Δ). So 95 % of
//! the points lie within `rate ± 1.96 √(rate / Δ)`, where the counts are large enough for the normal approximation. A band of
//! one second drawn around points that count 30 is more than five times too wide: it holds points of a load that has lost some
//! of its rate.

use serde::Serialize;

use crate::tenants::TenantSeries;

/// Seconds that a point counts.
pub const WIDTHS: [u64; 3] = [1, 5, 30];

/// Fewer expected events in a point have no normal distribution to speak of.
const FEWEST_EVENTS: f64 = 10.0;

/// 95 % of a normal distribution lie within so many standard deviations.
const Z: f64 = 1.959_963_985;

/// Points within a band, of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BandShare {
    /// Within.
    pub inside: u64,
    /// All.
    pub points: u64,
}

/// A band, and the points within it before and after a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BandChange {
    /// Seconds that a point counts.
    pub width_s: u64,
    /// The band's lower end, a second.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Points before the step.
    pub before: BandShare,
    /// Points after it.
    pub after: BandShare,
}

/// The band of 95 % of the points that count `width` seconds each of arrivals of a rate; none where a point has too few.
pub fn poisson_band(rate: f64, width: f64) -> Option<(f64, f64)> {
    let scatter = Z * (rate / width).sqrt();
    (rate * width >= FEWEST_EVENTS).then_some((rate - scatter, rate + scatter))
}

/// How many points lie within a band. `counts` are events by second; seconds that do not fill a point are left out.
pub fn share(counts: &[u64], width: u64, (low, high): (f64, f64)) -> BandShare {
    let mut found = BandShare::default();
    for point in counts.chunks_exact(width.max(1) as usize) {
        let rate = point.iter().sum::<u64>() as f64 / width.max(1) as f64;
        found.points += 1;
        found.inside += u64::from(low <= rate && rate <= high);
    }
    found
}

/// What tenants did together, by second, in those in which all of them were at work.
pub fn seconds_together(tenants: &[&TenantSeries]) -> Vec<u64> {
    let Some((first, others)) = tenants.split_first() else { return Vec::new() };
    let at_work = |second: &i64| tenants.iter().all(|tenant| tenant.is_at_work(*second));
    let sum = |second: &i64| {
        let of_others = others.iter().filter_map(|tenant| tenant.seconds.get(second));
        first.seconds[second].good + of_others.map(|own| own.good).sum::<u64>()
    };
    first.seconds.keys().filter(|second| at_work(second)).map(sum).collect()
}

/// The bands of a tenant before and after a step; none where its arrivals are not known to be a Poisson process of one rate, or
/// there is no point.
pub(crate) fn compare(tenant: &TenantSeries, before: &[i64], after: &[i64]) -> Vec<BandChange> {
    let rates: Vec<Option<f64>> = tenant
        .stretches
        .iter()
        .map(|one| one.schedule.filter(|_| one.poisson).map(|schedule| schedule.rate))
        .collect();
    let Some(Some(rate)) = rates.first().copied().filter(|first| rates.iter().all(|one| one == first)) else {
        return Vec::new();
    };
    let counts = |seconds: &[i64]| -> Vec<u64> {
        let good = |second: &i64| tenant.seconds.get(second).map_or(0, |own| own.good);
        seconds.iter().map(good).collect()
    };
    let (before, after) = (counts(before), counts(after));
    let each = WIDTHS.into_iter().filter_map(|width_s| {
        let (low, high) = poisson_band(rate, width_s as f64)?;
        let [before, after] = [&before, &after].map(|counts| share(counts, width_s, (low, high)));
        (before.points > 0 && after.points > 0).then_some(BandChange { width_s, low, high, before, after })
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use kelvin_measure::Random;

    use super::*;

    #[test]
    fn a_point_of_many_seconds_scatters_less() {
        let (low, high) = poisson_band(4200.0, 1.0).unwrap();
        assert!((low - 4072.98).abs() < 0.01 && (high - 4327.02).abs() < 0.01);
        let (low, high) = poisson_band(4200.0, 30.0).unwrap();
        assert!(((high - low) * 30f64.sqrt() - 254.04).abs() < 0.01);
        assert_eq!(poisson_band(3.0, 1.0), None);
    }

    /// Of Poisson counts 95 % lie within the band of their width, and more within that of a second.
    #[test]
    fn the_band_holds_what_it_says() {
        let rate = 200.0;
        let mut random = Random::part(7, 1, 0);
        let (mut counts, mut at, seconds) = (vec![0_u64; 30_000], 0.0, 30_000);
        loop {
            at += random.exponential(1.0 / rate);
            let Some(second) = counts.get_mut(at as usize) else { break };
            *second += 1;
        }
        for width in WIDTHS {
            let right = share(&counts, width, poisson_band(rate, width as f64).unwrap());
            assert_eq!(right.points, seconds / width);
            let part = right.inside as f64 / right.points as f64;
            assert!((part - 0.95).abs() < 0.025, "{width} s: {part}");
        }
        let wide = share(&counts, 30, poisson_band(rate, 1.0).unwrap());
        assert_eq!(wide.inside, wide.points);
    }
}
