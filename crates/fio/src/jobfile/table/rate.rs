//! How fast at most, pauses, and a latency that is to be kept.

use super::entry::{OptionEntry, ValueKind, option};
use crate::PerDirection;
use crate::job::RateProcess;
use crate::jobfile::number::{Unit, nanos};
use crate::jobfile::value::Value;

const PROCESS: &[(&str, &str)] =
    &[("linear", "evenly spaced"), ("poisson", "Poisson arrivals: exponentially distributed gaps")];

const BLOCKS: &[(&str, &str)] =
    &[("complete", "count blocks at completion"), ("issue", "count blocks at issue")];

/// A limit for each direction; 0 is none.
fn limits(value: &Value<'_>, into: &mut PerDirection<Option<u64>>) -> Result<(), String> {
    value.triple(into, |part| Ok(Some(value.count_of(part, 0)?).filter(|limit| *limit > 0)))
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "rate",
        ValueKind::Sizes,
        "limit in bytes per second, per worker and direction",
        |draft, value| limits(value, &mut draft.job.rate.bytes),
    ),
    option(
        "rate_min",
        ValueKind::Sizes,
        "minimum bytes per second; below it, the job fails",
        |draft, value| limits(value, &mut draft.job.rate.bytes_min),
    )
    .alias(&["ratemin"]),
    option("rate_iops", ValueKind::Numbers, "limit in IOPS, per worker and direction", |draft, value| {
        limits(value, &mut draft.job.rate.iops)
    }),
    option("rate_iops_min", ValueKind::Numbers, "minimum IOPS; below it, the job fails", |draft, value| {
        limits(value, &mut draft.job.rate.iops_min)
    }),
    option("rate_process", ValueKind::Words(PROCESS), "distribution of issue times", |draft, value| {
        draft.job.rate.process = match value.word(PROCESS)? {
            "poisson" => RateProcess::Poisson,
            _ => RateProcess::Linear,
        };
        Ok(())
    })
    .default("linear"),
    option(
        "rate_cycle",
        ValueKind::Time(Unit::Milliseconds),
        "averaging period for rate_min and rate_iops_min",
        |draft, value| {
            draft.job.rate.cycle = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .alias(&["ratecycle"])
    .default("1000"),
    option(
        "rate_ignore_thinktime",
        ValueKind::Bool,
        "do not make up for thinktime pauses",
        |draft, value| {
            draft.job.rate.ignore_think_time = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option("thinktime", ValueKind::Time(Unit::Microseconds), "pause between I/Os", |draft, value| {
        draft.thinking.time = value.nanos(Unit::Microseconds)?;
        Ok(())
    })
    .default("0"),
    option(
        "thinktime_spin",
        ValueKind::Time(Unit::Microseconds),
        "part of the pause that is spent spinning on the CPU",
        |draft, value| {
            draft.thinking.spin = value.nanos(Unit::Microseconds)?;
            Ok(())
        },
    )
    .default("0"),
    option("thinktime_blocks", ValueKind::Number, "I/Os between pauses", |draft, value| {
        draft.thinking.blocks = value.count(0)?.max(1);
        Ok(())
    })
    .default("1"),
    option(
        "thinktime_blocks_type",
        ValueKind::Words(BLOCKS),
        "when thinktime_blocks are counted",
        |draft, value| {
            draft.thinking.by_issue = value.word(BLOCKS)? == "issue";
            Ok(())
        },
    )
    .default("complete"),
    option("thinktime_iotime", ValueKind::Time(Unit::Seconds), "time between pauses", |draft, value| {
        draft.thinking.io_time = Some(value.nanos(Unit::Seconds)?).filter(|time| *time > 0);
        Ok(())
    })
    .default("0"),
    option(
        "latency_target",
        ValueKind::Time(Unit::Microseconds),
        "find the highest depth that meets this latency",
        |draft, value| {
            draft.job.latency.target = Some(value.nanos(Unit::Microseconds)?).filter(|time| *time > 0);
            Ok(())
        },
    ),
    option(
        "latency_window",
        ValueKind::Time(Unit::Microseconds),
        "how long each depth is tested",
        |draft, value| {
            draft.job.latency.window = value.nanos(Unit::Microseconds)?;
            Ok(())
        },
    )
    .default("one second"),
    option(
        "latency_percentile",
        ValueKind::Percent,
        "percentage of I/Os that must meet the target",
        |draft, value| {
            draft.job.latency.percentile = value.percent()?;
            Ok(())
        },
    )
    .default("100"),
    option(
        "latency_run",
        ValueKind::Bool,
        "continue with the depth found and keep adjusting it",
        |draft, value| {
            draft.job.latency.keep_running = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "max_latency",
        ValueKind::Times(Unit::Microseconds),
        "fail the job if an I/O takes longer",
        |draft, value| {
            value.triple(&mut draft.job.latency.maximum, |part| {
                Ok(Some(nanos(part, Unit::Microseconds)?).filter(|time| *time > 0))
            })
        },
    ),
];
