//! Where the level of a history changed.
//!
//! E-divisive (Matteson and James, Journal of the American Statistical Association 109, 2014): the best place to cut a
//! series is where the energy distance between what lies before and behind it, Q = nm/(n + m)·(2·E|X − Y| − E|X − X′| −
//! E|Y − Y′|), is largest; cut there, and again on either side. Their permutations are replaced by the t test, so that
//! the same history gives the same answer, and long histories are cut within overlapping windows, with weak points
//! removed at the end, from the weakest on (Fleming et al., Hunter: Using Change Point Detection to Hunt for Performance
//! Regressions, ICPE 2023; in use as Apache Otava).

use crate::student::describe;
use crate::trend::two_sided;

/// Values on either side of a cut; fewer have no scatter of their own.
const FEWEST: usize = 2;

/// How a point is found while it is not yet decided whether it stays.
const WEAK: f64 = 10.0;

/// What counts as a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Values looked at in one piece; windows overlap by half. At least 10.
    pub window: usize,
    /// A point stays when the t test between its sides says p below this.
    pub p: f64,
    /// A point stays when the level changes by more than this part of what it was (0.02 = 2 %).
    pub magnitude: f64,
}

impl Default for Options {
    /// Windows of 50, p < 0.001, any magnitude: as Hunter. More than one in a thousand histories of noise alone have a
    /// change point then, since the place tested is the most suspicious of all: measured are 2 % of those of 50 values,
    /// 3 % of 100 and 9 % of 300; with p < 0.0001 they are 0.3 %, and a step of one standard deviation is found in a third
    /// instead of half of the cases (40 values before it and 30 behind). `examples/rates.rs` simulates the former.
    fn default() -> Self {
        Self { window: 50, p: 0.001, magnitude: 0.0 }
    }
}

/// A place where the level changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub index: usize,
    /// Mean of the values from the change point before to this one.
    pub before: f64,
    /// Mean of the values from this one to the next change point.
    pub after: f64,
    /// The t test's p between the two (Student's, pooled scatter). Of a place that was searched for: too small by what
    /// the search picks, so compare it with [`Options::p`] and nothing else.
    pub p: f64,
}

/// The change points of `values`, in order of time. None of them when a value is not finite.
pub fn find(values: &[f64], options: &Options) -> Vec<ChangePoint> {
    if values.iter().any(|v| !v.is_finite()) {
        return Vec::new();
    }
    let window = options.window.max(10);
    let mut cuts: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + window).min(values.len());
        let before = cuts.len();
        divide(&values[start..end], start, WEAK * options.p, &mut cuts);
        cuts[before..].sort_unstable();
        // The last window reaches the end. From a cut on a new level begins, and nothing before it says more.
        if end == values.len() {
            break;
        }
        start = cuts[before..].last().copied().unwrap_or(0).max(start + window / 2);
    }
    cuts.sort_unstable();
    cuts.dedup();
    merge(values, cuts, options)
}

/// Cuts at the most different place, when it is different enough, and then each part again.
fn divide(values: &[f64], offset: usize, p: f64, cuts: &mut Vec<usize>) {
    let Some((cut, _)) = most_different(values) else { return };
    // Tested against all that comes after, not only up to κ: searching for both ends would find three times as much in
    // noise, and no more of what is there.
    if difference(&values[..cut], &values[cut..]) >= p {
        return;
    }
    cuts.push(offset + cut);
    divide(&values[..cut], offset, p, cuts);
    divide(&values[cut..], offset + cut, p, cuts);
}

/// The cut τ and the end κ of what follows it for which Q is largest; none when the values are too few or all equal.
fn most_different(values: &[f64]) -> Option<(usize, usize)> {
    let n = values.len();
    // Each value's distances to those before it, and to the first part, summed: Q of all (τ, κ) takes n² steps.
    let distances = |j: usize, to: &[f64]| to.iter().map(|v| (v - values[j]).abs()).sum::<f64>();
    let earlier: Vec<f64> = (0..n).map(|j| distances(j, &values[..j])).collect();
    let mut to_first: Vec<f64> = (0..n).map(|j| distances(j, &values[..FEWEST.min(n)])).collect();
    let mut within: f64 = earlier.iter().take(FEWEST).sum();
    let pairs = |n: usize| (n * (n - 1)) as f64 / 2.0;
    let mut best: Option<(f64, usize, usize)> = None;
    for cut in FEWEST..(n + 1).saturating_sub(FEWEST) {
        let (mut between, mut behind) = (0.0, 0.0);
        for end in cut + 1..=n {
            between += to_first[end - 1];
            behind += earlier[end - 1] - to_first[end - 1];
            let after = end - cut;
            if after < FEWEST {
                continue;
            }
            let product = (cut * after) as f64;
            let energy = 2.0 * between / product - within / pairs(cut) - behind / pairs(after);
            let q = product / end as f64 * energy;
            if best.is_none_or(|(most, ..)| q > most) {
                best = Some((q, cut, end));
            }
        }
        within += earlier[cut];
        for (sum, value) in to_first.iter_mut().zip(values) {
            *sum += (value - values[cut]).abs();
        }
    }
    best.filter(|(q, ..)| *q > 0.0).map(|(_, cut, end)| (cut, end))
}

/// Student's two-sided p between two levels.
fn difference(before: &[f64], after: &[f64]) -> f64 {
    let (Some(a), Some(b)) = (describe(before), describe(after)) else { return 1.0 };
    let df = (a.n + b.n) as f64 - 2.0;
    let squares = |s: crate::student::Sample| s.sd.map_or(0.0, |sd| sd.powi(2) * (s.n - 1) as f64);
    let error = ((squares(a) + squares(b)) / df * (1.0 / a.n as f64 + 1.0 / b.n as f64)).sqrt();
    if error > 0.0 {
        two_sided((b.mean - a.mean) / error, df).unwrap_or(1.0)
    } else {
        f64::from(a.mean == b.mean)
    }
}

