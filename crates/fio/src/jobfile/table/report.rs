//! What the result shows, and in which units.

use super::entry::{OptionEntry, ValueKind, option};
use crate::job::Mixed;
use crate::jobfile::number::Unit;

const BASE: &[(&str, &str)] = &[
    ("1024", "k is 1024 and kib is 1000, fio's traditional meaning"),
    ("1000", "k is 1000 and kib is 1024, the standard meaning"),
];
const UNIT: &[(&str, &str)] = &[("0", "bytes"), ("8", "bytes"), ("1", "bits")];
const MIXED: &[(&str, &str)] = &[
    ("none", "reads, writes and trims separately"),
    ("0", "same as none"),
    ("mixed", "together"),
    ("1", "same as mixed"),
    ("both", "separately and together"),
    ("2", "same as both"),
];

/// As many as fio takes.
const MOST_PERCENTILES: usize = 20;

pub(crate) const OPTIONS: &[OptionEntry] = &[
    option("kb_base", ValueKind::Words(BASE), "value of k", |draft, value| {
        draft.job.report.thousand = value.word(BASE)? == "1000";
        Ok(())
    })
    .default("1024"),
    option("unit_base", ValueKind::Words(UNIT), "report bytes or bits", |draft, value| {
        draft.job.report.bits = value.word(UNIT)? == "1";
        Ok(())
    })
    .default("0"),
    option(
        "unified_rw_reporting",
        ValueKind::Words(MIXED),
        "report directions separately or together",
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
    option("percentile_list", ValueKind::Decimals, "percentiles to report", |draft, value| {
        let mut list = value.decimals()?;
        if list.len() > MOST_PERCENTILES {
            return Err(format!(
                "{} percentiles are given, but at most {MOST_PERCENTILES} are allowed",
                list.len()
            ));
        }
        if let Some(wrong) = list.iter().find(|percent| !(**percent > 0.0 && **percent <= 100.0)) {
            return Err(format!("the percentile {wrong} must be above 0 and at most 100"));
        }
        list.sort_by(f64::total_cmp);
        list.dedup();
        draft.job.report.percentiles = list;
        Ok(())
    })
    .default("1:5:10:20:30:40:50:60:70:80:90:95:99:99.5:99.9:99.95:99.99"),
    option("clat_percentiles", ValueKind::Bool, "percentiles of completion latency", |draft, value| {
        draft.job.report.completion_percentiles = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("lat_percentiles", ValueKind::Bool, "percentiles of total latency", |draft, value| {
        draft.job.report.total_percentiles = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("slat_percentiles", ValueKind::Bool, "percentiles of submission latency", |draft, value| {
        draft.job.report.submission_percentiles = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("significant_figures", ValueKind::Number, "significant digits, 1 to 10", |draft, value| {
        draft.job.report.significant_figures = value.small(1..=10)? as u8;
        Ok(())
    })
    .default("4"),
    option(
        "bwavgtime",
        ValueKind::Time(Unit::Milliseconds),
        "averaging window of bandwidth samples",
        |draft, value| {
            draft.job.report.bandwidth_window = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .default("500"),
    option(
        "iopsavgtime",
        ValueKind::Time(Unit::Milliseconds),
        "averaging window of IOPS samples",
        |draft, value| {
            draft.job.report.iops_window = value.nanos(Unit::Milliseconds)?;
            Ok(())
        },
    )
    .default("500"),
    option("disk_util", ValueKind::Bool, "report disk statistics", |draft, value| {
        draft.job.report.disk_use = value.boolean()?;
        Ok(())
    })
    .default("1"),
    option("disable_lat", ValueKind::Bool, "do not measure total latency", |draft, value| {
        draft.job.report.disabled.latency = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_clat", ValueKind::Bool, "do not measure completion latency", |draft, value| {
        draft.job.report.disabled.completion = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_slat", ValueKind::Bool, "do not measure submission latency", |draft, value| {
        draft.job.report.disabled.submission = value.boolean()?;
        Ok(())
    })
    .default("0"),
    option("disable_bw_measurement", ValueKind::Bool, "do not sample bandwidth", |draft, value| {
        draft.job.report.disabled.bandwidth = value.boolean()?;
        Ok(())
    })
    .alias(&["disable_bw"])
    .default("0"),
    option("gtod_reduce", ValueKind::Bool, "do not measure latencies or take samples", |draft, value| {
        // As in fio, 0 leaves what the options for each of them say.
        if value.boolean()? {
            let disabled = &mut draft.job.report.disabled;
            (disabled.completion, disabled.submission) = (true, true);
            (disabled.latency, disabled.bandwidth) = (true, true);
        }
        Ok(())
    })
    .default("0"),
    option("stats", ValueKind::Bool, "report the job; 0 is not supported", |_, value| {
        if value.boolean()? {
            return Ok(());
        }
        Err("jobs cannot be omitted from the results: ignore this job's results".into())
    })
    .default("1"),
    option(
        "block_error_percentiles",
        ValueKind::Bool,
        "histogram of trim errors; 1 is not supported",
        |_, value| {
            if value.boolean()? {
                return Err("a histogram of trim errors is not supported: remove the option".into());
            }
            Ok(())
        },
    )
    .default("0"),
];
