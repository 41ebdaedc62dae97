//! The schedule of the cuts.

use kelvin_measure::Random;

/// A stretch of the window, in whole seconds from its opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// First second.
    pub(super) from: u64,
    /// One past the last second.
    pub(super) to: u64,
    /// The block in which it is compared; none for the pilot.
    pub(super) block: Option<u32>,
    /// The resource that is cut; none for a slice without a cut.
    pub(super) resource: Option<usize>,
}

/// Domain of the order's random numbers: "squeeze" in ASCII.
const ORDER: u64 = 0x73_7175_6565_7a65;

/// A pilot without a cut, followed by blocks. Each block has one slice without a cut and one for each resource, in an
/// order determined by the seed.
pub(super) fn slices(resources: usize, blocks: u32, slice: u64, pilot: u64, seed: u64) -> Vec<Slice> {
    let mut random = Random::part(seed, ORDER, 0);
    let mut plan = vec![Slice { from: 0, to: pilot, block: None, resource: None }];
    let mut from = pilot;
    for block in 0..blocks {
        let mut order: Vec<Option<usize>> = std::iter::once(None).chain((0..resources).map(Some)).collect();
        random.shuffle(&mut order);
        for resource in order {
            plan.push(Slice { from, to: from + slice, block: Some(block), resource });
            from += slice;
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_each_once_and_the_seed_decides_the_order() {
        let plan = slices(3, 8, 3, 6, 1);
        assert_eq!((plan.len(), plan[0].to, plan.last().map(|slice| slice.to)), (33, 6, Some(6 + 8 * 4 * 3)));
        assert!(plan.windows(2).all(|two| two[0].to == two[1].from));
        for block in 0..8 {
            let mut found: Vec<_> =
                plan.iter().filter(|slice| slice.block == Some(block)).map(|slice| slice.resource).collect();
            found.sort_unstable();
            assert_eq!(found, [None, Some(0), Some(1), Some(2)]);
        }
        assert_eq!(plan, slices(3, 8, 3, 6, 1));
        assert_ne!(plan, slices(3, 8, 3, 6, 2));
    }
}
