//! How many I/Os at a time.

use super::entry::{OptionEntry, ValueKind, option};

const MODE: &[(&str, &str)] =
    &[("inline", "the worker submits"), ("offload", "separate threads submit and wait")];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("iodepth", ValueKind::Number, "number of I/Os in flight", |draft, value| {
        // What a ring of the kernel's can hold.
        draft.job.depth.depth = value.small(1..=32_768)?;
        Ok(())
    })
    .default("1"),
    option("iodepth_batch", ValueKind::Number, "I/Os submitted at a time; 0 for all", |draft, value| {
        draft.job.depth.submit = Some(value.small(0..=32_768)?);
        Ok(())
    })
    .alias(&["iodepth_batch_submit"])
    .default("whichever is faster (fio: 1)"),
    option(
        "iodepth_batch_complete_min",
        ValueKind::Number,
        "minimum completions to wait for; 0 polls",
        |draft, value| {
            draft.job.depth.complete_min = Some(value.small(0..=32_768)?);
            Ok(())
        },
    )
    .alias(&["iodepth_batch_complete"])
    .default("whichever is faster (fio: 1)"),
    option(
        "iodepth_batch_complete_max",
        ValueKind::Number,
        "maximum completions retrieved at a time",
        |draft, value| {
            draft.job.depth.complete_max = Some(value.small(0..=32_768)?).filter(|most| *most > 0);
            Ok(())
        },
    )
    .default("the minimum"),
    option("iodepth_low", ValueKind::Number, "depth at which the queue is refilled", |draft, value| {
        draft.job.depth.low = Some(value.small(0..=32_768)?).filter(|low| *low > 0);
        Ok(())
    })
    .default("the depth"),
    option("serialize_overlap", ValueKind::Bool, "serialize I/Os that overlap", |draft, value| {
        draft.job.depth.serialize_overlap = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("io_submit_mode", ValueKind::Words(MODE), "which thread submits I/Os", |draft, value| {
        draft.job.depth.offload = value.word(MODE)? == "offload";
        Ok(())
    })
    .default("inline"),
];
