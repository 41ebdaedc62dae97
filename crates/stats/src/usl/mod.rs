//! The Universal Scalability Law: throughput as a function of the number of users.
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)), where λ is the throughput of one user, σ ≥ 0 the serial part (contention)
//! and κ ≥ 0 the cost of users keeping each other's data consistent (coherency), which alone makes throughput decrease
//! again (Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4 to 6).

mod fit;
mod interval;

use std::fmt;

pub use interval::{Intervals, Method, PeakInterval};

/// Minimum number of different numbers of users: three parameters and one degree of freedom.
const FEWEST_LEVELS: usize = 4;

/// Nothing is predicted beyond this multiple of the largest number of users measured.
const REACH: f64 = 2.0;

/// A measured throughput.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Number of users, at least 1.
    pub users: f64,
    /// Their throughput, in any unit per time; above 0.
    pub throughput: f64,
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum UslError {
    /// Too few different numbers of users.
    #[error(
        "{0} different numbers of users are too few to fit the Universal Scalability Law; measure at least 4"
    )]
    FewLevels(usize),
    /// A point that is not a measurement.
    #[error(
        "a throughput of {throughput}/s with {users} users cannot be fitted; both must be finite and above 0"
    )]
    NoMeasurement {
        /// The users.
        users: f64,
        /// The throughput.
        throughput: f64,
    },
    /// The least squares have no minimum.
    #[error("the Universal Scalability Law does not fit these points")]
    NoFit,
}

/// A fitted model.
#[derive(Debug, Clone, PartialEq)]
pub struct Usl {
    /// λ: the throughput of one user according to the model.
    pub lambda: f64,
    /// σ: contention, 0 for none.
    pub sigma: f64,
    /// κ: coherency, 0 for none.
    pub kappa: f64,
    /// The part of the throughputs' variance that the model explains; below 0 when their mean would explain more.
    pub r_squared: f64,
    /// Measured less fitted throughput, in the order of the points.
    pub residuals: Vec<f64>,
    /// Residual standard error with n − 3 degrees of freedom, in the unit of the throughput.
    pub error: f64,
    points: Vec<Point>,
}

/// A number of users, as far as the data determine it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PeakUsers {
    /// Below the smallest number measured, which this is.
    Below(f64),
    /// There.
    At(f64),
    /// Beyond this number, twice the largest measured, if anywhere.
    Beyond(f64),
}

impl fmt::Display for PeakUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(users) => write!(f, "below {users}"),
            Self::At(users) => write!(f, "{users:.1}"),
            Self::Beyond(users) => write!(f, "beyond {users}"),
        }
    }
}

/// Where throughput is highest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// N* = √((1 − σ)/κ).
    pub users: PeakUsers,
    /// X(N*); none if N* is undetermined.
    pub throughput: Option<f64>,
}

impl Usl {
    /// Fits the model by least squares of the throughput (Levenberg and Marquardt, with σ and κ constrained to 0 or
    /// above). Points may repeat a number of users.
    pub fn fit(points: &[Point]) -> Result<Self, UslError> {
        let usable = |v: f64| v.is_finite() && v > 0.0;
        if let Some(bad) = points.iter().find(|p| !usable(p.throughput) || !usable(p.users)) {
            return Err(UslError::NoMeasurement { users: bad.users, throughput: bad.throughput });
        }
        let mut levels: Vec<f64> = points.iter().map(|p| p.users).collect();
        levels.sort_unstable_by(f64::total_cmp);
        levels.dedup();
        if levels.len() < FEWEST_LEVELS {
            return Err(UslError::FewLevels(levels.len()));
        }
        let [lambda, sigma, kappa] = fit::least_squares(points, &fit::grid(points)).ok_or(UslError::NoFit)?;
        let fitted = |p: &Point| fit::law([lambda, sigma, kappa], p.users);
        let residuals: Vec<f64> = points.iter().map(|p| p.throughput - fitted(p)).collect();
        let n = points.len() as f64;
        let mean = points.iter().map(|p| p.throughput).sum::<f64>() / n;
        let total: f64 = points.iter().map(|p| (p.throughput - mean).powi(2)).sum();
        let left: f64 = residuals.iter().map(|r| r.powi(2)).sum();
        Ok(Self {
            lambda,
            sigma,
            kappa,
            r_squared: if total > 0.0 { 1.0 - left / total } else { 0.0 },
            residuals,
            error: (left / (n - 3.0)).sqrt(),
            points: points.to_vec(),
        })
    }

    /// The throughput of `users` according to the model; `None` beyond twice the largest number measured, where a model
    /// that fits can still be wrong by any factor, and for numbers that are not positive.
    pub fn predict(&self, users: f64) -> Option<f64> {
        (users > 0.0 && users <= self.reach()).then(|| fit::law([self.lambda, self.sigma, self.kappa], users))
    }

    /// Where throughput is highest. Without coherency (κ = 0) it never decreases, and the peak is out of reach.
    pub fn peak(&self) -> Peak {
        let users = self.place(fit::peak([self.lambda, self.sigma, self.kappa]));
        let throughput = match users {
            PeakUsers::At(users) => self.predict(users),
            PeakUsers::Below(_) | PeakUsers::Beyond(_) => None,
        };
        Peak { users, throughput }
    }

    /// The points that were fitted.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    fn place(&self, users: f64) -> PeakUsers {
        let smallest = self.points.iter().map(|p| p.users).fold(f64::INFINITY, f64::min);
        if users > self.reach() {
            PeakUsers::Beyond(self.reach())
        } else if users < smallest {
            PeakUsers::Below(smallest)
        } else {
            PeakUsers::At(users)
        }
    }

    /// The largest number of users for which predictions are made.
    fn reach(&self) -> f64 {
        REACH * self.points.iter().map(|p| p.users).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests;
