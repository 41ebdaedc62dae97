//! Confidence of a fitted model's parameters.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{PeakUsers, Point, Usl, fit};
use crate::bootstrap::{BootstrapInterval, Resampler, percentile};

/// Repeats that every number of users must have for them to be resampled.
const FEWEST_REPEATS: usize = 3;

/// Degrees of freedom that the scatter of all numbers of users adds to that of each.
const SHARED: usize = 3;

/// How the replicates were generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The mean of each number of users, drawn from where its repeats leave it.
    Repeats,
    /// Normal errors around the fitted model, in proportion to it, with the deviation of the residuals.
    Parametric,
}

/// Intervals of the model's parameters, by the bootstrap's percentiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// Of λ.
    pub lambda: BootstrapInterval,
    /// Of σ.
    pub sigma: BootstrapInterval,
    /// Of κ. When its lower end is 0, throughput may as well never fall.
    pub kappa: BootstrapInterval,
    /// Of N*.
    pub peak: PeakInterval,
    /// How the replicates were generated.
    pub method: Method,
}

/// An interval of N*, whose ends may be out of reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakInterval {
    /// Lower end.
    pub low: PeakUsers,
    /// Upper end.
    pub high: PeakUsers,
}

impl Usl {
    /// Intervals at `confidence` from `replicates` fits (1000 are sufficient for two digits); the same seed gives the
    /// same intervals.
    ///
    /// With three repeats or more of every number of users the model is fitted to means drawn from their distribution
    /// given the repeats, x̄ + t·s/√r, s and its degrees of freedom being shared in part (a fiducial quantity: Hannig,
    /// Iyer and Patterson, Journal of the American Statistical Association 101, 2006); resampling r values would take
    /// their scatter as known, and cover too rarely. With fewer repeats, normal errors in proportion to the throughput
    /// are drawn, as throughputs of whole runs have them. Their deviation is drawn, too, given its degrees of freedom,
    /// so that few points give wide intervals (as Student's t does for a mean).
    ///
    /// The replicates' σ and κ may fall below 0, and the intervals end there: if a true value is 0, truncated estimates
    /// do not scatter around it, and bias the other parameters. The estimate is always inside.
    ///
    /// `None` when `confidence` is not within (0, 1), there are fewer than 100 replicates, or one in twenty of them has
    /// no fit.
    pub fn intervals(&self, confidence: f64, replicates: usize, seed: u64) -> Option<Intervals> {
        let mut random = Resampler::new(seed);
        let levels = self.levels();
        let repeated = levels.iter().all(|level| level.len() >= FEWEST_REPEATS);
        let estimate = [self.lambda, self.sigma, self.kappa];
        let centre = fit::unbounded(&self.points, estimate).unwrap_or(estimate);
        let errors = self.errors(centre);
        let part = if repeated { scatter(&levels) } else { errors.part };
        let mut columns: [Vec<f64>; 4] = Default::default();
        for _ in 0..replicates {
            let drawn = if repeated {
                levels.iter().flat_map(|level| drawn_mean(level, part, &mut random)).collect()
            } else {
                self.simulated(centre, errors, &mut random)
            };
            let Some(found) = fit::unbounded(&drawn, centre) else { continue };
            for (column, value) in columns.iter_mut().zip([found[0], found[1], found[2], fit::peak(found)]) {
                column.push(value);
            }
        }
        if columns[0].len() < replicates - replicates / 20 {
            return None;
        }
        let around = |column: &[f64], estimate: f64| {
            let BootstrapInterval { low, high } = percentile(column, confidence)?;
            Some(BootstrapInterval { low: low.max(0.0).min(estimate), high: high.max(estimate) })
        };
        let peak = around(&columns[3], fit::peak(estimate))?;
        Some(Intervals {
            lambda: around(&columns[0], self.lambda)?,
            sigma: around(&columns[1], self.sigma)?,
            kappa: around(&columns[2], self.kappa)?,
            peak: PeakInterval { low: self.place(peak.low), high: self.place(peak.high) },
            method: if repeated { Method::Repeats } else { Method::Parametric },
        })
    }

