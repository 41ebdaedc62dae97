//! The text that a worker's data is derived from. Blocks written by an earlier release are verified by it, so it must
//! not change when types and fields are renamed: new options are added at the end, and only if they are set.

use crate::job::{BlockSizes, Blocks, Distribution, Job, Pattern, RandomGenerator, Sequencer, Strided};
use crate::{PerDirection, Target};

/// The offsets that a worker draws, and their order.
pub(super) fn draws(job: &Job, clone: u32, targets: &[Target]) -> String {
    let lengths: Vec<u64> = targets.iter().map(|target| target.length).collect();
    format!("{} {clone} {} {} {lengths:?}", job.name, pattern(&job.pattern), blocks(&job.blocks))
}

fn pattern(of: &Pattern) -> String {
    let sequencer = match of.sequencer {
        Sequencer::Sequential => "Sequential",
        Sequencer::Identical => "Identical",
    };
    let generator = match of.generator {
        RandomGenerator::Random => "Random",
        RandomGenerator::Lfsr => "Lfsr",
    };
    let zones = of.zones.map_or_else(
        || "None".into(),
        |Strided { range, size, skip }| {
            format!("Some(Strided {{ range: {range}, size: {size}, skip: {skip} }})")
        },
    );
    format!(
        "Pattern {{ reads: {}, writes: {}, trims: {}, trim_then_write: {}, random: {}, modifier: {:?}, sequencer: \
         {sequencer}, mix_read: {:?}, percentage_random: {}, distribution: {}, no_random_map: {}, soft_random_map: {}, \
         generator: {generator}, repeatable: {}, all_repeatable: {}, seed: {:?}, zones: {zones} }}",
        of.reads,
        of.writes,
        of.trims,
        of.trim_then_write,
        of.random,
        of.modifier,
        of.mix_read,
        each(&of.percentage_random, |percent| format!("{percent:?}")),
        each(&of.distribution, distribution),
        of.no_random_map,
        of.soft_random_map,
        of.repeatable,
        of.all_repeatable,
        of.seed,
    )
}

fn distribution(of: &Distribution) -> String {
    let list = |zones: Vec<String>| zones.join(", ");
    match of {
        Distribution::Uniform => "Uniform".into(),
        Distribution::Zipf { theta, center } => format!("Zipf {{ theta: {theta:?}, center: {center:?} }}"),
        Distribution::Pareto { h, center } => format!("Pareto {{ h: {h:?}, center: {center:?} }}"),
        Distribution::Normal { deviation, center } => {
            format!("Normal {{ deviation: {deviation:?}, center: {center:?} }}")
        }
        Distribution::Zoned(zones) => {
            let zone = |zone: &crate::job::Zone| {
                format!("Zone {{ access: {:?}, share: {:?} }}", zone.access, zone.share)
            };
            format!("Zoned([{}])", list(zones.iter().map(zone).collect()))
        }
        Distribution::ZonedAbsolute(zones) => {
            let zone = |zone: &crate::job::AbsoluteZone| {
                format!("AbsoluteZone {{ access: {:?}, bytes: {} }}", zone.access, zone.bytes)
            };
            format!("ZonedAbsolute([{}])", list(zones.iter().map(zone).collect()))
        }
    }
}

fn blocks(of: &Blocks) -> String {
    let sizes = |of: &BlockSizes| match of {
        BlockSizes::One(size) => format!("One({size})"),
        BlockSizes::Range(least, most) => format!("Range({least}, {most})"),
        BlockSizes::Split(parts) => format!("Split({parts:?})"),
    };
    format!(
        "Blocks {{ sizes: {}, unaligned: {}, by_sequence: {}, align: {} }}",
        each(&of.sizes, sizes),
        of.unaligned,
        of.by_sequence,
        each(&of.align, |align| format!("{align:?}")),
    )
}

fn each<T>(of: &PerDirection<T>, text: impl Fn(&T) -> String) -> String {
    format!("PerDirection([{}])", of.0.iter().map(text).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{AbsoluteZone, Zone};

    #[test]
    fn the_text_is_that_of_the_first_release() {
        let mut job = Job::named("one");
        assert_eq!(
            draws(&job, 3, &[]),
            "one 3 Pattern { reads: true, writes: false, trims: false, trim_then_write: false, random: false, modifier: \
             None, sequencer: Sequential, mix_read: 50.0, percentage_random: PerDirection([100.0, 100.0, 100.0]), \
             distribution: PerDirection([Uniform, Uniform, Uniform]), no_random_map: false, soft_random_map: false, \
             generator: Random, repeatable: true, all_repeatable: false, seed: None, zones: None } Blocks { sizes: \
             PerDirection([One(4096), One(4096), One(4096)]), unaligned: false, by_sequence: false, align: \
             PerDirection([None, None, None]) } []"
        );
        let zipf = Distribution::Zipf { theta: 1.2, center: Some(0.25) };
        job.pattern = Pattern {
            modifier: Some(-8),
            sequencer: Sequencer::Identical,
            generator: RandomGenerator::Lfsr,
            seed: Some(7),
            zones: Some(Strided { range: 1, size: 2, skip: 3 }),
            distribution: PerDirection([
                zipf,
                Distribution::Pareto { h: 0.2, center: None },
                Distribution::Normal { deviation: 10.0, center: None },
            ]),
            ..job.pattern
        };
        job.blocks = Blocks {
            sizes: PerDirection([
                BlockSizes::Range(512, 4096),
                BlockSizes::Split(vec![(4096, 50.0), (8192, 50.0)]),
                BlockSizes::One(1),
            ]),
            align: PerDirection([None, Some(64), None]),
            ..job.blocks
        };
        let text = draws(&job, 0, &[]);
        for part in [
            "modifier: Some(-8), sequencer: Identical,",
            "PerDirection([Zipf { theta: 1.2, center: Some(0.25) }, Pareto { h: 0.2, center: None }, Normal { \
             deviation: 10.0, center: None }])",
            "generator: Lfsr, repeatable: true, all_repeatable: false, seed: Some(7), zones: Some(Strided { range: 1, \
             size: 2, skip: 3 }) }",
            "PerDirection([Range(512, 4096), Split([(4096, 50.0), (8192, 50.0)]), One(1)])",
            "align: PerDirection([None, Some(64), None])",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        let zoned =
            Distribution::Zoned(vec![Zone { access: 60.0, share: 10.0 }, Zone { access: 40.0, share: 90.0 }]);
        let absolute = Distribution::ZonedAbsolute(vec![AbsoluteZone { access: 100.0, bytes: 0 }]);
        assert_eq!(
            [distribution(&zoned), distribution(&absolute)],
            [
                "Zoned([Zone { access: 60.0, share: 10.0 }, Zone { access: 40.0, share: 90.0 }])",
                "ZonedAbsolute([AbsoluteZone { access: 100.0, bytes: 0 }])",
            ]
        );
    }
}
