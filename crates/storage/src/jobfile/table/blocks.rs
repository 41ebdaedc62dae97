//! How long I/Os are.

use super::entry::{Entry, Kind, option};
use crate::jobfile::special::split;
use crate::jobfile::value::Value;

pub(crate) const OPTIONS: &[Entry] = &[
    option("bs", Kind::Sizes, "length of an I/O", |draft, value| {
        value.triple(&mut draft.sizes, |part| value.block_of(part).map(Some))
    })
    .alias(&["blocksize"])
    .default("4k"),
    option(
        "bsrange",
        Kind::Ranges,
        "lengths from one to another, multiples of the smallest",
        |draft, value| {
            // fio's manual has the slash for a comma; fio itself takes the first range for all directions.
            if value.text()?.contains('/') {
                return Err("write a comma between ranges: fio leaves out what follows a slash".into());
            }
            // fio would cut the split's lengths to the range, which neither of the two says.
            if draft.splits.0.iter().any(Option::is_some) {
                return Err("contradicts the bssplit before it: leave out one of them".into());
            }
            value.triple(&mut draft.ranges, |part| {
                Value::range_of(part, |size| value.block_of(size)).map(Some)
            })
        },
    )
    .alias(&["blocksize_range"]),
    option("bssplit", Kind::Text, "lengths and their percentages: 4k/50:64k/30:128k/", |draft, value| {
        value.triple(&mut draft.splits, |part| split::read(value, part).map(Some))
    }),
    option("bs_unaligned", Kind::Flag, "any length of the range, to the byte", |draft, value| {
        draft.job.blocks.unaligned = value.flag()?;
        Ok(())
    })
    .alias(&["blocksize_unaligned"])
    .default("0"),
    option(
        "bs_is_seq_rand",
        Kind::Bool,
        "the length of reads is that of sequential, of writes that of random I/O",
        |draft, value| {
            draft.job.blocks.by_sequence = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("blockalign", Kind::Sizes, "what random places are multiples of", |draft, value| {
        value.triple(&mut draft.job.blocks.align, |part| value.count_of(part, 1).map(Some))
    })
    .alias(&["ba"])
    .default("the smallest length"),
];
