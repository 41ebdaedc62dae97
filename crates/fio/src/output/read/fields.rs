//! From JSON's fields to the result. A field that is missing or of another type is as if it were empty: versions of fio
//! differ, and missing fields are reported by their consumers.

use crate::jobfile::first_name;
use serde_json::{Map, Value};

use super::{DiskResult, IoResult, JobResult, KelvinResult, LineResult, TargetResult, TimesResult};

fn number(fields: &Map<String, Value>, name: &str) -> f64 {
    fields.get(name).and_then(Value::as_f64).unwrap_or(0.0)
}

fn whole(fields: &Map<String, Value>, name: &str) -> u64 {
    match fields.get(name) {
        // Counts that fio writes as reals, and negative ones that overflowed, are converted as far as possible.
        Some(value) => value.as_u64().unwrap_or_else(|| value.as_f64().unwrap_or(0.0).max(0.0) as u64),
        None => 0,
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn object<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    fields.get(name).and_then(Value::as_object)
}

/// Whether an object is a result at all, and not something else that is JSON.
pub(super) fn is_result(top: &Map<String, Value>) -> bool {
    ["jobs", "client_stats"].iter().any(|name| top.get(*name).is_some_and(Value::is_array))
}

pub(super) fn result(top: &Map<String, Value>, line: u32) -> IoResult {
    let seconds = number(top, "timestamp") as i64;
    let millis = number(top, "timestamp_ms") as i64;
    let global = options(object(top, "global options"));
    let list = |name: &str| top.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let jobs = list("jobs")
        .iter()
        .chain(list("client_stats"))
        .filter_map(Value::as_object)
        .map(|fields| job(fields, &global))
        .collect();
    IoResult {
        line,
        version: text(top, "fio version").unwrap_or_default(),
        at: if millis != 0 { millis } else { seconds * 1000 },
        jobs,
        disks: list("disk_util").iter().filter_map(Value::as_object).map(disk).collect(),
    }
}

fn options(fields: Option<&Map<String, Value>>) -> Vec<(String, String)> {
    let Some(fields) = fields else { return Vec::new() };
    let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let named = fields.iter().map(|(name, given)| (first_name(name).to_owned(), value(given)));
    // fio leaves out options that were given without a value.
    named.filter(|(_, value)| !value.is_empty()).collect()
}

fn job(fields: &Map<String, Value>, global: &[(String, String)]) -> JobResult {
    let mut all = options(object(fields, "job options"));
    for (name, value) in global {
        if !all.iter().any(|(known, _)| known == name) {
            all.push((name.clone(), value.clone()));
        }
    }
    all.sort();
    let lines = ["read", "write", "trim", "mixed"]
        .into_iter()
        .filter_map(|word| object(fields, word).map(|line| (word.to_owned(), self::line(line))))
        .filter(|(_, line)| line.ios > 0)
        .collect();
    let depths = object(fields, "iodepth_level")
        .map(|levels| {
            let mut levels: Vec<(String, f64)> =
                levels.iter().map(|(label, share)| (label.clone(), share.as_f64().unwrap_or(0.0))).collect();
            levels
                .sort_by_key(|(label, _)| label.trim_start_matches(">=").parse::<u64>().unwrap_or(u64::MAX));
            levels
        })
        .unwrap_or_default();
    JobResult {
        name: text(fields, "jobname").unwrap_or_default(),
        host: text(fields, "hostname"),
        group: whole(fields, "groupid"),
        error: number(fields, "error") as i64,
        errors: whole(fields, "total_err"),
        elapsed: whole(fields, "elapsed"),
        options: all,
        lines,
        syncs: object(fields, "sync").map(|sync| times(sync, "lat")).unwrap_or_default(),
        cpu: (number(fields, "usr_cpu"), number(fields, "sys_cpu")),
        runtime: whole(fields, "job_runtime"),
        switches: whole(fields, "ctx"),
        depths,
        steady: object(fields, "steadystate").map(|steady| number(steady, "attained") > 0.0),
        kelvin: object(fields, "kelvin").map(kelvin),
    }
}

/// Times under `NAME_ns`, or as versions before 3 write them: under `NAME`, in microseconds.
fn times(fields: &Map<String, Value>, name: &str) -> TimesResult {
    match (object(fields, &format!("{name}_ns")), object(fields, name)) {
        (Some(times), _) => times_in(times, 1.0),
        (None, Some(times)) => times_in(times, 1000.0),
        (None, None) => TimesResult::default(),
    }
}

fn times_in(fields: &Map<String, Value>, unit: f64) -> TimesResult {
    let mut percentiles: Vec<(f64, f64)> = object(fields, "percentile")
        .into_iter()
        .flatten()
        .filter_map(|(percent, time)| Some((percent.parse().ok()?, time.as_f64()? * unit)))
        // fio 2 fills its list up with these.
        .filter(|(percent, _)| *percent > 0.0)
        .collect();
    percentiles.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut bins: Vec<(u64, u64)> = object(fields, "bins")
        .into_iter()
        .flatten()
        .filter_map(|(time, count)| Some((time.parse().ok()?, count.as_u64()?)))
        .collect();
    bins.sort_unstable();
    TimesResult {
        count: whole(fields, "N"),
        least: number(fields, "min") * unit,
        greatest: number(fields, "max") * unit,
        mean: number(fields, "mean") * unit,
        deviation: number(fields, "stddev") * unit,
        percentiles,
        bins,
    }
}

fn line(fields: &Map<String, Value>) -> LineResult {
    // Before version 3 `io_bytes` were KiB, and `bw_bytes` was not there.
    let kib = number(fields, "bw");
    let old = !fields.contains_key("bw_bytes");
    let bytes = whole(fields, "io_bytes").saturating_mul(if old { 1024 } else { 1 });
    let mut line = LineResult {
        ios: whole(fields, "total_ios"),
        bytes,
        bandwidth: if old { kib * 1024.0 } else { number(fields, "bw_bytes") },
        bandwidth_kib: kib,
        iops: number(fields, "iops"),
        runtime: whole(fields, "runtime"),
        short: whole(fields, "short_ios"),
        dropped: whole(fields, "drop_ios"),
        submission: times(fields, "slat"),
        completion: times(fields, "clat"),
        total: times(fields, "lat"),
        iops_samples: (
            number(fields, "iops_mean"),
            number(fields, "iops_stddev"),
            whole(fields, "iops_samples"),
        ),
    };
    if old {
        // These have no counts.
        let ios = line.ios;
        for times in [&mut line.submission, &mut line.completion, &mut line.total] {
            if times.greatest > 0.0 {
                times.count = ios;
            }
        }
    }
    line
}

fn disk(fields: &Map<String, Value>) -> DiskResult {
    DiskResult {
        name: text(fields, "name").unwrap_or_default(),
        reads: whole(fields, "read_ios"),
        writes: whole(fields, "write_ios"),
        merges: (whole(fields, "read_merges"), whole(fields, "write_merges")),
        busy: number(fields, "util"),
    }
}

fn kelvin(fields: &Map<String, Value>) -> KelvinResult {
    let targets = fields
        .get("targets")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .map(|target| TargetResult {
            path: text(target, "path").unwrap_or_default(),
            depth: target.get("depth_effective").and_then(Value::as_f64),
            lines: ["read", "write", "trim"]
                .into_iter()
                .filter_map(|word| {
                    let line = object(target, word)?;
                    Some((
                        word.to_owned(),
                        number(line, "iops"),
                        number(line, "bw_bytes"),
                        object(line, "clat_ns").map_or(0.0, |times| number(times, "mean")),
                    ))
                })
                .collect(),
        })
        .collect();
    KelvinResult {
        workers: whole(fields, "workers"),
        engine: text(fields, "engine").unwrap_or_default(),
        direct: whole(fields, "direct") > 0,
        depth_asked: whole(fields, "depth_asked"),
        depth: fields.get("depth_effective").and_then(Value::as_f64),
        run_delay: fields.get("run_delay_ns").and_then(Value::as_u64),
        counted: whole(fields, "counted_ns"),
        responses: object(fields, "response_ns")
            .into_iter()
            .flatten()
            .filter_map(|(word, times)| Some((word.clone(), times_in(times.as_object()?, 1.0))))
            .collect(),
        targets,
        notes: fields
            .get("notes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|note| note.as_str().map(str::to_owned))
            .collect(),
        partial: whole(fields, "partial") > 0,
    }
}
