//! How fast at most, pauses, and a latency that is to be kept.

use super::entry::{OptionEntry, ValueKind, option};
use crate::PerDirection;
use crate::job::RateProcess;
use crate::jobfile::number::{Unit, nanos};
use crate::jobfile::value::Value;

const PROCESS: &[(&str, &str)] =
    &[("linear", "evenly spaced"), ("poisson", "with exponentially distributed gaps, as if from many users")];

const BLOCKS: &[(&str, &str)] =
    &[("complete", "blocks are counted when they end"), ("issue", "blocks are counted when they begin")];

/// A limit for each direction; 0 is none.
fn limits(value: &Value<'_>, into: &mut PerDirection<Option<u64>>) -> Result<(), String> {
    value.triple(into, |part| Ok(Some(value.count_of(part, 0)?).filter(|limit| *limit > 0)))
}

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option(
        "rate",
        ValueKind::Sizes,
        "bytes a second at most, of each worker and direction",
        |draft, value| limits(value, &mut draft.job.rate.bytes),
    ),
    option(
        "rate_min",
        ValueKind::Sizes,
        "bytes a second below which the job ends with an error",
        |draft, value| limits(value, &mut draft.job.rate.bytes_min),
    )
    .alias(&["ratemin"]),
    option(
        "rate_iops",
        ValueKind::Numbers,
        "I/Os a second at most, of each worker and direction",
        |draft, value| limits(value, &mut draft.job.rate.iops),
    ),
    option(
        "rate_iops_min",
        ValueKind::Numbers,
        "I/Os a second below which the job ends with an error",
        |draft, value| limits(value, &mut draft.job.rate.iops_min),
    ),
    option("rate_process", ValueKind::Words(PROCESS), "how starts follow each other", |draft, value| {
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
        "over what time the minima are averaged",
        |draft, value| {
            draft.job.rate.cycle = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .alias(&["ratecycle"])
    .default("1000"),
    option("rate_ignore_thinktime", ValueKind::Bool, "pauses are not caught up with", |draft, value| {
        draft.job.rate.ignore_think_time = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("thinktime", ValueKind::Time(Unit::Microseconds), "a pause between I/Os", |draft, value| {
        draft.thinking.time = value.nanos(Unit::Microseconds)?;
        Ok(())
    })
    .default("0"),
    option(
        "thinktime_spin",
        ValueKind::Time(Unit::Microseconds),
        "how much of the pause burns CPU",
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
        "when those I/Os are counted",
        |draft, value| {
            draft.thinking.by_issue = value.word(BLOCKS)? == "issue";
            Ok(())
        },
    )
    .default("complete"),
    option(
        "thinktime_iotime",
        ValueKind::Time(Unit::Seconds),
        "time between pauses, instead of I/Os",
        |draft, value| {
            draft.thinking.io_time = Some(value.nanos(Unit::Seconds)?).filter(|time| *time > 0);
            Ok(())
        },
    )
    .default("0"),
    option(
        "latency_target",
        ValueKind::Time(Unit::Microseconds),
        "search the depth that keeps this",
        |draft, value| {
            draft.job.latency.target = Some(value.nanos(Unit::Microseconds)?).filter(|time| *time > 0);
            Ok(())
        },
    ),
    option(
        "latency_window",
        ValueKind::Time(Unit::Microseconds),
        "how long each depth is tried",
        |draft, value| {
            draft.job.latency.window = value.nanos(Unit::Microseconds)?;
            Ok(())
        },
    )
    .default("one second"),
    option(
        "latency_percentile",
        ValueKind::Percent,
        "the share of I/Os that is to keep the target",
        |draft, value| {
            draft.job.latency.percentile = value.percent()?;
            Ok(())
        },
    )
    .default("100"),
    option(
        "latency_run",
        ValueKind::Bool,
        "go on with the depth that was found, adjusting it",
        |draft, value| {
            draft.job.latency.keep_running = value.boolean()?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "max_latency",
        ValueKind::Times(Unit::Microseconds),
        "a longer I/O ends the job with an error",
        |draft, value| {
            value.triple(&mut draft.job.latency.maximum, |part| {
                Ok(Some(nanos(part, Unit::Microseconds)?).filter(|time| *time > 0))
            })
        },
    ),
];
