//! The dependence of a history's entries between its changes.

use crate::dependence::lag1;

/// Up to one change in this many values counts as a change; more often it is dependence.
const VALUES_A_CUT: usize = 30;

/// Minimum number of values to report a temporary change, which takes two cuts.
const TWO_CUTS: usize = 40;

/// Values that a level has at least, or it follows the noise.
const FEWEST: usize = 4;

/// Least part of the values that is left to the estimate once its means are counted off.
const LEAST_LEFT: f64 = 0.7;

/// Beyond it a history is a walk, and has no level.
const MOST_PHI: f64 = 0.97;

/// φ of the autoregressive process of first order that lies around the levels of `values`, at least 0 and on the safe
/// side; 0 where nothing varies or a value is not finite.
///
/// The levels must not count as dependence, nor dependence as levels: the values are cut where least squares would cut them,
/// once in 30 values (that many cuts whether there are changes or not), and the lag-1 autocorrelation r of what is left is
/// freed of its bias. With k cuts among n values its mean is φ − ((k + 1)(1 + 4φ) + 2k)/n: Kendall's (1954) and Marriott
/// and Pope's bias for each of the k + 1 means, and two values more for each cut that chose its place (simulated; within
/// 0.02 from φ = 0 to 0.8 with one to four cuts). On top comes half of φ/√n, since a φ that is too small by chance finds
/// changes in noise, and one that is too large only misses the small ones.
pub fn noise_phi(values: &[f64]) -> f64 {
    let n = values.len();
    let cuts = (n / VALUES_A_CUT).max(if n < TWO_CUTS { 1 } else { 2 });
    let Some(r) = lag1(&around_levels(values, cuts)) else { return 0.0 };
    let (n, k) = (n as f64, cuts as f64);
    let phi = (n * r + 3.0 * k + 1.0) / (n - 4.0 * (k + 1.0)).max(LEAST_LEFT * n);
    (phi.max(0.0) * (1.0 + 0.5 / n.sqrt())).min(MOST_PHI)
}

/// The values less the means of their levels, after so many cuts, each where the squares fall most.
fn around_levels(values: &[f64], cuts: usize) -> Vec<f64> {
    let mut levels = vec![(best_cut(values), 0..values.len())];
    for _ in 0..cuts {
        let most = (0..levels.len()).max_by(|&i, &j| levels[i].0.0.total_cmp(&levels[j].0.0));
        let Some((i, cut)) = most.and_then(|i| Some((i, levels[i].0.1?))) else { break };
        let (start, end) = (levels[i].1.start, levels[i].1.end);
        levels[i] = (best_cut(&values[start..start + cut]), start..start + cut);
        levels.push((best_cut(&values[start + cut..end]), start + cut..end));
    }
    let mut left = values.to_vec();
    for (_, range) in levels {
        let mean = values[range.clone()].iter().sum::<f64>() / range.len() as f64;
        left[range].iter_mut().for_each(|value| *value -= mean);
    }
    left
}

/// By how much the sum of squares falls with a cut at the best place, and that place; none in too few values.
fn best_cut(values: &[f64]) -> (f64, Option<usize>) {
    let (n, total) = (values.len(), values.iter().sum::<f64>());
    let (mut before, mut best) = (0.0, (0.0, None));
    for (i, value) in values.iter().enumerate() {
        if i >= FEWEST && n - i >= FEWEST {
            let apart = before / i as f64 - (total - before) / (n - i) as f64;
            let falls = apart.powi(2) * (i * (n - i)) as f64 / n as f64;
            if falls > best.0 {
                best = (falls, Some(i));
            }
        }
        before += value;
    }
    best
}
