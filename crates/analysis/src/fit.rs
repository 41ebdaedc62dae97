//! Means of cells and their differences with block effects removed: the additive model y = cell + block +
//! error, fitted by least squares (Jain, The Art of Computer Systems Performance Analysis, chapters 20 to 22;
//! Montgomery, Design and Analysis of Experiments, chapter 4). Plain means would not do: a void run leaves a
//! hole in its block, and they would then attribute the block's effect to the cell.

use kelvin_stats::student;
use serde::Serialize;

/// One metric of one run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Observation {
    pub(crate) cell: Vec<usize>,
    pub(crate) block: u32,
    pub(crate) place: u32,
    pub(crate) value: f64,
}

/// An estimate on the scale of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval; none where nothing was repeated.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The probability of a value this far from 0 if there is no effect.
    pub p: Option<f64>,
}

impl Estimate {
    /// The estimate on another scale; `to` must be increasing.
    pub(crate) fn map(self, to: impl Fn(f64) -> f64) -> Self {
        Self { value: to(self.value), low: self.low.map(&to), high: self.high.map(&to), p: self.p }
    }

    /// The estimate with the opposite sign.
    pub(crate) fn negated(self) -> Self {
        Self { value: -self.value, low: self.high.map(|v| -v), high: self.low.map(|v| -v), p: self.p }
    }

    /// Whether the interval is known and excludes 0.
    pub fn is_not_zero(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0) || self.high.is_some_and(|high| high < 0.0)
    }
}

/// The fitted model.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    /// The cells with at least one value, in ascending order.
    pub(crate) cells: Vec<Vec<usize>>,
    /// The number of values of each cell.
    pub(crate) counts: Vec<usize>,
    /// The mean of each cell in a block of average level.
    pub(crate) means: Vec<f64>,
    /// Residual mean square; none without degrees of freedom.
    pub(crate) error: Option<f64>,
    /// Degrees of freedom of the error.
    pub(crate) freedom: usize,
    /// Blocks with at least one value.
    pub(crate) blocks: Vec<u32>,
    covariance: Vec<Vec<f64>>,
    confidence: f64,
}

