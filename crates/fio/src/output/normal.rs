//! fio's normal text, for a person.

use std::fmt::Write as _;

use super::OutputOptions;
use super::entry::{Line, RateSamples, ResultEntry, TargetTotals, group_rate, merged, rate};
use super::latency::{Classes, LONG, SHORT, is_known, shares};
use super::unit::{TimeUnit, Unit, Units, scaled, short_time};
use crate::job::ReportOptions;
use crate::result::{DiskUse, JobsOutcome, SteadyOutcome};
use crate::{BinSums, Direction, Moments};

/// More targets than these are shown by device, their files added up.
const SHOWN_TARGETS: usize = 16;

/// The result as fio prints it: an entry for each worker or group, the groups' status, the disks. Kelvin's additions
/// are in lines that begin with `kelvin`.
pub fn normal(outcome: &JobsOutcome, options: &OutputOptions) -> String {
    let entries = merged(outcome);
    let mut text = String::from("\n");
    for entry in &entries {
        entry_text(&mut text, entry, &entries, options);
    }
    groups(&mut text, &entries);
    if !outcome.disks.is_empty() {
        text.push_str("\nDisk stats (read/write):\n");
        for disk in &outcome.disks {
            disk_line(&mut text, disk, 2);
        }
    }
    if let Some((state, reasons)) = &options.remarks.state {
        let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        let _ = writeln!(text, "\nkelvin state: {state}{why}");
    }
    text
}

fn entry_text(text: &mut String, entry: &ResultEntry<'_>, all: &[ResultEntry<'_>], options: &OutputOptions) {
    let Some(first) = entry.first() else { return };
    let job = entry.job;
    let error = entry.error.map_or_else(
        // fio also shows an error after which the job continued here, without a message.
        || match entry.first_error {
            Some(number) => format!("{number:2} ()"),
            None => " 0".into(),
        },
        |(number, words)| format!("{number:2} ({words})"),
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{}: (groupid={}, jobs={}): err={error}: pid={}: {}",
        job.name,
        first.group,
        entry.workers.len(),
        first.thread,
        options.time(options.now),
    );
    if let Some(words) = &job.description {
        let _ = writeln!(text, "  Description  : [{words}]");
    }
    for (word, line) in entry.lines() {
        if line.sums.ios > 0 {
            let whole = group_rate(all, first.group, word);
            direction(text, word, &line, &job.report, whole);
        }
    }
    if !job.report.disabled.completion {
        classes(text, &entry.mixed().sums.completion_bins);
    }
    if entry.syncs.count > 0 {
        text.push_str("  fsync/fdatasync/sync_file_range:\n");
        times(text, "sync", &entry.syncs);
        percentiles(text, "sync", &entry.sync_bins, &job.report);
    }
    let (user, system) = entry.cpu_percent();
    if !options.partial {
        let _ = writeln!(
            text,
            "  cpu          : usr={user:3.2}%, sys={system:3.2}%, ctx={}, majf={}, minf={}",
            entry.switches, entry.faults.0, entry.faults.1
        );
    }
    depths(text, entry);
    if entry.workers.iter().any(|worker| !worker.failures.is_empty()) {
        let first = entry.workers.iter().flat_map(|worker| &worker.failures).next();
        let (number, words) = first.map_or((0, ""), |failures| (failures.number, failures.message.as_str()));
        let _ = writeln!(text, "     errors    : total={}, first_error={number}/<{words}>", entry.errors);
    }
    let goal = &job.latency;
    let depth = first.latency_depth.unwrap_or(job.depth.depth);
    let _ = writeln!(
        text,
        "     latency   : target={}, window={}, percentile={:.2}%, depth={depth}",
        goal.target.unwrap_or(0),
        goal.target.map_or(0, |_| goal.window / 1000),
        goal.target.map_or(100.0, |_| goal.percentile),
    );
    if let (Some(steady), Some(asked)) = (&first.steady, &job.steady) {
        steady_line(text, steady, asked, Units::for_report(&job.report));
    }
    added(text, entry);
}

