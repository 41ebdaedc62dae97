//! What an effect is made of: sums of squares, contrasts, means.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::fit::Fit;
use super::matrix::Symmetric;
use super::{Coded, Contrast, Design, Effect, LevelMean, Variation, combinations, sets};
use crate::student::quantile;

/// What turns a variance into half of an interval.
pub(super) struct Scale {
    /// t·s; infinite when there is no error.
    half: f64,
}

impl Scale {
    pub(super) fn from_error(error: &Variation, confidence: f64) -> Self {
        let t = quantile(f64::midpoint(1.0, confidence), error.degrees as f64);
        let half = t.map_or(f64::INFINITY, |t| t * (error.sum_of_squares / error.degrees as f64).sqrt());
        Self { half }
    }

    /// Estimate, lower and upper end.
    fn interval(&self, (value, variance): (f64, f64)) -> (f64, f64, f64) {
        let half = self.half * variance.sqrt();
        (value, value - half, value + half)
    }
}

pub(super) fn effect(
    design: &Design,
    cells: &[Vec<usize>],
    fit: &Fit,
    factors: Vec<usize>,
    error: &Variation,
    scale: &Scale,
    share: &impl Fn(f64) -> f64,
) -> Effect {
    let of: Vec<usize> = factors.iter().map(|f| design.levels[*f]).collect();
    let others = cells.len() / of.iter().product::<usize>();
    let combined = combinations(&of);
    // The weight of each cell by what it has at the effect's factors.
    let weights = |weight: &dyn Fn(&[usize]) -> f64| -> Vec<f64> {
        let at = |cell: &Vec<usize>| factors.iter().map(|f| cell[*f]).collect::<Vec<usize>>();
        cells.iter().map(|cell| weight(&at(cell)) / others as f64).collect()
    };
    let orthogonal: Vec<Vec<f64>> = combinations(&of.iter().map(|l| l - 1).collect::<Vec<_>>())
        .iter()
        .map(|row| weights(&|at| at.iter().zip(row).map(|(level, row)| helmert(*row, *level)).product()))
        .collect();
    let degrees = orthogonal.len();
    let sum_of_squares = squares(fit, &orthogonal);
    let f = (error.degrees > 0 && error.sum_of_squares > 0.0)
        .then(|| sum_of_squares / degrees as f64 / (error.sum_of_squares / error.degrees as f64));
    let p = f
        .filter(|f| f.is_finite())
        .and_then(|f| Some(FisherSnedecor::new(degrees as f64, error.degrees as f64).ok()?.sf(f)));
    let pairs: Vec<Vec<(usize, usize)>> = of
        .iter()
        .map(|levels| (0..*levels).flat_map(|from| (from + 1..*levels).map(move |to| (from, to))).collect())
        .collect();
    let contrasts = combinations(&pairs.iter().map(Vec::len).collect::<Vec<_>>())
        .iter()
        .map(|chosen| {
            let levels: Vec<(usize, usize)> = chosen.iter().zip(&pairs).map(|(i, pairs)| pairs[*i]).collect();
            let sign = |(level, (from, to)): (&usize, &(usize, usize))| {
                f64::from(u8::from(level == to)) - f64::from(u8::from(level == from))
            };
            let weights = weights(&|at| at.iter().zip(&levels).map(sign).product());
            let (estimate, low, high) = scale.interval(fit.combine(&weights));
            Contrast { levels, estimate, low, high }
        })
        .collect();
    let means = combined
        .into_iter()
        .map(|levels| {
            let weights = weights(&|at| f64::from(u8::from(at == levels)));
            let (mean, low, high) = scale.interval(fit.combine(&weights));
            LevelMean { levels, mean, low, high }
        })
        .collect();
    Effect { factors, share: share(sum_of_squares), sum_of_squares, degrees, f, p, contrasts, means }
}

/// Helmert's contrast number `row` at a level: the mean of the levels up to `row` against the one after it, of length 1.
fn helmert(row: usize, level: usize) -> f64 {
    let length = ((row + 1) * (row + 2)) as f64;
    match level {
        l if l <= row => 1.0 / length.sqrt(),
        l if l == row + 1 => -((row + 1) as f64) / length.sqrt(),
        _ => 0.0,
    }
}

/// The sum of squares of what all the `contrasts` say: (Cμ)ᵀ(CVCᵀ)⁻¹(Cμ).
fn squares(fit: &Fit, contrasts: &[Vec<f64>]) -> f64 {
    let values: Vec<f64> = contrasts.iter().map(|c| fit.combine(c).0).collect();
    let Some(covariance) = &fit.covariance else {
        // Orthogonal, and of one variance each.
        return contrasts.iter().zip(&values).map(|(c, value)| value.powi(2) / fit.combine(c).1).sum();
    };
    let mut among = Symmetric::zero(contrasts.len());
    for (i, row) in contrasts.iter().enumerate() {
        for (j, column) in contrasts[..=i].iter().enumerate() {
            among.add(i, j, covariance.form(row, column));
        }
    }
    among.inverse().map_or(f64::NAN, |inverse| inverse.form(&values, &values))
}

pub(super) fn coded(factors: usize, cells: &[Vec<usize>], fit: &Fit, scale: &Scale) -> Vec<Coded> {
    let with_mean = std::iter::once(Vec::new()).chain(sets(factors));
    with_mean
        .map(|factors| {
            let sign = |cell: &Vec<usize>| -> f64 {
                factors.iter().map(|f| if cell[*f] == 1 { 1.0 } else { -1.0 }).product()
            };
            let weights: Vec<f64> = cells.iter().map(|cell| sign(cell) / cells.len() as f64).collect();
            let (q, low, high) = scale.interval(fit.combine(&weights));
            Coded { factors, q, low, high }
        })
        .collect()
}
