//! Where repetitions pay: more minutes in a run, more runs after one restart, or more restarts?
//!
//! Runs after the same restart resemble each other more than runs after different ones, and repeating what resembles
//! itself buys nothing (Kalibera and Jones, Rigorous Benchmarking in Reasonable Time, ISMM 2013; Quantifying Performance
//! Changes with Effect Size Confidence Intervals, 2012).

use thiserror::Error;

use crate::student::{describe, quantile};

/// Why a pilot says nothing.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum HierarchyError {
    /// A level without repetitions.
    #[error("a pilot needs at least two repetitions at each level; it has {0:?}, the lowest level first")]
    Repetitions(Vec<usize>),
    /// Values and repetitions do not fit.
    #[error("the pilot should have {expected} values, the product of its repetitions, and has {found}")]
    Values {
        /// The product.
        expected: usize,
        /// The number of values.
        found: usize,
    },
    /// A value that is none.
    #[error("value {0} of the pilot is not finite")]
    NotFinite(usize),
    /// Costs that are none.
    #[error(
        "each of the pilot's levels needs a cost above 0; there are {levels} levels and the costs {costs:?}"
    )]
    Costs {
        /// Levels of the pilot.
        levels: usize,
        /// The costs given.
        costs: Vec<f64>,
    },
}

/// A pilot study: values of a benchmark repeated at nested levels, the lowest first (minutes in a run, runs in a restart,
/// restarts).
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    /// Repetitions at each level.
    pub repetitions: Vec<usize>,
    /// Mean of all values.
    pub mean: f64,
    /// S²: the variance, at each level, of the means of what is below it.
    pub of_means: Vec<f64>,
    /// T²: the variance each level adds of its own; 0 where it adds none that could be seen.
    pub variances: Vec<f64>,
}

impl Pilot {
    /// A pilot from its values, those of the lowest level next to each other: with repetitions [3, 2], two runs of three
    /// values each, one run after the other.
    pub fn of(values: &[f64], repetitions: &[usize]) -> Result<Self, HierarchyError> {
        if repetitions.is_empty() || repetitions.iter().any(|r| *r < 2) {
            return Err(HierarchyError::Repetitions(repetitions.to_vec()));
        }
        let expected = repetitions.iter().fold(1_usize, |product, r| product.saturating_mul(*r));
        if values.len() != expected {
            return Err(HierarchyError::Values { expected, found: values.len() });
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            return Err(HierarchyError::NotFinite(at));
        }
        let mut means = values.to_vec();
        let (mut of_means, mut variances) = (Vec::new(), Vec::new());
        let mut below = 0.0;
        for repetitions in repetitions {
            let groups: Vec<_> = means.chunks_exact(*repetitions).filter_map(describe).collect();
            let within: f64 = groups.iter().filter_map(|g| g.sd).map(|sd| sd * sd).sum();
            let squared = within / groups.len() as f64;
            // What the means vary by because of what is below them is not this level's doing.
            variances.push((squared - below).max(0.0));
            of_means.push(squared);
            below = squared / *repetitions as f64;
            means = groups.iter().map(|g| g.mean).collect();
        }
        Ok(Self { repetitions: repetitions.to_vec(), mean: means[0], of_means, variances })
    }
}

impl Pilot {
    /// The repetitions at each level but the highest that give the narrowest interval for the time: rᵢ = ⌈√(cᵢ₊₁/cᵢ ·
    /// Tᵢ²/Tᵢ₊₁²)⌉, cᵢ being what one more repetition costs at a level, without what is below it (a minute of measuring;
    /// a ramp-up; a restart). The highest level is repeated until the interval is narrow enough ([`Self::half_width`],
    /// [`Self::highest_for`]). Where the next level adds no variance that could be seen, the pilot's number stands.
    pub fn optimal(&self, costs: &[f64]) -> Result<Vec<usize>, HierarchyError> {
        let levels = self.variances.len();
        if costs.len() != levels || costs.iter().any(|c| !(*c > 0.0 && c.is_finite())) {
            return Err(HierarchyError::Costs { levels, costs: costs.to_vec() });
        }
        let optimal = |i: usize| match (self.variances[i], self.variances[i + 1]) {
            (0.0, _) => 1,
            // Nothing is gained by going up: what the pilot did is as good as any.
            (_, 0.0) => self.repetitions[i],
            (own, above) => (costs[i + 1] / costs[i] * own / above).sqrt().ceil().max(1.0) as usize,
        };
        Ok((0..levels - 1).map(optimal).collect())
    }

    /// The half-width of the interval of the mean to be expected from other `repetitions` than the pilot's: t·√(Sₙ²/rₙ),
    /// where Sₙ² follows from what each level adds. None unless there is a number for each level, of at least one and at
    /// the highest two.
    pub fn half_width(&self, repetitions: &[usize], confidence: f64) -> Option<f64> {
        let highest = *repetitions.last()?;
        if repetitions.len() != self.variances.len() || repetitions.contains(&0) || highest < 2 {
            return None;
        }
        // S² of the highest level: its own, and of each level below what is left after all repetitions in between.
        let mut squared = 0.0;
        for (level, variance) in self.variances.iter().enumerate() {
            let below = if level > 0 { repetitions[level - 1] as f64 } else { 1.0 };
            squared = variance + squared / below;
        }
        let t = quantile(f64::midpoint(1.0, confidence), highest as f64 - 1.0)?;
        (confidence > 0.0).then(|| t * (squared / highest as f64).sqrt())
    }

