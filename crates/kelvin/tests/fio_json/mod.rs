//! Compares the reports of fio and Kelvin for the same jobs: keys, types and units of their JSON must agree, values
//! that the jobs determine must be equal, and times must lie within the limits of the result's other values.

mod corpus;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Directions as they are named in results.
const LINES: [&str; 4] = ["read", "write", "trim", "mixed"];
/// Values of a job that follow from its options.
const DECIDED: [&str; 10] = [
    "jobname",
    "groupid",
    "error",
    "total_err",
    "first_error",
    "job options",
    "latency_target",
    "latency_percentile",
    "latency_window",
    "desc",
];
/// Maps whose keys depend on the course of a run.
const BY_COURSE: [&str; 2] = ["bins", "data"];

/// All differences between two results of the same jobs, and all impossible values in either.
pub(crate) fn differences(fio: &Value, kelvin: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let (Some(fio), Some(kelvin)) = (fio.as_object(), kelvin.as_object()) else {
        return vec!["a result is no object".into()];
    };
    same_form(
        "",
        &without(fio, &["jobs", "disk_util"]),
        &without(kelvin, &["jobs", "disk_util"]),
        &mut found,
    );
    if fio.get("global options") != kelvin.get("global options") {
        found.push(format!(
            "global options: {:?} and {:?}",
            fio.get("global options"),
            kelvin.get("global options")
        ));
    }
    let (fio_jobs, kelvin_jobs) = (list(fio, "jobs"), list(kelvin, "jobs"));
    if fio_jobs.len() != kelvin_jobs.len() {
        found.push(format!("{} entries in fio's result, {} in Kelvin's", fio_jobs.len(), kelvin_jobs.len()));
    }
    for (place, (one, other)) in fio_jobs.iter().zip(kelvin_jobs).enumerate() {
        let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { continue };
        let name = one.get("jobname").and_then(Value::as_str).unwrap_or("?");
        let mut of_job = Vec::new();
        same_form("", one, other, &mut of_job);
        decided(one, other, fio.get("global options"), &mut of_job);
        for (tool, entry) in [("fio", one), ("kelvin", other)] {
            possible(entry, &mut |text| of_job.push(format!("{tool}: {text}")));
        }
        found.extend(of_job.into_iter().map(|text| format!("entry {place} ({name}): {text}")));
    }
    // The device must be the same; its activity may differ.
    for disk in list(fio, "disk_util") {
        let same = |other: &&Value| other.get("name") == disk.get("name");
        if let (Some(disk), Some(other)) =
            (disk.as_object(), list(kelvin, "disk_util").iter().find(same).and_then(Value::as_object))
        {
            same_form("disk_util", disk, other, &mut found);
        }
    }
    found
}

fn list<'a>(fields: &'a Map<String, Value>, name: &str) -> &'a [Value] {
    fields.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
}

fn without(fields: &Map<String, Value>, names: &[&str]) -> Map<String, Value> {
    let kept = fields.iter().filter(|(name, _)| !names.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_f64() => "a number with decimals",
        Value::Number(_) => "a whole number",
        Value::String(_) => "a text",
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        _ => "something that fio never writes",
    }
}

/// Keys and types, recursively. Kelvin's additions have a separate key.
fn same_form(path: &str, fio: &Map<String, Value>, kelvin: &Map<String, Value>, found: &mut Vec<String>) {
    let names: BTreeSet<&String> = fio.keys().chain(kelvin.keys()).filter(|name| *name != "kelvin").collect();
    for name in names {
        let path = format!("{path}/{name}");
        match (fio.get(name), kelvin.get(name)) {
            (Some(_), None) => found.push(format!("{path} is fio's alone")),
            (None, Some(_)) => found.push(format!("{path} is Kelvin's alone")),
            (Some(one), Some(other)) if kind(one) != kind(other) => {
                found.push(format!("{path} is {} and {}", kind(one), kind(other)));
            }
            (Some(Value::Object(one)), Some(Value::Object(other))) if !BY_COURSE.contains(&name.as_str()) => {
                same_form(&path, one, other, found);
            }
            (Some(Value::Array(one)), Some(Value::Array(other))) => {
                if let (Some(Value::Object(one)), Some(Value::Object(other))) = (one.first(), other.first()) {
                    same_form(&path, one, other, found);
                }
            }
            _ => {}
        }
    }
}

fn count(fields: &Map<String, Value>, line: &str, name: &str) -> u64 {
    fields.get(line).and_then(|line| line.get(name)).and_then(Value::as_u64).unwrap_or(0)
}

/// Which amounts of a job its options determine.
struct Decides {
    /// Any amount: not where time, the end of a rate or a full device decides.
    amounts: bool,
    /// Amounts of reads and of writes: not where each I/O draws its direction.
    directions: bool,
    /// The number of I/Os: not where each I/O draws its length.
    ios: bool,
    /// The numbers of short I/Os and syncs: not where fio counts syncs as short I/Os.
    syncs: bool,
}

