//! The number of blocks, and the interim analyses that may end the comparison.

use kelvin_stats::compare::{ComparedSamples, MeasuredChange, compare_bounds};
use kelvin_stats::power;
use kelvin_stats::sequential::Boundary;
use kelvin_stats::student::{describe, quantile};
use serde::Serialize;

use super::AbPlan;
use super::blocks::{Block, bounds, sides, values};
use crate::repeat::logarithms;

/// The pilot's estimate of the number of blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Planning {
    /// Blocks from which it was planned: those of the pilot, or more where it was planned again.
    pub pilot: u32,
    /// Standard deviation of the logarithm of a ratio of two runs of one block, from all of their runs with the
    /// differences between sides and between blocks taken out.
    pub sd: f64,
    /// Its degrees of freedom.
    pub freedom: u32,
    /// Required number of blocks; none when it exceeds any practical number.
    pub needed: Option<u32>,
    /// Number of blocks that will run.
    pub blocks: u32,
}

/// An interim analysis.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InterimLook {
    /// After so many blocks.
    pub blocks: u32,
    /// The comparison ends there if p is below this.
    pub nominal: f64,
}

/// The number of blocks that follows from the plan and the runs so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbProgress {
    /// Blocks in total, if no interim analysis ends the comparison before.
    pub blocks: u32,
    /// The pilot's estimate; `None` while it runs, and without an effect to find.
    pub planning: Option<Planning>,
    /// The interim analyses, the last at the end; empty when there is none before that, or while the pilot runs.
    pub looks: Vec<InterimLook>,
}

