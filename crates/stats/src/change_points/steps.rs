//! Steps among values of which each resembles the one before it.

use std::ops::Range;

use super::FEWEST;
use crate::student::two_sided;

/// Values around one mean, and what an autoregressive process of first order leaves new of each, as sums from the start:
/// the step at any place within any range takes no time.
///
/// Generalised least squares (Prais and Winsten, Cowles Commission Discussion Paper 383, 1954): with φ known, xₜ − φxₜ₋₁
/// are independent, and so is √(1 − φ²)·x of a range's first value. A step lifts the first of what is new by all of its
/// height and each that follows by 1 − φ of it, so that it is placed by where it begins, which means of levels blur.
pub(super) struct Steps {
    phi: f64,
    values: Vec<f64>,
    news: Vec<f64>,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Steps {
    pub(super) fn from_values(values: &[f64], phi: f64) -> Self {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let mut before = 0.0;
        let news: Vec<f64> = values
            .iter()
            .map(|value| {
                let new = value - phi * before;
                before = *value;
                new
            })
            .collect();
        let summed = |of: &dyn Fn(f64) -> f64| {
            let mut sum = 0.0;
            let sums = news.iter().map(|new| {
                sum += of(*new);
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        };
        Self { phi, sums: summed(&|new| new), squares: summed(&|new| new * new), values, news }
    }

    /// Where the largest step of a range is: its second level's first value; none where nothing varies or is too short.
    pub(super) fn largest(&self, range: Range<usize>) -> Option<usize> {
        let places = range.start + FEWEST..(range.end + 1).saturating_sub(FEWEST);
        let falls = places.map(|cut| (self.fall(range.clone(), cut).0, cut));
        let best = falls.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (best.0 > 0.0).then_some(best.1)
    }

    /// Student's two-sided p of a step at a place of a range, 1 where nothing varies.
    pub(super) fn p(&self, range: Range<usize>, cut: usize) -> f64 {
        let (fall, left) = self.fall(range.clone(), cut);
        let df = (range.len() - FEWEST) as f64;
        if fall <= 0.0 || range.len() <= FEWEST {
            return 1.0;
        }
        // What is left of equal values is rounding.
        if left <= 1e-12 * fall {
            return 0.0;
        }
        two_sided((fall / left * df).sqrt(), df).unwrap_or(1.0)
    }

    /// By how much a step at a place lets the sum of squares fall, and what is left of it.
    fn fall(&self, range: Range<usize>, cut: usize) -> (f64, f64) {
        let (start, end) = (range.start, range.end);
        let (rest, part) = (1.0 - self.phi * self.phi, 1.0 - self.phi);
        let sum = |sums: &[f64], from: usize| sums[end] - sums[from];
        let (first, behind) = (self.values[start], (end - 1 - cut) as f64);
        // Products of the mean's column, the step's, and the values.
        let means = rest + (end - start - 1) as f64 * part * part;
        let of_mean = rest * first + part * sum(&self.sums, start + 1);
        let all = rest * first * first + sum(&self.squares, start + 1);
        let steps = 1.0 + part * part * behind;
        let of_step = self.news[cut] + part * sum(&self.sums, cut + 1);
        let shared = part * (1.0 + part * behind);
        let fall = (of_step - shared * of_mean / means).powi(2) / (steps - shared * shared / means);
        (fall, (all - of_mean * of_mean / means - fall).max(0.0))
    }
}
