//! fio's JSON and JSON+. Everything of Kelvin's is under the key `kelvin`, so that consumers of fio's do not stumble.

use super::entry::{Line, ResultEntry, TargetTotals, group_rate, merged};
use super::latency::{Classes, LONG, SHORT, is_known, shares};
use super::normal::{Below, busy, millis};
use super::tree::{JsonTree, Object};
use super::{OutputOptions, VERSION};
use crate::job::{Mixed, ReportOptions, SteadyFigure, SteadyState};
use crate::jobfile::first_name;
use crate::result::{DiskUse, JobsOutcome, SteadyOutcome};
use crate::{BinSums, Direction, Moments, middle};

/// More targets than these are reported by device, so that the result of a job with a million files remains readable.
const GIVEN_TARGETS: usize = 1024;

/// The result in fio's JSON; with `plus` every bin of the histograms is in it.
pub fn json(outcome: &JobsOutcome, options: &OutputOptions, plus: bool) -> String {
    let entries = merged(outcome);
    let mut top = Object::new();
    top.add("fio version", VERSION)
        .add("timestamp", options.now / 1000)
        .add("timestamp_ms", options.now)
        .add("time", options.time(options.now));
    if !outcome.jobs.global.is_empty() {
        top.add("global options", given(&outcome.jobs.global));
    }
    let jobs: Vec<JsonTree> =
        entries.iter().map(|entry| job(entry, &entries, plus, options.partial).into()).collect();
    top.add("jobs", jobs);
    if !outcome.disks.is_empty() {
        let disks: Vec<JsonTree> = outcome.disks.iter().flat_map(disk).collect();
        top.add("disk_util", disks);
    }
    if let Some(remarks) = remarks(options) {
        top.add("kelvin", remarks);
    }
    format!("{top}\n")
}

/// Kelvin's remarks about the whole run; `None` if there are none.
fn remarks(options: &OutputOptions) -> Option<Object> {
    let mut fields = Object::new();
    if let Some(run) = options.remarks.run {
        fields.add("run", run);
    }
    let list = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect::<Vec<JsonTree>>();
    if let Some((state, reasons)) = &options.remarks.state {
        fields.add("state", *state);
        fields.add("reasons", list(reasons));
    }
    let findings = options.remarks.findings.iter().map(|finding| {
        let fields =
            Object::new().with("id", finding.id.as_str()).with("severity", finding.severity.as_str());
        let fields = fields.with("title", finding.title.as_str()).with("evidence", list(&finding.evidence));
        fields.with("next", finding.next.as_str()).into()
    });
    let findings: Vec<JsonTree> = findings.collect();
    if !findings.is_empty() {
        fields.add("findings", findings);
    }
    if !options.remarks.notes.is_empty() {
        fields.add("notes", list(&options.remarks.notes));
    }
    (!fields.is_empty()).then_some(fields)
}

/// As given, by fio's first name of each option, as in fio's results; options without a value are left out.
fn given(options: &[(String, String)]) -> Object {
    let mut fields = Object::new();
    let named: Vec<_> = options.iter().map(|(name, value)| (first_name(name), value.as_str())).collect();
    for (place, (name, value)) in named.iter().enumerate() {
        // An option may be given twice, a key of an object may not: the last one applies, as for the job.
        if !value.is_empty() && !named.iter().skip(place + 1).any(|(later, _)| later == name) {
            fields.add(*name, *value);
        }
    }
    fields
}