impl AbProgress {
    pub(crate) fn of(plan: &AbPlan, blocks: &[Block<'_>]) -> Self {
        let planning = plan.effect.and_then(|effect| Planning::of(plan, blocks, effect));
        let total = planning.as_ref().map_or(plan.blocks, |planning| planning.blocks);
        let piloting = plan.effect.is_some() && planning.is_none();
        let looks = if plan.stop_early && !piloting { looks(plan, total) } else { Vec::new() };
        Self { blocks: total, planning, looks }
    }

    /// The error that an interval after so many blocks may have: the share of its interim analysis, or that of the
    /// whole comparison.
    pub(crate) fn alpha(&self, plan: &AbPlan, blocks: u32) -> f64 {
        // An end between two interim analyses has spent the share of the last one.
        let passed = self.looks.iter().rev().find(|look| look.blocks <= blocks);
        passed.or(self.looks.first()).map_or_else(|| plan.alpha(), |look| look.nominal)
    }

    /// The interim analysis after so many blocks.
    pub(crate) fn interim_look(&self, blocks: u32) -> Option<InterimLook> {
        self.looks.iter().find(|look| look.blocks == blocks).copied()
    }
}

impl Planning {
    /// From the pilot, and again from all blocks when the planned ones have run: the pilot may have been in a quiet
    /// hour. The scatter does not depend on the difference between the sides, so that planning again does not favour a
    /// change. With interim analyses there is one plan, for which their bounds were computed.
    fn of(plan: &AbPlan, blocks: &[Block<'_>], effect: f64) -> Option<Self> {
        let mut by = plan.blocks;
        let mut latest = None;
        while let Some(known) = blocks.get(..by as usize) {
            let (sd, freedom) = scatter(plan, known)?;
            let needed = needed(plan, sd, freedom, effect);
            let least = by.max(AbPlan::FEWEST);
            let blocks = needed.unwrap_or(plan.most).clamp(least, plan.most.max(least));
            latest = Some(Self { pilot: by, sd, freedom, needed, blocks });
            if blocks == by || plan.stop_early {
                break;
            }
            by = blocks;
        }
        latest
    }
}

/// Standard deviation of the logarithm of a ratio of two runs of one block, and its degrees of freedom: √2 times the
/// residual of the runs' logarithms after removing the effects of treatment and block. It does not depend on the
/// difference between the sides, so that planning by it does not favour one.
pub(crate) fn scatter(plan: &AbPlan, blocks: &[Block<'_>]) -> Option<(f64, u32)> {
    let by_treatment = values(blocks, plan.figure.as_deref())?;
    let logs: Vec<Vec<f64>> = by_treatment.iter().map(|one| logarithms(one)).collect::<Option<_>>()?;
    let (k, b) = (logs.len(), blocks.len());
    if k < 2 || b < 2 {
        return None;
    }
    let of_treatment: Vec<f64> = logs.iter().map(|one| mean(one)).collect();
    let all = mean(&of_treatment);
    let mut squares = 0.0;
    for block in 0..b {
        let of_block = logs.iter().map(|one| one[block]).sum::<f64>() / k as f64;
        squares += logs
            .iter()
            .zip(&of_treatment)
            .map(|(one, of_treatment)| (one[block] - of_treatment - of_block + all).powi(2))
            .sum::<f64>();
    }
    let freedom = (k - 1) * (b - 1);
    Some(((2.0 * squares / freedom as f64).sqrt(), freedom as u32))
}

fn mean(values: &[f64]) -> f64 {
    describe(values).map_or(f64::NAN, |sample| sample.mean)
}

/// Blocks in which the effect is found with the power of the plan.
///
/// The larger of two numbers. The first follows from the noncentral t distribution as if the scatter were known to be
/// `sd`, for a verdict of "changed" in spite of the noise ν, and of the control's floor, which is as wide as the
/// interval itself. The second is Stein's (Annals of Mathematical Statistics 16, 1945), which allows for the
/// uncertainty of the pilot's estimate: (t₁ + t₂)²·(sd/δ)², and t₂²·(sd/(δ − ν))² for an estimate beyond the noise,
/// with both quantiles at its degrees of freedom.
fn needed(plan: &AbPlan, sd: f64, freedom: u32, effect: f64) -> Option<u32> {
    if sd == 0.0 {
        return Some(AbPlan::FEWEST);
    }
    let (confidence, sd) = (1.0 - plan.alpha(), sd * plan.share_of_scatter());
    let known = if plan.control {
        (effect.ln_1p().abs() > plan.noise.ln_1p()).then_some(())?;
        power::fewest_from(AbPlan::FEWEST, plan.power, |n| {
            let t = quantile(f64::midpoint(1.0, confidence), f64::from(n) - 1.0)?;
            let noise = plan.noise.max((t * sd / f64::from(n).sqrt()).exp_m1());
            power::paired_verdict_power(n, sd, effect, noise, confidence)
        })?
    } else {
        power::pairs_beyond(sd, effect, plan.noise, plan.power, confidence)?
    };
    let t = |p: f64| quantile(p, f64::from(freedom));
    let (alpha, beta, effect) = (t(f64::midpoint(1.0, confidence))?, t(plan.power)?, effect.ln_1p());
    let runs = |quantile: f64, distance: f64| (quantile * sd / distance).powi(2).ceil();
    let stein = runs(alpha + beta, effect).max(runs(beta, effect - plan.noise.ln_1p()));
    (stein < 1e6).then(|| known.max(stein as u32))
}

/// The smallest relative effect that so many blocks call changed with the power of the plan, if effects below `noise`
/// are not; `None` where they are too few for any verdict.
pub(crate) fn detectable(plan: &AbPlan, blocks: &[Block<'_>], alpha: f64, noise: f64) -> Option<f64> {
    let n = blocks.len() as u32;
    if n < AbPlan::FEWEST {
        return None;
    }
    let (sd, _) = scatter(plan, blocks)?;
    let sd = sd * plan.share_of_scatter();
    power::smallest_effect(plan.power, |effect| {
        power::paired_verdict_power(n, sd, effect, noise, 1.0 - alpha)
    })
}

/// After half, after three quarters, and after all blocks; none before six. An interim analysis before the half could
/// have a level so small that no interval has the confidence.
fn looks(plan: &AbPlan, total: u32) -> Vec<InterimLook> {
    let first = AbPlan::BLOCKS.max(if plan.effect.is_some() { plan.blocks } else { 0 });
    let mut at = vec![total.div_ceil(2), (3 * total).div_ceil(4), total];
    at.retain(|blocks| *blocks >= first.min(total));
    at.dedup();
    if at.len() < 2 {
        return Vec::new();
    }
    let Some(boundary) = Boundary::new(&at, plan.alpha()) else { return Vec::new() };
    at.iter().enumerate().map(|(i, &blocks)| InterimLook { blocks, nominal: boundary.nominal(i) }).collect()
}

/// Whether every side differs from A so clearly that an interim analysis with this nominal level may end the
/// comparison.
pub(crate) fn clear(plan: &AbPlan, blocks: &[Block<'_>], nominal: f64) -> bool {
    let Some(values) = values(blocks, plan.figure.as_deref()) else { return false };
    (1..plan.sides.len()).all(|side| {
        let (of_a, of_b) = bounds(plan, blocks, plan.figure.as_deref(), side);
        let change = sides(plan, &values, side).and_then(|(a, b)| {
            compare_bounds(ComparedSamples::Paired { a: &a, b: &b }, (&of_a, &of_b), 0.0, 1.0 - nominal)
        });
        change.is_some_and(|MeasuredChange { ratio, .. }| ratio.low > 1.0 || ratio.high < 1.0)
    })
}

#[cfg(test)]
mod tests;