/// Whole milliseconds; any time above zero is at least one.
pub(super) fn millis(nanos: u64) -> u64 {
    if nanos == 0 { 0 } else { ((nanos + 500_000) / 1_000_000).max(1) }
}

fn direction(text: &mut String, word: &str, line: &Line, report: &ReportOptions, whole: f64) {
    let units = Units::for_report(report);
    let rate = line.bytes_per_second();
    let _ = writeln!(
        text,
        "  {word}: IOPS={}, BW={} ({})({}/{}msec){}",
        units.count(line.iops()),
        units.rate(rate),
        units.other_rate(rate),
        units.amount(line.sums.bytes),
        millis(line.runtime),
        // Zoned devices are not treated as such: no zone is reset.
        if word == "write" { "; 0 zone resets" } else { "" },
    );
    times(text, "slat", &line.sums.submission);
    times(text, "clat", &line.sums.completion);
    times(text, " lat", &line.sums.total);
    let kind = if report.total_percentiles { "lat" } else { "clat" };
    for one in line.sums.shown_priorities() {
        times(text, &one.name(kind), &one.times);
    }
    if report.submission_percentiles {
        percentiles(text, "slat", &line.sums.submission_bins, report);
    }
    if report.completion_percentiles {
        percentiles(text, "clat", &line.sums.completion_bins, report);
    }
    if report.total_percentiles {
        percentiles(text, "lat", &line.sums.total_bins, report);
    }
    if report.completion_percentiles || report.total_percentiles {
        for one in line.sums.shown_priorities() {
            let share = one.times.count as f64 / line.sums.ios.max(1) as f64 * 100.0;
            let name = format!("{} ({share:.2}% of IOs)", one.name(kind));
            percentiles(text, &name, &one.bins, report);
        }
    }
    // Times from the intended start are a Kelvin extension, and the main result of a rate-limited run.
    if line.sums.response.count > 0 {
        let shown = [50.0, 99.0, 99.9]
            .map(|percent| format!("p{percent}={}", shown_percentile(&line.sums.response_bins, percent)));
        let _ = writeln!(
            text,
            "    kelvin: from the intended start: avg={}, {}, max={}",
            short_time(line.sums.response.mean().unwrap_or(0.0)),
            shown.join(", "),
            short_time(line.sums.response.greatest as f64),
        );
    }
    rate_samples(text, line, report, whole);
}

/// A percentile with its unit; a dash where there are too few I/Os for it.
fn shown_percentile(bins: &BinSums, percent: f64) -> String {
    match bins.percentile(percent) {
        Some(nanos) if is_known(bins.count(), percent) => short_time(nanos as f64),
        _ => "–".into(),
    }
}

fn times(text: &mut String, word: &str, moments: &Moments) {
    if moments.count == 0 {
        return;
    }
    let (mean, deviation) = (moments.mean().unwrap_or(0.0), moments.deviation());
    let unit = TimeUnit::for_line(moments.least, moments.greatest, deviation);
    let short = |nanos: u64| scaled((nanos / unit.nanos()) as f64, 6, false, Unit::None);
    let per = unit.nanos() as f64;
    let _ = writeln!(
        text,
        "    {word} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        unit.word(),
        short(moments.least),
        short(moments.greatest),
        mean / per,
        deviation / per
    );
}

/// fio's block of percentiles, as many per line as fit. A percentile with fewer than ten I/Os beyond it is shown as a
/// dash: it would only show the times of those few.
fn percentiles(text: &mut String, word: &str, bins: &BinSums, report: &ReportOptions) {
    let all = bins.count();
    if all == 0 || report.percentiles.is_empty() {
        return;
    }
    let values: Vec<(f64, u64)> =
        report.percentiles.iter().map(|percent| (*percent, bins.percentile(*percent).unwrap_or(0))).collect();
    let least = values.first().map_or(0, |value| value.1);
    let greatest = values.iter().map(|value| value.1).max().unwrap_or(0);
    let unit = TimeUnit::for_range(least, greatest);
    // Rounded up, as in fio: no I/O took less than shown.
    let shown = |nanos: u64| nanos.div_ceil(unit.nanos());
    let width = shown(greatest).to_string().len().max(5);
    let decimals = values
        .iter()
        .map(|(percent, _)| {
            let text = format!("{percent:.6}");
            text.trim_end_matches('0').split('.').nth(1).map_or(0, str::len)
        })
        .max()
        .unwrap_or(0);
    let a_line = (73 / (decimals + 10 + width)).max(1);
    let _ = writeln!(text, "    {word} percentiles ({}):", unit.word());
    for (number, line) in values.chunks(a_line).enumerate() {
        text.push_str("     |");
        for (place, (percent, nanos)) in line.iter().enumerate() {
            let value = if is_known(all, *percent) { shown(*nanos).to_string() } else { "–".into() };
            let last = number * a_line + place + 1 == values.len();
            let _ = write!(
                text,
                " {percent:>0$.decimals$}th=[{value:>width$}]{1}",
                decimals + 3,
                if last { "" } else { "," }
            );
        }
        text.push('\n');
    }
}

