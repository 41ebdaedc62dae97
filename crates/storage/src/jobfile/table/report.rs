//! What the result shows, and in which units.

use super::entry::{OptionEntry, ValueKind, option};
use crate::job::Mixed;
use crate::jobfile::number::Unit;

const BASE: &[(&str, &str)] = &[
    ("1024", "k is 1024 and kib is 1000, as fio has always read them"),
    ("1000", "k is 1000 and kib is 1024, as everybody else reads them"),
];
const UNIT: &[(&str, &str)] = &[("0", "bytes"), ("8", "bytes"), ("1", "bits")];
const MIXED: &[(&str, &str)] = &[
    ("none", "reads, writes and trims apart"),
    ("0", "as none"),
    ("mixed", "together"),
    ("1", "as mixed"),
    ("both", "apart and together"),
    ("2", "as both"),
];

/// As many as fio takes.
const MOST_PERCENTILES: usize = 20;

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("kb_base", ValueKind::Words(BASE), "what k is", |draft, value| {
        draft.job.report.thousand = value.word(BASE)? == "1000";
        Ok(())
    })
    .default("1024"),
    option("unit_base", ValueKind::Words(UNIT), "bytes or bits", |draft, value| {
        draft.job.report.bits = value.word(UNIT)? == "1";
        Ok(())
    })
    .default("0"),
    option(
        "unified_rw_reporting",
        ValueKind::Words(MIXED),
        "directions apart or together",
        |draft, value| {
            draft.job.report.mixed = match value.word(MIXED)? {
                "mixed" | "1" => Mixed::Mixed,
                "both" | "2" => Mixed::Both,
                _ => Mixed::None,
            };
            Ok(())
        },
    )
    .default("none"),
    option("percentile_list", ValueKind::Decimals, "which percentiles are shown", |draft, value| {
        let mut list = value.decimals()?;
        if list.len() > MOST_PERCENTILES {
            return Err(format!(
                "{} percentiles are given, and at most {MOST_PERCENTILES} are taken",
                list.len()
            ));
        }
        if let Some(wrong) = list.iter().find(|percent| !(**percent > 0.0 && **percent <= 100.0)) {
            return Err(format!("the percentile {wrong} is not above 0 and up to 100"));
        }
        list.sort_by(f64::total_cmp);
        list.dedup();
        draft.job.report.percentiles = list;
        Ok(())
    })
    .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
    option("clat_percentiles", ValueKind::Bool, "percentiles of completion times", |draft, value| {
        draft.job.report.completion_percentiles = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("lat_percentiles", ValueKind::Bool, "percentiles of total times", |draft, value| {
        draft.job.report.total_percentiles = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("slat_percentiles", ValueKind::Bool, "percentiles of submission times", |draft, value| {
        draft.job.report.submission_percentiles = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("significant_figures", ValueKind::Number, "digits of a figure, 1 to 10", |draft, value| {
        draft.job.report.significant_figures = value.small(1..=10)? as u8;
        Ok(())
    })
    .default("4"),
    option(
        "bwavgtime",
        ValueKind::Time(Unit::Milliseconds),
        "window of the samples of bytes a second",
        |draft, value| {
            draft.job.report.bandwidth_window = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .default("500"),
    option(
        "iopsavgtime",
        ValueKind::Time(Unit::Milliseconds),
        "window of the samples of I/Os a second",
        |draft, value| {
            draft.job.report.iops_window = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .default("500"),
    option("disk_util", ValueKind::Bool, "show what the devices counted", |draft, value| {
        draft.job.report.disk_use = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("disable_lat", ValueKind::Bool, "no total times", |draft, value| {
        draft.job.report.disabled.latency = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_clat", ValueKind::Bool, "no completion times", |draft, value| {
        draft.job.report.disabled.completion = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_slat", ValueKind::Bool, "no submission times", |draft, value| {
        draft.job.report.disabled.submission = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_bw_measurement", ValueKind::Bool, "no samples of bytes a second", |draft, value| {
        draft.job.report.disabled.bandwidth = value.boolean()?;
        Ok(())
    })
    .alias(&["disable_bw"])
    .default("0"),
    option("gtod_reduce", ValueKind::Bool, "no times of I/Os, no samples", |draft, value| {
        // As in fio, 0 leaves what the options for each of them say.
        if value.boolean()? {
            let disabled = &mut draft.job.report.disabled;
            (disabled.completion, disabled.submission) = (true, true);
            (disabled.latency, disabled.bandwidth) = (true, true);
        }
        Ok(())
    })
    .default("0"),
    option("stats", ValueKind::Bool, "the job is in the result; 0 is not supported", |_, value| {
        if value.boolean()? {
            return Ok(());
        }
        Err("a job that is left out of the result is not supported: look at the other jobs' results".into())
    })
    .default("1"),
    option("block_error_percentiles", ValueKind::Bool, "errors of trims; 1 is not supported", |_, value| {
        if value.boolean()? {
            return Err("a histogram of errors by trims is not supported: leave the option out".into());
        }
        Ok(())
    })
    .default("0"),
];