fn job(entry: &ResultEntry<'_>, all: &[ResultEntry<'_>], plus: bool, partial: bool) -> Object {
    let job = entry.job;
    let report = &job.report;
    let mut fields = Object::new();
    let first = entry.first();
    let group = first.map_or(0, |first| first.group);
    let elapsed = entry.workers.iter().map(|worker| worker.elapsed).max().unwrap_or(0);
    let error = entry.error.map(|error| error.0).or(entry.first_error).unwrap_or(0);
    fields.add("jobname", job.name.as_str()).add("groupid", group);
    fields.add("error", i64::from(error)).add("eta", 0_u64).add("elapsed", elapsed.div_ceil(1_000_000_000));
    if !job.given.is_empty() {
        fields.add("job options", given(&job.given));
    }
    for (word, line) in entry.lines() {
        // fio puts the mix behind the syncs where there is both.
        if word == "mixed" && report.mixed == Mixed::Both {
            fields.add("sync", syncs(entry, plus));
        }
        fields.add(word, direction(&line, report, group_rate(all, group, word), plus));
    }
    if report.mixed == Mixed::None {
        fields.add("sync", syncs(entry, plus));
    }
    let (user, system) = entry.cpu_percent();
    fields
        .add("job_runtime", entry.workers.iter().map(|worker| millis(worker.measured)).sum::<u64>())
        .add("usr_cpu", user)
        .add("sys_cpu", system)
        .add("ctx", entry.switches)
        .add("majf", entry.faults.0)
        .add("minf", entry.faults.1)
        .add("iodepth_level", depth(["1", "2", "4", "8", "16", "32", ">=64"], &entry.depth.at));
    let calls = ["0", "4", "8", "16", "32", "64", ">=64"];
    fields
        .add("iodepth_submit", depth(calls, &entry.depth.submitted))
        .add("iodepth_complete", depth(calls, &entry.depth.completed));
    let classes = if report.disabled.completion {
        Classes::default()
    } else {
        Classes::from_bins(&entry.mixed().sums.completion_bins)
    };
    fields
        .add("latency_ns", class(&classes.nano, &SHORT))
        .add("latency_us", class(&classes.micro, &SHORT))
        .add("latency_ms", class(&classes.milli, &LONG));
    let rules = &job.errors;
    let ignores = rules.ignore.iter().any(|numbers| !numbers.is_empty());
    if rules.go_on_read || rules.go_on_write || rules.go_on_verify || ignores {
        fields.add("total_err", entry.errors).add("first_error", i64::from(entry.first_error.unwrap_or(0)));
    }
    // fio reports no depth for a job that never began.
    if entry.workers.iter().any(|worker| worker.started.is_some()) {
        let goal = &job.latency;
        fields
            .add("latency_depth", first.and_then(|first| first.latency_depth).unwrap_or(job.depth.depth))
            .add("latency_target", goal.target.unwrap_or(0))
            .add("latency_percentile", goal.target.map_or(100.0, |_| goal.percentile))
            .add("latency_window", goal.target.map_or(0, |_| goal.window / 1000));
    }
    if let Some(words) = &job.description {
        fields.add("desc", words.as_str());
    }
    if let (Some(steady), Some(asked)) = (first.and_then(|first| first.steady.as_ref()), &job.steady) {
        fields.add("steadystate", steady_state(steady, asked));
    }
    let mut kelvin = added(entry);
    if partial {
        // The run is not over: CPU time, switches and faults are not known yet, and are 0 above.
        kelvin.add("partial", 1_u64);
    }
    fields.add("kelvin", kelvin);
    fields
}

fn times(moments: &Moments) -> Object {
    let none = moments.count == 0;
    Object::new()
        .with("min", if none { 0 } else { moments.least })
        .with("max", if none { 0 } else { moments.greatest })
        .with("mean", moments.mean().unwrap_or(0.0))
        .with("stddev", moments.deviation())
        .with("N", moments.count)
}

/// Times with percentiles, and bins in JSON+, where requested.
fn distribution(moments: &Moments, bins: Option<&BinSums>, report: &ReportOptions, plus: bool) -> Object {
    let mut fields = times(moments);
    let Some(bins) = bins.filter(|bins| bins.count() > 0) else { return fields };
    let mut percentiles = Object::new();
    for percent in &report.percentiles {
        if let Some(nanos) = bins.percentile(*percent) {
            percentiles.add(format!("{percent:.6}"), nanos);
        }
    }
    if !percentiles.is_empty() {
        fields.add("percentile", percentiles);
    }
    if plus {
        let mut counts = Object::new();
        for (bin, count) in bins.filled() {
            counts.add(middle(bin).to_string(), count);
        }
        fields.add("bins", counts);
    }
    fields
}

