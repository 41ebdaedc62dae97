//! A metric over a range of numbers of one factor.

use kelvin_stats::usl::{PeakUsers, Point, Usl};
use serde::Serialize;

use crate::StudyInput;
use crate::fit::{Estimate, Fit};
use crate::values::Values;

/// Replicates of the bootstrap, and the seed of its random numbers: fixed, so that every reader gets the same result.
const REPLICATES: usize = 1000;
const SEED: u64 = 20_261_121;

/// The curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Each level's number, its name, and the value of the metric.
    pub points: Vec<(Option<f64>, String, Estimate)>,
    /// Indexes of the levels that do not differ significantly from the best one, which comes first.
    pub best: Vec<usize>,
    /// Whether the best level is the first or the last that was measured.
    pub at_the_edge: bool,
    /// The scalability model, where the factor is the number of users.
    pub law: Option<ScalabilityModel>,
    /// Why there is no model, where one is expected.
    pub no_law: Option<String>,
}

/// The Universal Scalability Law fitted to the curve, in the unit of the metric.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScalabilityModel {
    /// λ, σ and κ with their intervals.
    pub parameters: [Estimate; 3],
    /// The share of the variation that it explains.
    pub r_squared: f64,
    /// The number of users with the highest value; none where it lies below the measured numbers,
    /// or beyond twice the largest.
    pub peak: Option<f64>,
    /// The same as text: "below 4", "12.3", "beyond 64".
    pub peak_words: String,
    /// Points of the fitted curve: users and value.
    pub curve: Vec<(f64, f64)>,
}

/// The curve of a sweep.
pub(crate) fn sweep(input: &StudyInput, values: &Values, fit: &Fit) -> Option<Sweep> {
    let factor = input.factors.first()?;
    let levels: Vec<usize> = fit.cells.iter().filter_map(|cell| cell.first().copied()).collect();
    let points = fit
        .cells
        .iter()
        .zip(&levels)
        .filter_map(|(cell, level)| {
            let level = &factor.levels[*level];
            Some((level.number, level.name.clone(), values.level(fit.contrast(&fit.only(cell)?))))
        })
        .collect::<Vec<_>>();
    let top = crate::table::best(input, fit)?;
    let like_best = |at: &usize| {
        let weights = crate::fit::less(&fit.only(&fit.cells[*at])?, &fit.only(&fit.cells[top])?);
        let found = fit.contrast(&weights);
        Some(!found.is_not_zero() && found.low.is_some())
    };
    let others = (0..fit.cells.len()).filter(|at| *at != top && like_best(at) == Some(true));
    let (law, no_law) = if factor.users { law(input, values) } else { (None, None) };
    Some(Sweep {
        best: std::iter::once(top).chain(others).map(|at| levels[at]).collect(),
        at_the_edge: levels[top] == 0 || levels[top] + 1 == factor.levels.len(),
        points,
        law,
        no_law,
    })
}

fn law(input: &StudyInput, values: &Values) -> (Option<ScalabilityModel>, Option<String>) {
    let number = |cell: &[usize]| input.factors[0].levels[cell[0]].number;
    let points: Vec<Point> = values
        .observations
        .iter()
        .filter_map(|o| {
            let level = Estimate { value: o.value, low: None, high: None, p: None };
            Some(Point { users: number(&o.cell)?, throughput: values.level(level).value })
        })
        .collect();
    let fit = match Usl::fit(&points) {
        Ok(fit) => fit,
        Err(error) => return (None, Some(error.to_string())),
    };
    let intervals = fit.intervals(input.confidence, REPLICATES, SEED);
    let parameter = |value: f64, interval: Option<kelvin_stats::bootstrap::BootstrapInterval>| Estimate {
        value,
        low: interval.map(|i| i.low),
        high: interval.map(|i| i.high),
        p: None,
    };
    let most = points.iter().map(|p| p.users).fold(1.0, f64::max);
    let peak = fit.peak().users;
    let curve = (0..=60)
        .map(|i| 1.0 + (most - 1.0) * f64::from(i) / 60.0)
        .filter_map(|users| Some((users, fit.predict(users)?)))
        .collect();
    let law = ScalabilityModel {
        parameters: [
            parameter(fit.lambda, intervals.map(|i| i.lambda)),
            parameter(fit.sigma, intervals.map(|i| i.sigma)),
            parameter(fit.kappa, intervals.map(|i| i.kappa)),
        ],
        r_squared: fit.r_squared,
        peak: match peak {
            PeakUsers::At(users) => Some(users),
            PeakUsers::Below(_) | PeakUsers::Beyond(_) => None,
        },
        peak_words: peak.to_string(),
        curve,
    };
    (Some(law), None)
}
