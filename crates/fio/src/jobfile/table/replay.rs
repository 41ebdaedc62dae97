//! A trace instead of a pattern.

use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::job::ReplaySkip;
use crate::jobfile::lists;
use crate::jobfile::value::word;

const SKIP: &[(&str, &str)] = &[("read", "reads"), ("write", "writes"), ("trim", "trims"), ("sync", "syncs")];

const MERGE: &str = "traces are not merged: replay each with its own job, or merge them with blkparse";

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "read_iolog",
        ValueKind::Paths,
        "trace to replay; several are distributed over the workers",
        |draft, value| {
            draft.replay.files = lists::paths(value.text()?);
            if draft.replay.files.is_empty() { Err("no path is given".into()) } else { Ok(()) }
        },
    ),
    option("read_iolog_chunked", ValueKind::Bool, "read the trace during the replay", |draft, value| {
        draft.replay.chunked = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("replay_no_stall", ValueKind::Bool, "replay as fast as possible", |draft, value| {
        draft.replay.no_stall = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "replay_time_scale",
        ValueKind::Number,
        "speed in percent: 50 is half as fast as the trace",
        |draft, value| {
            draft.replay.time_scale = f64::from(value.small(1..=1_000_000)?);
            Ok(())
        },
    )
    .default("100"),
    option("replay_redirect", ValueKind::Text, "replay all I/O to this file or device", |draft, value| {
        draft.replay.redirect = Some(value.text()?.into());
        Ok(())
    }),
    option("replay_align", ValueKind::Size, "align offsets to this power of two", |draft, value| {
        let align = value.count(0)?;
        if align != 0 && !align.is_power_of_two() {
            return Err("must be a power of two".into());
        }
        draft.replay.align = Some(align).filter(|align| *align > 0);
        Ok(())
    }),
    option("replay_scale", ValueKind::Number, "divide offsets by this", |draft, value| {
        draft.replay.scale = Some(value.count(0)?).filter(|scale| *scale > 1);
        Ok(())
    })
    .default("1"),
    option(
        "replay_skip",
        ValueKind::Words(SKIP),
        "I/Os of the trace to skip; separate several with commas",
        |draft, value| {
            draft.replay.skip.clear();
            for part in value.text()?.split(',') {
                let skip = match word(part.trim(), SKIP)? {
                    "read" => ReplaySkip::Read,
                    "write" => ReplaySkip::Write,
                    "trim" => ReplaySkip::Trim,
                    _ => ReplaySkip::Sync,
                };
                if !draft.replay.skip.contains(&skip) {
                    draft.replay.skip.push(skip);
                }
            }
            Ok(())
        },
    ),
    option("write_iolog", ValueKind::Text, "write a trace of the I/Os to this file", |draft, value| {
        draft.job.logs.iolog = Some(value.text()?.into());
        Ok(())
    }),
    refused("merge_blktrace_file", "merge several traces into one", MERGE),
    refused("merge_blktrace_scalars", "speeds of the merged traces", MERGE),
    refused("merge_blktrace_iters", "how often each merged trace is used", MERGE),
];