impl Fit {
    /// Fits the model; none without values, or if blocks and cells are confounded.
    pub(crate) fn of(observations: &[Observation], confidence: f64) -> Option<Self> {
        let distinct = |mut all: Vec<Vec<usize>>| {
            all.sort();
            all.dedup();
            all
        };
        let cells = distinct(observations.iter().map(|o| o.cell.clone()).collect());
        let mut blocks: Vec<u32> = observations.iter().map(|o| o.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        if cells.is_empty() {
            return None;
        }
        let size = cells.len() + blocks.len() - 1;
        let rows: Vec<(usize, Vec<f64>)> = observations
            .iter()
            .map(|o| {
                let cell = cells.binary_search(&o.cell).unwrap_or(0);
                (cell, row(cell, cells.len(), &blocks, o.block))
            })
            .collect();
        let mut normal = vec![vec![0.0; size]; size];
        let mut right = vec![0.0; size];
        for ((_, row), o) in rows.iter().zip(observations) {
            for i in 0..size {
                right[i] += row[i] * o.value;
                for j in 0..size {
                    normal[i][j] += row[i] * row[j];
                }
            }
        }
        let inverse = inverted(normal)?;
        let found: Vec<f64> =
            inverse.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect();
        let squares: f64 = rows
            .iter()
            .zip(observations)
            .map(|((_, row), o)| (o.value - row.iter().zip(&found).map(|(a, b)| a * b).sum::<f64>()).powi(2))
            .sum();
        let freedom = observations.len().saturating_sub(size);
        let mut counts = vec![0; cells.len()];
        for (cell, _) in &rows {
            counts[*cell] += 1;
        }
        let n = cells.len();
        Some(Self {
            counts,
            means: found[..n].to_vec(),
            error: (freedom > 0).then(|| squares / freedom as f64),
            freedom,
            blocks,
            covariance: inverse.into_iter().take(n).map(|row| row[..n].to_vec()).collect(),
            cells,
            confidence,
        })
    }

    /// A weighted sum of the cells' means, `weights` in the order of [`Fit::cells`].
    pub(crate) fn contrast(&self, weights: &[f64]) -> Estimate {
        let value: f64 = weights.iter().zip(&self.means).map(|(w, m)| w * m).sum();
        let none = Estimate { value, low: None, high: None, p: None };
        let Some(error) = self.spread(weights).zip(self.error).map(|(spread, error)| (spread * error).sqrt())
        else {
            return none;
        };
        let freedom = self.freedom as f64;
        let Some(t) = student::quantile(f64::midpoint(1.0, self.confidence), freedom) else { return none };
        let p = if error > 0.0 {
            student::two_sided(value / error, freedom)
        } else {
            Some(f64::from(value == 0.0))
        };
        Estimate { value, low: Some(value - t * error), high: Some(value + t * error), p }
    }

    /// w'Vw: the factor from the variance of the error to the variance of the contrast; none without an error
    /// estimate.
    fn spread(&self, weights: &[f64]) -> Option<f64> {
        self.error?;
        let row = |i: usize| -> f64 { self.covariance[i].iter().zip(weights).map(|(c, w)| c * w).sum() };
        Some((0..weights.len()).map(|i| weights[i] * row(i)).sum())
    }

    /// The standard deviation of a contrast within one complete block; none without an error estimate.
    pub(crate) fn deviation_in_block(&self, weights: &[f64]) -> Option<f64> {
        Some((self.error? * weights.iter().map(|w| w * w).sum::<f64>()).sqrt())
    }

    /// Weights for the mean over the cells that `holds` selects; none when it selects none.
    pub(crate) fn mean_of(&self, holds: impl Fn(&[usize]) -> bool) -> Option<Vec<f64>> {
        let within: Vec<bool> = self.cells.iter().map(|cell| holds(cell)).collect();
        let count = within.iter().filter(|in_it| **in_it).count();
        (count > 0).then(|| within.into_iter().map(|in_it| f64::from(in_it) / count as f64).collect())
    }

    /// Weights for a single cell.
    pub(crate) fn only(&self, cell: &[usize]) -> Option<Vec<f64>> {
        self.mean_of(|other| other == cell)
    }
}

/// `to` minus `from`.
pub(crate) fn less(to: &[f64], from: &[f64]) -> Vec<f64> {
    to.iter().zip(from).map(|(to, from)| to - from).collect()
}

/// The columns of the cell and of the block, coded so that the blocks' effects sum to 0.
fn row(cell: usize, cells: usize, blocks: &[u32], block: u32) -> Vec<f64> {
    let last = blocks.len() - 1;
    let place = blocks.binary_search(&block).unwrap_or(last);
    let mut row = vec![0.0; cells + last];
    row[cell] = 1.0;
    if place == last {
        row[cells..].fill(-1.0);
    } else {
        row[cells + place] = 1.0;
    }
    row
}

/// Gauss-Jordan elimination with the largest pivot; none for a singular matrix.
fn inverted(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(i == j)));
    }
    for column in 0..n {
        let pivot =
            (column..n).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-9 {
            return None;
        }
        matrix.swap(column, pivot);
        let divisor = matrix[column][column];
        matrix[column].iter_mut().for_each(|v| *v /= divisor);
        let head = matrix[column].clone();
        for (i, row) in matrix.iter_mut().enumerate() {
            let times = row[column];
            if i != column && times != 0.0 {
                row.iter_mut().zip(&head).for_each(|(v, h)| *v -= times * h);
            }
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(cell: usize, block: u32, value: f64) -> Observation {
        Observation { cell: vec![cell], block, place: 0, value }
    }

    #[test]
    fn a_hole_in_a_block_is_not_charged_to_its_cell() {
        // Cells 1 and 3, blocks +0 and +10. The second cell is missing in the high block; the plain mean of
        // the first would be 3.
        let found = Fit::of(
            &[
                observed(0, 0, 1.0),
                observed(1, 0, 3.0),
                observed(0, 1, 11.0),
                observed(0, 2, 6.0),
                observed(1, 2, 8.0),
            ],
            0.95,
        )
        .unwrap();
        let difference = found.contrast(&[-1.0, 1.0]);
        assert!((difference.value - 2.0).abs() < 1e-12, "{found:?}");
        assert_eq!((found.freedom, found.counts), (1, vec![3, 2]));
    }

    #[test]
    fn two_cells_in_complete_blocks_are_the_paired_t_test() {
        // The pairs differ by 0.1, 0.1, 0.4: mean 0.2, s 0.1732, t(0.975, 2) = 4.3027, half 0.4303.
        let values = [(0.0, 0.1), (5.0, 5.1), (9.0, 9.4)];
        let observations: Vec<_> = values
            .iter()
            .enumerate()
            .flat_map(|(b, (x, y))| [observed(0, b as u32, *x), observed(1, b as u32, *y)])
            .collect();
        let fit = Fit::of(&observations, 0.95).unwrap();
        let found = fit.contrast(&[-1.0, 1.0]);
        assert!((found.value - 0.2).abs() < 1e-9 && (found.high.unwrap() - 0.6303).abs() < 1e-3, "{found:?}");
        assert!((fit.deviation_in_block(&[-1.0, 1.0]).unwrap() - 0.1732).abs() < 1e-3);
    }

    #[test]
    fn one_block_has_means_and_no_error() {
        let fit = Fit::of(&[observed(0, 0, 1.0), observed(1, 0, 3.0)], 0.95).unwrap();
        assert_eq!((fit.error, fit.contrast(&[-1.0, 1.0]).low), (None, None));
        assert!(Fit::of(&[], 0.95).is_none());
        // Each cell in a separate block: they are confounded.
        assert!(Fit::of(&[observed(0, 0, 1.0), observed(1, 1, 3.0)], 0.95).is_none());
    }
}
