//! Interim analyses while runs still arrive, without more false alarms from repeated testing.
//!
//! Testing at 5 % after every run and stopping at the first "changed" is wrong in a fifth of the cases by the tenth
//! look (Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969). A group sequential test
//! spends the 5 % over the looks instead: almost nothing early, almost all of it at the end.

use crate::normal;

/// Intervals of Simpson's rule over the continuation region.
const INTERVALS: usize = 400;

/// The maximum number of looks of a boundary.
const MOST_LOOKS: usize = 100;

/// Standard deviations beyond which the density is negligible.
const FAR: f64 = 9.0;

/// The p at which each look may stop, so that all looks together raise at most the planned rate of false alarms: two-sided
/// and symmetric, each side spending α*(t) = 2 − 2Φ(z_{α/4}/√t) of its α/2 by the part t of the runs (Lan and DeMets,
/// Biometrika 70, 1983; the spending function that resembles O'Brien and Fleming's boundary, Biometrics 35, 1979). The
/// bounds follow by recursive integration (Armitage, McPherson and Rowe 1969; Jennison and Turnbull, Group Sequential
/// Methods, 2000, chapter 19).
///
/// The theory is that of the normal distribution ([`Boundary::normal`]), while the p of a t test is compared with it.
/// That is exact for one look; with several looks at few runs, the t of one look predicts the next one less than the
/// theory assumes, and 5 % become up to 5.6 % (simulated with the paired t test: 5.6 % for looks at each number of
/// pairs from 4 to 10, 5.4 % at 6, 8, 10 and 12; `examples/rates.rs`). [`Boundary::new`] therefore spends slightly
/// less, α/(1 + 3/2n) for n runs at the end: thirteen plans of 2 to 25 looks, simulated 100,000 times each, have false
/// alarms in 4.2 to 5.1 % for pairs, and in 4.4 to 5.0 % for Welch's test (a part of them is simulated in the tests).
/// Looks before the fourth run are not advised; [`crate::compare`] judges none of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary {
    looks: Vec<u32>,
    bounds: Vec<f64>,
}

impl Boundary {
    /// The boundary for t tests at `looks` (the number of pairs, or runs per side, at each look, ascending; the last is
    /// the end) with an overall probability `alpha` of a false alarm. `None` when there are no looks or more than a
    /// hundred, they do not ascend from 1, or `alpha` is not within (0, 1).
    ///
    /// ```
    /// let boundary = kelvin_stats::sequential::Boundary::new(&[6, 8, 10, 12], 0.05).unwrap();
    /// assert!(boundary.nominal(0) < 0.004 && boundary.nominal(3) > 0.035);
    /// ```
    pub fn new(looks: &[u32], alpha: f64) -> Option<Self> {
        let last = f64::from(*looks.last()?);
        Self::normal(looks, if looks.len() > 1 { alpha / (1.0 + 1.5 / last) } else { alpha })
    }

    /// The same for a normal statistic with a known variance, as in the literature.
    pub fn normal(looks: &[u32], alpha: f64) -> Option<Self> {
        let last = f64::from(*looks.last()?);
        let ascending = looks[0] > 0 && looks.windows(2).all(|w| w[0] < w[1]);
        if !ascending || looks.len() > MOST_LOOKS || !(alpha > 0.0 && alpha < 1.0) {
            return None;
        }
        let parts: Vec<f64> = looks.iter().map(|n| f64::from(*n) / last).collect();
        let quantile = normal::upper_quantile(alpha / 4.0);
        let spent = |part: f64| 2.0 * normal::above(quantile / part.sqrt());
        let mut bounds: Vec<f64> = Vec::with_capacity(parts.len());
        // The value is that of a Brownian motion at the part of the runs there are: z·√t.
        let mut going_on: Option<GoingOn> = None;
        let mut before = 0.0;
        for &part in &parts {
            let spend = spent(part) - spent_before(before, spent);
            let (bound, next) = match &going_on {
                None => {
                    // Everything is spent: P(Z > z) is spent, and the region is the inside.
                    let bound = bisect(normal::above, spend);
                    (bound, GoingOn::first(part, bound * part.sqrt()))
                }
                Some(region) => {
                    let step = (part - before).sqrt();
                    let bound = bisect(|z| region.crossing(z * part.sqrt(), step), spend);
                    (bound, region.next(part, bound * part.sqrt(), step))
                }
            };
            bounds.push(bound);
            going_on = Some(next);
            before = part;
        }
        Some(Self { looks: looks.to_vec(), bounds })
    }

    /// The two-sided p below which look number `look`, counted from 0, may stop with the verdict "changed"; 0 for a
    /// look that was not planned: it may never stop. Early looks of a long plan have a p so small (10⁻²⁰) that 1 − p is
    /// 1 and no interval has that confidence: they may not stop either.
    pub fn nominal(&self, look: usize) -> f64 {
        self.bounds.get(look).map_or(0.0, |z| 2.0 * normal::above(*z))
    }

    /// The same as a bound of |z|; infinite for a look that was not planned.
    pub fn z(&self, look: usize) -> f64 {
        self.bounds.get(look).copied().unwrap_or(f64::INFINITY)
    }

    /// The runs at each look, as planned.
    pub fn looks(&self) -> &[u32] {
        &self.looks
    }
}

fn spent_before(part: f64, spent: impl Fn(f64) -> f64) -> f64 {
    if part > 0.0 { spent(part) } else { 0.0 }
}