/// fio counts each `fdatasync` and `sync_file_range` as a short I/O of no bytes, and not as a sync.
fn miscounts_syncs(job: &Map<String, Value>) -> bool {
    let options = job.get("job options").and_then(Value::as_object);
    options.is_some_and(|options| {
        ["fdatasync", "sync_file_range"].iter().any(|name| options.contains_key(*name))
    })
}

impl Decides {
    fn from_job(job: &Map<String, Value>, global: Option<&Value>) -> Self {
        let option = |names: &[&str]| {
            let of = |options: Option<&Value>| {
                names.iter().find_map(|name| options?.get(name)?.as_str().map(ToOwned::to_owned))
            };
            of(job.get("job options")).or_else(|| of(global))
        };
        let pattern = option(&["rw", "readwrite"]).unwrap_or_default();
        let mixed = ["rw", "readwrite", "randrw"].contains(&pattern.split(':').next().unwrap_or_default());
        let drawn = ["bsrange", "blocksize_range", "bssplit"].iter().any(|name| option(&[name]).is_some());
        let timed = [
            "time_based",
            "runtime",
            "timeout",
            "fill_device",
            "latency_target",
            "steadystate",
            "ss",
            "flow",
        ];
        let failed = job.get("error").and_then(Value::as_u64) != Some(0);
        let random = pattern.starts_with("rand");
        let by_direction = ["bs", "blocksize", "blockalign", "ba", "bsrange", "blocksize_range", "bssplit"]
            .iter()
            .any(|name| option(&[name]).is_some_and(|size| size.contains(',')));
        // If lengths are random, so is the last I/O of a random region, and the size of the file.
        let drawn_amount = random && drawn
            || (random || mixed) && by_direction
            || option(&["bs_is_seq_rand"]).is_some()
            || option(&["filesize"]).is_some_and(|size| size.contains('-'));
        Self {
            amounts: !failed && !drawn_amount && !timed.iter().any(|name| option(&[name]).is_some()),
            directions: !mixed && option(&["trim_percentage"]).is_none(),
            ios: !drawn,
            syncs: !miscounts_syncs(job),
        }
    }
}

/// Checks that values determined by the jobs are equal.
fn decided(
    fio: &Map<String, Value>,
    kelvin: &Map<String, Value>,
    global: Option<&Value>,
    found: &mut Vec<String>,
) {
    for name in DECIDED {
        if fio.get(name) != kelvin.get(name) {
            found.push(format!("{name}: {:?} and {:?}", fio.get(name), kelvin.get(name)));
        }
    }
    let decides = Decides::from_job(fio, global);
    if !decides.amounts {
        return;
    }
    let mut figures: Vec<(&str, bool)> = vec![("io_bytes", true), ("io_kbytes", decides.directions)];
    let short = decides.ios && decides.syncs;
    figures.extend([("total_ios", decides.ios), ("short_ios", short), ("drop_ios", decides.ios)]);
    for (name, _) in figures.into_iter().filter(|(_, is)| *is) {
        let of = |job: &Map<String, Value>| -> Vec<u64> {
            let each = LINES.iter().map(|line| count(job, line, name));
            if decides.directions { each.collect() } else { vec![each.sum()] }
        };
        if of(fio) != of(kelvin) {
            found.push(format!("{name} of {LINES:?}: {:?} and {:?}", of(fio), of(kelvin)));
        }
    }
    if decides.directions && short && count(fio, "sync", "total_ios") != count(kelvin, "sync", "total_ios") {
        let (one, other) = (count(fio, "sync", "total_ios"), count(kelvin, "sync", "total_ios"));
        found.push(format!("sync/total_ios: {one} and {other}"));
    }
    for line in LINES {
        for times in ["slat_ns", "clat_ns", "lat_ns"] {
            // Either every I/O has a time, or none.
            let taken = |job: &Map<String, Value>| {
                let times = job.get(line).and_then(|line| line.get(times));
                (
                    times.and_then(|times| times.get("N")).and_then(Value::as_u64).unwrap_or(0),
                    count(job, line, "total_ios"),
                )
            };
            let (one, other) = (taken(fio), taken(kelvin));
            if decides.directions && (one.0 == one.1) != (other.0 == other.1) {
                found
                    .push(format!("{line}/{times}/N: {} of {} and {} of {}", one.0, one.1, other.0, other.1));
            }
        }
    }
}

fn real(value: Option<&Value>) -> f64 {
    value.and_then(Value::as_f64).unwrap_or(0.0)
}

