//! What a plan can find: the effect that it resolves, and the blocks that the smallest effect that matters takes.

use kelvin_stats::power;

use super::{Plan, State, Study};

/// Probability with which an effect of the size in question is to be found.
pub(super) const POWER: f64 = 0.8;
/// Of the test's interval.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Effects beyond which nobody asks what can be resolved.
const LARGEST: f64 = 10.0;

/// What the hypothesis's comparison, from one level to the other, can find.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// The variation from run to run that it reckons with.
    pub cv: f64,
    /// Runs that stand behind each of the two levels.
    pub runs_a_level: u32,
    /// The smallest effect that is found with [`Power::probability`]; none when there are too few runs for any test.
    pub resolves: Option<f64>,
    /// Blocks that the smallest effect that matters takes; none when no number does.
    pub blocks_needed: Option<u32>,
}

impl Power {
    /// Reckons with this variation from run to run (standard deviation ÷ mean).
    ///
    /// Two cells are compared within their blocks, as pairs; the levels of a factor among several over all cells, as
    /// independent runs: on the safe side, since what blocks have in common is counted as scatter.
    pub fn of(study: &Study, plan: &Plan, cv: f64) -> Self {
        let a_block = runs_a_block(study, plan);
        let runs_a_level = a_block * study.design.blocks;
        let paired = plan.cells.len() == 2;
        let sd_of_log_ratio = (2.0 * cv.powi(2).ln_1p()).sqrt();
        let found = |effect: f64| {
            if paired {
                power::found_in_pairs(study.design.blocks, sd_of_log_ratio, effect, CONFIDENCE)
            } else {
                power::found_between(runs_a_level, cv, effect, CONFIDENCE)
            }
        };
        let matters = study.goal.smallest_effect.ratio();
        let blocks_needed = if paired {
            power::pairs(sd_of_log_ratio, matters, POWER, CONFIDENCE)
        } else {
            power::runs_a_side(cv, matters, POWER, CONFIDENCE).map(|runs| runs.div_ceil(a_block.max(1)))
        };
        Self { cv, runs_a_level, resolves: smallest(found), blocks_needed }
    }

    /// The probability with which an effect is to be found.
    pub const fn probability() -> f64 {
        POWER
    }
}

/// Runs of a block at each of the hypothesis's two levels; of the level that has fewer.
fn runs_a_block(study: &Study, plan: &Plan) -> u32 {
    let at = |level: &str| {
        let hypothesis = &study.hypothesis;
        let is_there = |setting: &crate::conditions::Setting| {
            setting.factor == hypothesis.factor && setting.level == level
        };
        plan.cells.iter().filter(|cell| cell.0.iter().any(is_there)).count() as u32
    };
    at(&study.hypothesis.from).min(at(&study.hypothesis.to))
}

/// The smallest effect that is found often enough, to a thousandth of itself.
fn smallest(found: impl Fn(f64) -> Option<f64>) -> Option<f64> {
    let enough = |effect: f64| found(effect).is_some_and(|probability| probability >= POWER);
    let (mut low, mut high) = (1e-6, LARGEST);
    if !enough(high) {
        return None;
    }
    while high / low > 1.001 {
        let middle = (low * high).sqrt();
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// The variation from run to run within cells, pooled over them, of the goal's metric in the runs that count: a
/// coefficient of variation, and the degrees of freedom behind it. None before a cell was run twice.
pub fn pooled_variation(study: &Study, plan: &Plan, state: &State) -> Option<(f64, usize)> {
    let mut values = vec![Vec::new(); plan.cells.len()];
    for one in state.counted(plan) {
        if let Some(value) = one.results.value(&study.goal.metric).filter(|&value| value > 0.0) {
            values[one.cell].push(value.ln());
        }
    }
    let (mut squares, mut degrees) = (0.0, 0);
    for cell in values.iter().filter(|cell| cell.len() > 1) {
        let mean = cell.iter().sum::<f64>() / cell.len() as f64;
        squares += cell.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        degrees += cell.len() - 1;
    }
    // Of a log-normal, CV² = exp(σ²) − 1.
    (degrees > 0).then(|| ((squares / degrees as f64).exp_m1().sqrt(), degrees))
}
