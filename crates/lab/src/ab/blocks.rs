//! Complete blocks of runs.

use std::collections::BTreeMap;

use super::AbPlan;
use crate::repeat::GroupRun;

/// A block in which every treatment has a counted run with the metric.
#[derive(Debug, Clone)]
pub(crate) struct Block<'a> {
    /// Its runs, in the order of the treatments.
    pub(crate) runs: Vec<&'a GroupRun>,
}

impl Block<'_> {
    /// The values of a metric, in the order of the treatments; none unless all have a value above 0. A value
    /// that is only known as a lower bound is included: [`bounds`] says which ones are.
    pub(crate) fn values(&self, figure: Option<&str>) -> Option<Vec<f64>> {
        let value = |run: &&GroupRun| Some(run.bounded(figure)?.value).filter(|value| *value > 0.0);
        self.runs.iter().map(value).collect()
    }
}

/// The complete blocks, in their order.
pub(crate) fn complete<'a>(plan: &AbPlan, rows: &'a [GroupRun]) -> Vec<Block<'a>> {
    let mut by_block: BTreeMap<u32, Vec<&GroupRun>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.counts()) {
        by_block.entry(row.slot.block).or_default().push(row);
    }
    let treatments = plan.treatments();
    let block = |runs: Vec<&'a GroupRun>| {
        let of = |name: &str| runs.iter().find(|run| run.slot.treatment == name).copied();
        let runs = treatments.iter().map(|treatment| of(&treatment.name)).collect::<Option<Vec<_>>>()?;
        Some(Block { runs })
    };
    let found = by_block.into_values().filter_map(block);
    found.filter(|block| block.values(plan.figure.as_deref()).is_some()).collect()
}

/// The values of a metric by treatment, block by block; none unless every block has them.
pub(crate) fn values(blocks: &[Block<'_>], figure: Option<&str>) -> Option<Vec<Vec<f64>>> {
    let rows: Vec<Vec<f64>> = blocks.iter().map(|block| block.values(figure)).collect::<Option<_>>()?;
    let treatments = rows.first()?.len();
    Some((0..treatments).map(|one| rows.iter().map(|row| row[one]).collect()).collect())
}

/// Which values of a metric are only lower bounds, by side of a comparison with A, block by block. If a run
/// of a side is a lower bound, the mean of the side is one.
pub(crate) fn bounds(
    plan: &AbPlan,
    blocks: &[Block<'_>],
    figure: Option<&str>,
    side: usize,
) -> (Vec<bool>, Vec<bool>) {
    let treatments = plan.treatments();
    let of = |side: usize, block: &Block<'_>| {
        let runs = treatments.iter().zip(&block.runs).filter(|(one, _)| one.side == side);
        runs.into_iter().any(|(_, run)| run.bounded(figure).is_some_and(|value| value.at_least))
    };
    blocks.iter().map(|block| (of(0, block), of(side, block))).unzip()
}

/// Both sides of a comparison with A, pair by pair. For A it is the geometric mean of its runs in the block.
pub(crate) fn sides(plan: &AbPlan, values: &[Vec<f64>], side: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let treatments = plan.treatments();
    let of = |side: usize| -> Vec<&Vec<f64>> {
        treatments.iter().zip(values).filter(|(one, _)| one.side == side).map(|(_, values)| values).collect()
    };
    let mean = |of: &[&Vec<f64>]| -> Option<Vec<f64>> {
        let blocks = of.first()?.len();
        let block = |i: usize| {
            let logs: f64 = of.iter().filter_map(|values| values.get(i)).map(|value| value.ln()).sum();
            (logs / of.len() as f64).exp()
        };
        Some((0..blocks).map(block).collect())
    };
    Some((mean(&of(0))?, mean(&of(side))?))
}