/// Checks that times and rates are within the limits of the same result's other values.
fn possible(job: &Map<String, Value>, report: &mut dyn FnMut(String)) {
    for name in LINES {
        let Some(line) = job.get(name).and_then(Value::as_object) else { continue };
        let figure = |name: &str| real(line.get(name));
        let (bytes, ios, runtime) = (figure("io_bytes"), figure("total_ios"), figure("runtime"));
        // The runtime is in whole milliseconds, while one tool divides by nanoseconds.
        let rate = |amount: f64| {
            (amount * 1000.0 / (runtime + 1.0) - 1.0, amount * 1000.0 / (runtime - 1.0).max(0.001) + 1.0)
        };
        for (figure, found, (least, most)) in
            [("bw_bytes", figure("bw_bytes"), rate(bytes)), ("iops", figure("iops"), rate(ios))]
        {
            if runtime > 0.0 && !(least..=most).contains(&found) {
                report(format!("{name}/{figure} is {found}, and must lie within {least} and {most}"));
            }
        }
        if (figure("bw_bytes") / 1024.0 - figure("bw")).abs() > 1.0 {
            report(format!("{name}/bw is {} KiB/s and bw_bytes {}", figure("bw"), figure("bw_bytes")));
        }
        if figure("bw_samples") > 0.0 {
            ascending(
                name,
                &[
                    ("bw_min", figure("bw_min") - 1.0),
                    ("bw_mean", figure("bw_mean")),
                    ("bw_max", figure("bw_max") + 1.0),
                ],
                report,
            );
        }
        if figure("iops_samples") > 0.0 {
            ascending(
                name,
                &[
                    ("iops_min", figure("iops_min") - 1.0),
                    ("iops_mean", figure("iops_mean")),
                    ("iops_max", figure("iops_max") + 1.0),
                ],
                report,
            );
        }
        if !(0.0..=100.1).contains(&figure("bw_agg")) {
            report(format!("{name}/bw_agg is {}", figure("bw_agg")));
        }
        for times in ["slat_ns", "clat_ns", "lat_ns"] {
            if let Some(fields) = line.get(times).and_then(Value::as_object) {
                distribution(&format!("{name}/{times}"), fields, report);
            }
        }
    }
    for name in ["iodepth_level", "iodepth_submit", "iodepth_complete"] {
        let sum = sum(job, name);
        // fio includes the syncs of fsync=N, but computes shares of the I/Os without them.
        let most = if miscounts_syncs(job) { 201.0 } else { 110.0 };
        if sum > 0.0 && !(99.0..=most).contains(&sum) {
            report(format!("{name} adds up to {sum} %"));
        }
    }
    let classes: f64 =
        ["latency_ns", "latency_us", "latency_ms"].into_iter().map(|name| sum(job, name)).sum();
    if classes > 0.0 && !(99.0..=102.0).contains(&classes) {
        report(format!("the classes of latency add up to {classes} %"));
    }
    let (user, system) = (real(job.get("usr_cpu")), real(job.get("sys_cpu")));
    // fio's values have the resolution of kernel ticks, 1 to 10 ms.
    let slack = 100.0 * 20.0 / real(job.get("job_runtime")).max(1.0);
    if user < 0.0 || system < 0.0 || user + system > 101.0 + slack {
        report(format!("{user} % and {system} % of a CPU"));
    }
}

fn sum(job: &Map<String, Value>, name: &str) -> f64 {
    let fields = job.get(name).and_then(Value::as_object);
    fields.map_or(0.0, |fields| fields.values().map(|share| real(Some(share))).sum())
}

fn ascending(name: &str, figures: &[(&str, f64)], report: &mut dyn FnMut(String)) {
    for pair in figures.windows(2) {
        let [(one, low), (other, high)] = pair else { continue };
        if low > high {
            report(format!("{name}: {one} is {low} and {other} {high}"));
        }
    }
}

fn distribution(path: &str, fields: &Map<String, Value>, report: &mut dyn FnMut(String)) {
    let figure = |name: &str| real(fields.get(name));
    if figure("N") == 0.0 {
        return;
    }
    let (least, most) = (figure("min"), figure("max"));
    ascending(path, &[("min", least - 1.0), ("mean", figure("mean")), ("max", most + 1.0)], report);
    if figure("stddev") > most - least + 1.0 {
        report(format!("{path}: stddev is {}, between {least} and {most}", figure("stddev")));
    }
    let percentiles = fields.get("percentile").and_then(Value::as_object);
    let mut last = 0.0;
    let mut sorted: Vec<(f64, f64)> = percentiles
        .into_iter()
        .flatten()
        .map(|(percent, nanos)| (percent.parse().unwrap_or(-1.0), real(Some(nanos))))
        .collect();
    sorted.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (percent, nanos) in sorted {
        // Bins are up to 1.6 % wide, and a percentile is the middle or end of a bin.
        if nanos < last || nanos < least * 0.98 - 1.0 || nanos > most * 1.02 + 1.0 {
            report(format!("{path}: p{percent} is {nanos}, after {last}, between {least} and {most}"));
        }
        last = nanos;
    }
}