fn rate_samples(text: &mut String, line: &Line, report: &ReportOptions, whole: f64) {
    let RateSamples { count, least, greatest, mean, deviation } = line.bandwidth;
    if count > 0 {
        let share = if whole > 0.0 { (mean * 1024.0 / whole * 100.0).min(100.0) } else { 0.0 };
        // KiB as fio samples them, in the requested units.
        let (mut per, mut prefix) = if report.thousand { (1.024, "k") } else { (1.0, "Ki") };
        let step: f64 = if report.thousand { 1000.0 } else { 1024.0 };
        if report.bits {
            per *= 8.0;
        }
        if mean * per > step * step {
            per /= step;
            prefix = if report.thousand { "M" } else { "Mi" };
        }
        let unit = format!("{prefix}{}", if report.bits { "bit" } else { "B" });
        let _ = writeln!(
            text,
            "   bw ({unit:>5}/s): min={:5.0}, max={:5.0}, per={share:3.2}%, avg={:5.2}, stdev={:5.2}, samples={count}",
            (least * per).floor(),
            (greatest * per).floor(),
            mean * per,
            deviation * per
        );
    }
    let RateSamples { count, least, greatest, mean, deviation } = line.iops;
    if count > 0 {
        let _ = writeln!(
            text,
            "   iops        : min={:5.0}, max={:5.0}, avg={mean:5.2}, stdev={deviation:5.2}, samples={count}",
            least.floor(),
            greatest.floor()
        );
    }
}

fn classes(text: &mut String, bins: &BinSums) {
    let classes = Classes::from_bins(bins);
    let label = |end: Option<&u64>| end.map_or_else(|| ">=2000".to_owned(), ToString::to_string);
    let rows: [(&str, &[f64], &[u64]); 3] =
        [("nsec", &classes.nano, &SHORT), ("usec", &classes.micro, &SHORT), ("msec", &classes.milli, &LONG)];
    for (unit, shares, ends) in rows {
        let shown: Vec<String> = shares
            .iter()
            .enumerate()
            .filter(|(_, share)| **share > 0.0)
            .map(|(place, share)| format!("{}={share:3.2}%", label(ends.get(place))))
            .collect();
        for line in shown.chunks(5) {
            let _ = writeln!(text, "  lat ({unit})   : {}", line.join(", "));
        }
    }
}

fn depths(text: &mut String, entry: &ResultEntry<'_>) {
    let row = |labels: [&str; 7], counts: &[u64; 7]| {
        let parts: Vec<String> =
            labels.iter().zip(shares(counts)).map(|(label, share)| format!("{label}={share:3.1}%")).collect();
        parts.join(", ")
    };
    let calls = ["0", "4", "8", "16", "32", "64", ">=64"];
    let _ =
        writeln!(text, "  IO depths    : {}", row(["1", "2", "4", "8", "16", "32", ">=64"], &entry.depth.at));
    let _ = writeln!(text, "     submit    : {}", row(calls, &entry.depth.submitted));
    let _ = writeln!(text, "     complete  : {}", row(calls, &entry.depth.completed));
    let of = |figure: fn(&Line) -> u64| {
        Direction::ALL.map(|direction| figure(&entry.directions[direction]).to_string()).join(",")
    };
    let _ = writeln!(
        text,
        "     issued rwts: total={},{} short={},0 dropped={},0",
        of(|line| line.sums.ios),
        entry.syncs.count,
        of(|line| line.sums.short),
        of(|line| line.sums.dropped),
    );
}

