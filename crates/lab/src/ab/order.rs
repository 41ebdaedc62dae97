//! The order in which a block runs its treatments.

use kelvin_stats::bootstrap::Resampler;

/// The order of a block: numbers of treatments. Side s has 2s and 2s + 1 where each side runs `twice`, and s otherwise.
/// The same seed gives the same orders.
///
/// The positions of the sides are drawn separately in each block, independently of the other blocks, so that no
/// disturbance of any period favours a side, and flipping the signs of the blocks' differences is an equally probable
/// outcome. Effects that last from one run to the next favour no side either: there are as many runs of each side, so
/// that each follows itself as often as the other does (except for the very first run). Of `n` sides that run twice,
/// one block of `n` has the two runs of each side together and the other blocks run in reverse order, A B B A; so a
/// side follows itself as often as any other, and half of the blocks of two sides are free of drift. Which of a side's
/// two runs is the second is drawn, too.
pub fn order(seed: u64, sides: usize, twice: bool, block: u32) -> Vec<usize> {
    let mut random = drawn(seed, u64::from(block));
    let mut names: Vec<usize> = (0..sides).collect();
    shuffle(&mut names, &mut random);
    if !twice || sides == 0 {
        return names;
    }
    let (cycle, place) = (u64::from(block) / sides as u64, block as usize % sides);
    let together = drawn(seed, CYCLES | cycle).below(sides) == place;
    let row: Vec<usize> = if together {
        names.iter().flat_map(|side| [*side, *side]).collect()
    } else {
        names.iter().chain(names.iter().rev()).copied().collect()
    };
    let mut next: Vec<usize> = (0..sides).map(|_| random.below(2)).collect();
    row.into_iter()
        .map(|side| {
            let which = next[side];
            next[side] = 1 - which;
            2 * side + which
        })
        .collect()
}

/// The random numbers for a cycle of blocks are independent of those for a block.
const CYCLES: u64 = 1 << 40;

/// Separate random numbers for each seed and number: consecutive seeds give unrelated sequences.
fn drawn(seed: u64, number: u64) -> Resampler {
    let start = Resampler::new(seed).bits().wrapping_add(number);
    Resampler::new(Resampler::new(start).bits())
}

/// Fisher and Yates.
fn shuffle(values: &mut [usize], random: &mut Resampler) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_treatment_runs_once_in_every_block() {
        for (sides, twice) in [(2, true), (2, false), (3, true), (5, true), (8, false), (1, true)] {
            for block in 0..30 {
                let mut order = order(9, sides, twice, block);
                order.sort_unstable();
                assert_eq!(order, (0..sides * (1 + usize::from(twice))).collect::<Vec<_>>());
            }
        }
        assert!(order(1, 0, true, 5).is_empty());
    }

    /// How often each side followed each other side in this number of blocks.
    fn followed(seed: u64, sides: usize, twice: bool, blocks: u32) -> Vec<Vec<i32>> {
        let of = |treatment: usize| if twice { treatment / 2 } else { treatment };
        let all: Vec<usize> =
            (0..blocks).flat_map(|block| order(seed, sides, twice, block)).map(of).collect();
        let mut counts = vec![vec![0; sides]; sides];
        for pair in all.windows(2) {
            counts[pair[1]][pair[0]] += 1;
        }
        counts
    }

    #[test]
    fn trial_a3_each_side_follows_itself_as_often_as_the_other_does() {
        for seed in 0..40 {
            for blocks in [6, 7, 12, 20] {
                for twice in [true, false] {
                    let found = followed(seed, 2, twice, blocks);
                    assert!((found[0][0] - found[1][1]).abs() <= 1, "{seed} {blocks} {twice}: {found:?}");
                }
            }
        }
        // In the long run, each side follows itself as often as any other: 1/n of all runs, within more than
        // two standard errors.
        for sides in 2..=4 {
            for (of, row) in followed(3, sides, true, 3000).into_iter().enumerate() {
                let all: i32 = row.iter().sum();
                let shares: Vec<f64> = row.iter().map(|n| f64::from(*n) / f64::from(all)).collect();
                let even = 1.0 / sides as f64;
                assert!(shares.iter().all(|share| (share - even).abs() < 0.04), "{sides} {of}: {shares:?}");
            }
        }
    }

    #[test]
    fn trial_a9_a_coin_of_its_own_decides_each_block() {
        // All eight ways in which three consecutive blocks can begin are equally frequent, for any period of a
        // disturbance.
        for twice in [true, false] {
            let first = |block: u32| order(5, 2, twice, block)[0] / if twice { 2 } else { 1 };
            let mut ways = [0_u32; 8];
            for block in 0..1600 {
                ways[(0..3).map(|i| first(3 * block + i) << i).sum::<usize>()] += 1;
            }
            // 200 ± 13.
            assert!(ways.iter().all(|n| (150..=250).contains(n)), "{ways:?}");
        }
    }

    #[test]
    fn the_seed_decides() {
        let of = |seed| (0..24).map(|block| order(seed, 2, true, block)).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert_ne!(of(7)[..6], of(7)[6..12]);
    }
}
