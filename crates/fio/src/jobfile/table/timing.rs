//! When a job begins and ends, and how it is coupled with others.

use super::entry::{OptionEntry, ValueKind, option};
use crate::job::{ExitWhat, SteadyFigure};
use crate::jobfile::number::{Unit, nanos};
use crate::jobfile::value::{Value, decimal};

const EXIT: &[(&str, &str)] = &[
    ("group", "jobs of its group"),
    ("all", "all jobs"),
    ("stonewall", "running jobs; jobs after the next stonewall still start"),
];

const STEADY: &[(&str, &str)] = &[
    ("iops", "iops:LIMIT, maximum deviation of IOPS from its mean; % for percent of the mean"),
    ("iops_slope", "iops_slope:LIMIT, slope of IOPS"),
    ("bw", "bw:LIMIT, maximum deviation of bandwidth from its mean"),
    ("bw_slope", "bw_slope:LIMIT, slope of bandwidth"),
    ("lat", "lat:LIMIT, maximum deviation of completion latency (later versions of fio)"),
    ("lat_slope", "lat_slope:LIMIT, slope of completion latency (later versions of fio)"),
];

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("runtime", ValueKind::Time(Unit::Seconds), "end after this time", |draft, value| {
        draft.job.course.runtime = Some(value.nanos(Unit::Seconds)?).filter(|time| *time > 0);
        Ok(())
    })
    .alias(&["timeout"]),
    option("time_based", ValueKind::Flag, "repeat the job until runtime is over", |draft, value| {
        draft.job.course.time_based = value.flag()?;
        Ok(())
    })
    .default("0"),
    option("ramp_time", ValueKind::Time(Unit::Seconds), "run this long before measuring", |draft, value| {
        draft.job.course.ramp = value.nanos(Unit::Seconds)?;
        Ok(())
    })
    .default("0"),
    option(
        "startdelay",
        ValueKind::Time(Unit::Seconds),
        "delay before the start; random within a range",
        |draft, value| {
            draft.job.course.start_delay = Value::range_of(value.text()?, |part| nanos(part, Unit::Seconds))?;
            Ok(())
        },
    )
    .default("0"),
    option("loops", ValueKind::Number, "number of times to run the job", |draft, value| {
        draft.job.course.loops = value.count(0)?.max(1);
        Ok(())
    })
    .default("1"),
    option("stonewall", ValueKind::Flag, "start after all previous jobs have ended", |draft, value| {
        draft.job.course.stonewall = value.flag()?;
        Ok(())
    })
    .alias(&["wait_for_previous"])
    .default("0"),
    option("wait_for", ValueKind::Text, "start after the job of this name has ended", |draft, value| {
        draft.job.course.wait_for = Some(value.text()?.to_owned());
        Ok(())
    }),
    option("exitall", ValueKind::Flag, "end other jobs when this job ends", |draft, value| {
        draft.job.course.exit_all = value.flag()?;
        Ok(())
    })
    .default("0"),
    option("exit_what", ValueKind::Words(EXIT), "which other jobs exitall ends", |draft, value| {
        draft.job.course.exit_what = match value.word(EXIT)? {
            "all" => ExitWhat::All,
            "stonewall" => ExitWhat::Stonewall,
            _ => ExitWhat::Group,
        };
        Ok(())
    })
    .default("group"),
    option("new_group", ValueKind::Flag, "start a new reporting group", |draft, value| {
        draft.job.course.new_group = value.flag()?;
        Ok(())
    })
    .default("0"),
    option("group_reporting", ValueKind::Flag, "report the jobs of a group together", |draft, value| {
        draft.job.course.group_reporting = value.flag()?;
        Ok(())
    })
    .default("0"),
    option(
        "flow",
        ValueKind::Number,
        "weight: jobs of a flow keep their I/Os in this proportion",
        |draft, value| {
            draft.flow.weight = value.signed(0..=1000)?;
            Ok(())
        },
    )
    .default("0"),
    option("flow_id", ValueKind::Number, "flow to join", |draft, value| {
        draft.flow.id = value.signed(0..=i64::from(u32::MAX))?;
        Ok(())
    })
    .default("0"),
    option(
        "flow_sleep",
        ValueKind::Time(Unit::Microseconds),
        "wait time when ahead of the other jobs",
        |draft, value| {
            draft.flow.sleep = value.nanos(Unit::Microseconds)?;
            Ok(())
        },
    )
    .default("0"),
    option(
        "steadystate",
        ValueKind::Words(STEADY),
        "end when a metric reaches steady state",
        |draft, value| {
            let (word, limit) = value.word_and_rest(STEADY)?;
            let limit = limit.filter(|limit| !limit.is_empty());
            let limit = limit.ok_or_else(|| format!("the limit is missing, as in {word}:0.3%"))?;
            let steady = &mut draft.steady;
            steady.slope = word.ends_with("_slope");
            steady.figure = match word.trim_end_matches("_slope") {
                "bw" => SteadyFigure::Bandwidth,
                "lat" => SteadyFigure::Latency,
                _ => SteadyFigure::Iops,
            };
            steady.percent = limit.ends_with('%');
            let number = limit.trim_end_matches('%');
            // Bytes may have units; fio counts completion times in nanoseconds here.
            steady.limit = if steady.figure == SteadyFigure::Bandwidth && !steady.percent {
                value.count_of(number, 0)? as f64
            } else {
                decimal(number)?
            };
            if steady.limit < 0.0 { Err("the limit cannot be negative".into()) } else { Ok(()) }
        },
    )
    .alias(&["ss"])
    .default("iops_slope:0.01%"),
    option(
        "steadystate_duration",
        ValueKind::Time(Unit::Seconds),
        "assessment window; 0 to disable",
        |draft, value| {
            draft.steady.window = value.nanos(Unit::Seconds)?;
            Ok(())
        },
    )
    .alias(&["ss_dur"])
    .default("0"),
    option(
        "steadystate_ramp_time",
        ValueKind::Time(Unit::Seconds),
        "ramp-up time before the assessment",
        |draft, value| {
            draft.steady.ramp = value.nanos(Unit::Seconds)?;
            Ok(())
        },
    )
    .alias(&["ss_ramp", "ss_ramp_time"])
    .default("0"),
    option(
        "steadystate_check_interval",
        ValueKind::Time(Unit::Seconds),
        "interval between assessments",
        |draft, value| {
            draft.steady.interval = value.nanos(Unit::Seconds)?;
            if draft.steady.interval == 0 { Err("must be more than 0".into()) } else { Ok(()) }
        },
    )
    .alias(&["ss_interval"])
    .default("1"),
];
