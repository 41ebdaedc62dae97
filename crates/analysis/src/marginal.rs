//! Means over all cells at a level, for the plots of effects and interactions.

use serde::Serialize;

use crate::StudyInput;
use crate::fit::{Estimate, Fit};
use crate::values::Values;

/// The mean at some levels, over all levels of the other factors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Marginal {
    /// Factor and level, by index; one or two of them.
    pub at: Vec<(usize, usize)>,
    /// The mean in the unit of the metric; its interval is that of a comparison within blocks.
    pub mean: Estimate,
}

/// Every level of every factor, then every pair of levels of every pair of factors.
pub(crate) fn marginals(input: &StudyInput, values: &Values, fit: &Fit) -> Vec<Marginal> {
    let levels = |factor: usize| (0..input.factors[factor].levels.len()).map(move |level| (factor, level));
    let factors = 0..input.factors.len();
    let singles = factors.clone().flat_map(levels).map(|one| vec![one]);
    let pairs = factors.clone().flat_map(|a| factors.clone().skip(a + 1).map(move |b| (a, b)));
    let doubles = pairs.flat_map(|(a, b)| levels(a).flat_map(move |x| levels(b).map(move |y| vec![x, y])));
    singles
        .chain(doubles)
        .filter_map(|at| {
            let weights = fit.mean_of(|cell| at.iter().all(|(factor, level)| cell[*factor] == *level))?;
            Some(Marginal { mean: values.level(fit.contrast(&weights)), at })
        })
        .collect()
}