/// Removes the weakest point and judges the rest anew, until all that are left are strong and large enough.
fn merge(values: &[f64], mut cuts: Vec<usize>, options: &Options) -> Vec<ChangePoint> {
    loop {
        let points: Vec<ChangePoint> = (0..cuts.len())
            .map(|i| {
                let start = if i == 0 { 0 } else { cuts[i - 1] };
                let end = cuts.get(i + 1).copied().unwrap_or(values.len());
                let (before, after) = (&values[start..cuts[i]], &values[cuts[i]..end]);
                let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
                let p = difference(before, after);
                ChangePoint { index: cuts[i], before: mean(before), after: mean(after), p }
            })
            .collect();
        let size = |point: &ChangePoint| (point.after - point.before).abs() / point.before.abs();
        let weakest = (0..points.len())
            .filter(|&i| points[i].p >= options.p)
            .max_by(|&i, &j| points[i].p.total_cmp(&points[j].p));
        let smallest = || {
            (0..points.len())
                .filter(|&i| size(&points[i]) <= options.magnitude)
                .min_by(|&i, &j| size(&points[i]).total_cmp(&size(&points[j])))
        };
        match weakest.or_else(smallest) {
            Some(i) => cuts.remove(i),
            None => return points,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;

    /// Levels of 100 times what is given, each for a number of values, with noise of 1 %.
    fn history(levels: &[(f64, usize)], seed: u64) -> Vec<f64> {
        let mut random = Resampler::new(seed);
        let level = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
        level.map(|level| 100.0 * level * (0.01 * random.normal()).exp()).collect()
    }

    fn indices(values: &[f64]) -> Vec<usize> {
        find(values, &Options::default()).iter().map(|point| point.index).collect()
    }

    #[test]
    fn the_energy_distance_is_the_one_worked_by_hand() {
        // 0, 0, 1, 1: cut at 2, between 1, within 0: Q = 2·2/4·2 = 2.
        assert_eq!(most_different(&[0.0, 0.0, 1.0, 1.0]), Some((2, 4)));
        // A bump: what follows the cut ends where the bump does.
        let bump: Vec<f64> = [0.0; 8].into_iter().chain([5.0; 6]).chain([0.0; 8]).collect();
        assert_eq!(most_different(&bump), Some((8, 14)));
        assert_eq!((most_different(&[1.0, 2.0, 3.0]), most_different(&[])), (None, None));
        assert_eq!(most_different(&[4.0; 10]), None);
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let (mut exact, mut near) = (0, 0);
        for seed in 0..50 {
            let found = indices(&history(&[(1.0, 40), (0.97, 30)], seed));
            exact += u32::from(found.contains(&40));
            near += u32::from(found.iter().any(|i| (38..=42).contains(i)));
        }
        assert!(exact >= 35 && near >= 49, "exact {exact}, near {near} of 50");
    }

    #[test]
    fn a_passing_slowdown_is_two_points() {
        let both = (0..50)
            .filter(|seed| {
                let found = indices(&history(&[(1.0, 40), (0.95, 8), (1.0, 40)], *seed));
                found.iter().any(|i| (39..=41).contains(i)) && found.iter().any(|i| (47..=49).contains(i))
            })
            .count();
        assert!(both >= 47, "{both} of 50");
    }

    #[test]
    fn a_long_history_of_many_levels_is_cut_into_them() {
        let levels = [(1.0, 60), (0.9, 70), (0.95, 55), (1.1, 80), (1.0, 35)];
        let values = history(&levels, 6);
        let found = find(&values, &Options::default());
        let near: Vec<bool> = [60_usize, 130, 185, 265]
            .iter()
            .map(|at| found.iter().any(|point| point.index.abs_diff(*at) <= 1))
            .collect();
        assert_eq!(near, [true; 4], "{found:?}");
        assert!((found[0].before - 100.0).abs() < 1.0 && (found[0].after - 90.0).abs() < 1.0);
        assert!(found.iter().all(|point| point.p < 0.001));
    }

    #[test]
    fn noise_alone_seldom_has_a_change_point() {
        let alarms =
            (0..300).filter(|seed| !indices(&history(&[(1.0, 100)], 1000 + seed)).is_empty()).count();
        assert!((2..=20).contains(&alarms), "{alarms} of 300");
    }

    #[test]
    fn a_change_too_small_to_matter_is_none() {
        let mut alone = 0;
        for seed in 0..20 {
            let values = history(&[(1.0, 40), (0.97, 40)], seed);
            let points = |magnitude: f64| find(&values, &Options { magnitude, ..Options::default() }).len();
            assert!(points(0.0) > 0);
            alone += u32::from(points(0.02) == 1);
            assert_eq!(points(0.06), 0);
        }
        assert!(alone >= 18, "{alone} of 20");
    }

    #[test]
    fn what_never_varies_and_what_is_no_number_is_no_surprise() {
        assert!(indices(&[100.0; 80]).is_empty());
        let step: Vec<f64> = [100.0; 30].into_iter().chain([103.0; 10]).collect();
        assert_eq!(indices(&step), [30]);
        assert!(indices(&[]).is_empty() && indices(&[1.0, 2.0]).is_empty());
        assert!(indices(&[1.0, f64::NAN, 5.0, 5.0, 5.0]).is_empty());
    }
}
