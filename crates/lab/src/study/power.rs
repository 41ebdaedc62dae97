//! The power of a plan by the rules of the verdict ([`kelvin_analysis`]): the effect that it would call supported,
//! and the number of blocks that distinguish the smallest effect that matters from zero.
//!
//! These two numbers differ in every plan. The estimate has to reach the claimed effect, and for a true effect of
//! exactly that size it does so in half of the studies, however many runs there are.

use kelvin_stats::power::{self, FEWEST, POWER};
use kelvin_stats::student;

use super::{Direction, State, Study, StudyPlan};

/// Confidence of the verdict's interval.
const CONFIDENCE: f64 = 0.95;
/// Minimum degrees of freedom of the error for a conclusion.
const FREEDOM: u32 = 3;

/// The power of the hypothesis's comparison of two levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// The assumed variation from run to run.
    pub cv: f64,
    /// Runs at each of the two levels.
    pub runs_a_level: u32,
    /// The smallest effect that is called supported with [`Power::probability`]. For a hypothesis of "the same", the
    /// smallest difference that is ruled out with that probability if there is none. `None` when there are too few
    /// runs for any verdict.
    pub resolves: Option<f64>,
    /// The number of blocks that distinguish the smallest effect that matters from zero with that probability, or
    /// rule it out for "the same". `None` when no number does.
    pub blocks_needed: Option<u32>,
}

impl Power {
    /// Computes with this variation from run to run (standard deviation ÷ mean). All of it counts as scatter, including
    /// the variation shared by the runs of a block, which the analysis removes: a conservative estimate.
    pub fn of(study: &Study, plan: &StudyPlan, cv: f64) -> Self {
        let comparison = Comparison {
            variance: cv.powi(2).ln_1p(),
            a_block: runs_a_block(study, plan),
            cells: plan.cells.len() as u32,
        };
        let blocks = study.design.blocks;
        let matters = study.goal.smallest_effect.ratio();
        let claim = study.hypothesis.predicts.iter().find(|one| one.metric == study.goal.metric);
        let least = claim.and_then(|claim| claim.by).map_or(matters, super::Share::ratio);
        // Both ends of the interval must lie within the margin, so each may fail half as often.
        let same = claim.is_some_and(|claim| claim.direction == Direction::Same);
        let wanted = if same { f64::midpoint(1.0, POWER) } else { POWER };
        let floor = |blocks: u32| if study.design.control { comparison.floor(blocks) } else { 0.0 };
        let ruled_out = |blocks: u32, margin: f64| {
            if margin < floor(blocks) { Some(0.0) } else { comparison.detectable_effect(blocks, margin, 0.0) }
        };
        let noise = least.max(floor(blocks));
        Self {
            cv,
            runs_a_level: comparison.a_block * blocks,
            resolves: power::smallest_effect(wanted, |effect| {
                if same {
                    ruled_out(blocks, effect)
                } else {
                    comparison.detectable_effect(blocks, effect, noise)
                }
            }),
            blocks_needed: power::fewest_from(1, wanted, |blocks| {
                if same {
                    ruled_out(blocks, least)
                } else {
                    comparison.detectable_effect(blocks, matters, 0.0)
                }
            }),
        }
    }

    /// The probability of detecting an effect.
    pub const fn probability() -> f64 {
        POWER
    }
}

/// The comparison of two levels of a factor over all cells.
struct Comparison {
    /// Variance of the logarithm of one run.
    variance: f64,
    /// Runs per block at each of the two levels.
    a_block: u32,
    cells: u32,
}

impl Comparison {
    /// The probability that a true `effect` gives an interval without 0 and an estimate beyond the noise; 0 where the
    /// analysis concludes nothing for lack of runs or degrees of freedom.
    fn detectable_effect(&self, blocks: u32, effect: f64, noise: f64) -> Option<f64> {
        let runs = self.a_block.saturating_mul(blocks);
        let freedom = self.cells.saturating_sub(1).saturating_mul(blocks.saturating_sub(1));
        if runs < FEWEST as u32 || freedom < FREEDOM {
            return Some(0.0);
        }
        let error = (2.0 * self.variance / f64::from(runs)).sqrt();
        power::verdict_power_with_error(error, f64::from(freedom), effect, noise, CONFIDENCE)
    }

