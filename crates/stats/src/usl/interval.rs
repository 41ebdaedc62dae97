//! How sure a fitted law is of its parameters.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::{Place, Point, Usl, fit};
use crate::bootstrap::{Interval, Resampler, percentile};

/// Repeats that every number of users must have for them to be resampled.
const FEWEST_REPEATS: usize = 3;

/// What the replicates were made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The repeats of each number of users, drawn again.
    Repeats,
    /// Normal errors around the fitted law, in proportion to it, of the size that the residuals show.
    Parametric,
}

/// Intervals of the law's parameters, by the bootstrap's percentiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Intervals {
    /// Of λ.
    pub lambda: Interval,
    /// Of σ.
    pub sigma: Interval,
    /// Of κ. When its lower end is 0, throughput may as well never fall.
    pub kappa: Interval,
    /// Of N*.
    pub peak: PeakInterval,
    /// How the replicates were made.
    pub method: Method,
}

/// An interval of N*, whose ends may be out of reach.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeakInterval {
    /// Lower end.
    pub low: Place,
    /// Upper end.
    pub high: Place,
}

impl Usl {
    /// Intervals at `confidence` from `replicates` fits (1000 are enough for two digits); the same seed gives
    /// the same intervals.
    ///
    /// With three repeats or more of every number of users those are resampled, spread by √(r/(r − 1)) because
    /// r values vary less around their own mean than around the true one. With fewer, normal errors in
    /// proportion to the throughput are drawn, as throughputs of whole runs have them. Their size is drawn too,
    /// from what the degrees of freedom leave open, so that few points give wide intervals (as Student's t does
    /// for a mean).
    ///
    /// None when `confidence` is not within (0, 1), there are fewer than 100 replicates, or one in twenty of
    /// them has no fit.
    pub fn intervals(&self, confidence: f64, replicates: usize, seed: u64) -> Option<Intervals> {
        let mut random = Resampler::new(seed);
        let levels = self.levels();
        let repeated = levels.iter().all(|level| level.len() >= FEWEST_REPEATS);
        let errors = self.errors();
        let estimate = [self.lambda, self.sigma, self.kappa];
        let mut columns: [Vec<f64>; 4] = Default::default();
        for _ in 0..replicates {
            let drawn =
                if repeated { resampled(&levels, &mut random) } else { self.simulated(errors, &mut random) };
            let Some(found) = fit::least_squares(&drawn, &[estimate]) else { continue };
            for (column, value) in columns.iter_mut().zip([found[0], found[1], found[2], fit::peak(found)]) {
                column.push(value);
            }
        }
        if columns[0].len() < replicates - replicates / 20 {
            return None;
        }
        let peak = percentile(&columns[3], confidence)?;
        Some(Intervals {
            lambda: percentile(&columns[0], confidence)?,
            sigma: percentile(&columns[1], confidence)?,
            kappa: percentile(&columns[2], confidence)?,
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

    /// Points as the law and its errors might have given them.
    fn simulated(&self, errors: Errors, random: &mut Resampler) -> Vec<Point> {
        let u = random.unit();
        // The degrees of freedom are seldom whole.
        let chi_square = ChiSquared::new(errors.freedom).map_or(errors.freedom, |c| c.inverse_cdf(u));
        let part = errors.part * (errors.freedom / chi_square).sqrt();
        let fitted = |p: &Point| fit::law([self.lambda, self.sigma, self.kappa], p.users);
        let mut draw = |p: &Point| positive(p.users, fitted(p) * (1.0 + part * random.normal()), fitted(p));
        self.points.iter().map(&mut draw).collect()
    }

    /// The size of errors in proportion to the throughput. To first order the residuals are (I − H)e, where H
    /// projects onto the law's derivatives, so that their sum of squares is expected to be part²·tr M with
    /// M = (I − H)D(I − H) and D the squared throughputs; it has (tr M)²/tr M² degrees of freedom (Satterthwaite
    /// 1946). The n − 3 of equal errors would count points that hardly weigh, and give intervals too narrow.
    fn errors(&self) -> Errors {
        let none = Errors { part: 0.0, freedom: 1.0 };
        let Some(left) = fit::residual_projection(&self.points, [self.lambda, self.sigma, self.kappa]) else {
            return none;
        };
        let fitted: Vec<f64> =
            self.points.iter().map(|p| fit::law([self.lambda, self.sigma, self.kappa], p.users)).collect();
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
        let squares: f64 = self.residuals.iter().map(|r| r.powi(2)).sum();
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

fn resampled(levels: &[Vec<Point>], random: &mut Resampler) -> Vec<Point> {
    let mut drawn = Vec::new();
    for level in levels {
        let n = level.len();
        let mean = level.iter().map(|p| p.throughput).sum::<f64>() / n as f64;
        let spread = (n as f64 / (n - 1) as f64).sqrt();
        drawn.extend(level.iter().map(|p| {
            let other = level[random.below(n)].throughput;
            positive(p.users, mean + spread * (other - mean), mean)
        }));
    }
    drawn
}

/// A throughput cannot be negative, and the linearised law divides by it.
fn positive(users: f64, throughput: f64, usual: f64) -> Point {
    Point { users, throughput: throughput.max(usual * 1e-3) }
}
