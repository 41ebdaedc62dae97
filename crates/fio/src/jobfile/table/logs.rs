//! Log files.

use super::entry::{OptionEntry, ValueKind, ignored, option};
use crate::job::LogValue;
use crate::jobfile::lists;
use crate::jobfile::number::Unit;
use crate::jobfile::value::Value;

const VALUE: &[(&str, &str)] =
    &[("avg", "mean of the window"), ("max", "maximum of the window"), ("both", "both")];

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
        "write a log of KiB/s; the value is the file name prefix",
        |draft, value| {
            draft.job.logs.bandwidth = Some(prefix(value));
            Ok(())
        },
    )
    .default("none; the job name if no value is given"),
    option("write_iops_log", ValueKind::OptionalText, "write a log of IOPS", |draft, value| {
        draft.job.logs.iops = Some(prefix(value));
        Ok(())
    }),
    option(
        "write_lat_log",
        ValueKind::OptionalText,
        "write latency logs: slat, clat, lat",
        |draft, value| {
            draft.job.logs.latency = Some(prefix(value));
            Ok(())
        },
    ),
    option(
        "write_hist_log",
        ValueKind::OptionalText,
        "write a log of completion latency histograms",
        |draft, value| {
            draft.job.logs.histogram = Some(prefix(value));
            Ok(())
        },
    ),
    option(
        "log_avg_msec",
        ValueKind::Time(Unit::Milliseconds),
        "one row per window; 0 for one per I/O",
        |draft, value| {
            draft.job.logs.window = window(value)?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "log_hist_msec",
        ValueKind::Time(Unit::Milliseconds),
        "one histogram per window",
        |draft, value| {
            draft.job.logs.histogram_window = window(value)?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "log_hist_coarseness",
        ValueKind::Number,
        "coarseness of the histogram bins, 0 to 6",
        |draft, value| {
            draft.job.logs.histogram_coarseness = value.small(0..=6)? as u8;
            Ok(())
        },
    )
    .default("0"),
    option("log_max_value", ValueKind::Bool, "log the maximum of each window", |draft, value| {
        draft.job.logs.value = if value.boolean()? { LogValue::Maximum } else { LogValue::Average };
        Ok(())
    })
    .default("0"),
    option(
        "log_window_value",
        ValueKind::Words(VALUE),
        "which value of a window is logged (later versions of fio)",
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
    option("log_offset", ValueKind::Bool, "log the offset of each I/O", |draft, value| {
        draft.job.logs.offset = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("log_prio", ValueKind::Bool, "log the I/O priority value", |draft, value| {
        draft.job.logs.priority = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "log_issue_time",
        ValueKind::Bool,
        "log when each I/O was issued (later versions of fio)",
        |draft, value| {
            draft.job.logs.issue_time = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("log_unix_epoch", ValueKind::Bool, "log Unix time", |draft, value| {
        draft.epoch = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option(
        "log_alternate_epoch",
        ValueKind::Bool,
        "log times of log_alternate_epoch_clock_id",
        |draft, value| {
            draft.epoch = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "log_alternate_epoch_clock_id",
        ValueKind::Number,
        "clock ID for clock_gettime",
        |draft, value| {
            draft.epoch_clock = value.small(0..=15)? as i32;
            Ok(())
        },
    )
    .default("0, Unix time"),
    option("per_job_logs", ValueKind::Bool, "one file per worker", |draft, value| {
        draft.job.logs.per_job = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("log_sum", ValueKind::Bool, "one file that sums the workers of a group", |draft, value| {
        draft.job.logs.summed = value.boolean()?;
        Ok(())
    })
    .default("0")
    .own(),
    ignored(
        "log_entries",
        ValueKind::Number,
        "initial number of log rows",
        "logs are written during the job, not held in memory",
        |_, value| value.small(1024..=1 << 20).map(|_| ()),
    )
    .default("1024"),
    ignored(
        "log_compression",
        ValueKind::Size,
        "compress logs in memory in chunks of this size",
        "logs are written during the job, not held in memory",
        |draft, value| {
            draft.log_compression = value.small(1024..=1 << 29)? > 0;
            Ok(())
        },
    ),
    ignored(
        "log_compression_cpus",
        ValueKind::List,
        "CPUs for compression",
        "logs are written during the job, not held in memory",
        |_, value| lists::numbers(value.text()?).map(|_| ()),
    ),
    option("log_store_compressed", ValueKind::Bool, "compress log files (.fz)", |draft, value| {
        draft.job.logs.compressed = value.boolean()?;
        Ok(())
    })
    .default("0"),
];