fn direction(line: &Line, report: &ReportOptions, whole: f64, plus: bool) -> Object {
    let sums = &line.sums;
    let rate = line.bytes_per_second();
    let share = if whole > 0.0 { (line.bandwidth.mean * 1024.0 / whole * 100.0).min(100.0) } else { 0.0 };
    let mut fields = Object::new();
    fields
        .add("io_bytes", sums.bytes)
        .add("io_kbytes", sums.bytes >> 10)
        .add("bw_bytes", rate as u64)
        .add("bw", rate as u64 >> 10)
        .add("iops", line.iops())
        .add("runtime", millis(line.runtime))
        .add("total_ios", sums.ios)
        .add("short_ios", sums.short)
        .add("drop_ios", sums.dropped);
    let asked = |yes: bool, bins| if yes { Some(bins) } else { None };
    let series = [
        ("slat_ns", &sums.submission, asked(report.submission_percentiles, &sums.submission_bins)),
        ("clat_ns", &sums.completion, asked(report.completion_percentiles, &sums.completion_bins)),
        ("lat_ns", &sums.total, asked(report.total_percentiles, &sums.total_bins)),
    ];
    for (name, moments, bins) in series {
        fields.add(name, distribution(moments, bins, report, plus));
    }
    let priorities = sums.shown_priorities();
    if !priorities.is_empty() {
        let name = if report.total_percentiles { "lat_ns" } else { "clat_ns" };
        let bins = |bins| asked(report.completion_percentiles || report.total_percentiles, bins);
        let each = priorities.iter().map(|one| {
            let times = distribution(&one.times, bins(&one.bins), report, plus);
            let fields = Object::new().with("prioclass", u64::from(one.class()));
            fields.with("prio", u64::from(one.level())).with(name, times).into()
        });
        fields.add("prios", each.collect::<Vec<JsonTree>>());
    }
    fields
        .add("bw_min", line.bandwidth.least as u64)
        .add("bw_max", line.bandwidth.greatest as u64)
        .add("bw_agg", share)
        .add("bw_mean", line.bandwidth.mean)
        .add("bw_dev", line.bandwidth.deviation)
        .add("bw_samples", line.bandwidth.count)
        .add("iops_min", line.iops.least as u64)
        .add("iops_max", line.iops.greatest as u64)
        .add("iops_mean", line.iops.mean)
        .add("iops_stddev", line.iops.deviation)
        .add("iops_samples", line.iops.count);
    fields
}

fn syncs(entry: &ResultEntry<'_>, plus: bool) -> Object {
    Object::new()
        .with("total_ios", entry.syncs.count)
        .with("lat_ns", distribution(&entry.syncs, Some(&entry.sync_bins), &entry.job.report, plus))
}

fn depth(labels: [&str; 7], counts: &[u64; 7]) -> Object {
    let mut fields = Object::new();
    for (label, share) in labels.into_iter().zip(shares(counts)) {
        fields.add(label, share);
    }
    fields
}

fn class(shares: &[f64], ends: &[u64]) -> Object {
    let mut fields = Object::new();
    for (place, share) in shares.iter().enumerate() {
        let label = ends.get(place).map_or_else(|| ">=2000".to_owned(), ToString::to_string);
        fields.add(label, *share);
    }
    fields
}

