//! `random_distribution=`: how often the blocks of a target are drawn.

use std::collections::HashMap;

use kelvin_stats::kolmogorov;

use crate::statistics::chi_squared;
use crate::support::{KIB, MIB, many, offsets, source};

const BLOCK: u64 = 4 * KIB;

/// How often each of `blocks` blocks was drawn in `count` draws.
fn counts(options: &str, blocks: u64, count: usize) -> Vec<u64> {
    let options = format!("rw=randread norandommap=1 randrepeat=0 randseed=5 {options}");
    let mut seen = vec![0_u64; blocks as usize];
    let mut job = crate::support::job(&options);
    // Passes continue with new random choices, for more draws than one pass has.
    job.pattern.repeatable = false;
    let one = crate::support::targets(&[blocks * BLOCK]);
    let mut passes = 0;
    let mut drawn = 0;
    while drawn < count {
        job.pattern.seed = Some(1000 + passes);
        passes += 1;
        let mut source = kelvin_storage::stream::IoSource::new(&job, 0, &one, 1).unwrap();
        for offset in offsets(&crate::support::ios(&mut source)) {
            seen[(offset / BLOCK) as usize] += 1;
            drawn += 1;
        }
    }
    seen
}

#[test]
fn without_a_map_all_blocks_are_drawn_alike() {
    let seen = counts("", 500, 100_000);
    let p = chi_squared(&seen, &[1.0; 500], 499);
    assert!(p > 1e-4, "{p}");
    // Also over a region that no map could cover, and for adjacent blocks.
    let length = 100_000_000_000_000;
    let all = offsets(&many(&mut source("rw=randread norandommap=1", length), 20_000));
    let parts: Vec<f64> = all.iter().map(|offset| *offset as f64 / length as f64).collect();
    assert!(kolmogorov::one_sample(&parts, |x| x).unwrap().p > 1e-4);
    let gaps: Vec<f64> = parts.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(1.0)).collect();
    assert!(kolmogorov::one_sample(&gaps, |x| x).unwrap().p > 1e-4);
}

#[test]
fn with_a_map_a_part_of_a_pass_is_spread_evenly() {
    for length in [64 * MIB, 100_000_000_000_000] {
        let all = offsets(&many(&mut source("rw=randread", length), 10_000));
        let parts: Vec<f64> = all.iter().map(|offset| (*offset + BLOCK / 2) as f64 / length as f64).collect();
        assert!(kolmogorov::one_sample(&parts, |x| x).unwrap().p > 1e-4);
        let gaps: Vec<f64> = parts.windows(2).map(|pair| (pair[1] - pair[0]).rem_euclid(1.0)).collect();
        assert!(kolmogorov::one_sample(&gaps, |x| x).unwrap().p > 1e-4);
    }
}

/// One seed only, so that the blocks keep their ranks.
fn by_rank(options: &str, blocks: u64) -> (Vec<u64>, Vec<u64>) {
    let options = format!("rw=randread {options}");
    let mut seen: HashMap<u64, u64> = HashMap::new();
    for offset in offsets(&many(&mut source(&options, blocks * BLOCK), blocks as usize)) {
        *seen.entry(offset / BLOCK).or_default() += 1;
    }
    let mut ranked: Vec<(u64, u64)> = seen.into_iter().collect();
    ranked.sort_unstable_by_key(|(block, count)| (std::cmp::Reverse(*count), *block));
    ranked.into_iter().unzip()
}

#[test]
fn zipf_follows_its_distribution() {
    for theta in [0.6, 0.99, 1.2] {
        let blocks = 100_000;
        let (_, seen) = by_rank(&format!("random_distribution=zipf:{theta}"), blocks);
        // The hottest ranks are clearly separated in their counts.
        let whole: f64 = (1..=blocks).map(|k| (k as f64).powf(-theta)).sum();
        for rank in 1..=3_u32 {
            let expected = f64::from(rank).powf(-theta) / whole * blocks as f64;
            let count = seen[rank as usize - 1] as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt() + 2.0, "{theta}: {count}, {expected}");
        }
    }
}

