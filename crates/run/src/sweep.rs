//! The result of a sweep over users as a whole: a fitted scalability model.

use kelvin_measure::event::{Estimate, Event, Scalability, ScalabilityPoint};
use kelvin_stats::bootstrap::BootstrapInterval;
use kelvin_stats::usl::{PeakUsers, Point, Usl};

use crate::driver::PointResult;

/// Bootstrap fits for the intervals; enough for two digits.
const REPLICATES: usize = 1000;
const CONFIDENCE: f64 = 0.95;

/// Fits the Universal Scalability Law to the points, or reports why it cannot.
pub(crate) fn fit(points: &[PointResult], seed: u64) -> Vec<Event> {
    let measured: Vec<ScalabilityPoint> = points
        .iter()
        .filter(|point| point.holds())
        .map(|point| ScalabilityPoint { users: point.window.users, throughput: point.throughput() })
        .collect();
    let void: Vec<String> =
        points.iter().filter(|point| !point.holds()).map(|point| point.window.users.to_string()).collect();
    let left_out = (!void.is_empty()).then(|| Event::Note {
        point: points.last().map_or(0, |last| last.window.point),
        second: 0,
        text: format!("void points are not included in the fit: {} users", void.join(", ")),
    });
    let law = match fit_law(measured, seed) {
        Ok(law) => Event::Scalability(law),
        Err(text) => {
            let point = points.last().map_or(0, |last| last.window.point);
            Event::Note { point, second: 0, text }
        }
    };
    left_out.into_iter().chain([law]).collect()
}

/// Fits the Universal Scalability Law to the rate of good transactions of all types, by users.
///
/// # Errors
/// Why there is no fit, in a sentence.
pub fn fit_law(measured: Vec<ScalabilityPoint>, seed: u64) -> Result<Scalability, String> {
    let points: Vec<Point> = measured
        .iter()
        .map(|point| Point { users: f64::from(point.users), throughput: point.throughput })
        .collect();
    let law = Usl::fit(&points)
        .map_err(|error| format!("no scalability model was fitted to the sweep: {error}"))?;
    let intervals = law.intervals(CONFIDENCE, REPLICATES, seed);
    let estimate = |value, interval: Option<BootstrapInterval>| Estimate {
        value,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    };
    Ok(Scalability {
        lambda: estimate(law.lambda, intervals.map(|i| i.lambda)),
        sigma: estimate(law.sigma, intervals.map(|i| i.sigma)),
        kappa: estimate(law.kappa, intervals.map(|i| i.kappa)),
        peak_users: match law.peak().users {
            PeakUsers::At(users) => Some(users),
            PeakUsers::Below(_) | PeakUsers::Beyond(_) => None,
        },
        peak_below: matches!(law.peak().users, PeakUsers::Below(_)),
        r_squared: Some(law.r_squared).filter(|r| r.is_finite()),
        points: measured,
    })
}