fn steady_line(text: &mut String, steady: &SteadyOutcome, asked: &crate::job::SteadyState, units: Units) {
    let mean = |values: &[f64]| {
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    };
    let bandwidth = mean(&steady.bandwidth);
    let figure = match asked.figure {
        crate::job::SteadyFigure::Iops => "iops",
        crate::job::SteadyFigure::Bandwidth => "bw",
        crate::job::SteadyFigure::Latency => "lat",
    };
    let _ = writeln!(
        text,
        "  steadystate  : attained={}, bw={} ({}), iops={}, {figure} {}={:.3}{}",
        if steady.attained { "yes" } else { "no" },
        units.rate(bandwidth),
        units.other_rate(bandwidth),
        units.count(mean(&steady.iops)),
        if asked.slope { "slope" } else { "mean dev" },
        steady.criterion,
        if asked.percent { "%" } else { "" },
    );
}

/// Values that fio does not print: the results of each target where there are several, the effective depth, the reads
/// of the verifying pass, and notes.
fn added(text: &mut String, entry: &ResultEntry<'_>) {
    let units = Units::for_report(&entry.job.report);
    let asked = u64::from(entry.job.depth.depth) * entry.workers.len() as u64;
    let depth = |depth: Option<f64>| depth.map_or_else(|| "–".into(), |depth| format!("{depth:.2}"));
    let several = entry.workers.iter().any(|worker| worker.targets.len() > 1);
    let _ = writeln!(
        text,
        "  kelvin depth : {} in flight on average of {asked} requested (IOPS x mean latency)",
        depth(entry.effective_depth())
    );
    if several {
        let all = entry.target_count();
        let lines = if all > SHOWN_TARGETS {
            let _ = writeln!(text, "  kelvin by device, {all} targets:");
            entry.devices()
        } else {
            let _ = writeln!(text, "  kelvin by target, iodepth {asked} over {all} targets:");
            entry.targets()
        };
        for line in lines {
            target(text, &line, units, &depth(line.depth));
        }
    }
    let verified = entry.verified();
    if verified.ios > 0 {
        let _ = writeln!(
            text,
            "  kelvin verify: {} of the reads above, {}, verified what was written",
            verified.ios,
            units.amount(verified.bytes)
        );
    }
    for worker in &entry.workers {
        for note in &worker.notes {
            let _ = writeln!(text, "  kelvin note  : {note}");
        }
    }
}

fn target(text: &mut String, line: &TargetTotals, units: Units, depth: &str) {
    let device = line.device.as_deref().map_or_else(String::new, |device| format!(" ({device})"));
    let files = if line.files > 1 { format!(", {} files", line.files) } else { String::new() };
    let _ = writeln!(text, "    {}{device}{files}: depth={depth}", line.path.display());
    for (direction, sums) in line.directions.iter() {
        if sums.ios == 0 {
            continue;
        }
        let _ = writeln!(
            text,
            "      {:>5}: IOPS={}, BW={} ({}), clat avg={}, p50={}, p99={}, max={}{}",
            direction.word(),
            units.count(line.iops(direction)),
            units.rate(line.bytes_per_second(direction)),
            units.other_rate(line.bytes_per_second(direction)),
            sums.completion.mean().map_or_else(|| "–".into(), short_time),
            shown_percentile(&sums.completion_bins, 50.0),
            shown_percentile(&sums.completion_bins, 99.0),
            if sums.completion.count > 0 {
                short_time(sums.completion.greatest as f64)
            } else {
                "–".into()
            },
            if sums.failed > 0 { format!(", failed={}", sums.failed) } else { String::new() },
        );
    }
}