    /// The points by number of users.
    fn levels(&self) -> Vec<Vec<Point>> {
        let mut sorted = self.points.clone();
        sorted.sort_by(|a, b| a.users.total_cmp(&b.users));
        sorted.chunk_by(|a, b| a.users == b.users).map(<[Point]>::to_vec).collect()
    }

    /// Points drawn from the model and its errors.
    fn simulated(&self, law: fit::Parameters, errors: Errors, random: &mut Resampler) -> Vec<Point> {
        let u = random.unit();
        // The degrees of freedom are seldom whole.
        let chi_square = ChiSquared::new(errors.freedom).map_or(errors.freedom, |c| c.inverse_cdf(u));
        let part = errors.part * (errors.freedom / chi_square).sqrt();
        let fitted = |p: &Point| fit::law(law, p.users);
        let mut draw = |p: &Point| positive(p.users, fitted(p) * (1.0 + part * random.normal()), fitted(p));
        self.points.iter().map(&mut draw).collect()
    }

    /// The deviation of errors in proportion to the throughput. To first order the residuals are (I − H)e, where H
    /// projects onto the model's derivatives, so that their sum of squares is expected to be part²·tr M with M = (I −
    /// H)D(I − H) and D the squared throughputs; it has (tr M)²/tr M² degrees of freedom (Satterthwaite 1946). The n −
    /// 3 of equal errors would count points with hardly any weight, and give intervals that are too narrow.
    fn errors(&self, law: fit::Parameters) -> Errors {
        let none = Errors { part: 0.0, freedom: 1.0 };
        let Some(left) = fit::residual_projection(&self.points, law) else {
            return none;
        };
        let fitted: Vec<f64> = self.points.iter().map(|p| fit::law(law, p.users)).collect();
        let n = fitted.len();
        let (mut trace, mut trace_of_square) = (0.0, 0.0);
        for i in 0..n {
            for j in 0..n {
                let entry: f64 = (0..n).map(|k| left[i][k] * fitted[k].powi(2) * left[k][j]).sum();
                trace_of_square += entry.powi(2);
                if i == j {
                    trace += entry;
                }
            }
        }
        if trace <= 0.0 {
            return none;
        }
        let squares: f64 = self.points.iter().zip(&fitted).map(|(p, x)| (p.throughput - x).powi(2)).sum();
        let freedom = (trace.powi(2) / trace_of_square).max(1.0);
        Errors { part: (squares / trace).sqrt(), freedom }
    }
}

/// Errors as parts of the throughput.
#[derive(Debug, Clone, Copy)]
struct Errors {
    part: f64,
    freedom: f64,
}

/// The repeats of one number of users, all set to a mean drawn from its distribution: a fit weights them by their
/// number. Their own scatter is pooled with `part`, that of all numbers of users as a part of the throughput, as if the
/// latter came from [`SHARED`] additional values: two degrees of freedom alone would make intervals twice as wide.
fn drawn_mean(level: &[Point], part: f64, random: &mut Resampler) -> Vec<Point> {
    let n = level.len() as f64;
    let (mean, squares) = mean_and_squares(level);
    let shared = SHARED as f64 * (part * mean).powi(2);
    let chi_square: f64 = (0..level.len() - 1 + SHARED).map(|_| random.normal().powi(2)).sum();
    let drawn = mean + ((squares + shared) / chi_square / n).sqrt() * random.normal();
    level.iter().map(|p| positive(p.users, drawn, mean)).collect()
}

/// The scatter within each number of users as a part of its throughput, of all of them together.
fn scatter(levels: &[Vec<Point>]) -> f64 {
    let parts = levels.iter().map(|level| {
        let (mean, squares) = mean_and_squares(level);
        squares / mean.powi(2)
    });
    let freedom: usize = levels.iter().map(|level| level.len() - 1).sum();
    (parts.sum::<f64>() / freedom as f64).sqrt()
}

fn mean_and_squares(level: &[Point]) -> (f64, f64) {
    let mean = level.iter().map(|p| p.throughput).sum::<f64>() / level.len() as f64;
    (mean, level.iter().map(|p| (p.throughput - mean).powi(2)).sum())
}

/// A throughput cannot be negative, and the linearised model divides by it.
fn positive(users: f64, throughput: f64, usual: f64) -> Point {
    Point { users, throughput: throughput.max(usual * 1e-3) }
}