fn steady_state(steady: &SteadyOutcome, asked: &SteadyState) -> Object {
    let mean = |values: &[f64]| {
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    };
    let whole = |values: &[f64]| -> Vec<JsonTree> {
        values.iter().map(|value| (value.round().max(0.0) as u64).into()).collect()
    };
    let figure = match asked.figure {
        SteadyFigure::Iops => "iops",
        SteadyFigure::Bandwidth => "bw",
        SteadyFigure::Latency => "lat",
    };
    let slope = if asked.slope { "_slope" } else { "" };
    let unit = if asked.percent { "%" } else { "" };
    let mut data = Object::new();
    data.add("bw_mean", mean(&steady.bandwidth).round() as u64)
        .add("iops_mean", mean(&steady.iops).round() as u64);
    if asked.figure == SteadyFigure::Latency {
        data.add("lat_mean", mean(&steady.latency));
    }
    data.add("iops", whole(&steady.iops)).add("bw", whole(&steady.bandwidth));
    if asked.figure == SteadyFigure::Latency {
        data.add("lat_ns", whole(&steady.latency));
    }
    Object::new()
        .with("ss", format!("{figure}{slope}:{:.6}{unit}", asked.limit))
        .with("duration", asked.window / 1_000_000_000)
        .with("attained", u64::from(steady.attained))
        .with("criterion", format!("{:.6}{unit}", steady.criterion))
        .with("max_deviation", steady.max_deviation)
        .with("slope", steady.slope)
        .with("data", data)
}

/// The disk, then those below it, as fio lists them.
fn disk(disk: &DiskUse) -> Vec<JsonTree> {
    use Direction::{Read, Write};
    let mut fields = Object::new();
    fields
        .add("name", disk.name.as_str())
        .add("read_ios", disk.ios[Read])
        .add("write_ios", disk.ios[Write])
        .add("read_merges", disk.merges[Read])
        .add("write_merges", disk.merges[Write])
        .add("read_ticks", disk.ticks[Read])
        .add("write_ticks", disk.ticks[Write])
        .add("in_queue", disk.in_queue)
        .add("util", busy(disk));
    if let Some(below) = Below::from_disk(disk) {
        fields
            .add("aggr_read_ios", below.ios[0])
            .add("aggr_write_ios", below.ios[1])
            .add("aggr_read_merges", below.merges[0])
            .add("aggr_write_merge", below.merges[1])
            .add("aggr_read_ticks", below.ticks[0])
            .add("aggr_write_ticks", below.ticks[1])
            .add("aggr_in_queue", below.in_queue)
            .add("aggr_util", below.busy);
    }
    // Later versions of fio include the sectors among the rest; the version with these fields does not.
    fields.add(
        "kelvin",
        Object::new()
            .with("read_sectors", disk.sectors[Read])
            .with("write_sectors", disk.sectors[Write])
            .with("trim_ios", disk.ios[Direction::Trim])
            .with("flush_ios", disk.flushes),
    );
    let mut all = vec![fields.into()];
    all.extend(disk.below.iter().flat_map(self::disk));
    all
}

