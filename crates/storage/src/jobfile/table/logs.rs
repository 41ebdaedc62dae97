//! Log files.

use super::entry::{OptionEntry, ValueKind, ignored, option};
use crate::job::LogValue;
use crate::jobfile::lists;
use crate::jobfile::number::Unit;
use crate::jobfile::value::Value;

const VALUE: &[(&str, &str)] = &[("avg", "the mean of the window"), ("max", "its maximum"), ("both", "both")];

/// The beginning of a log's name. What is left out is the job's name, which is known at the end.
fn prefix(value: &Value<'_>) -> String {
    value.text_or_empty().to_owned()
}

/// A window; 0 for none.
fn window(value: &Value<'_>) -> Result<Option<u64>, String> {
    Ok(Some(value.nanos(Unit::Milliseconds)?).filter(|time| *time > 0))
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "write_bw_log",
        ValueKind::OptionalText,
        "log of KiB a second; the beginning of its name",
        |draft, value| {
            draft.job.logs.bandwidth = Some(prefix(value));
            Ok(())
        },
    )
    .default("none; the job's name without a value"),
    option("write_iops_log", ValueKind::OptionalText, "log of I/Os a second", |draft, value| {
        draft.job.logs.iops = Some(prefix(value));
        Ok(())
    }),
    option("write_lat_log", ValueKind::OptionalText, "logs of times: slat, clat, lat", |draft, value| {
        draft.job.logs.latency = Some(prefix(value));
        Ok(())
    }),
    option(
        "write_hist_log",
        ValueKind::OptionalText,
        "log of histograms of completion times",
        |draft, value| {
            draft.job.logs.histogram = Some(prefix(value));
            Ok(())
        },
    ),
    option(
        "log_avg_msec",
        ValueKind::Time(Unit::Milliseconds),
        "one row a window; 0 for one an I/O",
        |draft, value| {
            draft.job.logs.window = window(value)?;
            Ok(())
        },
    )
    .default("0"),
    option("log_hist_msec", ValueKind::Time(Unit::Milliseconds), "one histogram a window", |draft, value| {
        draft.job.logs.histogram_window = window(value)?;
        Ok(())
    })
    .default("0"),
    option(
        "log_hist_coarseness",
        ValueKind::Number,
        "how often the bins are halved, 0 to 6",
        |draft, value| {
            draft.job.logs.histogram_coarseness = value.small(0..=6)? as u8;
            Ok(())
        },
    )
    .default("0"),
    option("log_max_value", ValueKind::Bool, "log the maximum of a window", |draft, value| {
        draft.job.logs.value = if value.boolean()? { LogValue::Maximum } else { LogValue::Average };
        Ok(())
    })
    .default("0"),
    option(
        "log_window_value",
        ValueKind::Words(VALUE),
        "what of a window is logged (later versions of fio)",
        |draft, value| {
            draft.job.logs.value = match value.word(VALUE)? {
                "max" => LogValue::Maximum,
                "both" => LogValue::Both,
                _ => LogValue::Average,
            };
            Ok(())
        },
    )
    .alias(&["log_window"])
    .default("avg"),
    option("log_offset", ValueKind::Bool, "log where each I/O was", |draft, value| {
        draft.job.logs.offset = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("log_prio", ValueKind::Bool, "log the priority as it is", |draft, value| {
        draft.job.logs.priority = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "log_issue_time",
        ValueKind::Bool,
        "log when each I/O began (later versions of fio)",
        |draft, value| {
            draft.job.logs.issue_time = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("log_unix_epoch", ValueKind::Bool, "times since 1970", |draft, value| {
        draft.epoch = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("log_alternate_epoch", ValueKind::Bool, "times of the clock below", |draft, value| {
        draft.epoch = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "log_alternate_epoch_clock_id",
        ValueKind::Number,
        "a clock's number, as of clock_gettime",
        |draft, value| {
            draft.epoch_clock = value.small(0..=15)? as i32;
            Ok(())
        },
    )
    .default("0, the time since 1970"),
    option("per_job_logs", ValueKind::Bool, "a file for each worker", |draft, value| {
        draft.job.logs.per_job = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option(
        "log_sum",
        ValueKind::Bool,
        "one file in which the workers of a group are added up",
        |draft, value| {
            draft.job.logs.summed = value.boolean()?;
            Ok(())
        },
    )
    .default("0")
    .own(),
    ignored(
        "log_entries",
        ValueKind::Number,
        "how many rows there is room for at first",
        "logs are written while the job runs and are not held in memory",
        |_, value| value.small(1024..=1 << 20).map(|_| ()),
    )
    .default("1024"),
    ignored(
        "log_compression",
        ValueKind::Size,
        "compress logs in memory in chunks of this size",
        "logs are written while the job runs and are not held in memory",
        |draft, value| {
            draft.log_compression = value.small(1024..=1 << 29)? > 0;
            Ok(())
        },
    ),
    ignored(
        "log_compression_cpus",
        ValueKind::List,
        "the processors that compress",
        "logs are written while the job runs and are not held in memory",
        |_, value| lists::numbers(value.text()?).map(|_| ()),
    ),
    option("log_store_compressed", ValueKind::Bool, "log files are compressed (.fz)", |draft, value| {
        draft.job.logs.compressed = value.boolean()?;
        Ok(())
    })
    .default("0"),
];
