//! The means of the cells and the levels of the blocks.

use super::matrix::Symmetric;
use super::{FactorialError, Variation};

/// The means of the cells, fitted, with the covariance of their errors.
pub(super) struct Fit {
    pub(super) means: Vec<f64>,
    /// Variance and covariance of the means divided by the error's variance; `None` for a balanced study, in which
    /// contrasts have the variance of means of `runs` independent runs each.
    pub(super) covariance: Option<Symmetric>,
    /// Runs a cell; of no meaning in an unbalanced study.
    pub(super) runs: f64,
    pub(super) blocks: Option<Variation>,
    pub(super) residuals: Vec<f64>,
}

impl Fit {
    /// Means of cells and blocks are all there is to a balanced study.
    pub(super) fn balanced(
        values: &[f64],
        places: &[usize],
        block_of: &[usize],
        cells: usize,
        blocks: usize,
    ) -> Self {
        let mean_by = |group: &[usize], groups: usize| -> Vec<f64> {
            let mut sums = vec![(0.0, 0.0); groups];
            for (value, group) in values.iter().zip(group) {
                sums[*group].0 += value;
                sums[*group].1 += 1.0;
            }
            sums.into_iter().map(|(sum, count)| sum / count).collect()
        };
        let means = mean_by(places, cells);
        let of_blocks = mean_by(block_of, blocks);
        let grand = means.iter().sum::<f64>() / cells as f64;
        let residuals = values
            .iter()
            .zip(places.iter().zip(block_of))
            .map(|(value, (place, block))| value - means[*place] - (of_blocks[*block] - grand))
            .collect();
        let each = values.len() as f64 / blocks as f64;
        let squares = each * of_blocks.iter().map(|mean| (mean - grand).powi(2)).sum::<f64>();
        Self {
            means,
            covariance: None,
            runs: values.len() as f64 / cells as f64,
            blocks: (blocks > 1).then_some(Variation {
                sum_of_squares: squares,
                share: 0.0,
                degrees: blocks - 1,
            }),
            residuals,
        }
    }

    /// Least squares of cells and blocks, with block effects that add up to 0. The blocks' part is the variation
    /// explained in addition to the cells.
    pub(super) fn unbalanced(
        values: &[f64],
        places: &[usize],
        block_of: &[usize],
        cells: usize,
        blocks: usize,
    ) -> Result<Self, FactorialError> {
        // The last block's level is minus the sum of the others'.
        let row = |i: usize| -> Vec<(usize, f64)> {
            let (place, block) = (places[i], block_of[i]);
            let mut row = vec![(place, 1.0)];
            if block + 1 < blocks {
                row.push((cells + block, 1.0));
            } else {
                row.extend((0..blocks - 1).map(|b| (cells + b, -1.0)));
            }
            row
        };
        let unknowns = cells + blocks - 1;
        let mut normal = Symmetric::zero(unknowns);
        let mut right = vec![0.0; unknowns];
        for (i, value) in values.iter().enumerate() {
            let row = row(i);
            for (j, x) in &row {
                right[*j] += x * value;
                for (k, y) in &row {
                    if k <= j {
                        normal.add(*j, *k, x * y);
                    }
                }
            }
        }
        let covariance = normal.inverse().ok_or(FactorialError::Confounded)?;
        let found: Vec<f64> =
            (0..unknowns).map(|i| (0..unknowns).map(|j| covariance.get(i, j) * right[j]).sum()).collect();
        let residuals: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(i, value)| value - row(i).iter().map(|(j, x)| x * found[*j]).sum::<f64>())
            .collect();
        let squares: f64 = residuals.iter().map(|r| r * r).sum();
        let none = vec![0; values.len()];
        let without_blocks: f64 =
            Self::balanced(values, places, &none, cells, 1).residuals_of_cells(values, places);
        let sum_of_squares = (without_blocks - squares).max(0.0);
        Ok(Self {
            means: found[..cells].to_vec(),
            covariance: Some(covariance),
            runs: values.len() as f64 / cells as f64,
            blocks: (blocks > 1).then_some(Variation { sum_of_squares, share: 0.0, degrees: blocks - 1 }),
            residuals,
        })
    }

    /// The residual sum of squares within the cells.
    fn residuals_of_cells(&self, values: &[f64], places: &[usize]) -> f64 {
        values.iter().zip(places).map(|(value, place)| (value - self.means[*place]).powi(2)).sum()
    }

    /// The value of a combination of the means, and its variance over the error's.
    pub(super) fn combine(&self, weights: &[f64]) -> (f64, f64) {
        let value = weights.iter().zip(&self.means).map(|(w, m)| w * m).sum();
        let variance = match &self.covariance {
            Some(covariance) => covariance.form(weights, weights),
            None => weights.iter().map(|w| w * w).sum::<f64>() / self.runs,
        };
        (value, variance)
    }
}
