//! Full factorial studies: every combination of the factors' levels, in blocks.
//!
//! What changing one factor at a time cannot show is the interaction: that huge pages help only where memory is bound.
//! The model is the saturated one, a mean for every cell, and a level for every block that all cells share (Jain, The
//! Art of Computer Systems Performance Analysis, 1991, chapters 17, 18 and 22; Montgomery, Design and Analysis of
//! Experiments, chapters 5 and 6).

mod effect;
mod fit;
mod matrix;

use thiserror::Error;

use effect::{Scale, coded, effect};
use fit::Fit;

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
        "the design needs at least one factor, and each factor needs at least two levels; it has the levels \
        {0:?}"
    )]
    Levels(Vec<usize>),
    /// Too large.
    #[error("the design has more than {MOST_CELLS} cells: use fewer factors or levels, or a fraction")]
    TooLarge,
    /// An observation outside the design.
    #[error(
        "observation {index}: the cell {cell:?} is not in the design, whose factors have the levels \
        {levels:?}"
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
        "no valid run in the cells {0:?} (levels counted from 0): run them; without them the effects cannot \
        be separated"
    )]
    EmptyCells(Vec<Vec<usize>>),
    /// Blocks that share no cells.
    #[error(
        "the blocks have no cells in common, so block and factor effects cannot be separated: run complete \
        blocks"
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
    /// A design of factors with so many levels each. An invalid design is rejected by [`Analysis::from_observations`], and has no cells.
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

impl Analysis {
    /// Analyses `observations` of a study, which may lack some (void runs): then by least squares, each effect adjusted
    /// for the blocks. Intervals are at `confidence`.
    pub fn from_observations(
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
            Fit::balanced(&values, &places, &block_of, count, blocks.len())
        } else {
            Fit::unbalanced(&values, &places, &block_of, count, blocks.len())?
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
        let scale = Scale::from_error(&error, confidence);
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

#[cfg(test)]
mod tests;
