//! Elasticities from the throughput in slices.

use std::collections::BTreeMap;

use kelvin_measure::event::Elasticity;
use kelvin_stats::student;

use super::SETTLE;
use super::plan::Slice;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// A resource is called a limit if its whole interval is above `LIMITS`, and no limit if the whole interval is below
/// `DOES_NOT`. The elasticity is 1 if all work waits for the resource, and 0 if none does.
const LIMITS: f64 = 0.5;
const DOES_NOT: f64 = 0.3;

/// The half-width of an interval that distinguishes the two.
const HALF_WIDTH: f64 = 0.15;

/// The elasticity of the throughput to one resource, e = Δln(throughput) / Δln(resource): the mean over the blocks of
/// ln(throughput with the cut / without) divided by ln(1 − cut), with Student's interval of paired differences.
/// `throughput` is in transactions per second, by index of the slice. None with fewer than two blocks.
pub(super) fn estimate_elasticity(
    plan: &[Slice],
    throughput: &BTreeMap<usize, f64>,
    resource: usize,
    cut: f64,
) -> Option<Elasticity> {
    let mut blocks: BTreeMap<u32, (Option<f64>, Option<f64>)> = BTreeMap::new();
    // A slice without any completed transaction has no logarithm; it counts as one transaction.
    let least = |slice: &Slice| 1.0 / slice.to.saturating_sub(slice.from + SETTLE).max(1) as f64;
    for (index, slice) in plan.iter().enumerate() {
        let Some((block, rate)) = slice.block.zip(throughput.get(&index).copied()) else { continue };
        let pair = blocks.entry(block).or_default();
        match slice.resource {
            None => pair.0 = Some(rate),
            Some(cut) if cut == resource => pair.1 = Some(rate.max(least(slice))),
            Some(_) => {}
        }
    }
    let pairs = blocks.into_values().filter_map(|(without, with)| without.zip(with));
    let (without, with): (Vec<f64>, Vec<f64>) = pairs.filter(|(without, _)| *without > 0.0).unzip();
    let found = student::paired_ratio(&without, &with, CONFIDENCE)?;
    let pairs = without.len() as u32;
    let unit = (1.0 - cut).ln();
    let (one, other) = (found.high.ln() / unit, found.low.ln() / unit);
    let (low, high) = (one.min(other), one.max(other));
    let elasticity = found.ratio.ln() / unit;
    Some(Elasticity {
        resource: String::new(),
        how: String::new(),
        means: String::new(),
        cut: None,
        pairs,
        elasticity,
        low,
        high,
        throughput_ratio: found.ratio,
        verdict: verdict(low, high, pairs),
    })
}

fn verdict(low: f64, high: f64, pairs: u32) -> String {
    if low > LIMITS {
        "limits the throughput".into()
    } else if high < DOES_NOT {
        "does not limit the throughput".into()
    } else {
        let half = (high - low) / 2.0;
        let more = (f64::from(pairs) * (half / HALF_WIDTH).powi(2)).ceil() - f64::from(pairs);
        if more > 0.0 {
            format!("not resolved: about {more:.0} more pairs would resolve it")
        } else {
            "partly limits the throughput".into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::slices;
    use super::*;

    fn measured(ratio: f64, noise: f64) -> Elasticity {
        let plan = slices(2, 10, 3, 6, 7);
        let mut throughput = BTreeMap::new();
        for (index, slice) in plan.iter().enumerate() {
            let drift = 1000.0 + 10.0 * index as f64;
            let noise = 1.0 + noise * ((index * 7919 % 13) as f64 / 6.0 - 1.0);
            let cut = if slice.resource == Some(1) { ratio } else { 1.0 };
            throughput.insert(index, drift * cut * noise);
        }
        let untouched = estimate_elasticity(&plan, &throughput, 0, 0.2).unwrap();
        assert!(untouched.low < 0.0 && untouched.high > 0.0, "{untouched:?}");
        estimate_elasticity(&plan, &throughput, 1, 0.2).unwrap()
    }

    #[test]
    fn a_cut_that_the_throughput_follows_has_one() {
        let found = measured(0.8, 0.02);
        assert!(found.low < 1.0 && found.high > 1.0 && found.high - found.low < 0.3, "{found:?}");
        assert_eq!((found.pairs, found.verdict.as_str()), (10, "limits the throughput"));
        let found = measured(1.0, 0.02);
        assert!(
            found.elasticity.abs() < 0.1 && found.verdict == "does not limit the throughput",
            "{found:?}"
        );
        let found = measured(0.9, 0.0);
        assert!((0.3..0.6).contains(&found.elasticity), "{found:?}");
        let found = measured(0.9, 0.3);
        assert!(found.verdict.starts_with("not resolved"), "{found:?}");
    }

    #[test]
    fn a_slice_without_commits_counts_as_one_transaction() {
        let plan = slices(1, 4, 3, 6, 7);
        let rate = |slice: &Slice| if slice.resource.is_some() { 0.0 } else { 2.0 };
        let throughput = plan.iter().enumerate().map(|(index, slice)| (index, rate(slice))).collect();
        // One transaction in two seconds is a quarter of two per second.
        let found = estimate_elasticity(&plan, &throughput, 0, 0.2).unwrap();
        assert!((found.throughput_ratio - 0.25).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn one_block_is_none() {
        let plan = slices(1, 1, 3, 6, 7);
        let throughput = (0..3).map(|index| (index, 100.0)).collect();
        assert_eq!(estimate_elasticity(&plan, &throughput, 0, 0.2), None);
    }
}