    /// Half the predicted interval of the control: the verdict calls no smaller difference an effect.
    fn floor(&self, blocks: u32) -> f64 {
        let t = student::quantile(f64::midpoint(1.0, CONFIDENCE), f64::from(blocks) - 1.0);
        t.map_or(0.0, |t| (t * (2.0 * self.variance / f64::from(blocks)).sqrt()).exp_m1())
    }
}

/// Runs per block at each of the hypothesis's two levels; the smaller number of the two.
fn runs_a_block(study: &Study, plan: &StudyPlan) -> u32 {
    let at = |level: &str| {
        let hypothesis = &study.hypothesis;
        let is_there = |setting: &crate::conditions::FactorSetting| {
            setting.factor == hypothesis.factor && setting.level == level
        };
        plan.cells.iter().filter(|cell| cell.0.iter().any(is_there)).count() as u32
    };
    at(&study.hypothesis.from).min(at(&study.hypothesis.to))
}

/// The variation from run to run within cells, pooled over the cells, of the goal's metric in counted runs: a
/// coefficient of variation, and its degrees of freedom. None unless a cell has run twice.
pub fn pooled_variation(study: &Study, plan: &StudyPlan, state: &State) -> Option<(f64, usize)> {
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
    // For a log-normal distribution, CV² = exp(σ²) − 1.
    (degrees > 0).then(|| ((squares / degrees as f64).exp_m1().sqrt(), degrees))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use kelvin_analysis::{HypothesisAnswer, MetricInfo, Run, analyze};
    use kelvin_stats::bootstrap::Resampler;

    use super::*;
    use crate::study::{Template, analysis_input, study_toml};

    #[test]
    fn what_a_study_is_planned_for_is_called_supported_as_often_as_planned() {
        let mut random = Resampler::new(8);
        for control in [false, true] {
            let text = study_toml(Template::Ab, "s")
                .replacen("direction = \"same\", by = \"5%\"", "direction = \"higher\", by = \"2%\"", 1)
                .replacen("smallest-effect = \"3%\"", "smallest-effect = \"1%\"", 1)
                .replacen("control = true", &format!("control = {control}"), 1);
            let study = Study::parse(&text, "study.toml", Path::new("/nowhere")).unwrap();
            assert_eq!(study.design.control, control);
            let cv = 0.015;
            let effect = Power::of(&study, &StudyPlan::of(&study), cv).resolves.unwrap();
            assert!(effect > 0.02, "{effect}");
            let mut empty = analysis_input(&study, &[], &BTreeMap::new());
            let metric = empty.goal.metric.clone();
            let figure = MetricInfo {
                name: "NOPM".into(),
                unit: "per minute".into(),
                better: Some(empty.goal.better),
            };
            empty.figures.insert(metric.clone(), figure);
            let mut is_supported = || {
                let mut input = empty.clone();
                for block in 0..study.design.blocks {
                    let level = 1.0 + 0.1 * f64::from(block);
                    for (cell, mean, again) in [(0, 1.0, false), (1, 1.0 + effect, false), (0, 1.0, true)] {
                        if again && !control {
                            continue;
                        }
                        let place = input.runs.len() as u32;
                        let value = level * mean * (cv * random.normal()).exp();
                        input.runs.push(Run {
                            run: i64::from(place) + 1,
                            place,
                            block,
                            cell: vec![cell],
                            control: again,
                            values: BTreeMap::from([(metric.clone(), value)]),
                            void: None,
                            limit: None,
                            accepts_noise: false,
                            noise: None,
                        });
                    }
                }
                analyze(&input).unwrap().verdict.answer == HypothesisAnswer::Supported
            };
            let supported = (0..300).filter(|_| is_supported()).count();
            // 270 ± 5; the control's floor is a prediction.
            assert!((252..=288).contains(&supported), "control {control}: {supported} of 300 at {effect}");
        }
    }
}
