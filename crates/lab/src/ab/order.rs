//! In which order a block runs its treatments.

use kelvin_stats::bootstrap::Resampler;

/// The order of a block: numbers of treatments. Blocks go through the rows of a Williams design (Williams, Australian
/// Journal of Scientific Research A 2, 1949) in shuffled order: over its rows, two for two treatments and six for three,
/// each treatment stands in each place equally often, and follows each other one equally often, so that neither a warm
/// cache nor what a run leaves behind favours one of them. The same seed gives the same orders.
pub fn order(seed: u64, treatments: usize, block: u32) -> Vec<usize> {
    let rows = williams(treatments);
    let cycle = u64::from(block) / rows.len().max(1) as u64;
    let mut names: Vec<usize> = (0..treatments).collect();
    shuffle(&mut names, &mut Resampler::new(seed));
    let mut places: Vec<usize> = (0..rows.len()).collect();
    // Seeds in a row give unlike sequences.
    shuffle(&mut places, &mut Resampler::new(seed.wrapping_add(1 + cycle)));
    let row = places.get(block as usize % rows.len().max(1)).and_then(|place| rows.get(*place));
    row.map_or_else(Vec::new, |row| row.iter().filter_map(|name| names.get(*name).copied()).collect())
}

/// The rows of the design: as many as treatments for an even number, twice as many for an odd one.
fn williams(treatments: usize) -> Vec<Vec<usize>> {
    let zigzag: Vec<usize> = (0..treatments)
        .map(|i| if i % 2 == 1 { i.div_ceil(2) } else { (treatments - i / 2) % treatments })
        .collect();
    let mut rows: Vec<Vec<usize>> =
        (0..treatments).map(|by| zigzag.iter().map(|place| (place + by) % treatments).collect()).collect();
    if treatments % 2 == 1 && treatments > 1 {
        let mirrored: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

/// Fisher and Yates.
fn shuffle(values: &mut [usize], random: &mut Resampler) {
    for last in (1..values.len()).rev() {
        values.swap(last, random.below(last + 1));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_treatment_stands_everywhere_and_follows_every_other_equally_often() {
        for treatments in 2..=7 {
            let rows = williams(treatments).len() as u32;
            for seed in 0..20 {
                let (mut places, mut pairs) = (BTreeMap::new(), BTreeMap::new());
                for block in 0..rows {
                    let order = order(seed, treatments, block);
                    let mut sorted = order.clone();
                    sorted.sort_unstable();
                    assert_eq!(sorted, (0..treatments).collect::<Vec<_>>());
                    for (place, name) in order.iter().enumerate() {
                        *places.entry((place, *name)).or_insert(0) += 1;
                    }
                    for pair in order.windows(2) {
                        *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
                    }
                }
                let each = rows / treatments as u32;
                assert!(places.values().all(|&n| n == each) && places.len() == treatments * treatments);
                assert!(pairs.values().all(|&n| n == each) && pairs.len() == treatments * (treatments - 1));
            }
        }
    }

    #[test]
    fn the_seed_decides_and_orders_differ_from_cycle_to_cycle() {
        let of = |seed| (0..24).map(|block| order(seed, 3, block)).collect::<Vec<_>>();
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert_ne!(of(7)[..6], of(7)[6..12]);
        assert_eq!((order(1, 1, 5), order(1, 0, 5)), (vec![0], vec![]));
    }
}