/// "Run status group 0": each direction over all entries of the group.
fn groups(text: &mut String, entries: &[ResultEntry<'_>]) {
    let mut numbers: Vec<u32> =
        entries.iter().filter_map(|entry| entry.first().map(|first| first.group)).collect();
    numbers.dedup();
    for group in numbers {
        let members: Vec<&ResultEntry<'_>> =
            entries.iter().filter(|entry| entry.first().is_some_and(|first| first.group == group)).collect();
        let Some(units) = members.first().map(|entry| Units::for_report(&entry.job.report)) else { continue };
        let _ = writeln!(text, "\nRun status group {group} (all jobs):");
        for word in ["read", "write", "trim", "mixed"] {
            let lines: Vec<(u64, u64)> = members
                .iter()
                .filter_map(|entry| entry.brief(word))
                .filter(|(ios, _, runtime)| *ios > 0 && *runtime > 0)
                .map(|(_, bytes, runtime)| (bytes, runtime))
                .collect();
            let rates = || lines.iter().map(|(bytes, runtime)| rate(*bytes, *runtime));
            let (Some(least), Some(greatest)) = (rates().reduce(f64::min), rates().reduce(f64::max)) else {
                continue;
            };
            let bytes: u64 = lines.iter().map(|line| line.0).sum();
            let shortest = lines.iter().map(|line| line.1).min().unwrap_or(0);
            let longest = lines.iter().map(|line| line.1).max().unwrap_or(0);
            let rate = rate(bytes, longest);
            let _ = writeln!(
                text,
                "{:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec",
                word.to_uppercase(),
                units.rate(rate),
                units.other_rate(rate),
                units.rate(least),
                units.rate(greatest),
                units.other_rate(least),
                units.other_rate(greatest),
                units.amount(bytes),
                units.other_amount(bytes),
                millis(shortest),
                millis(longest),
            );
        }
    }
}

/// Share of the time in which a disk was busy, in percent.
pub(super) fn busy(disk: &DiskUse) -> f64 {
    if disk.elapsed == 0 { 0.0 } else { (disk.busy as f64 / disk.elapsed as f64 * 100.0).min(100.0) }
}

fn disk_line(text: &mut String, disk: &DiskUse, indent: usize) {
    use Direction::{Read, Write};
    let pair = |values: &crate::PerDirection<u64>| format!("{}/{}", values[Read], values[Write]);
    let _ = write!(
        text,
        "{:indent$}{}: ios={}, merge={}, ticks={}, in_queue={}, util={:3.2}%",
        "",
        disk.name,
        pair(&disk.ios),
        pair(&disk.merges),
        pair(&disk.ticks),
        disk.in_queue,
        busy(disk)
    );
    let below = Below::from_disk(disk);
    if let Some(below) = &below {
        let pair = |values: &[u64; 2]| format!("{}/{}", values[0], values[1]);
        let _ = write!(
            text,
            ", aggrios={}, aggrmerge={}, aggrticks={}, aggrin_queue={}, aggrutil={:3.2}%",
            pair(&below.ios),
            pair(&below.merges),
            pair(&below.ticks),
            below.in_queue,
            below.busy
        );
    }
    text.push('\n');
    for lower in &disk.below {
        disk_line(text, lower, indent + 2);
    }
}

/// The devices below one, as fio gives them: means of the counts, the greatest use.
pub(super) struct Below {
    pub(super) ios: [u64; 2],
    pub(super) merges: [u64; 2],
    pub(super) ticks: [u64; 2],
    pub(super) in_queue: u64,
    pub(super) busy: f64,
}

impl Below {
    pub(super) fn from_disk(disk: &DiskUse) -> Option<Self> {
        let all = disk.below.len() as u64;
        if all == 0 {
            return None;
        }
        let mean = |figure: fn(&DiskUse) -> u64| disk.below.iter().map(figure).sum::<u64>() / all;
        use Direction::{Read, Write};
        Some(Self {
            ios: [mean(|disk| disk.ios[Read]), mean(|disk| disk.ios[Write])],
            merges: [mean(|disk| disk.merges[Read]), mean(|disk| disk.merges[Write])],
            ticks: [mean(|disk| disk.ticks[Read]), mean(|disk| disk.ticks[Write])],
            in_queue: mean(|disk| disk.in_queue),
            busy: disk.below.iter().map(busy).fold(0.0, f64::max),
        })
    }
}
