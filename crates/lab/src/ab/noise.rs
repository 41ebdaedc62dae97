//! The cost of noise for a comparison, in blocks. Noise affects both sides alike, so it scatters ratios
//! without a bias.

use kelvin_diagnose::Better;
use serde::Serialize;

use super::AbPlan;
use super::blocks::{Block, values};
use crate::repeat::{GroupRun, RunNoise};

/// The fewest degrees of freedom from which the share of the scatter that noise explains can be estimated.
const FEWEST: usize = 4;

/// The cost of noise for the runs and for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct AbNoise {
    /// The cost for the runs.
    #[serde(flatten)]
    pub runs: RunNoise,
    /// Share of the scatter's variance that correlates with the runs' noise prices; none with fewer than four
    /// degrees of freedom, or if all prices are equal.
    pub explained: Option<f64>,
    /// Additional blocks that compensate for the noise: with them the comparison is as precise as on a quiet machine.
    pub more_blocks: Option<u32>,
}

impl AbNoise {
    pub(crate) fn of(plan: &AbPlan, rows: &[GroupRun], blocks: &[Block<'_>]) -> Option<Self> {
        let runs = RunNoise::of(rows)?;
        let explained = explained(plan, blocks);
        let more = |share: f64| (blocks.len() as f64 * share / (1.0 - share)).ceil().min(1e6) as u32;
        Some(Self { runs, explained, more_blocks: explained.map(more) })
    }
}

/// The squared correlation of the logarithms of the metric with those of 1 − price, both without the effects of
/// treatment and block, corrected for chance. If the metric is better where more was lost, noise is not the cause: 0.
fn explained(plan: &AbPlan, blocks: &[Block<'_>]) -> Option<f64> {
    let figures: Vec<Vec<f64>> = values(blocks, plan.figure.as_deref())?
        .into_iter()
        .map(|one| one.into_iter().map(f64::ln).collect())
        .collect();
    let prices: Vec<Vec<f64>> = (0..figures.len())
        .map(|one| {
            blocks.iter().map(|block| Some((1.0 - block.runs[one].noise?.estimate).max(0.01).ln())).collect()
        })
        .collect::<Option<_>>()?;
    let (k, b) = (figures.len(), blocks.len());
    let freedom = k.saturating_sub(1) * b.saturating_sub(1);
    if freedom < FEWEST {
        return None;
    }
    let (figures, prices) = (without_effects(&figures), without_effects(&prices));
    let sum = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (of_figures, of_prices, both) =
        (sum(&figures, &figures), sum(&prices, &prices), sum(&figures, &prices));
    if of_figures <= 0.0 || of_prices <= 1e-12 {
        return None;
    }
    let better = blocks.first()?.runs.first()?.figure(plan.figure.as_deref())?.better;
    // 1 − price decreases with noise. A metric that should be high decreases with it, and one that should be
    // low increases.
    let wrong = match better {
        Some(Better::Higher) => both < 0.0,
        Some(Better::Lower) => both > 0.0,
        None => false,
    };
    let squared = if wrong { 0.0 } else { both.powi(2) / (of_figures * of_prices) };
    // As in the adjusted coefficient of determination (Wherry, Annals of Mathematical Statistics 2, 1931).
    let adjusted = 1.0 - (1.0 - squared) * freedom as f64 / (freedom - 1) as f64;
    Some(adjusted.clamp(0.0, 0.99))
}

/// The values by treatment and block minus the means of both.
fn without_effects(values: &[Vec<f64>]) -> Vec<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let of_treatment: Vec<f64> = values.iter().map(|one| mean(one)).collect();
    let all = mean(&of_treatment);
    let blocks = values.first().map_or(0, Vec::len);
    (0..blocks)
        .flat_map(|block| {
            let here: Vec<f64> = values.iter().map(|one| one[block]).collect();
            let of_block = mean(&here);
            here.into_iter()
                .zip(&of_treatment)
                .map(move |(value, own)| value - own - of_block + all)
                .collect::<Vec<_>>()
        })
        .collect()
}