#[test]
fn pareto_is_self_similar() {
    let blocks = 200_000;
    let (_, seen) = by_rank("random_distribution=pareto:0.2", blocks);
    // 20 % of the blocks get 80 % of the draws, 4 % get 64 %.
    let share = |part: f64| {
        let hottest = (blocks as f64 * part) as usize;
        seen.iter().take(hottest).sum::<u64>() as f64 / blocks as f64
    };
    // The hottest are chosen by their counts, which biases them slightly upwards.
    assert!((0.79..0.9).contains(&share(0.2)), "{}", share(0.2));
    assert!((0.63..0.68).contains(&share(0.04)), "{}", share(0.04));
    let first = (1.0 / blocks as f64).powf((0.8_f64).ln() / (0.2_f64).ln());
    let count = seen[0] as f64 / blocks as f64;
    assert!((count - first).abs() < 0.005, "{count}, {first}");
}

#[test]
fn the_hottest_lies_at_the_centre_and_otherwise_anywhere() {
    for kind in ["zipf:1.2", "pareto:0.2"] {
        for (centre, block) in [("0", 0), ("0.25", 2500), ("1", 9999)] {
            let (blocks, _) = by_rank(&format!("random_distribution={kind}:{centre}"), 10_000);
            assert_eq!(blocks[0], block, "{kind}:{centre}");
        }
        // The others are scattered, not adjacent.
        let (blocks, _) = by_rank(&format!("random_distribution={kind}:0.5"), 10_000);
        let near = blocks.iter().take(50).filter(|block| block.abs_diff(5000) < 500).count();
        assert!(near < 15, "{kind}: {near}");
        let hot = |seed: u32| by_rank(&format!("random_distribution={kind} randseed={seed}"), 10_000).0[0];
        assert_ne!(hot(1), hot(2));
    }
}

#[test]
fn normal_has_its_mean_and_deviation_and_stays_inside() {
    use statrs::distribution::{ContinuousCDF, Normal};
    for (options, mean, deviation) in [("20", 0.5, 0.2), ("10:0.25", 0.25, 0.1), ("30:0", 0.0, 0.3)] {
        let blocks = 20_000_u64;
        let options = format!("rw=randread random_distribution=normal:{options}");
        let all = offsets(&many(&mut source(&options, blocks * BLOCK), blocks as usize));
        let normal = Normal::new(mean, deviation).unwrap();
        let (low, high) = (normal.cdf(0.0), normal.cdf(1.0));
        // Offsets are whole blocks: compared at their middles.
        let parts: Vec<f64> =
            all.iter().map(|offset| ((offset / BLOCK) as f64 + 0.5) / blocks as f64).collect();
        let found = kolmogorov::one_sample(&parts, |x| (normal.cdf(x) - low) / (high - low)).unwrap();
        assert!(found.p > 1e-4, "{options}: {found:?}");
    }
}

#[test]
fn zones_get_their_shares_and_are_even_within() {
    let cases = [
        ("zoned:50/10:30/20:20/70", vec![(0.5, 100), (0.3, 200), (0.2, 700)]),
        ("zoned_abs:50/400k:30/800k:20/2800k", vec![(0.5, 100), (0.3, 200), (0.2, 700)]),
        ("zoned:60/10:0/40:40/50", vec![(0.6, 100), (0.0, 400), (0.4, 500)]),
    ];
    for (options, zones) in cases {
        let seen = counts(&format!("random_distribution={options}"), 1000, 100_000);
        let mut weights = Vec::new();
        for (share, blocks) in zones {
            weights.extend(std::iter::repeat_n(share / f64::from(blocks), blocks as usize));
        }
        let freedom = weights.iter().filter(|weight| **weight > 0.0).count() as u64 - 1;
        let (some, law): (Vec<u64>, Vec<f64>) =
            seen.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0).map(|(n, w)| (*n, *w)).unzip();
        assert_eq!(some.iter().sum::<u64>(), seen.iter().sum::<u64>(), "{options}: outside of all zones");
        let p = chi_squared(&some, &law, freedom);
        assert!(p > 1e-4, "{options}: {p}");
    }
}

#[test]
fn directions_have_their_own() {
    let options = "rw=randrw random_distribution=zoned:100/10:0/90,0/50:100/50";
    for io in many(&mut source(options, 4 * MIB), 1000) {
        let part = io.offset as f64 / (4 * MIB) as f64;
        match io.direction {
            kelvin_storage::Direction::Read => assert!(part < 0.1),
            _ => assert!(part >= 0.5),
        }
    }
}
