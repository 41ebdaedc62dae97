//! How many I/Os at a time.

use super::entry::{OptionEntry, ValueKind, option};

const MODE: &[(&str, &str)] =
    &[("inline", "the worker submits"), ("offload", "threads of their own submit and wait")];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("iodepth", ValueKind::Number, "how many I/Os are under way", |draft, value| {
        // What a ring of the kernel's can hold.
        draft.job.depth.depth = value.small(1..=32_768)?;
        Ok(())
    })
    .default("1"),
    option(
        "iodepth_batch",
        ValueKind::Number,
        "how many are handed over at a time; 0 for all",
        |draft, value| {
            draft.job.depth.submit = Some(value.small(0..=32_768)?);
            Ok(())
        },
    )
    .alias(&["iodepth_batch_submit"])
    .default("what is faster (fio: 1)"),
    option(
        "iodepth_batch_complete_min",
        ValueKind::Number,
        "how many are waited for at a time; 0 polls",
        |draft, value| {
            draft.job.depth.complete_min = Some(value.small(0..=32_768)?);
            Ok(())
        },
    )
    .alias(&["iodepth_batch_complete"])
    .default("what is faster (fio: 1)"),
    option(
        "iodepth_batch_complete_max",
        ValueKind::Number,
        "how many are taken at a time at most",
        |draft, value| {
            draft.job.depth.complete_max = Some(value.small(0..=32_768)?).filter(|most| *most > 0);
            Ok(())
        },
    )
    .default("the minimum"),
    option(
        "iodepth_low",
        ValueKind::Number,
        "how far the queue empties before it is filled again",
        |draft, value| {
            draft.job.depth.low = Some(value.small(0..=32_768)?).filter(|low| *low > 0);
            Ok(())
        },
    )
    .default("the depth"),
    option(
        "serialize_overlap",
        ValueKind::Bool,
        "I/Os on the same bytes wait for each other",
        |draft, value| {
            draft.job.depth.serialize_overlap = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("io_submit_mode", ValueKind::Words(MODE), "who submits", |draft, value| {
        draft.job.depth.offload = value.word(MODE)? == "offload";
        Ok(())
    })
    .default("inline"),
];
