//! Properties of any job: nothing outside the regions, only requested lengths, and an end.

use kelvin_storage::job::{
    AbsoluteZone, BlockSizes, Distribution, FileChoice, FileService, RandomGenerator, Sequencer, Strided,
    Zone,
};
use kelvin_storage::stream::IoSource;
use kelvin_storage::{NextIo, PerDirection};
use proptest::prelude::*;

use crate::support::{job, target};

fn kinds() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("read"),
        Just("write"),
        Just("trim"),
        Just("rw"),
        Just("randread"),
        Just("randwrite"),
        Just("randtrim"),
        Just("randrw"),
        Just("trimwrite"),
        Just("randtrimwrite"),
    ]
}

fn sizes() -> impl Strategy<Value = BlockSizes> {
    let size = || prop_oneof![(1_u32..20).prop_map(|n| n * 512), 1_u32..9000];
    prop_oneof![
        size().prop_map(BlockSizes::One),
        (size(), 0_u32..30_000).prop_map(|(low, more)| BlockSizes::Range(low, low + more)),
        proptest::collection::vec((size(), 1_u32..10), 1..5).prop_map(|parts| {
            let whole: u32 = parts.iter().map(|part| part.1).sum();
            let share = |part: u32| f64::from(part) * 100.0 / f64::from(whole);
            BlockSizes::Split(parts.into_iter().map(|(size, part)| (size, share(part))).collect())
        }),
    ]
}

fn distributions() -> impl Strategy<Value = Distribution> {
    let center = || proptest::option::of(0.0..=1.0);
    prop_oneof![
        3 => Just(Distribution::Uniform),
        1 => (0.1..3.0, center()).prop_map(|(theta, center)| Distribution::Zipf { theta, center }),
        1 => (0.01..0.99, center()).prop_map(|(h, center)| Distribution::Pareto { h, center }),
        1 => (0.0..100.0, center()).prop_map(|(deviation, center)| Distribution::Normal { deviation, center }),
        1 => proptest::collection::vec((0.0..50.0, 0.0..60.0), 1..6).prop_map(|zones| {
            Distribution::Zoned(zones.into_iter().map(|(access, share)| Zone { access, share }).collect())
        }),
        1 => proptest::collection::vec((0.0..50.0, 0_u64..200_000), 1..6).prop_map(|zones| {
            let zone = |(access, bytes)| AbsoluteZone { access, bytes };
            Distribution::ZonedAbsolute(zones.into_iter().map(zone).collect())
        }),
    ]
}

fn choices() -> impl Strategy<Value = FileChoice> {
    prop_oneof![
        Just(FileChoice::RoundRobin),
        Just(FileChoice::Sequential),
        Just(FileChoice::Random),
        Just(FileChoice::Zipf(1.3)),
        Just(FileChoice::Pareto(0.2)),
        Just(FileChoice::Normal(15.0)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn regions_are_never_left(
        rw in kinds(),
        blocks in (sizes(), sizes(), sizes()),
        drawn in (distributions(), distributions()),
        flags in (any::<[bool; 6]>(), 0_u8..4),
        percentages in (0.0..=100.0, 0.0..=100.0),
        align in proptest::option::of(1_u64..70_000),
        modifier in proptest::option::of(-30_000_i64..30_000),
        zones in proptest::option::of((0_u64..50_000, 1_u64..50_000, 0_u64..50_000)),
        service in (choices(), 1_u64..5, proptest::option::of(1_u32..6)),
        regions in proptest::collection::vec((0_u64..1 << 40, 0_u64..300_000), 1..6),
        seed: u64,
    ) {
        let ([no_map, lfsr, repeatable, unaligned, by_sequence, identical], extra) = flags;
        let mut job = job(&format!("rw={rw} randseed=1"));
        let pattern = &mut job.pattern;
        pattern.no_random_map = no_map;
        pattern.generator = if lfsr { RandomGenerator::Lfsr } else { RandomGenerator::Random };
        (pattern.repeatable, pattern.seed) = (repeatable, Some(seed));
        pattern.sequencer = if identical { Sequencer::Identical } else { Sequencer::Sequential };
        pattern.distribution = PerDirection([drawn.0.clone(), drawn.1, drawn.0]);
        if extra & 1 == 1 {
            pattern.percentage_random = PerDirection([percentages.0, percentages.1, percentages.0]);
        }
        pattern.modifier = modifier.map(|modifier| if pattern.random { modifier.abs() % 20 + 1 } else { modifier });
        pattern.zones = zones.map(|(range, size, skip)| Strided { range, size, skip });
        job.blocks.sizes = PerDirection([blocks.0, blocks.1, blocks.2]);
        (job.blocks.unaligned, job.blocks.by_sequence) = (unaligned, by_sequence);
        job.blocks.align = PerDirection::all(align.filter(|_| extra & 2 == 2));
        job.targets.service = FileService { choice: service.0, ios_per_switch: service.1 };
        job.targets.open_files = service.2;
        let targets: Vec<_> =
            regions.iter().enumerate().map(|(i, (begin, length))| target(i, *begin, *length)).collect();
        let source = IoSource::new(&job, 0, &targets, 7);
        // Too small for a block or a zone: such jobs are refused, and must not be the majority.
        prop_assume!(source.is_ok());
        let mut source = source.unwrap();
        for _ in 0..2 {
            let (mut moved, mut calls) = (0, 0_u64);
            loop {
                calls += 1;
                prop_assert!(calls < 4_000_000, "no end");
                match source.next() {
                    NextIo::Io(io) => {
                        let target = &targets[io.target as usize];
                        prop_assert!(job.pattern.has(io.direction));
                        prop_assert!(io.length > 0);
                        prop_assert!(io.offset >= target.begin);
                        prop_assert!(io.offset + u64::from(io.length) <= target.begin + target.length, "{:?}", io);
                        let largest = job.blocks.sizes.0.iter().map(BlockSizes::largest).max();
                        prop_assert!(Some(io.length) <= largest);
                        moved += u64::from(io.length);
                    }
                    NextIo::End => break,
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert!(moved > 0);
            // An I/O that begins below the bound is done completely, and so is a write after its trim.
            let largest = job.blocks.sizes.0.iter().map(BlockSizes::largest).max().map_or(0, u64::from);
            let most = source.pass_bytes() + 2 * largest;
            prop_assert!(moved < most, "{moved} of {}", source.pass_bytes());
            source.restart();
        }
    }
}
