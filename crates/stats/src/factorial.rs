//! Full factorial studies: every combination of the factors' levels, in blocks.
//!
//! What changing one factor at a time cannot show is the interaction: that huge pages help only where memory is bound.
//! The model is the saturated one, a mean for every cell, and a level for every block that all cells share (Jain, The
//! Art of Computer Systems Performance Analysis, 1991, chapters 17, 18 and 22; Montgomery, Design and Analysis of
//! Experiments, chapters 5 and 6).

mod matrix;

use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use thiserror::Error;

use crate::student::quantile;
use matrix::Symmetric;

/// Cells of a design; more would be a study of years.
const MOST_CELLS: usize = 1024;

/// A full factorial design: how many levels each factor has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Design {
    levels: Vec<usize>,
}

/// One run of a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// The level of each factor, counted from 0.
    pub cell: Vec<usize>,
    /// The block it was run in.
    pub block: u32,
    /// What was measured, or its logarithm where effects multiply (as they mostly do).
    pub value: f64,
}

/// Why a study cannot be analysed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FactorialError {
    /// No factors, or one without a choice.
    #[error(
        "the design needs at least one factor, and each factor two levels or more; it has the levels {0:?}"
    )]
    Levels(Vec<usize>),
    /// Too large.
    #[error(
        "the design has more than {MOST_CELLS} cells: leave out factors or levels, or take a fraction of it"
    )]
    TooLarge,
    /// An observation outside the design.
    #[error(
        "observation {index}: the cell {cell:?} is none of the design's, whose factors have the levels {levels:?}"
    )]
    NoSuchCell {
        /// Its place in the list.
        index: usize,
        /// Its cell.
        cell: Vec<usize>,
        /// The design's levels.
        levels: Vec<usize>,
    },
    /// A value that is none.
    #[error("observation {index}: the value {value} is not finite")]
    NotFinite {
        /// Its place in the list.
        index: usize,
        /// The value.
        value: f64,
    },
    /// Cells without any run.
    #[error(
        "no valid run in the cells {0:?} (levels counted from 0): run them, or their effects cannot be told apart"
    )]
    EmptyCells(Vec<Vec<usize>>),
    /// Blocks that share no cells.
    #[error(
        "the blocks have no cells in common that would tell their levels from the factors' effects: run complete blocks"
    )]
    Confounded,
    /// A confidence that is none.
    #[error("the confidence {0} is not between 0 and 1")]
    Confidence(f64),
}

/// A part of the variation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variation {
    /// Sum of squares.
    pub sum_of_squares: f64,
    /// Its part of the total; 0 when nothing varies.
    pub share: f64,
    /// Degrees of freedom.
    pub degrees: usize,
}

/// What a factor, or several together, do.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The factors, counted from 0: one for a main effect, several for their interaction.
    pub factors: Vec<usize>,
    /// Sum of squares. Of the unweighted means of the cells (Yates, Journal of the American Statistical Association 29,
    /// 1934), so that in an unbalanced study the parts do not add up to the total.
    pub sum_of_squares: f64,
    /// Its part of the total variation: how much this matters, whether or not it is certain.
    pub share: f64,
    /// Degrees of freedom.
    pub degrees: usize,
    /// The variance of the effect over the error's; none without an error to compare with (one run a cell).
    pub f: Option<f64>,
    /// The probability of as large an F by chance.
    pub p: Option<f64>,
    /// How the levels differ.
    pub contrasts: Vec<Contrast>,
    /// The means of the levels, over the cells of all other factors: what a plot of the effect shows.
    pub means: Vec<LevelMean>,
}

/// A difference between levels; of an interaction, a difference of differences.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// For each factor of the effect, from which level to which.
    pub levels: Vec<(usize, usize)>,
    /// The estimate.
    pub estimate: f64,
    /// Lower end of its interval; −∞ when there is no error to compute it from.
    pub low: f64,
    /// Upper end; ∞ likewise.
    pub high: f64,
}

/// The mean at one level of a factor, or at one combination of several factors' levels.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelMean {
    /// The level of each of the effect's factors.
    pub levels: Vec<usize>,
    /// The mean over the cells, at the blocks' middle.
    pub mean: f64,
    /// Lower end of its interval; −∞ when there is no error to compute it from.
    pub low: f64,
    /// Upper end; ∞ likewise.
    pub high: f64,
}