/// Kelvin's additions to fio's fields.
fn added(entry: &ResultEntry<'_>) -> Object {
    let job = entry.job;
    let mut fields = Object::new();
    fields
        .add("workers", entry.workers.len() as u64)
        .add("engine", job.engine.name.word())
        .add("direct", u64::from(job.sync.direct))
        .add("depth_asked", u64::from(job.depth.depth) * entry.workers.len() as u64);
    if let Some(started) = entry.workers.iter().filter_map(|worker| worker.started).min() {
        fields.add("job_start", started);
    }
    if let Some(depth) = entry.effective_depth() {
        fields.add("depth_effective", depth);
    }
    let issued: u64 = entry.depth.at.iter().sum();
    if issued > 0 {
        fields.add("depth_at_issue", entry.depth.sum as f64 / issued as f64);
    }
    let delays: Vec<u64> = entry.workers.iter().filter_map(|worker| worker.run_delay).collect();
    if !delays.is_empty() {
        fields.add("run_delay_ns", delays.iter().sum::<u64>()).add("counted_ns", entry.counted);
    }
    let mut failed = Object::new();
    for (direction, line) in entry.directions.iter() {
        failed.add(direction.word(), line.sums.failed);
    }
    fields.add("failed_ios", failed);
    let mut responses = Object::new();
    for (direction, line) in entry.directions.iter() {
        if line.sums.response.count > 0 {
            let bins = &line.sums.response_bins;
            responses
                .add(direction.word(), distribution(&line.sums.response, Some(bins), &job.report, false));
        }
    }
    if !responses.is_empty() {
        // From the intended start: includes the delays of a rate limit, which `lat_ns` hides.
        fields.add("response_ns", responses);
    }
    let unknown = unknown_percentiles(entry);
    if !unknown.is_empty() {
        // Fewer than ten I/Os are beyond these percentiles, which would only show the times of those I/Os.
        fields.add("percentiles_of_too_few", unknown);
    }
    let all = entry.target_count();
    let targets = if all > GIVEN_TARGETS {
        fields.add("targets_by_device", all as u64);
        entry.devices()
    } else {
        entry.targets()
    };
    fields.add(
        "targets",
        targets.iter().map(|line| target(line, &job.report).into()).collect::<Vec<JsonTree>>(),
    );
    let sums = entry.verified();
    if entry.workers.iter().any(|worker| worker.verified.is_some()) {
        fields.add(
            "verified",
            Object::new()
                .with("total_ios", sums.ios)
                .with("io_bytes", sums.bytes)
                .with("failed_ios", sums.failed)
                .with("clat_ns", times(&sums.completion)),
        );
    }
    let failures = failures(entry);
    if !failures.is_empty() {
        fields.add("failures", failures);
    }
    if let Some((number, words)) = entry.error {
        fields.add("ended_by", Object::new().with("error", i64::from(number)).with("message", words));
    }
    let notes: Vec<JsonTree> =
        entry.workers.iter().flat_map(|worker| &worker.notes).map(|note| note.as_str().into()).collect();
    if !notes.is_empty() {
        fields.add("notes", notes);
    }
    fields
}

/// Percentiles beyond which fewer than ten I/Os lie, by direction.
fn unknown_percentiles(entry: &ResultEntry<'_>) -> Object {
    let mut unknown = Object::new();
    for (word, line) in entry.lines() {
        let count = line.sums.completion_bins.count();
        let few: Vec<JsonTree> = entry
            .job
            .report
            .percentiles
            .iter()
            .filter(|percent| count > 0 && !is_known(count, **percent))
            .map(|percent| format!("{percent:.6}").into())
            .collect();
        if !few.is_empty() {
            unknown.add(word, few);
        }
    }
    unknown
}

/// Errors of each worker, by target and direction.
fn failures(entry: &ResultEntry<'_>) -> Vec<JsonTree> {
    entry
        .workers
        .iter()
        .flat_map(|worker| worker.failures.iter().map(move |failures| (worker, failures)))
        .map(|(worker, failures)| {
            let path = worker
                .targets
                .get(failures.target as usize)
                .map_or_else(String::new, |target| target.path.display().to_string());
            Object::new()
                .with("target", path)
                .with("direction", failures.direction.map_or("sync", Direction::word))
                .with("error", i64::from(failures.number))
                .with("count", failures.count)
                .with("first_offset", failures.first.0)
                .with("first_length", failures.first.1)
                .with("message", failures.message.as_str())
                .into()
        })
        .collect()
}

fn target(line: &TargetTotals, report: &ReportOptions) -> Object {
    let mut fields = Object::new();
    fields.add("path", line.path.display().to_string());
    if let Some(device) = &line.device {
        fields.add("device", device.as_str());
    }
    fields.add("runtime", millis(line.measured));
    if let Some(depth) = line.depth {
        fields.add("depth_effective", depth);
    }
    for (direction, sums) in line.directions.iter() {
        if sums.ios == 0 && sums.failed == 0 {
            continue;
        }
        fields.add(
            direction.word(),
            Object::new()
                .with("total_ios", sums.ios)
                .with("io_bytes", sums.bytes)
                .with("failed_ios", sums.failed)
                .with("iops", line.iops(direction))
                .with("bw_bytes", line.bytes_per_second(direction) as u64)
                .with("clat_ns", distribution(&sums.completion, Some(&sums.completion_bins), report, false))
                .with("lat_ns", times(&sums.total)),
        );
    }
    fields
}
