//! Which I/Os in which order.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::job::{Generator, Sequencer};
use crate::jobfile::special::distribution;
use crate::jobfile::value::percent;

const RW: &[(&str, &str)] = &[
    ("read", "sequential reads"),
    ("write", "sequential writes"),
    ("trim", "sequential trims"),
    ("randread", "random reads"),
    ("randwrite", "random writes"),
    ("randtrim", "random trims"),
    ("rw", "sequential, reads and writes mixed"),
    ("readwrite", "as rw"),
    ("randrw", "random, reads and writes mixed"),
    ("trimwrite", "sequential: each block is trimmed, then written"),
    ("randtrimwrite", "random: each block is trimmed, then written"),
];

const SEQUENCER: &[(&str, &str)] = &[
    ("sequential", "rw=randread:8 is eight in a row, then a new place"),
    ("identical", "rw=randread:8 is the same place eight times"),
];

const GENERATOR: &[(&str, &str)] = &[
    ("tausworthe", "random, with a map of what was drawn"),
    ("tausworthe64", "as tausworthe: Kelvin's numbers have 64 bits always"),
    ("lfsr", "a permutation, which needs no map"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "rw",
        ValueKind::Words(RW),
        "what is done, in which order; rw=…:N is a modifier",
        |draft, value| {
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
        },
    )
    .alias(&["readwrite"])
    .default("read"),
    option("rw_sequencer", ValueKind::Words(SEQUENCER), "what the modifier of rw means", |draft, value| {
        draft.job.pattern.sequencer = match value.word(SEQUENCER)? {
            "identical" => Sequencer::Identical,
            _ => Sequencer::Sequential,
        };
        Ok(())
    })
    .default("sequential"),
    option("rwmixread", ValueKind::Percent, "the chance of a read in a mix", |draft, value| {
        draft.job.pattern.mix_read = value.percent()?;
        Ok(())
    })
    .default("50"),
    option(
        "rwmixwrite",
        ValueKind::Percent,
        "the chance of a write in a mix; the last of both counts",
        |draft, value| {
            draft.job.pattern.mix_read = 100.0 - value.percent()?;
            Ok(())
        },
    )
    .default("50"),
    option("percentage_random", ValueKind::Percents, "how much of random I/O is random", |draft, value| {
        value.triple(&mut draft.job.pattern.percentage_random, |part| percent(part.trim_end_matches('%')))
    })
    .default("100"),
    option(
        "random_distribution",
        ValueKind::Words(distribution::WORDS),
        "how often the places of a target are drawn",
        |draft, value| {
            draft.job.pattern.distribution = distribution::read(value)?;
            Ok(())
        },
    )
    .default("random"),
    option("norandommap", ValueKind::Flag, "places may be drawn again before all were", |draft, value| {
        draft.job.pattern.no_random_map = value.flag()?;
        Ok(())
    })
    .default("0"),
    option(
        "softrandommap",
        ValueKind::Bool,
        "do without the map when there is no memory for it",
        |draft, value| {
            draft.job.pattern.soft_random_map = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "random_generator",
        ValueKind::Words(GENERATOR),
        "where random places come from",
        |draft, value| {
            draft.job.pattern.generator = match value.word(GENERATOR)? {
                "lfsr" => Generator::Lfsr,
                _ => Generator::Random,
            };
            Ok(())
        },
    )
    .default("tausworthe"),
    option("randrepeat", ValueKind::Bool, "the same places in every run", |draft, value| {
        draft.job.pattern.repeatable = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("allrandrepeat", ValueKind::Bool, "everything random the same in every run", |draft, value| {
        draft.job.pattern.all_repeatable = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("randseed", ValueKind::Number, "where random numbers begin", |draft, value| {
        let bounds = i128::from(i64::MIN)..=i128::from(u64::MAX);
        draft.job.pattern.seed = Some(value.number_of(value.text()?, &bounds)? as u64);
        Ok(())
    }),
    refused(
        "random_sequence_stride",
        "steps between random places",
        "it is of later versions of fio: leave it out",
    ),
    refused(
        "rwmixcycle",
        "how long reads or writes stay alone in a mix",
        "it is gone from fio, too: leave it out",
    ),
    refused("sprandom", "preconditioning by one random pass", "use kelvin io --prepare"),
];
