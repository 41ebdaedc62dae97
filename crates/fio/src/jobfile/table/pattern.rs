//! Which I/Os in which order.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::job::{RandomGenerator, Sequencer};
use crate::jobfile::special::distribution;
use crate::jobfile::value::percent;

const RW: &[(&str, &str)] = &[
    ("read", "sequential reads"),
    ("write", "sequential writes"),
    ("trim", "sequential trims"),
    ("randread", "random reads"),
    ("randwrite", "random writes"),
    ("randtrim", "random trims"),
    ("rw", "mixed sequential reads and writes"),
    ("readwrite", "same as rw"),
    ("randrw", "mixed random reads and writes"),
    ("trimwrite", "sequential: each block is trimmed, then written"),
    ("randtrimwrite", "random: each block is trimmed, then written"),
];

const SEQUENCER: &[(&str, &str)] = &[
    ("sequential", "rw=randread:8 does eight sequential I/Os, then picks a new offset"),
    ("identical", "rw=randread:8 uses the same offset eight times"),
];

const GENERATOR: &[(&str, &str)] = &[
    ("tausworthe", "random, with a map of used blocks"),
    ("tausworthe64", "same as tausworthe: Kelvin always uses 64 bits"),
    ("lfsr", "a permutation, which needs no map"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("rw", ValueKind::Words(RW), "I/O pattern; rw=…:N adds a modifier", |draft, value| {
        let (word, rest) = value.word_and_rest(RW)?;
        let pattern = &mut draft.job.pattern;
        let plain = word.strip_prefix("rand");
        pattern.random = plain.is_some();
        let plain = plain.unwrap_or(word);
        pattern.reads = matches!(plain, "read" | "rw" | "readwrite");
        pattern.writes = matches!(plain, "write" | "rw" | "readwrite" | "trimwrite");
        pattern.trims = matches!(plain, "trim" | "trimwrite");
        pattern.trim_then_write = plain == "trimwrite";
        let modifier = match rest {
            None | Some("") => None,
            Some(_) if pattern.random => Some(value.count_of(rest.unwrap_or_default(), 0)? as i64),
            Some(rest) => {
                let bounds = i128::from(-i64::MAX)..=i128::from(i64::MAX);
                Some(value.number_of(rest, &bounds)? as i64)
            }
        };
        pattern.modifier = modifier.filter(|modifier| *modifier != 0);
        Ok(())
    })
    .alias(&["readwrite"])
    .default("read"),
    option("rw_sequencer", ValueKind::Words(SEQUENCER), "how the rw modifier is applied", |draft, value| {
        draft.job.pattern.sequencer = match value.word(SEQUENCER)? {
            "identical" => Sequencer::Identical,
            _ => Sequencer::Sequential,
        };
        Ok(())
    })
    .default("sequential"),
    option("rwmixread", ValueKind::Percent, "percentage of reads in a mixed workload", |draft, value| {
        draft.job.pattern.mix_read = value.percent()?;
        Ok(())
    })
    .default("50"),
    option(
        "rwmixwrite",
        ValueKind::Percent,
        "percentage of writes in a mixed workload; overrides an earlier rwmixread",
        |draft, value| {
            draft.job.pattern.mix_read = 100.0 - value.percent()?;
            Ok(())
        },
    )
    .default("50"),
    option(
        "percentage_random",
        ValueKind::Percents,
        "percentage of random I/Os in a random pattern; the rest is sequential",
        |draft, value| {
            value.triple(&mut draft.job.pattern.percentage_random, |part| percent(part.trim_end_matches('%')))
        },
    )
    .default("100"),
    option(
        "random_distribution",
        ValueKind::Words(distribution::WORDS),
        "distribution of random offsets",
        |draft, value| {
            draft.job.pattern.distribution = distribution::read(value)?;
            Ok(())
        },
    )
    .default("random"),
    option("norandommap", ValueKind::Flag, "allow offsets to repeat before all are used", |draft, value| {
        draft.job.pattern.no_random_map = value.flag()?;
        Ok(())
    })
    .default("0"),
    option(
        "softrandommap",
        ValueKind::Bool,
        "run without the map if it does not fit in memory",
        |draft, value| {
            draft.job.pattern.soft_random_map = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("random_generator", ValueKind::Words(GENERATOR), "generator of random offsets", |draft, value| {
        draft.job.pattern.generator = match value.word(GENERATOR)? {
            "lfsr" => RandomGenerator::Lfsr,
            _ => RandomGenerator::Random,
        };
        Ok(())
    })
    .default("tausworthe"),
    option("randrepeat", ValueKind::Bool, "use the same offsets in every run", |draft, value| {
        draft.job.pattern.repeatable = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option(
        "allrandrepeat",
        ValueKind::Bool,
        "use the same seeds for all random choices in every run",
        |draft, value| {
            draft.job.pattern.all_repeatable = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("randseed", ValueKind::Number, "seed of the random numbers", |draft, value| {
        let bounds = i128::from(i64::MIN)..=i128::from(u64::MAX);
        draft.job.pattern.seed = Some(value.number_of(value.text()?, &bounds)? as u64);
        Ok(())
    }),
    refused(
        "random_sequence_stride",
        "steps between random offsets",
        "only in later versions of fio: remove it",
    ),
    refused("rwmixcycle", "period of the read/write mix", "removed from fio too: remove it"),
    refused("sprandom", "preconditioning with one random pass", "use kelvin io --prepare"),
];