/// The z at which a decreasing probability is `wanted`; the largest one tried when it is too small to be distinguished
/// from 0.
fn bisect(probability: impl Fn(f64) -> f64, wanted: f64) -> f64 {
    let (mut low, mut high) = (-5.0, 38.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if probability(middle) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The region in which no look has stopped, and the density there: Simpson's nodes, including their weights.
struct GoingOn {
    nodes: Vec<f64>,
    weighted: Vec<f64>,
}

impl GoingOn {
    fn first(part: f64, bound: f64) -> Self {
        let deviation = part.sqrt();
        Self::over(bound.min(FAR * deviation), |s| normal::density(s / deviation) / deviation)
    }

    fn next(&self, part: f64, bound: f64, step: f64) -> Self {
        Self::over(bound.min(FAR * part.sqrt()), |s| {
            let parts = self.nodes.iter().zip(&self.weighted);
            parts.map(|(u, weighted)| weighted * normal::density((s - u) / step) / step).sum()
        })
    }

    fn over(bound: f64, density: impl Fn(f64) -> f64) -> Self {
        let width = 2.0 * bound / INTERVALS as f64;
        let nodes: Vec<f64> = (0..=INTERVALS).map(|i| -bound + i as f64 * width).collect();
        let weight = |i: usize| match i {
            0 | INTERVALS => 1.0,
            i if i % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let weighted = nodes.iter().enumerate().map(|(i, s)| weight(i) * width / 3.0 * density(*s)).collect();
        Self { nodes, weighted }
    }

    /// The probability of being above `bound` after one more step.
    fn crossing(&self, bound: f64, step: f64) -> f64 {
        self.nodes
            .iter()
            .zip(&self.weighted)
            .map(|(u, weighted)| weighted * normal::above((bound - u) / step))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::Resampler;
    use crate::student::describe;
    use crate::student::two_sided;

    #[test]
    fn five_equal_looks_have_the_published_bounds() {
        // Two-sided 5 %, five equal looks, Lan and DeMets' O'Brien-Fleming type: 4.877, 3.357, 2.680, 2.290, 2.031
        // (Reboussin et al., Controlled Clinical Trials 21, 2000; R package ldbounds).
        let found = Boundary::normal(&[2, 4, 6, 8, 10], 0.05).unwrap();
        for (look, z) in [4.877, 3.357, 2.680, 2.290, 2.031].into_iter().enumerate() {
            assert!((found.z(look) - z).abs() < 6e-4, "look {look}: {}", found.z(look));
        }
        // Two looks: 2.963 and 1.969 (Jennison and Turnbull 2000; R package gsDesign).
        let found = Boundary::normal(&[5, 10], 0.05).unwrap();
        assert!((found.z(0) - 2.963).abs() < 6e-4 && (found.z(1) - 1.969).abs() < 6e-4, "{found:?}");
    }

    #[test]
    fn one_look_is_the_plain_test() {
        let found = Boundary::new(&[6], 0.05).unwrap();
        assert!((found.nominal(0) - 0.05).abs() < 1e-9);
        assert_eq!((found.nominal(1), found.z(1)), (0.0, f64::INFINITY));
    }

    #[test]
    fn each_look_may_stop_more_easily_and_none_at_the_full_level() {
        let looks: Vec<u32> = (4..=40).collect();
        let found = Boundary::new(&looks, 0.05).unwrap();
        let nominal: Vec<f64> = (0..looks.len()).map(|i| found.nominal(i)).collect();
        assert!(nominal.windows(2).all(|w| w[0] < w[1]), "{nominal:?}");
        assert!(nominal[0] < 1e-10 && nominal[36] < 0.05 && nominal[36] > 0.03, "{nominal:?}");
        assert_eq!(found.looks(), looks);
    }

    #[test]
    fn what_is_no_plan_has_no_boundary() {
        for looks in [&[][..], &[0, 5], &[5, 5], &[6, 4]] {
            assert_eq!(Boundary::new(looks, 0.05), None);
        }
        assert_eq!(Boundary::new(&(1..=101).collect::<Vec<_>>(), 0.05), None);
        assert_eq!((Boundary::new(&[5], 0.0), Boundary::new(&[5], 1.0)), (None, None));
    }

    /// Of `studies` of pairs without a difference, the number that stop at one of the looks.
    fn alarms(looks: &[u32], nominal: impl Fn(usize) -> f64, studies: u32, seed: u64) -> u32 {
        let mut random = Resampler::new(seed);
        let stops = |differences: &[f64]| {
            looks.iter().enumerate().any(|(look, n)| {
                let seen = describe(&differences[..*n as usize]).unwrap();
                let t = seen.mean / seen.sd.unwrap() * f64::from(*n).sqrt();
                two_sided(t, f64::from(*n) - 1.0).unwrap() < nominal(look)
            })
        };
        (0..studies)
            .filter(|_| {
                let differences: Vec<f64> = (0..looks[looks.len() - 1]).map(|_| random.normal()).collect();
                stops(&differences)
            })
            .count() as u32
    }

    #[test]
    fn looking_often_raises_no_more_false_alarms_than_asked() {
        // 5 % of 10,000 are 500 ± 22, with the t test after as few as four pairs.
        for looks in [&[4, 5, 6, 7, 8, 9, 10][..], &[6, 8, 10, 12], &[4, 8, 12, 16, 20]] {
            let boundary = Boundary::new(looks, 0.05).unwrap();
            let found = alarms(looks, |look| boundary.nominal(look), 10_000, 5);
            assert!((420..=550).contains(&found), "{looks:?}: {found} of 10,000");
            // At 5 % each time there would be more than twice as many; otherwise the test above would be meaningless.
            assert!(alarms(looks, |_| 0.05, 2000, 5) > 200);
        }
    }
}
