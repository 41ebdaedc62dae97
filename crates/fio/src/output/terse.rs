//! fio's terse lines: fields apart by semicolons, times in microseconds.

use std::fmt::Write as _;

use super::entry::{Line, RateSamples, ResultEntry, merged};
use super::latency::{Classes, shares};
use super::normal::{busy, millis};
use super::{OutputOptions, VERSION};
use crate::job::ReportOptions;
use crate::result::{DiskUse, JobsOutcome};
use crate::{Error, Moments, Result, error::Location};

/// Percentiles in a line, whatever the list's length.
const PERCENTILES: usize = 20;

/// A line for each entry, in the version of the options: 2 to 5.
pub fn terse(outcome: &JobsOutcome, options: &OutputOptions) -> Result<String> {
    let version = options.terse_version;
    if !(2..=5).contains(&version) {
        return Err(Error::Input {
            place: Location::default(),
            problem: format!("there is no terse version {version}: use 2, 3, 4 or 5"),
        });
    }
    let mut text = String::new();
    for entry in merged(outcome) {
        line(&mut text, &entry, &outcome.disks, version);
    }
    Ok(text)
}

/// A name in a field: what separates fields and lines cannot be in it.
fn field(name: &str) -> String {
    name.replace([';', '\n'], "_")
}

fn line(text: &mut String, entry: &ResultEntry<'_>, disks: &[DiskUse], version: u8) {
    let group = entry.first().map_or(0, |first| first.group);
    let error = entry.error.map(|error| error.0).or(entry.first_error).unwrap_or(0);
    let name = field(&entry.job.name);
    // What is written to a String cannot fail.
    let _ = match version {
        2 => write!(text, "2;{name};{group};{error}"),
        _ => write!(text, "{version};{VERSION};{name};{group};{error}"),
    };
    for (word, shown) in entry.lines() {
        // Version 3 has no place for trims.
        if word != "trim" || version != 3 {
            direction(text, &shown, &entry.job.report, version);
        }
    }
    let (user, system) = entry.cpu_percent();
    let _ = write!(text, ";{user:.6}%;{system:.6}%;{};{};{}", entry.switches, entry.faults.0, entry.faults.1);
    for share in shares(&entry.depth.at) {
        let _ = write!(text, ";{share:3.1}%");
    }
    let classes = if entry.job.report.disabled.completion {
        Classes::default()
    } else {
        Classes::from_bins(&entry.mixed().sums.completion_bins)
    };
    // What is below a microsecond is in the first class of microseconds.
    let below: f64 = classes.nano.iter().sum();
    for (place, share) in classes.micro.iter().chain(&classes.milli).enumerate() {
        let _ = write!(text, ";{:3.2}%", if place == 0 { share + below } else { *share });
    }
    if version > 2 {
        for disk in disks {
            use crate::Direction::{Read, Write};
            let _ = write!(
                text,
                ";{};{};{};{};{};{};{};{};{:3.2}%",
                field(&disk.name),
                disk.ios[Read],
                disk.ios[Write],
                disk.merges[Read],
                disk.merges[Write],
                disk.ticks[Read],
                disk.ticks[Write],
                disk.in_queue,
                busy(disk)
            );
        }
    }
    let rules = &entry.job.errors;
    if rules.go_on_read || rules.go_on_write || rules.go_on_verify {
        let _ = write!(text, ";{};{}", entry.errors, entry.first_error.unwrap_or(0));
    }
    if let Some(words) = &entry.job.description {
        let _ = write!(text, ";{}", field(words));
    }
    text.push('\n');
}

fn times(text: &mut String, moments: &Moments) {
    let (least, greatest) = if moments.count == 0 { (0, 0) } else { (moments.least, moments.greatest) };
    let _ = write!(
        text,
        ";{};{};{:.6};{:.6}",
        least / 1000,
        greatest / 1000,
        moments.mean().unwrap_or(0.0) / 1000.0,
        moments.deviation() / 1000.0
    );
}

fn direction(text: &mut String, line: &Line, report: &ReportOptions, version: u8) {
    let _ = write!(
        text,
        ";{};{};{};{}",
        line.sums.bytes >> 10,
        line.bytes_per_second() as u64 >> 10,
        line.iops() as u64,
        millis(line.runtime)
    );
    times(text, &line.sums.submission);
    times(text, &line.sums.completion);
    // As fio: where both are asked for, those of the whole time.
    let bins = if report.total_percentiles { &line.sums.total_bins } else { &line.sums.completion_bins };
    let asked = report.completion_percentiles || report.total_percentiles;
    for place in 0..PERCENTILES {
        let _ = match report.percentiles.get(place).filter(|_| asked) {
            Some(percent) => {
                write!(text, ";{percent:.6}%={}", bins.percentile(*percent).unwrap_or(0) / 1000)
            }
            None => write!(text, ";0%=0"),
        };
    }
    times(text, &line.sums.total);
    let share = if line.bytes_per_second() > 0.0 {
        (line.bandwidth.mean * 1024.0 / line.bytes_per_second() * 100.0).min(100.0)
    } else {
        0.0
    };
    let RateSamples { count, least, greatest, mean, deviation } = line.bandwidth;
    let _ = write!(text, ";{};{};{share:.6}%;{mean:.6};{deviation:.6}", least as u64, greatest as u64);
    if version >= 5 {
        let iops = line.iops;
        let _ = write!(
            text,
            ";{count};{};{};{:.6};{:.6};{}",
            iops.least as u64, iops.greatest as u64, iops.mean, iops.deviation, iops.count
        );
    }
}