/// An effect of a design of two levels each, with the levels written −1 and 1 (Jain, chapter 17): going from −1 to 1
/// changes the mean by 2q.
#[derive(Debug, Clone, PartialEq)]
pub struct Coded {
    /// The factors; none of them for the mean over all.
    pub factors: Vec<usize>,
    /// The coefficient.
    pub q: f64,
    /// Lower end of its interval; −∞ when there is no error to compute it from.
    pub low: f64,
    /// Upper end; ∞ likewise.
    pub high: f64,
}

/// A study, analysed.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// Main effects first, then interactions of two factors, and so on.
    pub effects: Vec<Effect>,
    /// What differs from block to block; none with a single block.
    pub blocks: Option<Variation>,
    /// What neither factors nor blocks explain.
    pub error: Variation,
    /// Around the mean of all observations.
    pub total: Variation,
    /// For designs of two levels each: the coefficients, the mean first. Empty for others.
    pub coded: Vec<Coded>,
    /// What the model leaves of each observation, in their order.
    pub residuals: Vec<f64>,
    /// Whether every block holds every cell equally often: then the parts of the variation add up to the total.
    pub balanced: bool,
}

impl Design {
    /// A design of factors with so many levels each. What is no design is told by [`Analysis::of`], and has no cells.
    pub fn new(levels: &[usize]) -> Self {
        Self { levels: levels.to_vec() }
    }

    /// Levels of each factor.
    pub fn levels(&self) -> &[usize] {
        &self.levels
    }

    /// All combinations of the levels, the last factor's changing fastest. Empty for what is no design, or one of more
    /// than 1024 cells.
    pub fn cells(&self) -> Vec<Vec<usize>> {
        match self.count() {
            Ok(_) => combinations(&self.levels),
            Err(_) => Vec::new(),
        }
    }

    fn count(&self) -> Result<usize, FactorialError> {
        if self.levels.is_empty() || self.levels.iter().any(|l| *l < 2) {
            return Err(FactorialError::Levels(self.levels.clone()));
        }
        let count = self.levels.iter().try_fold(1_usize, |product, levels| product.checked_mul(*levels));
        count.filter(|count| *count <= MOST_CELLS).ok_or(FactorialError::TooLarge)
    }

    /// The place of a cell in [`Self::cells`].
    fn place(&self, cell: &[usize]) -> Option<usize> {
        let within = cell.len() == self.levels.len() && cell.iter().zip(&self.levels).all(|(at, of)| at < of);
        within.then(|| cell.iter().zip(&self.levels).fold(0, |place, (at, of)| place * of + at))
    }
}

fn combinations(levels: &[usize]) -> Vec<Vec<usize>> {
    levels.iter().fold(vec![Vec::new()], |cells, &count| {
        cells
            .iter()
            .flat_map(|cell| (0..count).map(move |level| [cell.as_slice(), &[level]].concat()))
            .collect()
    })
}

/// The sets of `count` factors, smallest first and then in their order.
fn sets(count: usize) -> Vec<Vec<usize>> {
    let mut sets: Vec<Vec<usize>> =
        (1..1_usize << count).map(|bits| (0..count).filter(|f| bits >> f & 1 == 1).collect()).collect();
    sets.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    sets
}

/// The means of the cells, fitted, with what their errors have in common.
struct Fit {
    means: Vec<f64>,
    /// Variance and covariance of the means over the error's variance; none for a balanced study, where those of
    /// contrasts are as if each mean were of `runs` independent ones.
    covariance: Option<Symmetric>,
    /// Runs a cell; of no meaning in an unbalanced study.
    runs: f64,
    blocks: Option<Variation>,
    residuals: Vec<f64>,
}

