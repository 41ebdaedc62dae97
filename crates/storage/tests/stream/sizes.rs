//! The lengths of I/Os, and the alignment of their offsets.

use std::collections::BTreeMap;

use kelvin_storage::{Direction, Io};

use crate::statistics::chi_squared;
use crate::support::{KIB, MIB, ios, many, source};

fn by_length(ios: &[Io]) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    for io in ios {
        *all.entry(u64::from(io.length) / KIB).or_default() += 1;
    }
    all
}

#[test]
fn a_range_is_even_over_the_multiples_of_its_smallest() {
    for rw in ["read", "randread norandommap=1"] {
        let seen = by_length(&many(&mut source(&format!("rw={rw} bsrange=4k-32k"), 1 << 30), 20_000));
        assert!(seen.keys().copied().eq((1..=8).map(|n| n * 4)), "{rw}: {seen:?}");
        let p = chi_squared(&seen.values().copied().collect::<Vec<_>>(), &[1.0; 8], 7);
        assert!(p > 1e-4, "{rw}: {seen:?}");
    }
}

#[test]
fn unaligned_lengths_are_any_of_the_range() {
    let all = ios(&mut source("rw=read bsrange=1000-5000 bs_unaligned=1", 64 * MIB));
    let lengths: Vec<f64> = all.iter().map(|io| (f64::from(io.length) - 999.5) / 4001.0).collect();
    let found = kelvin_stats::kolmogorov::one_sample(&lengths[..10_000], |x| x).unwrap();
    assert!(found.p > 1e-4, "{found:?}");
    // Consecutive without gaps, up to a remainder that is too short.
    let end = all.iter().fold(0, |end, io| {
        assert_eq!(io.offset, end);
        end + u64::from(io.length)
    });
    assert!(64 * MIB - end < 1000, "{end}");
}

#[test]
fn a_split_has_its_shares() {
    for rw in ["write", "randwrite norandommap=1"] {
        let options = format!("rw={rw} bssplit=4k/10:64k/50:32k/40");
        let seen = by_length(&many(&mut source(&options, 1 << 30), 20_000));
        assert!(seen.keys().eq(&[4, 32, 64]));
        let p = chi_squared(&seen.values().copied().collect::<Vec<_>>(), &[0.1, 0.4, 0.5], 2);
        assert!(p > 1e-4, "{rw}: {seen:?}");
    }
}

#[test]
fn directions_have_their_own() {
    let all = many(&mut source("rw=randrw bs=4k,16k norandommap=1", 64 * MIB), 5000);
    for io in all {
        let size = if io.direction == Direction::Read { 4 * KIB } else { 16 * KIB };
        assert!(u64::from(io.length) == size && io.offset.is_multiple_of(size), "{io:?}");
    }
}

#[test]
fn sequential_and_random_have_their_own_where_asked() {
    let options = "rw=randread bs=4k,16k bs_is_seq_rand=1 percentage_random=30 norandommap=1";
    let all = ios(&mut source(options, 64 * MIB));
    let mut end = u64::MAX;
    let (mut sequential, mut random) = (0, 0);
    for io in &all {
        if io.length == 4096 {
            assert!(io.offset == end || io.offset == 0, "{io:?} behind {end}");
            sequential += 1;
        } else {
            assert_eq!(io.length, 16_384);
            random += 1;
        }
        end = io.offset + u64::from(io.length);
    }
    let p = chi_squared(&[random, sequential], &[0.3, 0.7], 1);
    assert!(p > 1e-4, "{random}, {sequential}");
    assert!(ios(&mut source("rw=read bs=4k,16k bs_is_seq_rand=1", MIB)).iter().all(|io| io.length == 4096));
    assert!(
        ios(&mut source("rw=randread bs=4k,16k bs_is_seq_rand=1", MIB)).iter().all(|io| io.length == 16_384)
    );
}

#[test]
fn blockalign_is_what_offsets_are_multiples_of() {
    for (align, fine) in [("64k", 64 * KIB), ("512", 512)] {
        let all = many(&mut source(&format!("rw=randread blockalign={align}"), 16 * MIB), 4096);
        assert!(all.iter().all(|io| io.length == 4096 && io.offset.is_multiple_of(fine)));
        let places = (16 * MIB - 4 * KIB) / fine + 1;
        let mut seen = vec![0_u64; 64];
        let mut weights = vec![0.0; 64];
        for place in 0..places {
            weights[(place * 64 / places) as usize] += 1.0;
        }
        for io in &all {
            seen[(io.offset / fine * 64 / places) as usize] += 1;
        }
        let p = chi_squared(&seen, &weights, 63);
        assert!(p > 1e-4, "{align}: {p}");
    }
}

/// With several sizes and a map, every byte is used exactly once in a pass.
#[test]
fn several_sizes_cover_each_byte_once() {
    for options in [
        "rw=randread bsrange=4k-16k",
        "rw=randwrite bssplit=4k/50:16k/30:64k/20",
        "rw=randrw bs=4k,8k",
        "rw=randrw bssplit=4k/50:8k/50,16k/100 rwmixread=20",
        "rw=randread bsrange=4k-16k randrepeat=0",
    ] {
        let mut source = source(options, 8 * MIB);
        for _ in 0..2 {
            let mut all = ios(&mut source);
            let drawn = all.len();
            all.sort_unstable_by_key(|io| io.offset);
            let end = all.iter().fold(0, |end, io| {
                assert_eq!(io.offset, end, "{options}");
                end + u64::from(io.length)
            });
            assert_eq!(end, 8 * MIB, "{options}");
            assert!(drawn > 100);
            source.restart();
        }
    }
    // While there is room, the sizes are those of the split.
    let options = "rw=randwrite bssplit=4k/50:16k/30:64k/20";
    let begun: Vec<Io> = many(&mut source(options, 1 << 30), 500);
    let seen = by_length(&begun);
    let p = chi_squared(&[seen[&4], seen[&16], seen[&64]], &[0.5, 0.3, 0.2], 2);
    assert!(p > 1e-3, "{seen:?}");
}

/// A whole pass has fio's shares: those of fio 3.33 are 0.608, 0.081, 0.055 and 0.256, since it cuts lengths to the
/// remaining gap instead of drawing until a small one fits.
#[test]
fn a_whole_pass_of_a_split_has_fios_shares() {
    let all = ios(&mut source("rw=randread bssplit=4k/50:16k/50", 64 * MIB));
    let seen = by_length(&all);
    for (kib, share) in [(4, 0.608), (8, 0.081), (12, 0.055), (16, 0.256)] {
        let found = seen[&kib] as f64 / all.len() as f64;
        assert!((found - share).abs() < 0.02, "{kib} KiB: {found} instead of {share}");
    }
}