    /// How often to repeat the highest level, the others being repeated as `lower` says, so that the interval of the mean
    /// is expected to be within ± `half_width` of it (0.01 = 1 %). None when ten thousand do not suffice, or the mean is
    /// not above 0.
    pub fn highest_for(&self, lower: &[usize], half_width: f64, confidence: f64) -> Option<usize> {
        let wanted = half_width * self.mean;
        if self.mean.is_nan() || self.mean <= 0.0 {
            return None;
        }
        (2..=10_000).find(|n| {
            self.half_width(&[lower, &[*n]].concat(), confidence).is_some_and(|half| half <= wanted)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    #[test]
    fn the_levels_variances_are_those_worked_by_hand() {
        // Two runs of three: 1 2 3 (mean 2, s² 1) and 5 7 9 (mean 7, s² 4). S₁² = 2.5; of the means 12.5; T₂² = 12.5 −
        // 2.5/3.
        let found = Pilot::of(&[1.0, 2.0, 3.0, 5.0, 7.0, 9.0], &[3, 2]).unwrap();
        assert_eq!(found.mean, 4.5);
        assert!((found.of_means[0] - 2.5).abs() < 1e-12 && (found.of_means[1] - 12.5).abs() < 1e-12);
        assert!((found.variances[0] - 2.5).abs() < 1e-12);
        assert!((found.variances[1] - (12.5 - 2.5 / 3.0)).abs() < 1e-12);
        // √(10/1 · 2.5/11.667) = 1.46: two values a run when a run costs ten times a value.
        assert_eq!(found.optimal(&[1.0, 10.0]).unwrap(), [2]);
        // As the pilot was: t(0.975, 1)·√(12.5/2).
        let half = found.half_width(&[3, 2], 0.95).unwrap();
        assert!((half - 12.7062 * 2.5).abs() < 1e-3, "{half}");
    }

    #[test]
    fn known_variances_are_found_again() {
        // Minutes, runs, restarts with the deviations 3, 1 and 2 around 1000.
        let mut random = Resampler::new(17);
        let (minutes, runs, restarts) = (10, 10, 300);
        let mut values = Vec::new();
        for _ in 0..restarts {
            let restart = 1000.0 + 2.0 * random.normal();
            for _ in 0..runs {
                let run = restart + random.normal();
                values.extend((0..minutes).map(|_| run + 3.0 * random.normal()));
            }
        }
        let found = Pilot::of(&values, &[minutes, runs, restarts]).unwrap();
        for (found, known) in found.variances.iter().zip([9.0, 1.0, 4.0]) {
            assert!((found - known).abs() < 0.13 * known.max(2.0), "{found} {known}");
        }
        // √(5·9/1) = 6.7 and √(4·1/4) = 1: the restart decides, so more minutes and one run after each.
        let optimal = found.optimal(&[1.0, 5.0, 20.0]).unwrap();
        assert!((6..=8).contains(&optimal[0]) && (1..=2).contains(&optimal[1]), "{optimal:?}");
        let n = found.highest_for(&optimal, 0.001, 0.95).unwrap();
        let half = |n: usize| found.half_width(&[optimal[0], optimal[1], n], 0.95).unwrap();
        assert!(half(n) <= 1.0 && half(n - 1) > 1.0, "{n}");
    }

    #[test]
    fn a_level_that_adds_nothing_is_not_repeated_for_nothing() {
        // All runs have the same mean: going up gains nothing, and the pilot's repetitions stand.
        let same = Pilot::of(&[1.0, 3.0, 3.0, 1.0], &[2, 2]).unwrap();
        assert_eq!((same.variances[1], same.optimal(&[1.0, 1.0]).unwrap()), (0.0, vec![2]));
        let only_above = Pilot::of(&[1.0, 1.0, 3.0, 3.0], &[2, 2]).unwrap();
        assert_eq!(only_above.optimal(&[1.0, 1.0]).unwrap(), [1]);
    }

    #[test]
    fn what_is_no_pilot_is_told() {
        let error =
            |values: &[f64], repetitions: &[usize]| Pilot::of(values, repetitions).unwrap_err().to_string();
        assert!(error(&[], &[]).contains("at least two"));
        assert!(error(&[1.0, 2.0], &[2, 1]).contains("[2, 1]"));
        assert!(error(&[1.0, 2.0, 3.0], &[2, 2]).contains("should have 4 values"));
        assert!(error(&[1.0, f64::NAN, 3.0, 4.0], &[2, 2]).contains("value 1"));
        let pilot = Pilot::of(&[1.0, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
        assert!(pilot.optimal(&[1.0]).unwrap_err().to_string().contains("2 levels"));
        assert!(pilot.optimal(&[1.0, 0.0]).is_err());
        for repetitions in [&[][..], &[2], &[2, 1], &[0, 2]] {
            assert_eq!(pilot.half_width(repetitions, 0.95), None);
        }
    }
}