impl Analysis {
    /// Analyses `observations` of a study, which may lack some (void runs): then by least squares, each effect adjusted
    /// for the blocks. Intervals are at `confidence`.
    pub fn of(
        design: &Design,
        observations: &[Observation],
        confidence: f64,
    ) -> Result<Self, FactorialError> {
        if !(confidence > 0.0 && confidence < 1.0) {
            return Err(FactorialError::Confidence(confidence));
        }
        let count = design.count()?;
        let places = places(design, observations)?;
        let mut runs = vec![0_usize; count];
        for place in &places {
            runs[*place] += 1;
        }
        let cells = design.cells();
        let empty: Vec<Vec<usize>> =
            cells.iter().zip(&runs).filter(|(_, runs)| **runs == 0).map(|(cell, _)| cell.clone()).collect();
        if !empty.is_empty() {
            return Err(FactorialError::EmptyCells(empty));
        }
        let mut blocks: Vec<u32> = observations.iter().map(|o| o.block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let values: Vec<f64> = observations.iter().map(|o| o.value).collect();
        let block_of: Vec<usize> =
            observations.iter().map(|o| blocks.partition_point(|block| *block < o.block)).collect();
        let mut each = vec![0_usize; count * blocks.len()];
        for (place, block) in places.iter().zip(&block_of) {
            each[place * blocks.len() + block] += 1;
        }
        let balanced = each.iter().all(|n| *n == each[0]);
        let grand = values.iter().sum::<f64>() / values.len() as f64;
        let total_squares: f64 = values.iter().map(|v| (v - grand).powi(2)).sum();
        let share = |squares: f64| if total_squares > 0.0 { squares / total_squares } else { 0.0 };
        let mut fit = if balanced {
            fit_balanced(&values, &places, &block_of, count, blocks.len())
        } else {
            fit_unbalanced(&values, &places, &block_of, count, blocks.len())?
        };
        if let Some(blocks) = &mut fit.blocks {
            blocks.share = share(blocks.sum_of_squares);
        }
        let squares: f64 = fit.residuals.iter().map(|r| r * r).sum();
        let degrees = (values.len() + 1).saturating_sub(count + blocks.len());
        let error = Variation { sum_of_squares: squares, share: share(squares), degrees };
        let total = Variation {
            sum_of_squares: total_squares,
            share: share(total_squares),
            degrees: values.len() - 1,
        };
        let scale = Scale::of(&error, confidence);
        let effects = sets(design.levels.len())
            .into_iter()
            .map(|factors| effect(design, &cells, &fit, factors, &error, &scale, &share))
            .collect();
        let coded = if design.levels.iter().all(|l| *l == 2) {
            coded(design.levels.len(), &cells, &fit, &scale)
        } else {
            Vec::new()
        };
        let Fit { blocks, residuals, .. } = fit;
        Ok(Self { effects, blocks, error, total, coded, residuals, balanced })
    }
}

/// The cell of each observation.
fn places(design: &Design, observations: &[Observation]) -> Result<Vec<usize>, FactorialError> {
    let place = |(index, observation): (usize, &Observation)| {
        if !observation.value.is_finite() {
            return Err(FactorialError::NotFinite { index, value: observation.value });
        }
        design.place(&observation.cell).ok_or_else(|| FactorialError::NoSuchCell {
            index,
            cell: observation.cell.clone(),
            levels: design.levels.clone(),
        })
    };
    observations.iter().enumerate().map(place).collect()
}

/// Means of cells and blocks are all there is to a balanced study.
fn fit_balanced(values: &[f64], places: &[usize], block_of: &[usize], cells: usize, blocks: usize) -> Fit {
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
    Fit {
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

/// Least squares of cells and blocks, the blocks' levels adding up to 0. The blocks' part is what they explain beyond
/// the cells.
fn fit_unbalanced(
    values: &[f64],
    places: &[usize],
    block_of: &[usize],
    cells: usize,
    blocks: usize,
) -> Result<Fit, FactorialError> {
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
        fit_balanced(values, places, &none, cells, 1).residuals_of_cells(values, places);
    let sum_of_squares = (without_blocks - squares).max(0.0);
    Ok(Fit {
        means: found[..cells].to_vec(),
        covariance: Some(covariance),
        runs: values.len() as f64 / cells as f64,
        blocks: (blocks > 1).then_some(Variation { sum_of_squares, share: 0.0, degrees: blocks - 1 }),
        residuals,
    })
}

impl Fit {
    /// The squares the cells' own means leave.
    fn residuals_of_cells(&self, values: &[f64], places: &[usize]) -> f64 {
        values.iter().zip(places).map(|(value, place)| (value - self.means[*place]).powi(2)).sum()
    }

    /// The value of a combination of the means, and its variance over the error's.
    fn combine(&self, weights: &[f64]) -> (f64, f64) {
        let value = weights.iter().zip(&self.means).map(|(w, m)| w * m).sum();
        let variance = match &self.covariance {
            Some(covariance) => covariance.form(weights, weights),
            None => weights.iter().map(|w| w * w).sum::<f64>() / self.runs,
        };
        (value, variance)
    }
}

/// What turns a variance into half of an interval.
struct Scale {
    /// t·s; infinite when there is no error.
    half: f64,
}

impl Scale {
    fn of(error: &Variation, confidence: f64) -> Self {
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

fn effect(
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
    let p = f.and_then(|f| Some(FisherSnedecor::new(degrees as f64, error.degrees as f64).ok()?.sf(f)));
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

fn coded(factors: usize, cells: &[Vec<usize>], fit: &Fit, scale: &Scale) -> Vec<Coded> {
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

#[cfg(test)]
mod tests;
