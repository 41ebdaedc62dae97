//! The engine and the options of specific engines.

use super::engines::{self, Carried};
use super::entry::{OptionEntry, ValueKind, option, refused};
use crate::PerDirection;
use crate::jobfile::special::priorities;
use crate::jobfile::value::{Value, percent};

const RING: &[&str] = &["io_uring"];
const PRIORITY: &[&str] = &["io_uring", "libaio"];

/// A value for reads and one for writes.
fn both(value: &Value<'_>, into: &mut [Option<u8>; 2], least: u32, most: u32) -> Result<(), String> {
    let [read, write] = *into;
    let mut values = PerDirection([read, write, None]);
    value.triple(&mut values, |part| value.small_of(part, least..=most).map(|number| Some(number as u8)))?;
    let [read, write, _] = values.0;
    *into = [read, write];
    Ok(())
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("ioengine", ValueKind::Text, "I/O engine; --enghelp lists the engines", |draft, value| {
        let name = value.text()?;
        let engine = engines::find(name)?;
        draft.job.engine.name = match engine.carried {
            Carried::As(name) => name,
            Carried::Instead(name, note) => {
                value.remark(note);
                name
            }
            Carried::Refused(reason) => return Err(format!("not supported: {reason}")),
        };
        name.clone_into(&mut draft.job.engine.given);
        Ok(())
    })
    .default("psync"),
    option("fixedbufs", ValueKind::Flag, "register buffers with the kernel", |draft, value| {
        draft.job.engine.fixed_buffers = Some(value.flag()?);
        Ok(())
    })
    .engines(RING)
    .default("whichever is faster"),
    option("registerfiles", ValueKind::Flag, "register files with the kernel", |draft, value| {
        draft.job.engine.register_files = Some(value.flag()?);
        Ok(())
    })
    .engines(RING)
    .default("whichever is faster"),
    option("sqthread_poll", ValueKind::Flag, "submit I/Os from a kernel thread", |draft, value| {
        draft.job.engine.sq_poll = value.flag()?;
        Ok(())
    })
    .engines(RING)
    .default("0"),
    option("sqthread_poll_cpu", ValueKind::Number, "CPU for the sqthread_poll thread", |draft, value| {
        draft.job.engine.sq_poll_cpu = Some(value.small(0..=65_535)?);
        Ok(())
    })
    .engines(RING),
    option(
        "hipri",
        ValueKind::Flag,
        "poll for completions instead of waiting for interrupts",
        |draft, value| {
            draft.job.engine.high_priority = value.flag()?;
            Ok(())
        },
    )
    .engines(&["io_uring", "pvsync2"])
    .default("0"),
    option(
        "hipri_percentage",
        ValueKind::Percent,
        "percentage of I/Os polled, with hipri",
        |draft, value| {
            draft.job.engine.high_priority_percentage = Some(value.percent()?);
            Ok(())
        },
    )
    .engines(&["pvsync2"])
    .default("100"),
    option(
        "nonvectored",
        ValueKind::Number,
        "use read and write instead of readv and writev",
        |draft, value| {
            // -1 means fio's own choice, which is the same.
            draft.job.engine.nonvectored = value.signed(-1..=1)? != 0;
            Ok(())
        },
    )
    .engines(RING)
    .default("1"),
    option(
        "force_async",
        ValueKind::Number,
        "hand every Nth I/O to a kernel thread immediately",
        |draft, value| {
            draft.job.engine.force_async = value.small(0..=u32::MAX)?;
            Ok(())
        },
    )
    .engines(RING)
    .default("0"),
    option("nowait", ValueKind::Bool, "fail I/Os that would block (RWF_NOWAIT)", |draft, value| {
        draft.job.engine.no_wait = value.boolean()?;
        Ok(())
    })
    .engines(&["io_uring", "libaio", "pvsync2"])
    .default("0"),
    option("uncached", ValueKind::Number, "do not leave buffered I/O in the page cache", |draft, value| {
        draft.job.engine.uncached = value.small(0..=1)? == 1;
        Ok(())
    })
    .engines(&["io_uring", "pvsync2"])
    .default("0"),
    option("userspace_reap", ValueKind::Flag, "read completions from the ring in memory", |draft, value| {
        draft.job.engine.userspace_reap = value.flag()?;
        Ok(())
    })
    .engines(&["libaio"])
    .default("0"),
    option(
        "cmdprio_percentage",
        ValueKind::Percents,
        "percentage of I/Os with the cmdprio priority",
        |draft, value| {
            let mut shares = PerDirection::all(0.0);
            value.triple(&mut shares, |part| percent(part.trim_end_matches('%')))?;
            let [read, write, _] = shares.0;
            draft.command_percentage = Some([read, write]);
            Ok(())
        },
    )
    .engines(PRIORITY)
    .default("0"),
    option(
        "cmdprio_class",
        ValueKind::Number,
        "class of cmdprio: 1 realtime, 2 best effort, 3 idle",
        |draft, value| both(value, &mut draft.command_class, 1, 3),
    )
    .engines(PRIORITY)
    .default("1"),
    option("cmdprio", ValueKind::Number, "level of cmdprio: 0 highest, 7 lowest", |draft, value| {
        both(value, &mut draft.command_level, 0, 7)
    })
    .engines(PRIORITY)
    .default("0"),
    option(
        "cmdprio_bssplit",
        ValueKind::Split,
        "percentages by block size: 4k/50:64k/10/CLASS/LEVEL[,for writes]",
        |draft, value| {
            let mut splits = PerDirection::all(None);
            value.triple(&mut splits, |part| priorities::read(value, part).map(Some))?;
            let [read, write, _] = splits.0;
            draft.command_split = [read.unwrap_or_default(), write.unwrap_or_default()];
            Ok(())
        },
    )
    .engines(PRIORITY),
    refused("cmdprio_hint", "hints for the drive", "remove it"),
    refused("thp", "huge pages for mmap", "remove it"),
];
