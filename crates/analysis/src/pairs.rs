//! Comparisons of variants with the first one, paired by block.

use std::collections::BTreeMap;

use kelvin_stats::compare::{ComparedSamples, MeasuredChange, compare};
use kelvin_stats::student;
use serde::Serialize;

use crate::contrast::by_block;
use crate::fit::Estimate;
use crate::values::{Counting, Values};
use crate::{Scale, StudyInput, control};

/// A variant compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pairs {
    /// The id of the metric.
    pub metric: String,
    /// The level, by index; it is compared with level 0.
    pub level: usize,
    /// Blocks that contain both.
    pub blocks: usize,
    /// The relative change from the first to the variant, as a fraction.
    pub change: Estimate,
    /// The distribution-free estimate of the same change (Hodges and Lehmann), as a fraction.
    pub hodges_lehmann: f64,
    /// The answer: "changed", "within noise", "no change shown", "not testable".
    pub verdict: &'static str,
    /// The method of the test.
    pub method: &'static str,
}

/// Every variant compared with the first, for one metric. Variants without positive values in both have no
/// ratio and are left out.
pub(crate) fn pairs(input: &StudyInput, metric: &str) -> Vec<Pairs> {
    let values = Values::of(input, metric, Counting::Valid);
    let noise = input.goal.smallest.max(control::floor(input, metric).unwrap_or(0.0));
    let back = |v: f64| if values.scale == Scale::Ratio { v.exp() } else { v };
    let blocks = by_block(&values.observations);
    let levels = input.factors.first().map_or(0, |factor| factor.levels.len());
    (1..levels)
        .filter_map(|level| {
            let mean = |of: &BTreeMap<Vec<usize>, Vec<f64>>, level: usize| {
                Some(back(student::describe(of.get(&vec![level])?)?.mean))
            };
            let both = blocks.values().filter_map(|of| Some((mean(of, 0)?, mean(of, level)?)));
            let (a, b): (Vec<f64>, Vec<f64>) = both.unzip();
            let MeasuredChange { ratio, p, hodges_lehmann, n, verdict, method, phi: _ } =
                compare(ComparedSamples::Paired { a: &a, b: &b }, noise, input.confidence)?;
            Some(Pairs {
                metric: metric.into(),
                level,
                blocks: n.0,
                change: Estimate {
                    value: ratio.ratio - 1.0,
                    low: Some(ratio.low - 1.0),
                    high: Some(ratio.high - 1.0),
                    p: Some(p),
                },
                hodges_lehmann: hodges_lehmann - 1.0,
                verdict: verdict.label(),
                method,
            })
        })
        .collect()
}
