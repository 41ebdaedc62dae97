//! Past the page cache or through it, and when data is brought to the medium.

use super::entry::{OptionEntry, ValueKind, option};
use crate::job::SyncOpen;
use crate::jobfile::value::{Value, word};

const SYNC: &[(&str, &str)] = &[
    ("none", "writes return once the kernel has them"),
    ("0", "same as none"),
    ("sync", "O_SYNC"),
    ("1", "same as sync"),
    ("dsync", "O_DSYNC"),
];

const RANGE: &[(&str, &str)] = &[
    ("wait_before", "wait for writeback in progress"),
    ("write", "start writeback"),
    ("wait_after", "wait for the started writeback"),
];

/// `wait_before,write:8`: flags as `sync_file_range` takes them, and after how many writes.
fn range(value: &Value<'_>) -> Result<(u32, u32), String> {
    let (words, number) =
        value.text()?.rsplit_once(':').ok_or("the number of writes is missing, as in write:8")?;
    let mut flags = 0;
    for part in words.split(',') {
        flags |= match word(part.trim(), RANGE)? {
            "wait_before" => libc::SYNC_FILE_RANGE_WAIT_BEFORE,
            "write" => libc::SYNC_FILE_RANGE_WRITE,
            _ => libc::SYNC_FILE_RANGE_WAIT_AFTER,
        };
    }
    Ok((flags, value.small_of(number, 1..=u32::MAX)?))
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("direct", ValueKind::Bool, "bypass the page cache (O_DIRECT)", |draft, value| {
        draft.job.sync.direct = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("buffered", ValueKind::Bool, "use the page cache: the opposite of direct", |draft, value| {
        draft.job.sync.direct = !value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("atomic", ValueKind::Bool, "use atomic writes; implies direct", |draft, value| {
        draft.job.sync.atomic = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("sync", ValueKind::Words(SYNC), "sync mode when opening files for writing", |draft, value| {
        draft.job.sync.open = match value.word(SYNC)? {
            "sync" | "1" => SyncOpen::Sync,
            "dsync" => SyncOpen::DataSync,
            _ => SyncOpen::None,
        };
        Ok(())
    })
    .default("none"),
    option("fsync", ValueKind::Number, "fsync after this many writes; 0 for never", |draft, value| {
        draft.job.sync.fsync = value.small(0..=u32::MAX)?;
        Ok(())
    })
    .default("0"),
    option(
        "fdatasync",
        ValueKind::Number,
        "fdatasync after this many writes; 0 for never",
        |draft, value| {
            draft.job.sync.fdatasync = value.small(0..=u32::MAX)?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "write_barrier",
        ValueKind::Number,
        "write barrier after this many writes; 0 for never",
        |draft, value| {
            draft.job.sync.write_barrier = value.small(0..=u32::MAX)?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "sync_file_range",
        ValueKind::Words(RANGE),
        "sync_file_range after this many writes: write:8",
        |draft, value| {
            draft.job.sync.range = Some(range(value)?);
            Ok(())
        },
    ),
    option("end_fsync", ValueKind::Bool, "fsync at the end of the job", |draft, value| {
        draft.job.sync.end_fsync = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("fsync_on_close", ValueKind::Bool, "fsync before a file is closed", |draft, value| {
        draft.job.sync.fsync_on_close = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("overwrite", ValueKind::Bool, "overwrite existing data: lay out files first", |draft, value| {
        draft.job.sync.overwrite = value.boolean()?;
        Ok(())
    })
    .default("0"),
];
