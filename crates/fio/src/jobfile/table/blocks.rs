//! How long I/Os are.

use super::entry::{OptionEntry, ValueKind, option};
use crate::Direction;
use crate::jobfile::draft::SplitPart;
use crate::jobfile::special::split;
use crate::jobfile::value::Value;

/// As fio draws: a length of the split is rounded down to a multiple of the range's least, and is no more than its most.
fn cut(split: &mut [SplitPart], (least, most): (u32, u32)) {
    for (length, _) in split {
        let rounded = *length - *length % least.max(1);
        *length = rounded.clamp(least, most.max(least));
    }
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("bs", ValueKind::Sizes, "block size of I/Os", |draft, value| {
        value.triple(&mut draft.sizes, |part| value.block_of(part).map(Some))
    })
    .alias(&["blocksize"])
    .default("4k"),
    option(
        "bsrange",
        ValueKind::Ranges,
        "range of block sizes, multiples of the smallest",
        |draft, value| {
            // fio's manual has the slash for a comma; fio itself takes the first range for all directions.
            if value.text()?.contains('/') {
                return Err("use a comma between ranges: fio ignores what follows a slash".into());
            }
            value.triple(&mut draft.ranges, |part| {
                Value::range_of(part, |size| value.block_of(size)).map(Some)
            })?;
            for direction in Direction::ALL {
                if let (Some(split), Some(range)) = (&mut draft.splits[direction], draft.ranges[direction]) {
                    value.remark("the sizes of the preceding bssplit are limited to this range, as in fio");
                    cut(split, range);
                }
            }
            Ok(())
        },
    )
    .alias(&["blocksize_range"]),
    option(
        "bssplit",
        ValueKind::Split,
        "block sizes and their percentages: 4k/50:64k/30:128k/",
        |draft, value| value.triple(&mut draft.splits, |part| split::read(value, part).map(Some)),
    ),
    option(
        "bs_unaligned",
        ValueKind::Flag,
        "use any block size in the range, not only multiples",
        |draft, value| {
            draft.job.blocks.unaligned = value.flag()?;
            Ok(())
        },
    )
    .alias(&["blocksize_unaligned"])
    .default("0"),
    option(
        "bs_is_seq_rand",
        ValueKind::Bool,
        "the read size is for sequential I/O, the write size for random I/O",
        |draft, value| {
            draft.job.blocks.by_sequence = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("ba", ValueKind::Sizes, "alignment of random offsets", |draft, value| {
        value.triple(&mut draft.job.blocks.align, |part| value.count_of(part, 1).map(Some))
    })
    .alias(&["blockalign"])
    .default("the smallest block size"),
];
