//! The interval of a percentile within one run, whose values resemble their neighbours.

use crate::student::quantile;

/// Batches at most: fewer and longer ones hold what lasts for seconds, and still show how much they scatter.
pub const MOST_BATCHES: usize = 15;

/// Batches at least.
pub const FEWEST_BATCHES: usize = 5;

/// Parts of the values, as multiples of the part beyond the percentile, by which the scatter is judged.
const TAILS: [f64; 3] = [1.0, 5.0, 10.0];

/// The interval of a percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end: one of the values.
    pub low: f64,
    /// Upper end: one of the values; none where it would lie beyond the longest, or among what had no answer.
    pub high: Option<f64>,
    /// What the values beyond the percentile are worth in independent ones.
    pub effective: f64,
    /// Batches that it rests on.
    pub batches: usize,
}

/// The interval at `confidence` of the `percent`-th percentile of values that follow each other in `batches`, each its
/// values with how often they came, ascending; `unanswered` more are longer than all of them.
///
/// Slow transactions come in clusters, so that a hundred of them may be worth three. How many of a batch's values lie beyond
/// the percentile scatters from batch to batch by more than it would for independent ones, by the design effect (Kish, Survey
/// Sampling, 1965; batch means as in Law, Simulation Modeling and Analysis, section 9.5); and the interval are the values
/// at the ranks that a share of p ± t·√(effect·p(1 − p)/n) has (Woodruff, JASA 47, 1952). A run without its worst moment
/// shows too small an effect, just when its percentile is too low: therefore the largest of those at one, five, and ten
/// times the part beyond the percentile is taken. Coverage on M/M/4 from half to 94 % of its capacity: `cargo xtask bench
/// lab mm4`.
///
/// None with fewer than five batches, fewer than ten values beyond the percentile, or one that lies among the unanswered.
pub fn interval(
    batches: &[Vec<(f64, u64)>],
    unanswered: f64,
    percent: f64,
    confidence: f64,
) -> Option<Interval> {
    let p = percent / 100.0;
    let m = batches.len();
    let sizes: Vec<f64> = batches.iter().map(|batch| count(batch)).collect();
    let answered: f64 = sizes.iter().sum();
    let n = answered + unanswered;
    if m < FEWEST_BATCHES || !(p > 0.0 && p < 1.0) || n * (1.0 - p) + 1e-9 < 10.0 {
        return None;
    }
    let mut all: Vec<(f64, u64)> = batches.concat();
    all.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
    value_at(&all, n * p)?;
    let effects = TAILS.iter().filter(|tail| *tail * (1.0 - p) <= 0.5).filter_map(|tail| {
        let limit = value_at(&all, n * (1.0 - tail * (1.0 - p)))?;
        let beyond: Vec<f64> = batches
            .iter()
            .map(|batch| batch[batch.partition_point(|(value, _)| *value <= limit)..].iter())
            .map(|longer| longer.map(|(_, count)| *count as f64).sum())
            .collect();
        let share = beyond.iter().sum::<f64>() / answered;
        let squares: f64 = beyond.iter().zip(&sizes).map(|(x, n)| (x - share * n).powi(2)).sum();
        let effect = squares * m as f64 / (m - 1) as f64 / (answered * share * (1.0 - share));
        effect.is_finite().then_some(effect)
    });
    let effect = effects.fold(1.0, f64::max);
    let half =
        quantile(f64::midpoint(1.0, confidence), (m - 1) as f64)? * (effect * p * (1.0 - p) / n).sqrt();
    Some(Interval {
        low: value_at(&all, (n * (p - half)).floor())?,
        high: value_at(&all, n * (p + half)),
        effective: n * (1.0 - p) / effect,
        batches: m,
    })
}

fn count(batch: &[(f64, u64)]) -> f64 {
    batch.iter().map(|(_, count)| *count as f64).sum()
}

/// The value of a rank, counted from 1; none beyond the last.
fn value_at(all: &[(f64, u64)], rank: f64) -> Option<f64> {
    // Forgives rounding.
    let rank = (rank - 1e-6).ceil().max(1.0);
    let mut counted = 0.0;
    all.iter()
        .find(|(_, count)| {
            counted += *count as f64;
            counted >= rank
        })
        .map(|(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    /// So many batches of 400 values each, all alike but for a separate factor.
    fn batches(random: &mut Resampler, m: usize, lasting: f64) -> Vec<Vec<(f64, u64)>> {
        let mut batch = || {
            let level = random.normal() * lasting;
            let mut values: Vec<(f64, u64)> =
                (0..400).map(|_| ((random.normal() + level).exp(), 1)).collect();
            values.sort_unstable_by(|x, y| x.0.total_cmp(&y.0));
            values
        };
        (0..m).map(|_| batch()).collect()
    }

    #[test]
    fn independent_values_are_worth_what_they_are_and_clustered_ones_less() {
        let mut random = Resampler::new(12);
        for (lasting, least, most) in [(0.0, 0.94, 1.0), (0.7, 0.92, 1.0)] {
            // The 95th percentile of a normal of this standard deviation.
            let known = (1.6449 * f64::hypot(1.0, lasting)).exp();
            let (mut covered, mut worth) = (0, 0.0);
            for _ in 0..400 {
                let found = interval(&batches(&mut random, 12, lasting), 0.0, 95.0, 0.95).unwrap();
                covered += u32::from(found.low <= known && found.high.is_none_or(|high| known <= high));
                worth += found.effective / 400.0;
            }
            let covered = f64::from(covered) / 400.0;
            assert!((least..=most).contains(&covered), "lasting {lasting}: {covered}");
            // 240 of 4,800 lie beyond it.
            assert!(if lasting == 0.0 { worth > 120.0 } else { worth < 40.0 }, "lasting {lasting}: {worth}");
        }
    }

    #[test]
    fn what_is_too_few_or_beyond_the_longest_has_no_end() {
        let mut random = Resampler::new(3);
        let all = batches(&mut random, 10, 0.0);
        assert_eq!(interval(&all[..4], 0.0, 95.0, 0.95), None, "four batches");
        assert_eq!(interval(&all, 0.0, 99.9, 0.95), None, "four values beyond it");
        assert_eq!(interval(&all, 400.0, 95.0, 0.95), None, "among the unanswered");
        let near = interval(&all, 195.0, 95.0, 0.95).unwrap();
        assert!(near.high.is_none() && near.low > 1.0, "{near:?}");
        assert!(interval(&all, 0.0, 95.0, 0.95).unwrap().high.is_some());
        let constant = vec![vec![(3.0, 500)]; 8];
        let found = interval(&constant, 0.0, 50.0, 0.95).unwrap();
        assert_eq!((found.low, found.high), (3.0, Some(3.0)));
    }
}
